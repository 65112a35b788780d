//! Translates extents into records: references to the store become distances in the content.

use std::collections::VecDeque;

use refrain_format::lrzip::RecordWriter;
use refrain_longmatch::{Extent, Pattern};

use crate::error::{Error, ErrorKind, Result};
use crate::write::lrzip::occurrences::Occurrences;

/// lrzip 0.651 writes a match that overlaps its own source period by period, with one system call
/// each. Therefore patterns are repeated at distances that grow to this many bytes (rounded up to a
/// multiple of the period), and records then copy at most this many bytes.
const REPEAT_BYTES: u64 = 65_535;
/// While the distance of a repeated pattern grows, one record copies at most this many times its
/// distance.
const GROWTH: u64 = 15;

/// Literal bytes outside of the store. Among the literals they precede the store byte
/// `store_offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Insertion {
    pub store_offset: u64,
    pub pattern: Pattern,
    /// The length of the pattern, at most one period.
    pub length_bytes: usize,
}

impl Insertion {
    pub(crate) fn bytes(&self) -> &[u8] {
        let bytes = self.pattern.bytes();
        &bytes[..self.length_bytes.min(bytes.len())]
    }
}

/// The last record, not written yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingRecord {
    Literals(u64),
    Match { length: u64, distance: u64 },
}

pub(crate) struct Records {
    writer: RecordWriter,
    pending: PendingRecord,
    occurrences: Occurrences,
    distance: Option<u64>,
    matched_bytes: u64,
}

impl Records {
    /// For a chunk whose literals start at this offset in the store.
    pub(crate) fn new(writer: RecordWriter, store_start: u64) -> Records {
        Records {
            writer,
            pending: PendingRecord::Literals(0),
            occurrences: Occurrences::new(store_start),
            distance: None,
            matched_bytes: 0,
        }
    }

