//! The context that all files of a run share.

use std::fs;
use std::io;
use std::path::Path;

use refrain::ReadOptions;
use refrain::directory::Problem;
use refrain_storage::{NotAsWritten, ReadBack};
use serde_json::Value;

use super::input::InputFile;
use crate::args::OutputArgs;
use crate::args::resources::ThreadArgs;
use crate::failure::Failure;
use crate::files;
use crate::lrzip::arguments::program::Program;
use crate::lrzip::arguments::settings::{HUNDRED_MIB, Settings};
use crate::lrzip::error::RunError;
use crate::lrzip::report::console::Console;
use crate::memory_limit::default_for_reading;
use crate::messages;
use crate::report::{Meter, Outcome, read_back_remark};
use crate::session::Session;
use crate::temporary;
use crate::text::printable;

/// The context that all files of a run share.
pub struct RunContext<'a> {
    pub program: Program,
    pub settings: &'a Settings,
    pub console: Console,
    pub session: Session,
}

impl RunContext<'_> {
    pub fn start(program: Program, settings: &Settings, is_stdout: bool) -> RunContext<'_> {
        let niceness = rustix::process::setpriority_process(None, settings.nice);
        // Only the administrator may raise a priority. lrzip ignores the failure too.
        let _ = niceness;
        RunContext {
            program,
            settings,
            console: Console::new(settings.verbosity, is_stdout),
            session: Session::start_as_lrzip(program.name()),
        }
    }

    /// Checks before any work that an output's directory exists.
    pub fn check_directory_of(&self, path: &Path) -> Result<(), RunError> {
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        match parent.map(fs::metadata) {
            Some(Err(error)) => Err(self.run_error(path, Failure::Storage(error))),
            _ => Ok(()),
        }
    }

    /// Reports what is missing in a result, or was left over in an archive.
    ///
    /// # Errors
    /// A message if there is anything.
    pub fn check_complete(&self, label: &str, problems: Vec<Problem>) -> Result<(), RunError> {
        let mut outcome = Outcome::new(label, String::new(), Value::Null);
        outcome.add_unread(problems);
        for (line, is_failure) in outcome.files_to_name(true) {
            if is_failure {
                messages::line(&printable(&line))
            } else {
                self.console.warn(&line)
            }
        }
        if outcome.is_complete() {
            Ok(())
        } else {
            Err(RunError::Message(outcome.loss_lines().join("\n")))
        }
    }

    /// Deletes a source that was processed completely into a regular file.
    pub fn delete_source(&self, input: &InputFile) -> Result<(), RunError> {
        let Some(metadata) = &input.metadata else {
            return Ok(());
        };
        if let Some(reason) = files::remove_source(input.path, metadata)? {
            self.console.warn(&format!(
                "{}: not removed: {}",
                input.path.display(),
                reason.text()
            ));
        }
        Ok(())
    }

    /// The options for reading archives.
    pub fn read_options(&self, is_stdin_data: bool) -> ReadOptions {
        let memory_bytes = self
            .settings
            .maxram
            .map(|hundreds| hundreds.saturating_mul(HUNDRED_MIB));
        ReadOptions {
            threads: self.threads(),
            // A smaller budget would refuse archives that lrzip reads: lrzip allocates whatever an
            // archive needs. Small archives need little. More than the system has is refused.
            memory_bytes: memory_bytes
                .unwrap_or(0)
                .max(default_for_reading(self.threads())),
            password: Some(super::password::for_reading(self.settings, is_stdin_data)),
            // lrzip has no such limit.
            content_bytes_max: Some(u64::MAX),
            temporary: temporary::space(None, None).map(|space| space.directory),
            ..ReadOptions::default()
        }
    }

    /// The number of threads, at least 1. (lrzip starts up to twice the number given by `-p`.)
    pub fn threads(&self) -> usize {
        let threads = self.settings.threads.unwrap_or(0);
        ThreadArgs { threads }.count()
    }

    /// The options for writing files.
    pub fn output_args(&self) -> OutputArgs {
        OutputArgs {
            force: self.settings.force,
            // A source is deleted only after its output was synced to disk.
            rm: self.settings.deletes_sources,
            check: self.settings.verifies_output,
            ..OutputArgs::default()
        }
    }

    /// Says if what was written could not be read from the disk itself.
    pub fn tell_read_back(&self, found: Option<ReadBack>) {
        if let Some(remark) = found.as_ref().and_then(read_back_remark) {
            self.console.warn(&remark);
        }
    }

    /// Starts the progress display of one file.
    pub fn meter(&self, label: &str) -> Meter<'_> {
        Meter::start(label, &self.console.progress_args(), &self.session)
    }

    /// The error of a run ended by a signal.
    pub fn interruption(&self) -> RunError {
        RunError::Interrupted(self.session.interrupted())
    }

    /// Converts a failure about `path` into the run's error.
    pub fn run_error(&self, path: &Path, failure: Failure) -> RunError {
        match failure {
            _ if self.session.is_cancelled() => self.interruption(),
            failure if failure.is_broken_pipe() => RunError::Reported,
            Failure::Exists { file } => {
                RunError::Message(format!("Failed to create {file}\nFile exists"))
            }
            Failure::Storage(error) if NotAsWritten::is_inside(&error) => {
                RunError::Message(format!("MD5 CHECK FAILED.\n{error}"))
            }
            Failure::Storage(error) => RunError::Message(format!(
                "Failed to create {}\n{}",
                path.display(),
                error_text(&error)
            )),
            failure => RunError::Message(with_lrzip_options(&failure.to_string())),
        }
    }
}

/// Replaces Refrain's option for memory in a message by lrzip's.
fn with_lrzip_options(message: &str) -> String {
    message.replace("(option --memory)", "(option -m)")
}

/// The system's text for the most frequent errors, which scripts may parse.
fn error_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "No such file or directory".into(),
        io::ErrorKind::PermissionDenied => "Permission denied".into(),
        io::ErrorKind::StorageFull => "No space left on device".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use refrain::{Error, ErrorKind};

    use super::*;

    #[test]
    fn limits_of_memory_name_lrzips_option() {
        let error = Error::new(ErrorKind::Limit, "raise the memory limit");
        let message = with_lrzip_options(&Failure::engine("x", error).to_string());
        assert_eq!(message, "x: raise the memory limit (option -m)");
    }
}
