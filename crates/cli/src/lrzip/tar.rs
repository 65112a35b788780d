//! `lrztar` and `lrzuntar`: a directory as a tar stream in an archive. lrzip has scripts for it that need `tar`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::job::{Input, Job, regular, total_time};
use super::name::Program;
use super::settings::{Action, Settings};
use super::{Failed, banner, decompress};
use crate::verbs::restore::Place;

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
    let job = Job::start(program, settings, settings.action == Action::Decompress);
    settings
        .remarks
        .iter()
        .for_each(|remark| job.voice.warn(remark));
    banner::tell(settings, &job.voice);
    match settings.action {
        Action::Decompress => unpack(&job, operand)?,
        _ => return because("this build does not write .lrz yet"),
    }
    job.voice.say(&total_time(started));
    Ok(())
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
    let place = Place::Unpacked(directory.clone());
    decompress::content(job, &input, Some(place), &directory, "")?;
    if job.settings.deletes {
        job.delete_source(&input)?;
    }
    Ok(())
}
