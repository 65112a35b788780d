//! Callbacks from a running verb to its caller.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use refrain_entries::{Entry, EntryKind};
use refrain_pool::{Crew, JobPanicked};

use refrain_filesystem::{Problem, ProblemKind};

use crate::archive_info::BlockInfo;
use crate::error::{Error, ErrorKind, Result};

/// How long a coordinator waits for an event before it checks for cancellation.
const CANCEL_INTERVAL: Duration = Duration::from_millis(100);

/// Callbacks from a running verb, on the thread that called it. They should return quickly.
pub trait Watch {
    /// The verb progressed. Called once per epoch or block, in long epochs more often, at most a
    /// few dozen times per second.
    fn progress(&self, _progress: &Progress) {}

    /// A remark that is not an error: a codec used its fallback, a source changed while it was
    /// read.
    fn notice(&self, _notice: &str) {}

    /// The archive lacks a file, or has it not as it was at one moment. `member` is the member's
    /// number; the path is an entry's, or empty for a member that is a file.
    fn problem(&self, _member: usize, _problem: &Problem) {}

    /// Whether [`files`](Watch::files) is wanted: names take time and memory.
    fn names_files(&self) -> bool {
        false
    }

    /// Files of a member with this name were written to the archive, or read and verified: paths of
    /// its entries without directories, or an empty path for a member that is a file.
    fn files(&self, _member_name: &[u8], _paths: &[Vec<u8>]) {}

    /// A block was written or read.
    fn block(&self, _block: &BlockInfo) {}

    /// Set this flag to stop the verb; it then returns
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    fn cancel_flag(&self) -> Option<&AtomicBool> {
        None
    }
}

/// A watch that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// How many problems [`NotedProblems`] keeps; further ones are only counted.
const PROBLEMS_MAX: usize = 10_000;

/// Passes everything on, and notes what the archive lacks, without what it
/// [need not](Problem::is_failure) have.
pub struct NotedProblems<'w> {
    inner: &'w dyn Watch,
    count: Cell<u64>,
    problems: RefCell<Vec<Problem>>,
}

impl<'w> NotedProblems<'w> {
    /// Notes the problems that `inner` is told of.
    pub fn new(inner: &'w dyn Watch) -> NotedProblems<'w> {
        NotedProblems {
            inner,
            count: Cell::new(0),
            problems: RefCell::default(),
        }
    }

    /// Whether everything could be read.
    ///
    /// # Errors
    /// The first problem: `Unsupported` or `Damaged`.
    pub fn into_result(self) -> Result<()> {
        self.problems
            .into_inner()
            .first()
            .map_or(Ok(()), |problem| {
                let kind = match problem.kind {
                    ProblemKind::Unsupported => ErrorKind::Unsupported,
                    _ => ErrorKind::Damaged,
                };
                Err(Error::new(kind, problem.to_string()))
            })
    }

    /// Their number, and the first ones.
    pub fn into_problems(self) -> (u64, Vec<Problem>) {
        (self.count.get(), self.problems.into_inner())
    }
}

impl Watch for NotedProblems<'_> {
    fn progress(&self, progress: &Progress) {
        self.inner.progress(progress);
    }

    fn notice(&self, notice: &str) {
        self.inner.notice(notice);
    }

    fn problem(&self, member: usize, problem: &Problem) {
        self.inner.problem(member, problem);
        if problem.is_failure() {
            self.count.set(self.count.get() + 1);
            let mut problems = self.problems.borrow_mut();
            if problems.len() < PROBLEMS_MAX {
                problems.push(problem.clone());
            }
        }
    }

    fn names_files(&self) -> bool {
        self.inner.names_files()
    }

    fn files(&self, member_name: &[u8], paths: &[Vec<u8>]) {
        self.inner.files(member_name, paths);
    }

    fn block(&self, block: &BlockInfo) {
        self.inner.block(block);
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        self.inner.cancel_flag()
    }
}

/// A watch of one of several members, which prefixes the paths of its entries with its name.
pub(crate) struct MemberWatch<'a> {
    pub inner: &'a dyn Watch,
    pub number: usize,
    /// Empty for the only member.
    pub name: &'a [u8],
}

impl Watch for MemberWatch<'_> {
    fn progress(&self, progress: &Progress) {
        self.inner.progress(progress);
    }

    fn notice(&self, notice: &str) {
        self.inner.notice(notice);
    }

    fn problem(&self, _member: usize, problem: &Problem) {
        let path = match (self.name, &problem.path[..]) {
            ([], path) => path.to_vec(),
            (name, []) => name.to_vec(),
            (name, path) => [name, b"/", path].concat(),
        };
        let problem = Problem {
            path,
            ..problem.clone()
        };
        self.inner.problem(self.number, &problem);
    }

    fn block(&self, block: &BlockInfo) {
        self.inner.block(block);
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        self.inner.cancel_flag()
    }
}

/// The progress of a verb.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Content bytes done.
    pub content_bytes_done: u64,
    /// All content bytes, if known.
    pub content_bytes_total: Option<u64>,
    /// Archive bytes written or read so far.
    pub archive_bytes: u64,
}

/// The paths of entries other than directories, for [`Watch::files`].
pub(crate) fn file_paths(entries: &[Entry]) -> Vec<Vec<u8>> {
    files(entries).map(|entry| entry.path.clone()).collect()
}

/// The entries other than directories.
pub(crate) fn files(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    let is_file = |entry: &&Entry| {
        !matches!(
            entry.kind,
            EntryKind::Directory | EntryKind::Raw | EntryKind::Removed
        )
    };
    entries.iter().filter(is_file)
}

/// The next event of a crew, like [`Crew::next`], even if it takes long: a job that waits for a
/// silent pipe does not see that the verb was cancelled.
///
/// # Errors
/// `Cancelled` if the watch cancelled the verb.
pub(crate) fn next_event<E>(
    crew: &Crew<'_, '_, E>,
    watch: &dyn Watch,
) -> Result<Option<std::result::Result<E, JobPanicked>>> {
    loop {
        match crew.next_within(CANCEL_INTERVAL) {
            None if crew.in_flight() > 0 => {
                if is_cancelled(watch) {
                    return Err(Error::cancelled());
                } else {
                    continue;
                }
            }
            event => return Ok(event),
        }
    }
}

/// Stops a step of a verb when the verb is stopped, and says nothing of its progress.
pub(crate) struct CancelOnly<'w>(pub &'w dyn Watch);

impl Watch for CancelOnly<'_> {
    fn cancel_flag(&self) -> Option<&AtomicBool> {
        self.0.cancel_flag()
    }
}

pub(crate) fn is_cancelled(watch: &dyn Watch) -> bool {
    watch
        .cancel_flag()
        .is_some_and(|flag| flag.load(Ordering::Relaxed))
}
