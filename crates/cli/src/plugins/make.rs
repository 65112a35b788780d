//! Compiles a plug-in from a single source.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use refrain_plugin::HEADER;

use super::dependencies::prerequisites;
use super::record::{Record, stamps_of};
use crate::failure::{Failure, Result};
use crate::paths::{io_failure, label};

/// The name under which sources include the header.
const HEADER_NAME: &str = "refrain_plugin.h";

/// What making did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// Nothing: all that the library is made of is as it was.
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

/// Makes the library `output` of `source`, unless everything that it was made of is as it was. What
/// that is stands in `OUTPUT.d`.
///
/// # Errors
/// As [`build`].
pub fn make(source: &Path, output: &Path) -> Result<Made> {
    if is_fresh(source, output) {
        return Ok(Made::Fresh);
    }
    build(source, output)?;
    Ok(Made::Built)
}

/// Whether the library and everything it was made of are as they were.
pub fn is_fresh(source: &Path, output: &Path) -> bool {
    Record::read(&record_path(output)).is_some_and(|record| record.is_true(output, source))
}

/// Makes the library `output` of `source`.
///
/// # Errors
/// `Usage` for another kind of source, and if it does not compile: the compiler says why on
/// standard error. `Io`. The library is then as it was.
pub fn build(source: &Path, output: &Path) -> Result<()> {
    let Some(compiler) = compiler(source) else {
        let text = "is no source of a plug-in: its suffix must be .c or .rs";
        return Err(Failure::usage(label(source), text));
    };
    // Compilers say it in more words.
    fs::File::open(source).map_err(io_failure(source, "open"))?;
    let folder = folder_of(output);
    let scratch = tempfile::Builder::new()
        .prefix(".refrain-plugin-")
        .tempdir_in(folder);
    let scratch = scratch.map_err(io_failure(folder, "write"))?;
    let [library, rules, header] =
        ["library", "rules", HEADER_NAME].map(|name| scratch.path().join(name));
    let earlier = Record::read(&record_path(output));
    let known = earlier.iter().flat_map(Record::parts);
    let before = stamps_of(known.chain([source.to_path_buf()]));
    fs::write(&header, HEADER).map_err(io_failure(&header, "write"))?;
    let mut command = Command::new(compiler);
    if compiler == "cc" {
        c_arguments(&mut command, (&library, &rules), scratch.path());
    } else {
        rust_arguments(&mut command, (&library, &rules), source);
    }
    let status = command.arg(source).status();
    let status = status.map_err(io_failure(Path::new(compiler), "run"))?;
    if !status.success() {
        let text = format!("{compiler} does not compile it");
        return Err(Failure::usage(label(source), text));
    }
    let made_of = fs::read(&rules).map_err(io_failure(&rules, "read"))?;
    let mut parts = vec![source.to_path_buf()];
    for part in prerequisites(&made_of) {
        if !part.starts_with(scratch.path()) && part != source {
            parts.push(part);
        }
    }
    let record = Record::of(&library, &parts, &header, &before);
    fs::write(&rules, record.bytes()).map_err(io_failure(&rules, "write"))?;
    for (from, to) in [(&rules, &*record_path(output)), (&library, output)] {
        fs::rename(from, to).map_err(io_failure(to, "write"))?;
    }
    Ok(())
}

fn c_arguments(command: &mut Command, (library, rules): (&Path, &Path), include: &Path) {
    command.args([
        "-O2", "-shared", "-fPIC", "-Wall", "-MD", "-MT", "library", "-MF",
    ]);
    command.arg(rules).arg("-I").arg(include);
    command.arg("-o").arg(library);
}

fn rust_arguments(command: &mut Command, (library, rules): (&Path, &Path), source: &Path) {
    command.args([
        "--crate-type=cdylib",
        "--edition=2024",
        "-O",
        "-Cpanic=abort",
    ]);
    if let Some(name) = crate_name(source) {
        command.arg("--crate-name").arg(name);
    }
    command
        .arg(emit("link", library))
        .arg(emit("dep-info", rules));
}

/// A name for the crate of a source whose own name cannot be one. Others are left to the compiler,
/// since the source may state it.
fn crate_name(source: &Path) -> Option<String> {
    let stem = source.file_stem()?.to_string_lossy();
    let is_usual = |letter: char| letter.is_alphanumeric() || letter == '_';
    let name = stem.replace(|letter| !is_usual(letter), "_");
    (name != stem.replace('-', "_")).then_some(name)
}

fn emit(what: &str, path: &Path) -> std::ffi::OsString {
    let mut word = std::ffi::OsString::from(format!("--emit={what}="));
    word.push(path);
    word
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Where it stands what a library was made from.
pub fn record_path(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".d");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_have_names_that_compilers_take() {
        for (source, name) in [
            ("a/runs.rs", None),
            ("my-rle.rs", None),
            ("my rle.rs", Some("my_rle")),
            ("my-rle.v2.rs", Some("my_rle_v2")),
        ] {
            assert_eq!(crate_name(Path::new(source)).as_deref(), name, "{source}");
        }
    }
}
