//! What an opened archive offers for serving it to many readers: cancellable reads that tell when
//! they wait, the holes of a range, and decoding ahead.

use std::ops::Range;

use refrain_entries::Entry;

use crate::archive::Archive;
use crate::error::{Error, ErrorKind, Result};
use crate::place::Place;
use crate::read::read_statistics::ReadStatistics;
use crate::read::tree::entry_data::read_entry;
use crate::read::tree::view_range::ViewReader;

pub use crate::read::read_control::{BeforeWaiting, Deadline, ReadControl, Run};

impl Archive {
    /// As [`Archive::read_at`], under `control`.
    ///
    /// # Errors
    /// As [`Archive::read_at`]; `Cancelled`; `Io` after the deadline.
    pub fn read_controlled<'a>(
        &self,
        place: impl Into<Place<'a>>,
        offset: u64,
        buffer: &mut [u8],
        control: &ReadControl,
    ) -> Result<usize> {
        let Place { member, entry } = place.into();
        // Members without entries are the usual case here.
        if entry.is_none() && !self.opened.has_entries(member)? {
            return self.opened.read(member, offset, buffer, control);
        }
        let tree = self.tree_with_entries(member, control)?;
        match entry {
            Some(entry) => read_entry(&*tree, entry, offset, buffer),
            None => {
                let view = ViewReader {
                    content: &*tree,
                    member,
                    frames: &self.views,
                    memory: self.memory.entries(),
                };
                let read = view.read(offset, buffer);
                self.memory.balance(&*self.opened);
                read
            }
        }
    }

    /// Calls `each` for the runs in a range of a member's content, or of an entry's data, in order,
    /// until it returns `false`: zeros outside of any block, and everything else. Adjacent runs may
    /// be of the same kind. A directory's tar stream is a single run of data.
    ///
    /// # Errors
    /// As [`Archive::read_at`]; `Usage` for a range past the end.
    pub fn for_each_run<'a>(
        &self,
        place: impl Into<Place<'a>>,
        range: Range<u64>,
        each: &mut dyn FnMut(Run) -> bool,
    ) -> Result<()> {
        let Place { member, entry } = place.into();
        if range.is_empty() {
            return Ok(());
        }
        let Some(entry) = entry else {
            return self.opened.for_each_run(member, range, each);
        };
        if range.end > entry.size_bytes {
            let text = "the range ends past the end of the entry";
            return Err(Error::new(ErrorKind::Usage, text));
        }
        for run in entry_runs(entry, range) {
            if !each(run) {
                break;
            }
        }
        Ok(())
    }

    /// Decodes the blocks needed by a range of a member's content, ahead of reads. Returns the
    /// number of bytes decoded. Blocks that do not fit into the cache together with the others of
    /// the range are left out.
    ///
    /// # Errors
    /// As [`Archive::read_at`]; `Cancelled`.
    pub fn prefetch<'a>(
        &self,
        place: impl Into<Place<'a>>,
        range: Range<u64>,
        control: &ReadControl,
    ) -> Result<u64> {
        let Place { member, entry } = place.into();
        match entry {
            None => self.opened.prefetch(member, range, control),
            // In a sparse file, data is nearer to the beginning than its range says.
            Some(entry) if entry.data_ranges.is_some() => Ok(0),
            Some(entry) => {
                let start = entry.content_offset;
                let end = entry.content_range().end;
                let range = (start + range.start).min(end)..(start + range.end).min(end);
                self.opened.prefetch(member, range, control)
            }
        }
    }

    /// The bytes of the largest block, as the archive states; 0 if it has no such bound.
    pub fn block_bytes_max(&self) -> u64 {
        self.opened.block_bytes_max()
    }

    /// What reads found in memory and what they decoded, since the archive was opened.
    pub fn read_statistics(&self) -> ReadStatistics {
        self.opened.read_statistics()
    }
}

/// The data and the holes of a range of an entry.
fn entry_runs(entry: &Entry, range: Range<u64>) -> impl Iterator<Item = Run> + '_ {
    let all = std::iter::once(0..entry.size_bytes);
    let data: Box<dyn Iterator<Item = Range<u64>>> = match &entry.data_ranges {
        None => Box::new(all),
        Some(ranges) => Box::new(ranges.iter().cloned()),
    };
    let mut data = data.peekable();
    let mut at = range.start;
    std::iter::from_fn(move || {
        if at >= range.end {
            return None;
        }
        while data.peek().is_some_and(|next| next.end <= at) {
            data.next();
        }
        let (end, is_zero) = match data.peek() {
            Some(next) if next.start <= at => (next.end, false),
            Some(next) => (next.start, true),
            None => (range.end, true),
        };
        let end = end.min(range.end);
        let length_bytes = end - at;
        at = end;
        Some(Run {
            length_bytes,
            is_zero,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use refrain_storage::{MemorySink, MemorySource};

    use super::*;
    use crate::{CompressOptions, Content, MemberInput, ReadOptions, Unwatched, compress};

    #[test]
    fn a_read_says_that_it_waits_unless_all_is_in_memory() {
        let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let member = MemberInput {
            name: "a".into(),
            mode: None,
            modified: None,
            content: Content::Source(Arc::new(MemorySource::new(content.clone()))),
        };
        let mut sink = MemorySink::new();
        let output = sink.output();
        let options = CompressOptions::default();
        compress(vec![member], &mut sink, &options, &Unwatched).unwrap();
        let bytes = output.published().unwrap();
        let archive = Archive::open(Arc::new(MemorySource::new(bytes)), &ReadOptions::default());
        let archive = archive.unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let control = ReadControl {
            before_waiting: Some(BeforeWaiting(Arc::new(move || {
                counted.fetch_add(1, Ordering::Relaxed);
            }))),
            ..ReadControl::default()
        };
        let mut buffer = [0; 1000];
        for is_in_memory in [false, true] {
            let before = calls.load(Ordering::Relaxed);
            let read = archive.read_controlled(0, 5000, &mut buffer, &control);
            assert_eq!(read.unwrap(), 1000);
            assert!(buffer == content[5000..6000]);
            assert_eq!(calls.load(Ordering::Relaxed) == before, is_in_memory);
        }
    }

    #[test]
    fn the_runs_of_an_entry_are_its_data_and_its_holes() {
        let sparse = Entry {
            size_bytes: 100,
            data_ranges: Some(vec![10..20, 30..40]),
            ..Entry::default()
        };
        let runs = |entry: &Entry, range| -> Vec<(u64, bool)> {
            let run = |run: Run| (run.length_bytes, run.is_zero);
            entry_runs(entry, range).map(run).collect()
        };
        let all = [(10, true), (10, false), (10, true), (10, false), (60, true)];
        assert_eq!(runs(&sparse, 0..100), all);
        assert_eq!(runs(&sparse, 15..35), [(5, false), (10, true), (5, false)]);
        assert_eq!(runs(&sparse, 45..46), [(1, true)]);
        let whole = Entry {
            size_bytes: 50,
            ..Entry::default()
        };
        assert_eq!(runs(&whole, 7..50), [(43, false)]);
    }
}
