//! File after file; the first one that fails ends the run.

use std::fs::{self, Metadata};
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use refrain::ReadOptions;

use super::name::Program;
use super::plan::{Output, Plan, Step, step};
use super::settings::{Action, Settings};
use super::voice::Voice;
use super::{Failed, banner, compress, decompress, help, info};
use crate::args::{OutputArgs, ThreadArgs};
use crate::failure::Failure;
use crate::files::{self, is_dash};
use crate::messages;
use crate::progress::Meter;
use crate::session::Session;

/// Bytes in one unit of `-m` and `-w`.
pub const HUNDRED_MIB: u64 = 100 << 20;

/// What all files of a run share.
pub struct Job<'a> {
    pub program: Program,
    pub settings: &'a Settings,
    pub voice: Voice,
    pub session: Session,
}

/// One file, looked at.
pub struct Input<'a> {
    pub path: &'a Path,
    /// `None` is standard input.
    pub metadata: Option<Metadata>,
}

/// Works on all files.
pub fn run(program: Program, settings: &Settings, files: &[PathBuf]) -> Result<(), Failed> {
    let plan = Plan::new(settings, files).map_err(Failed::Because)?;
    let job = Job::start(program, settings, plan.is_stdout);
    plan.remarks
        .iter()
        .for_each(|remark| job.voice.warn(remark));
    banner::tell(settings, &job.voice);
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
            Ok(found) if files::identity(&found) == files::identity(read) => {
                Err(Failed::Because(format!(
                    "Failed to create {}\nFile exists: it is the input itself",
                    path.display()
                )))
            }
            _ => Ok(()),
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

    /// Deletes a source whose output is in place, if that was asked for. Nobody knows what became of a pipe's data, and a
    /// check makes no output, so these delete nothing.
    fn delete(&self, input: &Input, output: &Output) -> Result<(), Failed> {
        match (self.settings.deletes, output) {
            (true, Output::File(_)) => self.delete_source(input),
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

/// A regular file, symbolic links followed.
pub fn regular(path: &Path) -> Result<Metadata, Failed> {
    let found = fs::metadata(path)
        .map_err(|_| Failed::Because(format!("Failed to stat {}", path.display())))?;
    match found.is_file() {
        true => Ok(found),
        false => Err(Failed::Because(
            "lrzip only works directly on regular FILES.\n\
             Use -r recursive, lrztar or pipe through tar for compressing directories."
                .into(),
        )),
    }
}

/// `Total time: 00:01:02.34`.
pub fn total_time(started: Instant) -> String {
    let seconds = started.elapsed().as_secs_f64();
    let whole = seconds as u64;
    format!(
        "Total time: {:02}:{:02}:{:05.2}",
        whole / 3600,
        whole / 60 % 60,
        seconds - (whole / 60 * 60) as f64
    )
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
