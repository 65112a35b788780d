//! Extents into records: references to the store become distances in content.

use std::collections::VecDeque;

use refrain_format::lrzip::RecordWriter;
use refrain_longmatch::{Extent, Pattern};

use crate::error::{Error, ErrorKind, Result};

/// lrzip 0.651 writes a match that overlaps its own source period by period, one call of the system for each. So patterns are
/// repeated at distances that grow to this many bytes (the first multiple of their period from there on), and records then copy at most
/// as many.
const REPEAT_BYTES: u64 = 65_535;
/// While a repeated pattern grows, one record copies at most so many times its distance.
const GROWTH: u64 = 15;

/// Bytes of the store as they first came: from `store` on they are those of the content from `content` on, to the next run's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FirstSeen {
    store: u64,
    content: u64,
}

/// Literal bytes that are not in the store: they stand before its byte `store_offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Insertion {
    pub store_offset: u64,
    pub pattern: Pattern,
    /// How many bytes of the pattern, at most all.
    pub length_bytes: usize,
}

impl Insertion {
    pub(crate) fn bytes(&self) -> &[u8] {
        let bytes = self.pattern.bytes();
        &bytes[..self.length_bytes.min(bytes.len())]
    }
}

/// What the last record, not yet written, says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Literals(u64),
    Match { length: u64, distance: u64 },
}

/// Writes the records of one chunk.
pub(crate) struct Records {
    writer: RecordWriter,
    pending: Pending,
    /// Content of the chunk so far, in bytes.
    content_bytes: u64,
    store_end: u64,
    first_seen: VecDeque<FirstSeen>,
    matched_bytes: u64,
}

impl Records {
    /// For a chunk whose literals begin at this offset in the store.
    pub(crate) fn new(writer: RecordWriter, store_start: u64) -> Records {
        Records {
            writer,
            pending: Pending::Literals(0),
            content_bytes: 0,
            store_end: store_start,
            first_seen: VecDeque::new(),
            matched_bytes: 0,
        }
    }

    /// Content of the chunk so far, in bytes.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Content that records copy, in bytes.
    pub(crate) fn matched_bytes(&self) -> u64 {
        self.matched_bytes
    }

    /// Bytes that are known of the store, in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.first_seen.len() * size_of::<FirstSeen>()
    }

    /// Forgets where store bytes came first until that takes at most `memory_bytes`. Returns the store offset from which on all is
    /// known.
    pub(crate) fn forget(&mut self, memory_bytes: usize) -> u64 {
        while self.memory_bytes() > memory_bytes && self.first_seen.pop_front().is_some() {}
        self.first_seen
            .front()
            .map_or(self.store_end, |first| first.store)
    }

    /// Appends an extent. Records go to `out`, literals that are not in the store to `insertions`.
    pub(crate) fn push(
        &mut self,
        extent: &Extent,
        out: &mut Vec<u8>,
        insertions: &mut VecDeque<Insertion>,
    ) -> Result<()> {
        match *extent {
            Extent::Fresh { length } => self.fresh(length, out)?,
            Extent::Copy {
                length,
                offset_in_store,
            } => self.copy(length, offset_in_store, out)?,
            Extent::Fill { length, pattern } => {
                let insertion = Insertion {
                    store_offset: self.store_end,
                    pattern,
                    length_bytes: length.min(pattern.bytes().len() as u64) as usize,
                };
                insertions.push_back(insertion);
                self.fill(length, pattern.bytes().len() as u64, out)?;
            }
        }
        Ok(())
    }

    fn fresh(&mut self, length: u64, out: &mut Vec<u8>) -> Result<()> {
        let here = FirstSeen {
            store: self.store_end,
            content: self.content_bytes,
        };
        let goes_on = |last: &FirstSeen| here.content - last.content == here.store - last.store;
        if !self.first_seen.back().is_some_and(goes_on) {
            self.first_seen.push_back(here);
        }
        self.store_end += length;
        self.literals(length, out)
    }

    fn copy(&mut self, mut length: u64, mut offset: u64, out: &mut Vec<u8>) -> Result<()> {
        let lost = || {
            Error::new(
                ErrorKind::Internal,
                "a copy of what its chunk does not hold",
            )
        };
        let mut run = (self.first_seen)
            .partition_point(|run| run.store <= offset)
            .checked_sub(1)
            .ok_or_else(lost)?;
        while length > 0 {
            let first = self.first_seen.get(run).ok_or_else(lost)?;
            let next = self.first_seen.get(run + 1);
            let end = next.map_or(self.store_end, |next| next.store);
            let piece = length.min(end.checked_sub(offset).ok_or_else(lost)?);
            let source = first.content + (offset - first.store);
            self.matched(piece, self.content_bytes - source, out)?;
            (offset, length) = (offset + piece, length - piece);
            run += 1;
        }
        Ok(())
    }

    fn fill(&mut self, length: u64, period: u64, out: &mut Vec<u8>) -> Result<()> {
        let first = length.min(period);
        self.literals(first, out)?;
        let far = REPEAT_BYTES.next_multiple_of(period);
        let mut done = first;
        while done < length {
            let distance = (done / period * period).min(far);
            let count_max = match distance < far {
                true => GROWTH * distance,
                false => u64::MAX,
            };
            let count = count_max.min(length - done);
            self.matched(count, distance, out)?;
            done += count;
        }
        Ok(())
    }

    fn literals(&mut self, length: u64, out: &mut Vec<u8>) -> Result<()> {
        self.content_bytes += length;
        if let Pending::Literals(pending) = &mut self.pending {
            *pending += length;
            return Ok(());
        }
        self.write_pending(out)?;
        self.pending = Pending::Literals(length);
        Ok(())
    }

    fn matched(&mut self, count: u64, distance: u64, out: &mut Vec<u8>) -> Result<()> {
        self.content_bytes += count;
        self.matched_bytes += count;
        match &mut self.pending {
            Pending::Match {
                length,
                distance: before,
            } if *before == distance => *length += count,
            _ => {
                self.write_pending(out)?;
                self.pending = Pending::Match {
                    length: count,
                    distance,
                };
            }
        }
        Ok(())
    }

    fn write_pending(&self, out: &mut Vec<u8>) -> Result<()> {
        match self.pending {
            Pending::Literals(length) => self.writer.literals(length, out),
            Pending::Match { length, distance } => self.writer.matched(length, distance, out)?,
        }
        Ok(())
    }

    /// Ends the chunk.
    pub(crate) fn end(self, crc: u32, out: &mut Vec<u8>) -> Result<()> {
        self.write_pending(out)?;
        self.writer.end(crc, out);
        Ok(())
    }
}