    /// The length of the chunk's content so far.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.occurrences.content_end()
    }

    /// How much content is copied by records.
    pub(crate) fn matched_bytes(&self) -> u64 {
        self.matched_bytes
    }

    /// Evicts the oldest occurrences until they take at most one and a half times `memory_bytes`.
    /// Returns the store offset above which all occurrences are known.
    pub(crate) fn shrink_to(&mut self, memory_bytes: usize) -> u64 {
        self.occurrences.shrink_to(memory_bytes)
    }

    /// Appends an extent. Records go to `out`, literals outside of the store to `insertions`.
    pub(crate) fn push(
        &mut self,
        extent: &Extent,
        out: &mut Vec<u8>,
        insertions: &mut VecDeque<Insertion>,
    ) -> Result<()> {
        match *extent {
            Extent::Fresh { length } => {
                self.occurrences.push_fresh(length);
                self.literals(length, out)?;
            }
            Extent::Copy {
                length,
                offset_in_store,
            } => self.copy(length, offset_in_store, out)?,
            // Its archives have no generations.
            Extent::Known { .. } => {
                let text = "an lrzip archive has no earlier content";
                return Err(Error::new(ErrorKind::Internal, text));
            }
            Extent::Fill {
                length,
                ref pattern,
            } => {
                let insertion = Insertion {
                    store_offset: self.occurrences.store_end(),
                    pattern: **pattern,
                    length_bytes: length.min(pattern.bytes().len() as u64) as usize,
                };
                insertions.push_back(insertion);
                self.fill(length, pattern.bytes().len() as u64, out)?;
            }
        }
        Ok(())
    }

    fn copy(&mut self, mut length: u64, mut offset: u64, out: &mut Vec<u8>) -> Result<()> {
        while length > 0 {
            let here = self.occurrences.content_end();
            let expected = self
                .distance
                .and_then(|distance| here.checked_sub(distance));
            let is_continuing = matches!(self.pending, PendingRecord::Match { .. });
            let source = (self
                .occurrences
                .find(offset, length, expected, is_continuing))
            .ok_or_else(|| {
                let cause = "a copy of bytes that its chunk does not contain";
                Error::new(ErrorKind::Internal, cause)
            })?;
            self.matched(source.length_bytes, here - source.content, out)?;
            self.distance = Some(here - source.content);
            self.occurrences.push_copied(source.length_bytes, offset);
            offset += source.length_bytes;
            length -= source.length_bytes;
        }
        Ok(())
    }

    fn fill(&mut self, length: u64, period: u64, out: &mut Vec<u8>) -> Result<()> {
        self.occurrences.push_pattern(length);
        let first = length.min(period);
        self.literals(first, out)?;
        let far = REPEAT_BYTES.next_multiple_of(period);
        let mut done = first;
        while done < length {
            let distance = (done / period * period).min(far);
            let count_max = if distance < far { GROWTH * distance } else { u64::MAX };
            let count = count_max.min(length - done);
            self.matched(count, distance, out)?;
            done += count;
        }
        Ok(())
    }

    fn literals(&mut self, length: u64, out: &mut Vec<u8>) -> Result<()> {
        if let PendingRecord::Literals(pending) = &mut self.pending {
            *pending += length;
            return Ok(());
        }
        self.write_pending(out)?;
        self.pending = PendingRecord::Literals(length);
        Ok(())
    }

    fn matched(&mut self, count: u64, distance: u64, out: &mut Vec<u8>) -> Result<()> {
        self.matched_bytes += count;
        match &mut self.pending {
            PendingRecord::Match {
                length,
                distance: before,
            } if *before == distance => *length += count,
            _ => {
                self.write_pending(out)?;
                self.pending = PendingRecord::Match {
                    length: count,
                    distance,
                };
            }
        }
        Ok(())
    }

    fn write_pending(&self, out: &mut Vec<u8>) -> Result<()> {
        match self.pending {
            PendingRecord::Literals(length) => self.writer.literals(length, out),
            PendingRecord::Match { length, distance } => {
                self.writer.matched(length, distance, out)?
            }
        }
        Ok(())
    }

    /// Writes the last record unchanged; what follows becomes another record.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.write_pending(out)?;
        self.pending = PendingRecord::Literals(0);
        Ok(())
    }

    pub(crate) fn end(self, crc: u32, out: &mut Vec<u8>) -> Result<()> {
        self.write_pending(out)?;
        self.writer.end(crc, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_format::lrzip::{Record, RecordParser, Version};
    use refrain_longmatch::replay;
    use refrain_testkit::Rng;

    /// The literals of a chunk, with the insertions between store bytes.
    fn literals(store: &[u8], insertions: &VecDeque<Insertion>) -> Vec<u8> {
        let mut all = Vec::new();
        let mut from = 0;
        for insertion in insertions {
            all.extend_from_slice(&store[from..insertion.store_offset as usize]);
            all.extend_from_slice(insertion.bytes());
            from = insertion.store_offset as usize;
        }
        all.extend_from_slice(&store[from..]);
        all
    }

    /// The content from the records, byte by byte, and the greatest overlap: length over distance.
    fn followed(records: &[u8], width: u8, mut literals: &[u8]) -> (Vec<u8>, u64) {
        let mut parser = RecordParser::new(Version::V6, width);
        let (mut input, mut content, mut overlap) = (records, Vec::new(), 0);
        while let Some(record) = parser.next(&mut input).unwrap() {
            match record {
                Record::Literals { length_bytes } => {
                    let (now, later) = literals.split_at(length_bytes as usize);
                    content.extend_from_slice(now);
                    literals = later;
                }
                Record::Match {
                    length_bytes,
                    distance_bytes,
                } => {
                    overlap = overlap.max(length_bytes / distance_bytes);
                    for _ in 0..length_bytes {
                        content.push(content[content.len() - distance_bytes as usize]);
                    }
                }
                Record::End { crc } => assert_eq!(crc, Some(7)),
            }
        }
        assert!(parser.has_ended() && literals.is_empty());
        (content, overlap)
    }

    fn extents(numbers: &mut Rng, count: usize) -> (Vec<Extent>, Vec<u8>) {
        let (mut extents, mut store) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let length_max = if numbers.below(9) == 0 { 200_000 } else { 300 };
            let length = 1 + numbers.below(length_max);
            let room = store.len() as u64;
            extents.push(match numbers.below(4) {
                0 => {
                    let period = 1 + numbers.below(64);
                    let bytes: Vec<u8> = (0..period).map(|_| numbers.below(256) as u8).collect();
                    let pattern = Pattern::new(&bytes).unwrap();
                    Extent::Fill {
                        length,
                        pattern: Box::new(pattern),
                    }
                }
                1 | 2 if room > 0 => {
                    let offset_in_store = numbers.below(room);
                    let length = length.min(room - offset_in_store);
                    Extent::Copy {
                        length,
                        offset_in_store,
                    }
                }
                _ => {
                    store.extend((0..length).map(|_| numbers.below(256) as u8));
                    Extent::Fresh { length }
                }
            });
        }
        (extents, store)
    }

    #[test]
    fn records_say_what_extents_say() {
        for seed in 0..60 {
            let mut numbers = Rng::new(seed);
            let (extents, store) = extents(&mut numbers, 1 + seed as usize * 3);
            let mut records = Records::new(RecordWriter::new(Version::V6, 5), 0);
            let (mut written, mut insertions) = (Vec::new(), VecDeque::new());
            for extent in &extents {
                records.push(extent, &mut written, &mut insertions).unwrap();
            }
            let length = records.content_bytes();
            records.end(7, &mut written).unwrap();
            let (content, overlap) = followed(&written, 5, &literals(&store, &insertions));
            assert_eq!(content.len() as u64, length);
            let mut expected = Vec::new();
            replay(&extents, &store, 0, &mut expected).unwrap();
            assert!(content == expected, "seed {seed}");
            assert!(overlap <= GROWTH, "lrzip would write {overlap} times");
        }
    }

    #[test]
    fn what_is_forgotten_is_not_known_any_more() {
        let mut records = Records::new(RecordWriter::new(Version::V6, 5), 100);
        let (mut written, mut insertions) = (Vec::new(), VecDeque::new());
        let copy = |offset_in_store| Extent::Copy {
            length: 5,
            offset_in_store,
        };
        for _ in 0..10_000 {
            for extent in [Extent::Fresh { length: 50 }, copy(100)] {
                (records.push(&extent, &mut written, &mut insertions)).unwrap();
            }
        }
        assert_eq!(records.shrink_to(1 << 20), 100);
        let floor = records.shrink_to(50 << 10);
        assert!(floor > 100 && floor < 100 + 10_000 * 50, "{floor}");
        let below = records.push(&copy(floor - 1), &mut written, &mut insertions);
        assert!(below.is_err());
        let above = records.push(&copy(floor), &mut written, &mut insertions);
        assert!(above.is_ok());
        assert_eq!(records.shrink_to(0), 100 + 10_000 * 50);
    }
}
