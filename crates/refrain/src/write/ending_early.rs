//! Members that end where they become unreadable, so that the others are stored.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_filesystem::{Problem, ProblemKind};
use refrain_storage::Source;

use crate::write::tree::feed::Problems;

/// The bytes of one of several members. An error ends them; the first one is a problem.
pub(crate) struct EndingEarly<T> {
    inner: T,
    member: usize,
    problems: Problems,
    has_failed: AtomicBool,
}

impl<T> EndingEarly<T> {
    pub(crate) fn new(inner: T, member: usize, problems: Problems) -> EndingEarly<T> {
        EndingEarly {
            inner,
            member,
            problems,
            has_failed: AtomicBool::new(false),
        }
    }

    fn or_end(&self, read: io::Result<usize>) -> io::Result<usize> {
        match read {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                if !self.has_failed.swap(true, Ordering::Relaxed) {
                    let problem = Problem {
                        path: Vec::new(),
                        kind: ProblemKind::Unreadable,
                        text: format!("is stored up to where it cannot be read: {error}"),
                    };
                    self.problems.lock().push((self.member, problem));
                }
                Ok(0)
            }
            read => read,
        }
    }
}

impl<S: Source> Source for EndingEarly<S> {
    fn size_bytes(&self) -> io::Result<u64> {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.or_end(self.inner.read_at(offset, buffer))
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        self.inner.next_data(offset)
    }

    fn can_reread(&self, offset: u64) -> bool {
        self.inner.can_reread(offset)
    }

    fn has_changed(&self) -> io::Result<bool> {
        self.inner.has_changed()
    }
}

impl<R: Read> Read for EndingEarly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Nothing is read after an error.
        if self.has_failed.load(Ordering::Relaxed) {
            return Ok(0);
        }
        let read = self.inner.read(buffer);
        self.or_end(read)
    }
}
