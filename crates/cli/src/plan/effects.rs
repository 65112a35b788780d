//! Refuses options that would have no effect in their combination, before any work.
//!
//! What clap can express is in the declarations (`requires`, `conflicts_with`); here is what
//! depends on the kinds of inputs and outputs, or on options of several groups. `decisions` has
//! a decision for every option of every verb.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use refrain_server::ClientRule;

use crate::args::{
    CompressArgs, DecompressArgs, ListArgs, OutputArgs, OwnerArgs, ServeArgs, WalkArgs,
};
use crate::failure::{Failure, Result};
use crate::names;
use crate::paths::is_dash;
use crate::text::{counted, quoted};

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputKind {
    /// A regular file, which has a name.
    File,
    Directory,
    /// Standard input, a pipe, a device.
    Other,
}

fn refused<T>(option: &str, why: &str) -> Result<T> {
    Err(Failure::usage("", format!("{option} {why}")))
}

/// Refuses options without effect on any input of `compress`; `inputs` is `None` if one does not
/// exist.
///
/// # Errors
/// `Usage`.
pub(super) fn check_compress(args: &CompressArgs, inputs: Option<&[InputKind]>) -> Result<()> {
    check_walk(args, inputs)?;
    // Missing inputs are reported instead.
    let Some(inputs) = inputs else {
        return Ok(());
    };
    if args.output.rm && !inputs.contains(&InputKind::File) {
        let why = "removes regular files only, and no input is one: leave it out";
        return refused("--rm", why);
    }
    if args.unpack && inputs.iter().all(|kind| *kind == InputKind::Directory) {
        let why = "concerns files, and every input is a directory, whose files are compressed as \
                   they are: leave it out";
        return refused("--unpack", why);
    }
    Ok(())
}

/// Refuses options about files if no file is written or read.
///
/// # Errors
/// `Usage`.
pub(super) fn check_output(output: &OutputArgs, files: &[PathBuf]) -> Result<()> {
    if output.rm && output.is_stdout() {
        let why = "removes sources when their output is a file, and standard output may go \
                   anywhere: name a file with -o, or leave it out";
        return refused("--rm", why);
    }
    if output.rm && (files.is_empty() || files.iter().all(|path| is_dash(path))) {
        let why = "removes files, and standard input is not one: leave it out";
        return refused("--rm", why);
    }
    if output.sync && is_stdout_only(output, files) {
        let why = "concerns files, and the output goes to standard output: name a file with -o, or \
                   leave it out";
        return refused("--sync", why);
    }
    if output.check && is_stdout_only(output, files) {
        let why = "reads files back, and the output goes to standard output: name a file with -o, \
                   or leave it out";
        return refused("--check", why);
    }
    Ok(())
}

/// Whether no output of a run over `files` is a file.
fn is_stdout_only(output: &OutputArgs, files: &[PathBuf]) -> bool {
    let is_stdin_only = files.iter().all(|path| is_dash(path));
    output.is_stdout() || (output.output.is_none() && is_stdin_only)
}

/// Refuses to read standard input twice.
///
/// # Errors
/// `Usage`.
pub(super) fn check_stdin_is_read_once(walk: &WalkArgs, files: &[PathBuf]) -> Result<()> {
    let is_content = files.iter().filter(|path| is_dash(path)).take(1).count();
    let is_list = usize::from(walk.files_from.as_deref().is_some_and(is_dash));
    let patterns = walk.patterns.exclude_from.iter();
    let patterns = patterns.filter(|path| is_dash(path)).count();
    if is_content + is_list + patterns > 1 {
        refused(
            "standard input",
            "is named more than once (`-`), but can be read only once: use a file for one of them",
        )
    } else {
        Ok(())
    }
}

/// Refuses names that are too many, too few, or would be refused when restored.
///
/// # Errors
/// `Usage`, `Refused`.
pub(super) fn check_names(args: &CompressArgs, files: &[PathBuf]) -> Result<()> {
    if args.name.is_empty() {
        return Ok(());
    }
    if args.lrzip.is_lrzip() {
        return refused(
            "--name",
            "cannot be used with --format lrz, which stores no names",
        );
    }
    if args.name.len() != files.len() {
        let why = format!(
            "names members one by one, and there are {} for {}: name each, in the order of the inputs",
            counted(args.name.len() as u64, "name"),
            counted(files.len() as u64, "input"),
        );
        return refused("--name", &why);
    }
    let mut taken = BTreeSet::new();
    for name in &args.name {
        let bytes = name.as_bytes();
        let is_safe = names::safe_member_path("", bytes).is_ok();
        if !is_safe {
            let why = format!(
                "{} is not a relative path of a file below a directory",
                quoted(bytes)
            );
            return refused("--name", &why);
        }
        if !taken.insert(bytes) {
            return refused("--name", &format!("{} is given twice", quoted(bytes)));
        }
    }
    Ok(())
}

