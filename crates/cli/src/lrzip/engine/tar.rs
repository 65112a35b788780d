//! `lrztar` and `lrzuntar`: a directory as a tar stream in an archive. lrzip implements them as
//! scripts that need `tar`.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use refrain::{Content, DirectoryContent};

use super::context::RunContext;
use super::input::{InputFile, regular_file};
use super::{compress, decompress};
use crate::failure::Failure;
use crate::files;
use crate::lrzip::arguments::program::Program;
use crate::lrzip::arguments::settings::{Action, Settings};
use crate::lrzip::error::RunError;
use crate::lrzip::report::options_in_effect;
use crate::lrzip::report::rates::total_time;
use crate::names;
use crate::paths;
use crate::restore::Placement;
use crate::terminal::check_stdout;

/// Archives or extracts the only operand.
pub fn run(program: Program, settings: &Settings, files: &[PathBuf]) -> Result<(), RunError> {
    let because = |text: &str| Err(RunError::Message(format!("lrztar: {text}")));
    let started = Instant::now();
    let operand = match files {
        [] => return because("no arguments given"),
        [operand] => operand,
        _ => return because("takes one directory or archive"),
    };
    match settings.action {
        // These need not know that the content is a directory.
        Action::Test | Action::Info => return super::files::run(program, settings, files),
        Action::Compress | Action::Decompress => {}
    }
    // Messages go where they go when lrzip is in a pipe with tar.
    let is_stdout_data = settings.outfile.as_deref().is_some_and(paths::is_dash);
    let is_stdout_data = is_stdout_data || settings.action == Action::Decompress;
    let context = RunContext::start(program, settings, is_stdout_data);
    settings
        .warnings
        .iter()
        .for_each(|warning| context.console.warn(warning));
    options_in_effect::print(settings, &context.console);
    match settings.action {
        Action::Decompress => extract_directory(&context, operand)?,
        _ => archive(&context, operand)?,
    }
    context.console.print_line(&total_time(started));
    Ok(())
}

/// Archives a directory or file under its path, so that it is extracted under that path.
fn archive(context: &RunContext, path: &Path) -> Result<(), RunError> {
    let started = Instant::now();
    let because = |text: String| Err(RunError::Message(format!("lrztar: {text}")));
    let input = InputFile {
        path,
        metadata: fs::metadata(path).ok(),
    };
    let Some(found) = &input.metadata else {
        return because(format!("{}: No such file or directory", path.display()));
    };
    let mut content = content(path, found)?;
    // The archive's destination, whose earlier version may be in the directory.
    let mut outputs = Vec::new();
    let sink = match &context.settings.outfile {
        Some(output) if paths::is_dash(output) => {
            check_stdout(context.settings.force)?;
            files::stdout_sink()?
        }
        outfile => {
            let output = match outfile {
                Some(output) => output.clone(),
                None => archive_path(context.settings, path)?,
            };
            outputs.push(output.clone());
            match compress::file_sink(context, &output, &input) {
                Err(Failure::Exists { file }) => {
                    return because(format!("{file} exists, use -f to overwrite"));
                }
                sink => sink.map_err(|failure| context.run_error(&output, failure))?,
            }
        }
    };
    content.walk.own_outputs = files::own_outputs(sink.as_ref(), &outputs);
    let content = Content::directory(content);
    let label = paths::label(path);
    let written = compress::write_archive(context, content, sink, &label)
        .map_err(|failure| context.run_error(path, failure))?;
    context.check_complete(&label, written.problems)?;
    context.tell_read_back(written.read_back);
    compress::print_result(context, &written.summary, "", started);
    Ok(())
}

/// The entries of the archive: `a/DIR` and everything below it, or just the file `a/FILE`. Paths
/// that lead out of the directory are shortened as by tar; `.` and `..` have no name.
fn content(path: &Path, found: &Metadata) -> Result<DirectoryContent, RunError> {
    let name = |path: &Path| -> PathBuf {
        let name = names::relative_name(path).unwrap_or_default();
        PathBuf::from(OsString::from_vec(name))
    };
    if found.is_dir() {
        return Ok(DirectoryContent {
            path: path.to_path_buf(),
            name: name(path),
            ..DirectoryContent::default()
        });
    }
    let file_name = names::base_name(path)?;
    let parent = path.parent().unwrap_or(Path::new(""));
    Ok(DirectoryContent {
        path: Path::new(".").join(parent),
        name: name(parent),
        paths: Some(vec![file_name]),
        ..DirectoryContent::default()
    })
}

/// The path of the archive: `a/DIR` -> `DIR.tar.lrz`, in the current directory or that given by
/// `-O`. A suffix without a dot gets one. `.` becomes `..tar.lrz`, as with lrzip.
fn archive_path(settings: &Settings, path: &Path) -> Result<PathBuf, RunError> {
    let bytes = path.as_os_str().as_bytes();
    let components = bytes.split(|byte| *byte == b'/');
    let last = match components.rev().find(|part| !part.is_empty()) {
        Some(last) => last.to_vec(),
        // The root directory: the error asks for `-o`.
        None => names::base_name(path)?,
    };
    let mut file_name = OsString::from_vec(last);
    file_name.push(".tar");
    if !settings.suffix.as_bytes().starts_with(b".") {
        file_name.push(".");
    }
    file_name.push(&settings.suffix);
    let directory = settings.outdir.as_deref().unwrap_or(Path::new(""));
    Ok(directory.join(file_name))
}

/// Extracts below the directory given by `-O`, or the current one.
fn extract_directory(context: &RunContext, archive: &Path) -> Result<(), RunError> {
    if !archive.exists() {
        let text = format!("lrztar: file does not exist: {}", archive.display());
        return Err(RunError::Message(text));
    }
    let directory = match &context.settings.outdir {
        Some(directory) if !directory.is_dir() => {
            let text = format!(
                "lrztar: {} output path does not exist.",
                directory.display()
            );
            return Err(RunError::Message(text));
        }
        Some(directory) => directory.clone(),
        None => PathBuf::from("."),
    };
    let input = InputFile {
        path: archive,
        metadata: Some(regular_file(archive)?),
    };
    let placement = Placement::named(&directory, true);
    let is_stored = decompress::extract_content(context, &input, Some(placement), &directory, "")?;
    if is_stored && context.settings.deletes_sources {
        context.delete_source(&input)?;
    }
    Ok(())
}
