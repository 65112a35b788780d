//! Range reads that are submitted now and complete later, so that many of them can be in flight.
//!
//! A remote source (object storage, HTTP) has a latency of milliseconds and a bandwidth that one
//! request does not use. [`Source`] blocks for each read; [`AsyncSource`] separates
//! submission from completion instead. `RemoteSource` blocks, and has several requests in flight by
//! threads of its own; [`BlockingSource`] adapts any [`Source`] and completes each read during its
//! submission.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use crate::source::Source;

/// Identifies a read among those of one source that have not been delivered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

/// The end of one read.
#[derive(Debug)]
pub struct Completion {
    /// The id that the caller gave to the read.
    pub id: ReadId,
    /// The bytes of the range, fewer only at the end of the source; or the error.
    pub result: io::Result<Vec<u8>>,
}

/// Bytes whose ranges are read asynchronously by one owner.
///
/// Completions arrive in any order. The caller limits the number of reads in flight, and thereby
/// the memory of their results. Dropping the source cancels all reads in flight.
pub trait AsyncSource: Send {
    /// The present size in bytes. May block.
    fn size_bytes(&mut self) -> io::Result<u64>;

    /// Starts to read `range`. Does not block; every submitted read gives exactly one completion.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the source accepts no more reads until one completes;
    /// the read was not submitted.
    fn submit(&mut self, id: ReadId, range: Range<u64>) -> io::Result<()>;

    /// The number of submitted reads whose completion has not been delivered.
    fn in_flight(&self) -> usize;

    /// Delivers a completion if there is one. Does not block.
    fn poll(&mut self) -> Option<Completion>;

    /// Blocks until a completion can be delivered; `None` when no read is in flight.
    fn wait(&mut self) -> Option<Completion>;
}

/// Any [`Source`] as an [`AsyncSource`] that reads during [`AsyncSource::submit`].
#[derive(Debug)]
pub struct BlockingSource<S> {
    source: S,
    completed: VecDeque<Completion>,
}

impl<S: Source> BlockingSource<S> {
    /// Adapts `source`.
    pub fn new(source: S) -> Self {
        BlockingSource {
            source,
            completed: VecDeque::new(),
        }
    }

    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let length = range.end.saturating_sub(range.start);
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut bytes = vec![0; length];
        let count = self.source.read_at(range.start, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }
}

impl<S: Source> AsyncSource for BlockingSource<S> {
    fn size_bytes(&mut self) -> io::Result<u64> {
        self.source.size_bytes()
    }

    fn submit(&mut self, id: ReadId, range: Range<u64>) -> io::Result<()> {
        let result = self.read(range);
        self.completed.push_back(Completion { id, result });
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.completed.len()
    }

    fn poll(&mut self) -> Option<Completion> {
        self.completed.pop_front()
    }

    fn wait(&mut self) -> Option<Completion> {
        self.poll()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemorySource;

    #[test]
    fn every_submitted_read_completes_once_and_is_short_at_the_end() {
        let mut source = BlockingSource::new(MemorySource::new(&b"0123456789"[..]));
        assert_eq!(source.size_bytes().unwrap(), 10);
        source.submit(ReadId(7), 2..5).unwrap();
        source.submit(ReadId(8), 8..20).unwrap();
        assert_eq!(source.in_flight(), 2);
        let mut completions = Vec::new();
        while let Some(completion) = source.wait() {
            completions.push((completion.id.0, completion.result.unwrap()));
        }
        completions.sort();
        assert_eq!(completions, [(7, b"234".to_vec()), (8, b"89".to_vec())]);
        assert!(source.poll().is_none() && source.in_flight() == 0);
    }
}
