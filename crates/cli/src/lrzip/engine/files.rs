//! File after file; the first one that fails ends the run.

use std::fs::{self, Metadata};
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::context::Job;
use super::input::{Input, regular};
use super::{compress, decompress, info};
use crate::lrzip::arguments::program::Program;
use crate::lrzip::arguments::settings::{Action, Settings};
use crate::lrzip::error::Failed;
use crate::lrzip::plan::{Output, Plan, Step, step};
use crate::lrzip::report::rates::total_time;
use crate::lrzip::report::{help, options_in_effect};
use crate::messages;
use crate::paths::{self, is_dash};

/// Works on all files.
pub fn run(program: Program, settings: &Settings, files: &[PathBuf]) -> Result<(), Failed> {
    let plan = Plan::new(settings, files).map_err(Failed::Because)?;
    let job = Job::start(program, settings, plan.is_stdout);
    plan.remarks
        .iter()
        .for_each(|remark| job.voice.warn(remark));
    options_in_effect::tell(settings, &job.voice);
    job.check_terminals(&plan)?;
    for path in &plan.inputs {
        match settings.is_recursive {
            false => job.one(path)?,
            true => {
                // All are found before any is worked on: what is made must not be taken for input.
                for path in files_below(path)? {
                    job.one(&path)?;
                }
            }
        }
    }
    Ok(())
}

impl Job<'_> {
    fn check_terminals(&self, plan: &Plan) -> Result<(), Failed> {
        if self.settings.force {
            return Ok(());
        }
        let reads = plan.inputs.iter().any(|path| is_dash(path));
        let writes =
            plan.is_stdout && matches!(self.settings.action, Action::Compress | Action::Decompress);
        let why = if reads && io::stdin().is_terminal() {
            "Will not read stdin from a terminal. Use -f to override."
        } else if writes && io::stdout().is_terminal() {
            "Will not write stdout to a terminal. Use -f to override."
        } else {
            return Ok(());
        };
        messages::line(why);
        if self.program != Program::Lrz {
            messages::line(help::help(self.program).trim_end());
        }
        Err(Failed::Told)
    }

    /// Works on one file.
    fn one(&self, path: &Path) -> Result<(), Failed> {
        let started = Instant::now();
        let metadata = match is_dash(path) {
            true => None,
            false => Some(regular(path)?),
        };
        let input = Input { path, metadata };
        match step(self.settings, path) {
            Step::Skip(why) => self.voice.warn(&why),
            Step::Work(output) => {
                self.check_not_the_input(&input, &output)?;
                match self.settings.action {
                    Action::Info => info::run(self, &input)?,
                    Action::Decompress | Action::Test => decompress::run(self, &input, &output)?,
                    Action::Compress => compress::run(self, &input, &output)?,
                }
                self.delete(&input, &output)?;
            }
        }
        if self.settings.action != Action::Info {
            self.voice.say(&total_time(started));
        }
        match self.session.is_cancelled() {
            true => Err(Failed::Told),
            false => Ok(()),
        }
    }

    /// lrzip deletes its input for `-f`, and only then finds out that it has nothing to write in its place.
    fn check_not_the_input(&self, input: &Input, output: &Output) -> Result<(), Failed> {
        let (Some(read), Output::File(path)) = (&input.metadata, output) else {
            return Ok(());
        };
        match fs::metadata(path) {
            Ok(found) if paths::identity(&found) == paths::identity(read) => {
                Err(Failed::Because(format!(
                    "Failed to create {}\nFile exists: it is the input itself",
                    path.display()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Deletes a source whose output is in place, if that was asked for. Nobody knows what became of a pipe's data, and a
    /// check makes no output, so these delete nothing.
    fn delete(&self, input: &Input, output: &Output) -> Result<(), Failed> {
        match (self.settings.deletes, output) {
            (true, Output::File(_)) => self.delete_source(input),
            _ => Ok(()),
        }
    }
}

/// Regular files below a directory, symbolic links followed, by name.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>, Failed> {
    let found = fs::metadata(directory)
        .map_err(|_| Failed::Because(format!("Failed to stat {}", directory.display())))?;
    if !found.is_dir() {
        return Err(Failed::Because(format!(
            "{} not a directory, -r recursive needs a directory",
            directory.display()
        )));
    }
    let mut files = Vec::new();
    let mut above = Vec::new();
    collect(directory, &found, &mut above, &mut files)?;
    Ok(files)
}

/// `above` are the directories that lead here: a link to one of them would lead here again and again.
fn collect(
    directory: &Path,
    found: &Metadata,
    above: &mut Vec<(u64, u64)>,
    files: &mut Vec<PathBuf>,
) -> Result<(), Failed> {
    let here = (found.dev(), found.ino());
    if above.contains(&here) {
        return Ok(());
    }
    above.push(here);
    let failed = |error: io::Error| {
        Failed::Because(format!(
            "Unable to open directory {}: {error}",
            directory.display()
        ))
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort_unstable();
    for path in paths {
        // What leads nowhere is no file.
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => collect(&path, &found, above, files)?,
            Ok(found) if found.is_file() => files.push(path),
            _ => {}
        }
    }
    above.pop();
    Ok(())
}
