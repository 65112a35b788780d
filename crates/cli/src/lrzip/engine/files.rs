//! Processes files one by one. The first failure ends the run.

use std::fs::{self, Metadata};
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::context::RunContext;
use super::input::{InputFile, regular_file};
use super::{compress, decompress, info};
use crate::lrzip::arguments::program::Program;
use crate::lrzip::arguments::settings::{Action, Settings};
use crate::lrzip::error::RunError;
use crate::lrzip::plan::{FilePlan, OutputTarget, RunPlan, plan_file};
use crate::lrzip::report::rates::total_time;
use crate::lrzip::report::{help, options_in_effect};
use crate::messages;
use crate::paths::{self, is_dash};

/// Processes all files.
pub fn run(program: Program, settings: &Settings, files: &[PathBuf]) -> Result<(), RunError> {
    let plan = RunPlan::new(settings, files).map_err(RunError::Message)?;
    let context = RunContext::start(program, settings, plan.is_stdout_data);
    plan.warnings
        .iter()
        .for_each(|warning| context.console.warn(warning));
    options_in_effect::print(settings, &context.console);
    context.check_terminals(&plan)?;
    for path in &plan.inputs {
        if !settings.is_recursive {
            context.process(path)?
        } else {
            // List all files before processing the first: outputs must not become inputs.
            for path in files_below(path)? {
                context.process(&path)?;
            }
        }
    }
    Ok(())
}

impl RunContext<'_> {
    fn check_terminals(&self, plan: &RunPlan) -> Result<(), RunError> {
        if self.settings.force {
            return Ok(());
        }
        let reads = plan.inputs.iter().any(|path| is_dash(path));
        // lrz writes to a terminal, as with `lrz -dc notes.lrz`.
        let writes = plan.is_stdout_data
            && self.program != Program::Lrz
            && matches!(self.settings.action, Action::Compress | Action::Decompress);
        let message = if reads && io::stdin().is_terminal() {
            "Will not read stdin from a terminal. Use -f to override."
        } else if writes && io::stdout().is_terminal() {
            "Will not write stdout to a terminal. Use -f to override."
        } else {
            return Ok(());
        };
        messages::line(message);
        if self.program != Program::Lrz {
            messages::line(help::help(self.program).trim_end());
        }
        Err(RunError::Reported)
    }

    fn process(&self, path: &Path) -> Result<(), RunError> {
        let started = Instant::now();
        let metadata = if is_dash(path) { None } else { Some(regular_file(path)?) };
        let input = InputFile { path, metadata };
        match plan_file(self.settings, path) {
            FilePlan::Skip(reason) => self.console.warn(&reason),
            FilePlan::Process(output) => {
                self.check_not_the_input(&input, &output)?;
                let is_stored = match self.settings.action {
                    Action::Info => {
                        info::run(self, &input)?;
                        false
                    }
                    Action::Decompress | Action::Test => decompress::run(self, &input, &output)?,
                    Action::Compress => compress::run(self, &input, &output)?,
                };
                if is_stored && self.settings.deletes_sources {
                    self.delete_source(&input)?;
                }
            }
        }
        if self.settings.action != Action::Info {
            self.console.print_line(&total_time(started));
        }
        if self.session.is_cancelled() { Err(self.interruption()) } else { Ok(()) }
    }

    /// Refuses an output that is the input itself. With `-f`, lrzip deletes its input and then
    /// fails.
    fn check_not_the_input(
        &self,
        input: &InputFile,
        output: &OutputTarget,
    ) -> Result<(), RunError> {
        let (Some(input), OutputTarget::File(path)) = (&input.metadata, output) else {
            return Ok(());
        };
        match fs::metadata(path) {
            Ok(found) if paths::is_same_file(&found, input) => Err(RunError::Message(format!(
                "Failed to create {}\nFile exists: it is the input file",
                path.display()
            ))),
            _ => Ok(()),
        }
    }
}

/// The regular files below a directory in order of their names. Follows symbolic links.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>, RunError> {
    let found = fs::metadata(directory)
        .map_err(|_| RunError::Message(format!("Failed to stat {}", directory.display())))?;
    if !found.is_dir() {
        return Err(RunError::Message(format!(
            "{} not a directory, -r recursive needs a directory",
            directory.display()
        )));
    }
    let mut files = Vec::new();
    let mut above = Vec::new();
    collect(directory, &found, &mut above, &mut files)?;
    Ok(files)
}

/// `above` are the directories that lead here, to detect loops of links.
fn collect(
    directory: &Path,
    found: &Metadata,
    above: &mut Vec<(u64, u64)>,
    files: &mut Vec<PathBuf>,
) -> Result<(), RunError> {
    let here = (found.dev(), found.ino());
    if above.contains(&here) {
        return Ok(());
    }
    above.push(here);
    let failed = |error: io::Error| {
        RunError::Message(format!(
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
        // A dangling link is skipped.
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => collect(&path, &found, above, files)?,
            Ok(found) if found.is_file() => files.push(path),
            _ => {}
        }
    }
    above.pop();
    Ok(())
}
