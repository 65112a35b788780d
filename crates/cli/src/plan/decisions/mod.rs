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
use table::{DECISIONS, Decision};

mod table;

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
    let cases = include_str!("../../../tests/cases/no_effect.rs");
    for (verb, option, decision) in DECISIONS {
        match decision {
            RefusedOpened(part) => assert!(cases.contains(part), "{verb} {option}: {part}"),
            Idle(reason) => assert!(!reason.is_empty()),
            Acts | Refused(_) => {}
        }
    }
}
