//! Compiles a plug-in from a single source.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use refrain_plugin::{ABI, HEADER};

use super::dependencies::prerequisites;
use crate::failure::{Failure, Result};
use crate::paths::{io_failure, label};

/// The name under which sources include the header.
const HEADER_NAME: &str = "refrain_plugin.h";

/// What making did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// Nothing: the library is newer than all it is made of.
    Fresh,
    /// It was compiled.
    Built,
}

/// Whether a file is a source, by its suffix.
pub fn is_source(path: &Path) -> bool {
    compiler(path).is_some()
}

/// The library of a source: beside it.
pub fn default_output(source: &Path) -> PathBuf {
    source.with_extension("so")
}

fn compiler(source: &Path) -> Option<&'static str> {
    match source.extension().and_then(OsStr::to_str) {
        Some("c") => Some("cc"),
        Some("rs") => Some("rustc"),
        _ => None,
    }
}

/// Makes the library `output` of `source`, unless it is newer than everything it was made of. What
/// that is stands in `OUTPUT.d`, as the compiler writes it.
///
/// # Errors
/// `Usage` for another kind of source, and if it does not compile: the compiler says why on
/// standard error. `Io`. The library is then as it was.
pub fn make(source: &Path, output: &Path) -> Result<Made> {
    let Some(compiler) = compiler(source) else {
        let text = "is no source of a plug-in: its suffix must be .c or .rs";
        return Err(Failure::usage(label(source), text));
    };
    let record = beside(output, "d");
    if is_fresh(source, output, &record) {
        return Ok(Made::Fresh);
    }
    let folder = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let scratch = tempfile::Builder::new()
        .prefix(".refrain-plugin-")
        .tempdir_in(folder);
    let scratch = scratch.map_err(io_failure(folder, "write"))?;
    let [library, rules, header] =
        ["library", "rules", HEADER_NAME].map(|name| scratch.path().join(name));
    fs::write(&header, HEADER).map_err(io_failure(&header, "write"))?;
    let mut command = Command::new(compiler);
    if compiler == "cc" {
        command.args([
            "-O2", "-shared", "-fPIC", "-Wall", "-MD", "-MT", "library", "-MF",
        ]);
        command.arg(&rules).arg("-I").arg(scratch.path());
        command.arg("-o").arg(&library).arg(source);
    } else {
        command.args([
            "--crate-type=cdylib",
            "--edition=2024",
            "-O",
            "-Cpanic=abort",
        ]);
        command
            .arg(emit("link", &library))
            .arg(emit("dep-info", &rules))
            .arg(source);
    }
    // What changes from now on is newer than the library.
    let begun = modified(&header);
    let status = command.status().map_err(|error| Failure::Io {
        file: compiler.to_owned(),
        action: "run",
        error,
    })?;
    if !status.success() {
        return Err(Failure::usage(
            label(source),
            format!("{compiler} does not compile it"),
        ));
    }
    let made_of = fs::read(&rules).map_err(io_failure(&rules, "read"))?;
    let mut record_text = first_line().into_bytes();
    for path in prerequisites(&made_of) {
        if !path.starts_with(scratch.path()) {
            record_text.extend(escaped(&path));
        }
    }
    let made = fs::File::create(&rules).and_then(|mut file| file.write_all(&record_text));
    made.map_err(io_failure(&rules, "write"))?;
    if let Some(begun) = begun {
        let dated = fs::File::options().write(true).open(&library);
        let dated = dated.and_then(|file| file.set_modified(begun));
        dated.map_err(io_failure(&library, "write"))?;
    }
    for (from, to) in [(&rules, &*record), (&library, output)] {
        fs::rename(from, to).map_err(io_failure(to, "write"))?;
    }
    Ok(Made::Built)
}

fn emit(what: &str, path: &Path) -> std::ffi::OsString {
    let mut word = std::ffi::OsString::from(format!("--emit={what}="));
    word.push(path);
    word
}

/// The version of the interface that the header had.
fn first_line() -> String {
    format!("# interface {ABI} for plug-ins\n")
}

/// A rule of its own for a prerequisite.
fn escaped(path: &Path) -> Vec<u8> {
    let mut rule = b"library: ".to_vec();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b' ' | b'#' => rule.push(b'\\'),
            b'$' => rule.push(b'$'),
            _ => {}
        }
        rule.push(byte);
    }
    rule.push(b'\n');
    rule
}

/// Whether the library is newer than its source and all the files in the record.
fn is_fresh(source: &Path, output: &Path, record: &Path) -> bool {
    let (Some(made), Ok(rules)) = (modified(output), fs::read(record)) else {
        return false;
    };
    let is_older = |path: &Path| modified(path).is_some_and(|time| time < made);
    rules.starts_with(first_line().as_bytes())
        && is_older(source)
        && prerequisites(&rules).iter().all(|path| is_older(path))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}
