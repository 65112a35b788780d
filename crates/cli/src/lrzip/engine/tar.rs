//! `lrztar` and `lrzuntar`: a directory as a tar stream in an archive. lrzip implements them as
//! scripts that need `tar`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
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
        Action::Test => return because("invalid option for lrztar: t"),
        Action::Info => return because("invalid option for lrztar: i"),
        Action::Compress | Action::Decompress => {}
    }
    // Messages go where those of lrzip in a pipe with tar go.
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
        _ => archive_directory(&context, operand)?,
    }
    context.console.print_line(&total_time(started));
    Ok(())
}

/// Archives a directory under its name, so that it is extracted as a directory.
fn archive_directory(context: &RunContext, directory: &Path) -> Result<(), RunError> {
    let started = Instant::now();
    let because = |text: String| Err(RunError::Message(format!("lrztar: {text}")));
    let input = InputFile {
        path: directory,
        metadata: fs::metadata(directory).ok(),
    };
    match &input.metadata {
        None => {
            return because(format!(
                "{}: No such file or directory",
                directory.display()
            ));
        }
        Some(found) if !found.is_dir() => {
            return because(format!("{} is not a directory", directory.display()));
        }
        Some(_) => {}
    }
    let name = PathBuf::from(OsString::from_vec(names::relative_name(directory)?));
    let sink = match &context.settings.outfile {
        Some(output) if paths::is_dash(output) => {
            check_stdout(context.settings.force)?;
            files::stdout_sink()?
        }
        outfile => {
            let output = outfile.clone();
            let output = output.unwrap_or_else(|| archive_path(context.settings, &name));
            match compress::file_sink(context, &output, &input) {
                Err(Failure::Exists { file }) => {
                    return because(format!("{file} exists, use -f to overwrite"));
                }
                sink => sink.map_err(|failure| context.run_error(&output, failure))?,
            }
        }
    };
    let path = directory.to_path_buf();
    let content = Content::directory(DirectoryContent {
        path,
        name,
        ..DirectoryContent::default()
    });
    let summary = compress::write_archive(context, content, sink, &paths::label(directory))
        .map_err(|failure| context.run_error(directory, failure))?;
    compress::print_result(context, &summary, "", started);
    Ok(())
}

/// Returns the path of the archive: `a/DIR` -> `DIR.tar.lrz`, in the current directory or that of
/// `-O`.
fn archive_path(settings: &Settings, name: &Path) -> PathBuf {
    let last = name.file_name().unwrap_or_default();
    let mut file_name = last.to_owned();
    file_name.push(".tar");
    file_name.push(&settings.suffix);
    let directory = settings.outdir.as_deref().unwrap_or(Path::new(""));
    directory.join(file_name)
}

/// Extracts below the directory of `-O`, or the current one.
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
    let placement = Placement::Exact {
        path: directory.clone(),
        unpacks_tar: true,
    };
    decompress::extract_content(context, &input, Some(placement), &directory, "")?;
    if context.settings.deletes_sources {
        context.delete_source(&input)?;
    }
    Ok(())
}
