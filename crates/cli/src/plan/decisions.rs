//! Decides for every option of every verb, as listed by clap, what happens if it cannot have an
//! effect.

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory, Parser};

use super::compress::CompressPlan;
use super::decompress::DecompressPlan;
use super::effects::{check_list, check_serve};
use crate::args::{RefrainArgs, RfnArgs, RfnMode, Verb};
use crate::failure::Failure;
use crate::selection::ArchiveSelection;
use Decision::{Acts, Idle, Refused, RefusedOpened};

#[derive(Debug, Clone, Copy)]
enum Decision {
    /// It has an effect in every accepted combination.
    Acts,
    /// These lines, in which it would have none, are refused.
    Refused(&'static [&'static str]),
    /// Whether it has one depends on the opened file. `tests/cases/no_effect.rs` has the line.
    RefusedOpened(&'static str),
    /// It may have nothing to do, for this reason, without being a mistake.
    Idle(&'static str),
}

const PERMISSION: &str = "it permits what would be refused, and nothing may be refused";
const BOUND: &str = "a bound acts where it is reached";
const DETAIL: &str = "more or less detail, where a verb has it";
const PLACE: &str = "a place for what has no room in memory, if there is such a thing";
const LAST: &str = "the last generation may be the one that is chosen";
const NONE: &str = "it states that none of an archive is used, which may have none";
const BOTH_WAYS: &str = "tar passes the same options for both directions";

/// Decisions by verb (`*` is any) and option; the first match counts.
const DECISIONS: &[(&str, &str, Decision)] = &[
    ("*", "help", Acts),
    // Options of every run.
    ("*", "profile", Acts),
    (
        "*",
        "profile_locks",
        Refused(&["refrain test --profile-locks {file}"]),
    ),
    ("*", "trace", Acts),
    ("*", "background", Acts),
    ("*", "latency", Idle("it acts beside other work")),
    ("*", "threads", Idle("the output does not depend on it")),
    ("*", "memory", Idle(BOUND)),
    (
        "compress",
        "temporary",
        Refused(&["refrain compress --format lrz --temporary {dir} {file}"]),
    ),
    ("*", "temporary", Idle(PLACE)),
    ("*", "content_max", Idle(BOUND)),
    ("*", "work_max", Idle(BOUND)),
    // The last of -q and -v wins.
    ("*", "quiet", Idle(DETAIL)),
    ("list", "verbose", Refused(&["refrain list -v -0 {file}"])),
    ("*", "verbose", Idle(DETAIL)),
    (
        "info",
        "json",
        Refused(&["refrain info --table --json {file}"]),
    ),
    (
        "list",
        "json",
        Refused(&[
            "refrain list -0 --json {file}",
            "refrain list -l --json {file}",
        ]),
    ),
    (
        "hash",
        "json",
        Refused(&[
            "refrain hash --json --tag {file}",
            "refrain hash --json -z {file}",
        ]),
    ),
    ("*", "json", Acts),
    (
        "compress",
        "password_file",
        Refused(&[
            "refrain compress --password-file {file} {file}",
            "refrain compress --password-file {none} {file}",
            "refrain compress --password-file {none} {dir}",
            "refrain compress --password-file {file} -o {none} {file} {dir}",
            "refrain compress --password-file {file} -",
            "refrain compress --format lrz --password-file {file} {file}",
            "refrain compress --format rfn --password-file {file} {file}",
            "refrain compress --recipient age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj --password-file {file} {file}",
        ]),
    ),
    (
        "compress",
        "password_command",
        Refused(&["refrain compress --password-command true {file}"]),
    ),
    (
        "compress",
        "pad",
        Refused(&[
            "refrain compress --pad {file}",
            "refrain compress --format lrz --encrypt --pad {file}",
        ]),
    ),
    (
        "compress",
        "recipient",
        Refused(&[
            "refrain compress --format lrz --recipient age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj {file}",
        ]),
    ),
    (
        "compress",
        "recipients_file",
        Refused(&["refrain compress --format lrz --recipients-file {file} {file}"]),
    ),
    (
        "compress",
        "password_fd",
        Refused(&[
            "refrain compress --password-fd 0 {file}",
            "refrain compress --format lrz --password-fd 3 {dir}",
        ]),
    ),
    (
        "rfn",
        "password_file",
        Refused(&[
            "rfn --password-file {file} {file}",
            "unrfn -z --password-file {none} {file}",
        ]),
    ),
    (
        "rfn",
        "password_fd",
        Refused(&["rfn -c --password-fd 5 {file}"]),
    ),
    (
        "rfn",
        "password_command",
        Refused(&["rfn -c --password-command true {file}"]),
    ),
    (
        "rfn",
        "identity",
        Refused(&["rfn --identity {file} {file}"]),
    ),
    ("rfn", "encrypt", Idle(BOTH_WAYS)),
    ("rfn", "recipient", Idle(BOTH_WAYS)),
    ("rfn", "recipients_file", Idle(BOTH_WAYS)),
    ("rfn", "pad", Refused(&["rfn --pad {file}"])),
    ("key", "action", Acts),
    ("key", "file", Acts),
    (
        "key",
        "post_quantum",
        RefusedOpened("key list --post-quantum"),
    ),
    ("key", "recipient", RefusedOpened("--recipient")),
    ("key", "recipients_file", RefusedOpened("--recipients-file")),
    (
        "key",
        "new_password",
        RefusedOpened("key list --new-password"),
    ),
    (
        "key",
        "new_password_file",
        RefusedOpened("--new-password-file"),
    ),
    ("key", "slot", RefusedOpened("key add --slot")),
    ("sign", "key", Acts),
    ("sign", "attach", Acts),
    ("sign", "statement", Acts),
    (
        "sign",
        "check",
        Refused(&["refrain sign --statement --check {file}"]),
    ),
    (
        "sign",
        "signer",
        Refused(&[
            "refrain sign --key {file} --signer RWTykBXoF5CvEa54JN9dNL40wFXk+yoiiRP2+dMaWhvjwTBeyLZVJ0wd {file}",
        ]),
    ),
    (
        "sign",
        "signers_file",
        Refused(&["refrain sign --key {file} --signers-file {file} {file}"]),
    ),
    (
        "compress",
        "sign",
        Refused(&["refrain compress --format lrz --sign {file} {file}"]),
    ),
    (
        "*",
        "key_password_file",
        Refused(&[
            "refrain compress --key-password-file {file} {file}",
            "refrain sign --statement --key-password-file {file} {file}",
        ]),
    ),
    ("*", "signer", Acts),
    ("*", "signers_file", Acts),
    ("*", "root_hash", Acts),
    (
        "*",
        "signature",
        Refused(&["refrain decompress --signature {file} {file}"]),
    ),
    ("key", "check", RefusedOpened("key list --check")),
    ("*", "password_file", RefusedOpened("--password-file pw")),
    ("*", "password_fd", RefusedOpened("--password-fd 0")),
    ("*", "password_command", RefusedOpened("--password-command")),
    ("*", "identity", RefusedOpened("--identity")),
    // Outputs, and what happens to sources.
    ("map", "output", Acts),
    ("lab", "output", Acts),
    (
        "rfn",
        "output",
        Refused(&["rfn -t -o {none} {file}", "rfn -l -o {none} {file}"]),
    ),
    (
        "rfn",
        "stdout",
        Refused(&["rfn -t -c {file}", "rfn -lc {file}"]),
    ),
    ("*", "output", Acts),
    ("map", "force", Refused(&["refrain map -f {file}"])),
    ("lab", "force", Refused(&["refrain lab --force cache"])),
    ("*", "force", Idle(PERMISSION)),
    (
        "compress",
        "rm",
        Refused(&[
            "refrain compress --rm {file} -o -",
            "refrain compress --rm -",
            "refrain compress --rm - -o {none}",
            "refrain compress --rm {dir}",
            "refrain compress --rm {dir} -o {none}",
            "refrain compress --rm /dev/null -o {none}",
        ]),
    ),
    (
        "decompress",
        "rm",
        Refused(&[
            "refrain decompress --rm {file} -o -",
            "refrain decompress --rm -",
            "refrain decompress --rm {file} --exclude x",
            "refrain decompress --rm {file} -- path",
        ]),
    ),
    ("rfn", "rm", Refused(&["rfn -t --rm {file}"])),
    ("*", "keep", Idle("it states the default")),
    (
        "compress",
        "sync",
        Refused(&[
            "refrain compress --sync {file} -o -",
            "refrain compress --sync -",
        ]),
    ),
    (
        "decompress",
        "sync",
        Refused(&[
            "refrain decompress --sync {file} -o -",
            "refrain decompress --sync -",
        ]),
    ),
    ("rfn", "sync", Refused(&["rfn -t --sync {file}"])),
    (
        "compress",
        "check",
        Refused(&[
            "refrain compress --check {file} -o -",
            "refrain compress --check -",
        ]),
    ),
    (
        "decompress",
        "check",
        Refused(&[
            "refrain decompress --check {file} -o -",
            "refrain decompress --check -",
        ]),
    ),
    ("rfn", "check", Refused(&["rfn -t --check {file}"])),
    // Compression.
    (
        "compress",
        "unpack",
        Refused(&["refrain compress --unpack {dir}"]),
    ),
    ("compress", "files", Acts),
    (
        "compress",
        "name",
        Refused(&[
            "refrain compress --name a {file} {dir} -o {none}",
            "refrain compress --name a --name b {file}",
            "refrain compress --name a --name a {file} {dir} -o {none}",
            "refrain compress --name ../a {file} -o {none}",
            "refrain compress --name /a {file} -o {none}",
            "refrain compress --format lrz --name a {file}",
        ]),
    ),
    // The last of several levels wins, as in gzip and xz.
    ("rfn", "level", Idle(BOTH_WAYS)),
    ("*", "level", Acts),
    ("rfn", "purpose", Idle(BOTH_WAYS)),
    (
        "*",
        "purpose",
        Refused(&["refrain compress --format lrz --for serve {file}"]),
    ),
    ("rfn", "codec", Idle(BOTH_WAYS)),
    (
        "*",
        "codec",
        Refused(&["refrain compress --format lrz --codec zstd {file}"]),
    ),
    ("rfn", "block_size", Idle(BOTH_WAYS)),
    (
        "*",
        "block_size",
        Refused(&["refrain compress --format lrz --block-size 1M {file}"]),
    ),
    ("rfn", "reach", Idle(BOTH_WAYS)),
    (
        "*",
        "reach",
        Refused(&["refrain compress --format lrz --reach 1M {file}"]),
    ),
    ("rfn", "hash", Idle(BOTH_WAYS)),
    (
        "*",
        "hash",
        Refused(&["refrain compress --format lrz --hash md5 {file}"]),
    ),
    // Selecting entries of directories.
    (
        "compress",
        "exclude",
        Refused(&[
            "refrain compress --exclude x {file}",
            "refrain compress --exclude x -",
            "refrain compress --format lrz --exclude x {dir}",
        ]),
    ),
    (
        "compress",
        "exclude_from",
        Refused(&["refrain compress --exclude-from {file} {file}"]),
    ),
    (
        "compress",
        "include",
        Refused(&["refrain compress --include x {file}"]),
    ),
    (
        "compress",
        "exclude_caches",
        Refused(&[
            "refrain compress --exclude-caches {file}",
            "refrain compress --exclude-caches --files-from {file} {dir}",
        ]),
    ),
    (
        "compress",
        "files_from",
        Refused(&[
            "refrain compress --files-from {file} {file}",
            "refrain compress --files-from {file} {dir} {dir} -o {none}",
        ]),
    ),
    ("compress", "null", Refused(&["refrain compress -0 {dir}"])),
    (
        "compress",
        "one_file_system",
        Refused(&["refrain compress --one-file-system {file}"]),
    ),
    (
        "compress",
        "strict",
        Refused(&["refrain compress --strict {file}"]),
    ),
    ("*", "exclude", Acts),
    ("*", "exclude_from", Acts),
    ("*", "include", Acts),
    // lrzip's format.
    ("compress", "format", Acts),
    (
        "compress",
        "back_end",
        Refused(&[
            "refrain compress --back-end zpaq {file}",
            "refrain compress --format rfn --back-end zpaq {file}",
        ]),
    ),
    (
        "compress",
        "window",
        Refused(&["refrain compress --format rfn --window 64M {file}"]),
    ),
    (
        "compress",
        "encrypt",
        Refused(&["refrain compress --format rfn --encrypt=gcm {file}"]),
    ),
    // Owners.
    (
        "decompress",
        "same_owner",
        Refused(&["refrain decompress --same-owner {file} -o -"]),
    ),
    (
        "decompress",
        "no_same_owner",
        Refused(&["refrain decompress --no-same-owner -"]),
    ),
    (
        "decompress",
        "numeric_owner",
        Refused(&[
            "refrain decompress --numeric-owner {file} -o -",
            "refrain decompress --numeric-owner --no-same-owner {file}",
        ]),
    ),
    (
        "decompress",
        "keep_broken",
        Idle("an archive may have no damage"),
    ),
    ("decompress", "operands", Acts),
    ("decompress", "paths", Acts),
    ("rfn", "files", Acts),
    ("rfn", "compress", Acts),
    ("rfn", "decompress", Acts),
    ("rfn", "test", Acts),
    ("rfn", "list", Acts),
    // Reading.
    (
        "test",
        "fast",
        Refused(&["refrain test --fast --member x {file}"]),
    ),
    ("test", "member", Acts),
    ("*", "archives", Acts),
    ("*", "archive", Acts),
    (
        "info",
        "table",
        Refused(&["refrain info --table --json {file}"]),
    ),
    ("*", "scan", RefusedOpened("--scan")),
    ("list", "operands", Acts),
    ("list", "patterns", Acts),
    (
        "list",
        "long",
        Refused(&[
            "refrain list -l -0 {file}",
            "refrain list --long --json {file}",
        ]),
    ),
    (
        "list",
        "numeric_owner",
        Refused(&["refrain list --numeric-owner {file}"]),
    ),
    ("list", "null", Refused(&["refrain list -0 --json {file}"])),
    ("cat", "paths", Acts),
    ("cat", "range", RefusedOpened("--range 0..1")),
    // Services.
    ("serve", "nbd", Acts),
    ("*", "http", Acts),
    (
        "serve",
        "tls_certificate",
        Refused(&["refrain serve {file} --http unix:s --tls-certificate {file}"]),
    ),
    (
        "serve",
        "tls_key",
        Refused(&["refrain serve {file} --nbd unix:s --tls-key {file}"]),
    ),
    (
        "serve",
        "tls_client_authorities",
        Refused(&["refrain serve {file} --nbd unix:s --tls-client-authorities {file}"]),
    ),
    (
        "serve",
        "export",
        Refused(&["refrain serve {file} --http unix:s --export x"]),
    ),
    (
        "serve",
        "allow_host",
        Refused(&["refrain serve {file} --nbd unix:s --allow-host x"]),
    ),
    ("serve", "client_idle", Acts),
    ("serve", "clients", Idle(BOUND)),
    (
        "serve",
        "client_latency",
        Refused(&["refrain serve {file} --http unix:s --client-latency 0=export:x"]),
    ),
    ("*", "scrub", Acts),
    ("*", "daemon", Acts),
    ("serve", "idle_exit", Acts),
    ("top", "address", Acts),
    ("top", "once", Acts),
    ("top", "reset", Acts),
    (
        "top",
        "interval",
        Refused(&["refrain top unix:s --once --interval 2"]),
    ),
    ("boot", "name", Acts),
    ("boot", "overlay", Acts),
    ("boot", "record", Acts),
    (
        "boot",
        "replay",
        Refused(&["refrain boot {file} --replay {file} --no-replay"]),
    ),
    ("boot", "no_replay", Idle(NONE)),
    ("boot", "print", Acts),
    ("boot", "image_format", Acts),
    ("boot", "qemu", Acts),
    ("boot", "socket", Acts),
    ("boot", "arguments", Acts),
    ("mount", "directory", Acts),
    ("mount", "root", Acts),
    ("mount", "generations", Acts),
    ("mount", "allow_other", Acts),
    ("mount", "owner", Acts),
    ("mount", "options", Acts),
    (
        "mount",
        "allow_host",
        Refused(&["refrain mount {file} {directory} --allow-host x"]),
    ),
    // Digests.
    (
        "compress",
        "recovery",
        Refused(&["refrain compress --format lrz --recovery 10% {file}"]),
    ),
    ("*", "generation", Idle(LAST)),
    ("add", "archive", Acts),
    ("add", "volume", Acts),
    ("list", "volumes", Acts),
    ("add", "tag", Acts),
    ("add", "comment", Acts),
    ("add", "host", Acts),
    ("add", "time", Acts),
    ("add", "force_read", Acts),
    ("add", "identity", Acts),
    ("diff", "archive", Acts),
    ("diff", "before", Acts),
    ("diff", "after", Acts),
    ("forget", "archive", Acts),
    ("forget", "generations", Acts),
    ("forget", "keep_last", Idle(BOUND)),
    ("forget", "keep_hourly", Idle(BOUND)),
    ("forget", "keep_daily", Idle(BOUND)),
    ("forget", "keep_weekly", Idle(BOUND)),
    ("forget", "keep_monthly", Idle(BOUND)),
    ("forget", "keep_yearly", Idle(BOUND)),
    ("forget", "keep_tag", Idle(BOUND)),
    ("forget", "keep_within", Idle(BOUND)),
    ("forget", "dry_run", Acts),
    ("compact", "archive", Acts),
    ("compact", "dry_run", Acts),
    ("merge", "archives", Acts),
    ("merge", "output", Acts),
    ("merge", "force", Idle(PERMISSION)),
    ("merge", "dry_run", Acts),
    ("merge", "level", Acts),
    ("merge", "identity", Acts),
    ("merge", "decrypt", Idle(PERMISSION)),
    ("list", "generations", Acts),
    ("protect", "files", Acts),
    ("protect", "recovery", Acts),
    ("protect", "output", Acts),
    ("protect", "check", Acts),
    ("repair", "file", Acts),
    ("repair", "copies", Acts),
    ("repair", "output", Acts),
    (
        "repair",
        "check",
        Idle("what is intact is not written again"),
    ),
    ("hash", "files", Acts),
    (
        "hash",
        "algorithm",
        Refused(&["refrain hash --md5 -a md5 {file}"]),
    ),
    ("hash", "md5", Acts),
    ("hash", "sha256", Acts),
    ("hash", "b3", Acts),
    ("hash", "check", Acts),
    ("hash", "tag", Refused(&["refrain hash -c --tag {file}"])),
    ("hash", "binary", Refused(&["refrain hash -c -b {file}"])),
    ("hash", "text", Refused(&["refrain hash -c -t {file}"])),
    ("hash", "zero", Refused(&["refrain hash -c -z {file}"])),
    (
        "hash",
        "ignore_missing",
        Refused(&["refrain hash --ignore-missing {file}"]),
    ),
    ("hash", "status", Refused(&["refrain hash --status {file}"])),
    ("hash", "strict", Refused(&["refrain hash --strict {file}"])),
    ("hash", "warn", Refused(&["refrain hash --warn {file}"])),
    // Measurements.
    ("bench", "files", Acts),
    ("bench", "peer_commands", Acts),
    ("bench", "peer_names", Acts),
    ("bench", "levels", Acts),
    ("bench", "refrain_options", Acts),
    ("bench", "runs", Acts),
    ("bench", "decompress", Acts),
    ("bench", "test", Acts),
    ("bench", "reads", Acts),
    ("bench", "read_archive", Acts),
    ("bench", "discard", Acts),
    ("bench", "scratch", Acts),
    (
        "bench",
        "markdown",
        Refused(&["refrain bench --markdown --json {file}"]),
    ),
    ("lab", "experiments", Acts),
    (
        "lab",
        "list",
        Refused(&["refrain lab --list cache", "refrain lab --list --save"]),
    ),
    ("lab", "quick", Acts),
    ("lab", "directory", Idle("experiments may have no files")),
    ("lab", "save", Acts),
    ("lab", "compare", Acts),
    ("generate", "what", Acts),
    ("generate", "directory", Acts),
];

fn decision(verb: &str, option: &str) -> Option<Decision> {
    // The flags -1 to -9 are one option.
    let option = if option.starts_with("level_") { "level" } else { option };
    let fits = |verb: &str, (for_verb, for_option, _): &&(&str, &str, Decision)| {
        (*for_verb == "*" || *for_verb == verb) && *for_option == option
    };
    let of_verb = DECISIONS.iter().find(|row| fits(verb, row));
    // These write archives as `compress` does.
    let as_compress = matches!(verb, "add" | "merge").then_some("compress");
    let of_compress = || as_compress.and_then(|verb| DECISIONS.iter().find(|row| fits(verb, row)));
    let found = of_verb.or_else(of_compress);
    found.map(|(_, _, decision)| *decision)
}

/// Every option of every verb, and of `rfn`.
fn options() -> Vec<(String, String)> {
    let mut refrain = RefrainArgs::command();
    // Passes the options of every run to the verbs.
    refrain.build();
    let verbs = refrain.get_subcommands().cloned();
    let commands = verbs.chain([RfnArgs::command()]);
    let of = |command: clap::Command| {
        let verb = command.get_name().to_string();
        let ids = command
            .get_arguments()
            .map(|option| option.get_id().to_string());
        ids.map(|id| (verb.clone(), id)).collect::<Vec<_>>()
    };
    let all = commands
        .filter(|command| command.get_name() != "help")
        .flat_map(of);
    all.collect()
}

/// Why a line is refused before anything is opened.
fn refusal(line: &[OsString]) -> Option<String> {
    let usage = |failure: Failure| {
        assert!(
            matches!(failure, Failure::Usage { .. }),
            "{line:?}: {failure}"
        );
        failure.to_string()
    };
    let arguments = match line.first().and_then(|name| name.to_str()) {
        Some("refrain") => RefrainArgs::try_parse_from(line).map_err(|error| error.to_string()),
        name => {
            let mode = match name {
                Some("unrfn") => RfnMode::Decompress,
                _ => RfnMode::Compress,
            };
            let parsed = RfnArgs::try_parse_from(line).map_err(|error| error.to_string());
            parsed.and_then(|arguments| arguments.into_arguments(mode))
        }
    };
    let verb = match arguments {
        Ok(arguments) => arguments.verb,
        Err(told) => return Some(told),
    };
    let checked = match verb {
        Verb::Compress(args) => CompressPlan::new(&args).map(drop),
        Verb::Add(args) => CompressPlan::for_add(&args).map(drop),
        Verb::Decompress(args) => {
            let paths: Vec<Vec<u8>> = args.paths.iter().map(|_| b"path".to_vec()).collect();
            let selection = ArchiveSelection::load(&args.patterns, &paths).unwrap();
            DecompressPlan::new(&args, &args.operands, selection, false).map(drop)
        }
        Verb::List(args) => check_list(&args),
        Verb::Serve(args) => check_serve(&args, !args.nbd.is_empty(), !args.http.is_empty()),
        _ => Ok(()),
    };
    checked.err().map(usage)
}

/// A line with paths in a directory substituted for their names.
fn arguments(line: &str, directory: &Path) -> Vec<OsString> {
    let path = |name: &str| directory.join(name).to_string_lossy().into_owned();
    let line = line
        .replace("{file}", &path("file"))
        .replace("{dir}", &path("dir"));
    let line = line.replace("{none}", &path("none"));
    line.split(' ').map(OsString::from).collect()
}

#[test]
fn every_option_of_every_verb_has_a_decision() {
    let options = options();
    assert!(options.len() > 200, "{} options", options.len());
    let missing = options
        .iter()
        .filter(|(verb, option)| decision(verb, option).is_none());
    let missing: Vec<_> = missing.collect();
    assert!(
        missing.is_empty(),
        "decide what becomes of these: {missing:?}"
    );
    for (verb, option, _) in DECISIONS {
        let is_one = options
            .iter()
            .any(|(of, id)| (*verb == "*" || of == verb) && id == option);
        assert!(is_one, "{verb} has no {option}");
    }
}

#[test]
fn lines_with_an_option_without_effect_are_refused_and_say_which() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), b"content").unwrap();
    std::fs::create_dir(directory.path().join("dir")).unwrap();
    for (verb, option, decision) in DECISIONS {
        let Refused(lines) = decision else {
            continue;
        };
        for line in *lines {
            let told = refusal(&arguments(line, directory.path()));
            let told = told.unwrap_or_else(|| panic!("{line}: accepted"));
            let name = option.replace('_', "-");
            let long = format!("--{}", if name == "purpose" { "for" } else { &name });
            // Of two mutually exclusive options, either may be named.
            let others = ["-v ", "-c ", "--files-from", "-o ", "standard input"];
            let is_named = told.contains(&long) || others.iter().any(|other| told.contains(other));
            assert!(is_named, "{verb} {option}: {line}: {told}");
            assert!(!directory.path().join("none").exists(), "{line}");
        }
    }
}

#[test]
fn what_is_refused_when_it_is_opened_has_a_case() {
    let cases = include_str!("../../tests/cases/no_effect.rs");
    for (verb, option, decision) in DECISIONS {
        match decision {
            RefusedOpened(part) => assert!(cases.contains(part), "{verb} {option}: {part}"),
            Idle(reason) => assert!(!reason.is_empty()),
            Acts | Refused(_) => {}
        }
    }
}