/// Refuses options about directories where they have no meaning.
fn check_walk(args: &CompressArgs, inputs: Option<&[InputKind]>) -> Result<()> {
    let Some(option) = args.walk.given() else {
        return Ok(());
    };
    if args.lrzip.is_lrzip() {
        return refused(option, "cannot be used with --format lrz");
    }
    if args.walk.files_from.is_some() {
        if args.files.len() > 1 {
            let why = "lists paths of one directory: name only that";
            return refused("--files-from", why);
        }
        if args.walk.exclude_caches {
            let why =
                "has no effect with --files-from, which lists every path itself: leave it out";
            return refused("--exclude-caches", why);
        }
    }
    // Missing inputs are reported instead.
    if inputs.is_some_and(|kinds| !kinds.contains(&InputKind::Directory)) {
        refused(option, "concerns directories, and no input is one")
    } else {
        Ok(())
    }
}

/// Refuses options without effect on `decompress` of these archives.
///
/// # Errors
/// `Usage`.
pub(super) fn check_decompress(
    args: &DecompressArgs,
    archives: &[PathBuf],
    is_part: bool,
) -> Result<()> {
    check_output(&args.output, archives)?;
    if args.output.rm && is_part {
        let why = "removes an archive when all of it is restored, and only a part is asked for: \
                   leave it out";
        return refused("--rm", why);
    }
    match args.owners.given() {
        Some(option) if is_stdout_only(&args.output, archives) => refused(
            option,
            "concerns restored files, and the output goes to standard output: name a directory \
             with -o, or leave it out",
        ),
        _ => Ok(()),
    }
}

/// Refuses options about owners if nothing restored has one.
///
/// # Errors
/// `Usage`.
pub fn check_owners(label: &str, owners: &OwnerArgs, has_entries: bool) -> Result<()> {
    match owners.given() {
        Some(option) if !has_entries => {
            let text = format!("{option} concerns directories, and the archive holds none");
            Err(Failure::usage(label, text))
        }
        _ => Ok(()),
    }
}

/// Refuses options without effect on `list`.
///
/// # Errors
/// `Usage`.
pub fn check_list(args: &ListArgs) -> Result<()> {
    let is_long = args.long || args.report.verbose > 0;
    if args.numeric_owner && !is_long {
        return refused("--numeric-owner", "concerns the owners shown by -l: add -l");
    }
    if args.report.verbose > 0 && args.null {
        return refused(
            "-v",
            "adds columns as -l does, and -0 writes only paths: leave one out",
        );
    }
    Ok(())
}

/// Refuses options without effect on `serve` without block devices, or without HTTP.
///
/// # Errors
/// `Usage`.
pub fn check_serve(args: &ServeArgs, serves_nbd: bool, serves_http: bool) -> Result<()> {
    if !args.allow_host.is_empty() && !serves_http {
        let why = "concerns HTTP clients: add --http ADDRESS, or leave it out";
        return refused("--allow-host", why);
    }
    let rules = &args.client_latency;
    let given = [
        (args.export.is_some(), "--export"),
        (
            rules.iter().any(ClientRule::names_export),
            "--client-latency CLASS=export:NAME",
        ),
    ];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) if !serves_nbd => refused(
            option,
            "concerns block devices: add --nbd ADDRESS, or leave it out",
        ),
        _ => Ok(()),
    }
}

/// Refuses `--scan` for anything but an archive with frames. `format` is what it is instead.
///
/// # Errors
/// `Usage`.
pub fn check_scan(label: &str, format: &str) -> Result<()> {
    let text = format!(
        "--scan finds frames of Refrain's archives, but this is {format}: leave --scan out"
    );
    Err(Failure::usage(label, text))
}

/// Refuses a password for unencrypted input: it would neither hide nor prove anything.
///
/// # Errors
/// `Usage`.
pub fn check_password(label: &str, option: Option<&'static str>, is_encrypted: bool) -> Result<()> {
    match option {
        Some(option) if !is_encrypted => {
            let text = format!(
                "is not encrypted, so {option} proves nothing about it: leave it out, if that is \
                 what you expect"
            );
            Err(Failure::usage(label, text))
        }
        _ => Ok(()),
    }
}
