//! What all files of a run share.

use std::fs;
use std::io;
use std::path::Path;

use refrain::ReadOptions;

use super::input::Input;
use crate::args::OutputArgs;
use crate::args::resources::ThreadArgs;
use crate::failure::Failure;
use crate::files;
use crate::lrzip::arguments::program::Program;
use crate::lrzip::arguments::settings::{HUNDRED_MIB, Settings};
use crate::lrzip::error::Failed;
use crate::lrzip::report::console::Voice;
use crate::report::Meter;
use crate::session::Session;

/// What all files of a run share.
pub struct Job<'a> {
    pub program: Program,
    pub settings: &'a Settings,
    pub voice: Voice,
    pub session: Session,
}

impl Job<'_> {
    /// Starts a run.
    pub fn start(program: Program, settings: &Settings, is_stdout: bool) -> Job<'_> {
        let niceness = rustix::process::setpriority_process(None, settings.nice);
        // Only the administrator may raise a priority; lrzip goes on without a word, too.
        let _ = niceness;
        Job {
            program,
            settings,
            voice: Voice::new(settings.verbosity, is_stdout),
            session: Session::start(program.name()),
        }
    }

    /// Refuses an output in a directory that is not there, before any work.
    pub fn check_directory_of(&self, path: &Path) -> Result<(), Failed> {
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        match parent.map(fs::metadata) {
            Some(Err(error)) => Err(self.failed(path, Failure::Storage(error))),
            _ => Ok(()),
        }
    }

    /// Deletes a file that was read.
    pub fn delete_source(&self, input: &Input) -> Result<(), Failed> {
        let Some(read) = &input.metadata else {
            return Ok(());
        };
        if let Some(why_not) = files::remove_source(input.path, read)? {
            self.voice
                .warn(&format!("{}: {why_not}", input.path.display()));
        }
        Ok(())
    }

    /// How the engine reads.
    pub fn read_options(&self, is_stdin_data: bool) -> ReadOptions {
        let memory_bytes = self
            .settings
            .maxram
            .map(|hundreds| hundreds.saturating_mul(HUNDRED_MIB));
        ReadOptions {
            threads: self.threads(),
            // A smaller budget would refuse what lrzip reads, which takes whatever an archive needs. Small archives need little.
            memory_bytes: memory_bytes
                .unwrap_or(0)
                .max(ReadOptions::default().memory_bytes),
            password: Some(super::password::for_reading(self.settings, is_stdin_data)),
        }
    }

    /// How many threads work, never 0. (lrzip starts up to twice as many as `-p` says.)
    pub fn threads(&self) -> usize {
        let threads = self.settings.threads.unwrap_or(0);
        ThreadArgs { threads }.count()
    }

    /// How files are made.
    pub fn output_args(&self) -> OutputArgs {
        OutputArgs {
            force: self.settings.force,
            // Sources are deleted when their output has reached the disk.
            rm: self.settings.deletes,
            ..OutputArgs::default()
        }
    }

    /// A watch for one file.
    pub fn meter(&self, label: &str) -> Meter<'_> {
        Meter::start(label, &self.voice.report(), &self.session)
    }

    /// A failure about `path` that ends the run.
    pub fn failed(&self, path: &Path, failure: Failure) -> Failed {
        match failure {
            _ if self.session.is_cancelled() => Failed::Told,
            failure if failure.is_broken_pipe() => Failed::Told,
            Failure::Exists { file } => {
                Failed::Because(format!("Failed to create {file}\nFile exists"))
            }
            Failure::Storage(error) => Failed::Because(format!(
                "Failed to create {}\n{}",
                path.display(),
                error_text(&error)
            )),
            failure => Failed::Because(failure.to_string()),
        }
    }
}

/// What the operating system calls the commonest errors, which scripts may look for.
fn error_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "No such file or directory".into(),
        io::ErrorKind::PermissionDenied => "Permission denied".into(),
        io::ErrorKind::StorageFull => "No space left on device".into(),
        _ => error.to_string(),
    }
}
