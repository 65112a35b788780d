//! `lrztar` and `lrzuntar`: a directory as a tar stream in an archive. lrzip has scripts for it that need `tar`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use refrain::Content;

use super::context::Job;
use super::input::{Input, regular};
use super::{compress, decompress};
use crate::failure::Failure;
use crate::files;
use crate::lrzip::arguments::program::Program;
use crate::lrzip::arguments::settings::{Action, Settings};
use crate::lrzip::error::Failed;
use crate::lrzip::report::options_in_effect;
use crate::lrzip::report::rates::total_time;
use crate::names;
use crate::paths;
use crate::restore::Placement;
use crate::terminal::check_stdout;

/// Packs or unpacks the one operand.
pub fn run(program: Program, settings: &Settings, files: &[PathBuf]) -> Result<(), Failed> {
    let because = |text: &str| Err(Failed::Because(format!("lrztar: {text}")));
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
    // Words go where lrzip in a pipe with tar says them.
    let is_stdout = settings.outfile.as_deref().is_some_and(paths::is_dash);
    let is_stdout = is_stdout || settings.action == Action::Decompress;
    let job = Job::start(program, settings, is_stdout);
    settings
        .remarks
        .iter()
        .for_each(|remark| job.voice.warn(remark));
    options_in_effect::tell(settings, &job.voice);
    match settings.action {
        Action::Decompress => unpack(&job, operand)?,
        _ => pack(&job, operand)?,
    }
    job.voice.say(&total_time(started));
    Ok(())
}

/// Packs a directory: under its name, so that it is unpacked as a directory.
fn pack(job: &Job, directory: &Path) -> Result<(), Failed> {
    let started = Instant::now();
    let because = |text: String| Err(Failed::Because(format!("lrztar: {text}")));
    let input = Input {
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
    let name = names::relative_name(directory)?;
    let sink = match &job.settings.outfile {
        Some(output) if paths::is_dash(output) => {
            check_stdout(job.settings.force)?;
            files::stdout_sink()?
        }
        outfile => {
            let output = outfile.clone();
            let output = output.unwrap_or_else(|| archive_path(job.settings, &name));
            match compress::file_sink(job, &output, &input) {
                Err(Failure::Exists { file }) => {
                    return because(format!("{file} exists, use -f to overwrite"));
                }
                sink => sink.map_err(|failure| job.failed(&output, failure))?,
            }
        }
    };
    let path = directory.to_path_buf();
    let content = Content::NamedDirectory {
        path,
        name: name.into(),
    };
    let summary = compress::pack(job, content, sink, &paths::label(directory))
        .map_err(|failure| job.failed(directory, failure))?;
    compress::tell(job, &summary, "", started);
    Ok(())
}

/// `a/DIR` -> `DIR.tar.lrz`, in the current directory or that of `-O`.
fn archive_path(settings: &Settings, name: &str) -> PathBuf {
    let last = Path::new(name).file_name().unwrap_or_default();
    let mut file_name = last.to_owned();
    file_name.push(".tar");
    file_name.push(&settings.suffix);
    let directory = settings.outdir.as_deref().unwrap_or(Path::new(""));
    directory.join(file_name)
}

/// Unpacks below the directory of `-O`, or the current one.
fn unpack(job: &Job, archive: &Path) -> Result<(), Failed> {
    if !archive.exists() {
        let text = format!("lrztar: file does not exist: {}", archive.display());
        return Err(Failed::Because(text));
    }
    let directory = match &job.settings.outdir {
        Some(directory) if !directory.is_dir() => {
            let text = format!(
                "lrztar: {} output path does not exist.",
                directory.display()
            );
            return Err(Failed::Because(text));
        }
        Some(directory) => directory.clone(),
        None => PathBuf::from("."),
    };
    let input = Input {
        path: archive,
        metadata: Some(regular(archive)?),
    };
    let place = Placement::Exact {
        path: directory.clone(),
        unpacks_tar: true,
    };
    decompress::content(job, &input, Some(place), &directory, "")?;
    if job.settings.deletes {
        job.delete_source(&input)?;
    }
    Ok(())
}
