//! Receives the engine's reports: progress, notices, blocks.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use refrain::directory::Problem;
use refrain::{BlockInfo, Progress, Watch};
use serde_json::Value;

use super::block::{block_json, block_line};
use super::position::{Position, Total};
use super::progress_line::ProgressLine;
use crate::args::ReportArgs;
use crate::entry_paths::full_path;
use crate::messages;
use crate::names;
use crate::session::Session;
use crate::text::{escaped, printable};

/// Names a finished file, called on any thread.
pub type FileNamer = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Watches one item of work for the engine.
#[derive(Debug)]
pub struct Meter<'a> {
    session: &'a Session,
    line: Arc<ProgressLine>,
    total: Total,
    prints_notices: bool,
    prints_blocks: bool,
    prints_files: bool,
    /// The archive whose files are named when they are done.
    archive: Option<PathBuf>,
    /// The blocks for the JSON document, if it lists them.
    blocks: Option<RefCell<Vec<Value>>>,
    /// The problems reported by the engine, with the members' numbers.
    problems: RefCell<Vec<(usize, Problem)>>,
}

impl<'a> Meter<'a> {
    /// Starts the clock.
    pub fn start(label: &str, args: &ReportArgs, session: &'a Session) -> Meter<'a> {
        Meter::start_drawn(label, args, session, true)
    }

    /// As [`start`](Meter::start), drawing the line only if `has_terminal`: content written to the
    /// terminal would mix with it.
    pub fn start_drawn(
        label: &str,
        args: &ReportArgs,
        session: &'a Session,
        has_terminal: bool,
    ) -> Meter<'a> {
        let prints = !args.quiet && !args.json;
        Meter {
            session,
            line: Arc::new(ProgressLine::new(label, prints && has_terminal)),
            total: Total::Reported,
            prints_notices: !args.quiet,
            prints_blocks: prints && args.verbose >= 2,
            prints_files: prints && args.verbose >= 1,
            archive: None,
            blocks: (args.json && args.verbose >= 2).then(RefCell::default),
            problems: RefCell::default(),
        }
    }

    /// Sets what the percentage refers to.
    pub fn set_total(&mut self, total: Total) {
        self.total = total;
    }

    /// Names files of this archive when the engine reports them, if the user wants that.
    pub fn name_files(&mut self, archive: &Path) {
        self.archive = self.prints_files.then(|| archive.to_path_buf());
    }

    /// A callback that names files, if the user wants that.
    pub fn file_namer(&self) -> Option<FileNamer> {
        let line = Arc::clone(&self.line);
        let name = move |path: &[u8]| line.interrupt(|| messages::line(&escaped(path)));
        self.prints_files.then(|| Box::new(name) as FileNamer)
    }

    /// Shows the line until it is erased, even while nothing is reported. `bytes_expected` is the
    /// base of the percentage, if known: the first block may take long.
    pub fn begin(&self, bytes_expected: Option<u64>) {
        if self.line.is_enabled() {
            self.session.require_orderly_end();
            self.line.expect(match self.total {
                Total::ArchiveBytes(bytes) => Some(bytes),
                _ => bytes_expected,
            });
            if let Total::Estimate(estimate) = &self.total {
                self.line.expect_estimate(estimate);
            }
            self.line.follow_clock();
        }
    }

    /// Whether the progress line is drawn.
    pub fn is_drawn(&self) -> bool {
        self.line.is_enabled()
    }

    /// The problems reported by the engine, with the members' numbers.
    pub fn take_problems(&self) -> Vec<(usize, Problem)> {
        self.problems.take()
    }

    /// What the engine could not read of an archive.
    pub fn take_unread(&self) -> Vec<Problem> {
        let problems = self.take_problems().into_iter();
        problems.map(|(_, problem)| problem).collect()
    }

    /// Adds the blocks to a result, if it lists them.
    pub fn add_blocks(&self, result: &mut Value) {
        if let Some(blocks) = &self.blocks {
            result["blocks"] = Value::from(blocks.take());
        }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.line.elapsed()
    }

    /// The line, for work that reports its progress from other threads.
    pub fn line(&self) -> Arc<ProgressLine> {
        if self.line.is_enabled() {
            // A signal must not leave the line on the terminal.
            self.session.require_orderly_end();
        }
        Arc::clone(&self.line)
    }

    /// Removes the line from the terminal.
    pub fn erase(&self) {
        self.line.erase();
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        if let Total::Estimate(estimate) = &self.total {
            estimate.cancel();
        }
        self.erase();
    }
}

impl Watch for Meter<'_> {
    fn problem(&self, member: usize, problem: &Problem) {
        self.problems.borrow_mut().push((member, problem.clone()));
    }

    fn progress(&self, progress: &Progress) {
        if self.line.is_enabled() {
            self.session.require_orderly_end();
            self.line.draw(&Position::new(progress, &self.total));
        }
    }

    fn notice(&self, notice: &str) {
        if self.prints_notices {
            let text = format!("{}: {}", self.line.label(), printable(notice));
            (self.line).interrupt(|| messages::tell(self.session.program, &text));
        }
    }

    fn names_files(&self) -> bool {
        self.archive.is_some()
    }

    fn files(&self, member_name: &[u8], paths: &[Vec<u8>]) {
        let (Some(archive), Some(name_file)) = (&self.archive, self.file_namer()) else {
            return;
        };
        let member = names::of_member(archive, member_name);
        let prefix = [&member, &b"/"[..]].concat();
        paths
            .iter()
            .for_each(|path| name_file(&full_path(&prefix, path)));
    }

    fn block(&self, block: &BlockInfo) {
        if self.prints_blocks {
            (self.line).interrupt(|| messages::line(&block_line(block)));
        }
        if let Some(blocks) = &self.blocks {
            blocks.borrow_mut().push(block_json(block));
        }
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        Some(self.session.cancel_flag())
    }
}
