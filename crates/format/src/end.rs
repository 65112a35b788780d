//! The End frame, which is the last one, and the tail after it. A reader that can seek finds the
//! End frame through the tail, and the index through the End frame.

use crate::bytes::{ByteReader, put_varints};
use crate::check::{check_at_most, check_equal, check_range};
use crate::constants::{FRAME_HEADER_BYTES, FrameKind, TAIL_BYTES, TAIL_MAGIC};
use crate::decoder::{last_decoder, put_last_decoder};
use crate::error::{FormatError, Result};
use crate::frame::{UntrustedFrameHeader, complete_frame};
use crate::generation::GenerationEnd;
use crate::head::{SplitPayload, head_of, take_extensions};
use crate::index::{IndexList, IndexNode, NAMES_FROM, parse_roots};
use crate::limits::Limits;

/// The head of an End frame. Its data is the roots of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveEnd {
    /// The number of content bytes of all members.
    pub content_bytes: u64,
    /// The number of raw bytes of all blocks.
    pub store_bytes: u64,
    /// The number of frames of the archive, this one included.
    pub frame_count: u64,
    /// The number of members.
    pub member_count: u64,
    /// The number of bytes of the archive, from the magic to the end of the tail.
    pub archive_bytes: u64,
    /// The sums over all extents.
    pub totals: ExtentTotals,
    /// The number of blocks that were not coded as planned.
    pub fallback_count: u64,
    /// The root hash ([`RootHasher`](crate::root_hash::RootHasher)).
    pub root_hash: [u8; 32],
    /// What only generations from 1 on state.
    pub generation: Option<GenerationEnd>,
    /// The offset of the latest Decoder frame; `None` if the archive carries no decoders.
    pub last_decoder: Option<u64>,
}

/// Totals that depend on the extents of all epochs, with references resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtentTotals {
    /// The number of content bytes of all copies.
    pub matched_bytes: u64,
    /// The number of content bytes of all fills.
    pub fill_bytes: u64,
    /// How many of the archive's latest bytes a decoder that cannot seek really needs: the largest
    /// reach of any epoch.
    pub reach_needed_bytes: u64,
}

impl ArchiveEnd {
    /// Parses the payload of an End frame: its head, and the roots of the index.
    ///
    /// # Errors
    /// Values out of range, or sums that contradict each other or the roots.
    pub fn parse(payload: &[u8]) -> Result<(Self, Vec<IndexNode>)> {
        let split = SplitPayload::new(payload)?;
        let end = Self::parse_head(&split)?;
        let roots = parse_roots(split.data)?;
        end.check_roots(&roots)?;
        Ok((end, roots))
    }

    fn parse_head(split: &SplitPayload<'_>) -> Result<Self> {
        let mut reader = split.fields("end");
        let mut numbers = [0; 9];
        for number in &mut numbers {
            *number = reader.varint()?;
        }
        let [
            content_bytes,
            store_bytes,
            frame_count,
            member_count,
            archive_bytes,
            matched_bytes,
            fill_bytes,
            fallback_count,
            reach_needed_bytes,
        ] = numbers;
        let mut end = Self {
            content_bytes,
            store_bytes,
            frame_count,
            member_count,
            archive_bytes,
            totals: ExtentTotals {
                matched_bytes,
                fill_bytes,
                reach_needed_bytes,
            },
            fallback_count,
            root_hash: reader.array()?,
            generation: None,
            last_decoder: None,
        };
        end.generation = GenerationEnd::take(&mut reader, member_count)?;
        end.last_decoder = last_decoder(&take_extensions(reader)?)?;
        end.check()?;
        Ok(end)
    }

    /// Returns the complete frame with these roots of the index.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_frame(&self, roots: &[u8], archive_id: u32, sequence: u64) -> Result<Vec<u8>> {
        let numbers = [
            self.content_bytes,
            self.store_bytes,
            self.frame_count,
            self.member_count,
            self.archive_bytes,
            self.totals.matched_bytes,
            self.totals.fill_bytes,
            self.fallback_count,
            self.totals.reach_needed_bytes,
        ];
        let mut fields = Vec::new();
        put_varints(&mut fields, &numbers);
        fields.extend(self.root_hash);
        if let Some(generation) = &self.generation {
            generation.put(&mut fields);
        }
        if let Some(offset) = self.last_decoder {
            put_last_decoder(&mut fields, offset);
        }
        let mut payload = head_of(&fields);
        payload.extend_from_slice(roots);
        Self::parse(&payload)?;
        let kind = FrameKind::End;
        Ok(complete_frame(kind, 0, &payload, archive_id, sequence))
    }

    /// Parses the end of a file of `file_bytes` bytes. `last_bytes` are as many of its last bytes
    /// as were read.
    ///
    /// # Errors
    /// They do not end with an End frame and a tail (the file was truncated, or something was
    /// appended), or the archive is not as long as the file.
    pub fn from_end_of_file(last_bytes: &[u8], file_bytes: u64) -> Result<(Self, Vec<IndexNode>)> {
        let (end, roots) = Self::from_last_bytes(last_bytes)?;
        if end.archive_bytes == file_bytes {
            Ok((end, roots))
        } else {
            Err(FormatError::Mismatch {
                what: "archive length in bytes",
                found: file_bytes,
                expected: end.archive_bytes,
            })
        }
    }

    /// Parses the last bytes of an archive, which must include its End frame and its tail.
    ///
    /// # Errors
    /// They do not: the archive was truncated, or something was appended.
    pub fn from_last_bytes(last_bytes: &[u8]) -> Result<(Self, Vec<IndexNode>)> {
        let (frames, tail) = last_bytes.split_at(last_bytes.len().saturating_sub(TAIL_BYTES));
        let frame_bytes = Tail::parse(tail)?.back_bytes;
        let frame_start = usize::try_from(frame_bytes).ok();
        let frame_start = frame_start.and_then(|bytes| frames.len().checked_sub(bytes));
        let Some(frame) = frame_start.and_then(|start| frames.get(start..)) else {
            return Err(FormatError::Truncated {
                what: "frame before the tail",
                needed_bytes: frame_bytes,
                available_bytes: frames.len() as u64,
            });
        };
        let header = UntrustedFrameHeader::parse(frame)?.check(&Limits::default(), None)?;
        if header.kind != FrameKind::End {
            return Err(FormatError::Order {
                kind: header.kind,
                rule: "the last frame must be End",
            });
        }
        let payload = frame.get(FRAME_HEADER_BYTES..).unwrap_or_default();
        header.check_payload(payload)?;
        let (end, roots) = Self::parse(payload)?;
        if header.sequence.checked_add(1) == Some(end.frame_count) {
            Ok((end, roots))
        } else {
            Err(FormatError::Mismatch {
                what: "frame count",
                found: end.frame_count,
                expected: header.sequence.saturating_add(1),
            })
        }
    }

    fn check(&self) -> Result<()> {
        check_range("content bytes", self.content_bytes, 0)?;
        check_range("archive bytes", self.archive_bytes, 0)?;
        let parts = [
            self.store_bytes,
            self.totals.matched_bytes,
            self.totals.fill_bytes,
        ];
        let sum = parts.into_iter().fold(0, u64::saturating_add);
        check_equal(
            "fresh, matched and fill bytes together",
            sum,
            self.content_bytes,
        )?;
        let needed_bytes = (FRAME_HEADER_BYTES + TAIL_BYTES) as u64;
        if self.archive_bytes >= needed_bytes {
            Ok(())
        } else {
            Err(FormatError::Truncated {
                what: "archive with an end frame",
                needed_bytes,
                available_bytes: self.archive_bytes,
            })
        }
    }

    /// Compares the totals with the sums of the lists.
    fn check_roots(&self, roots: &[IndexNode]) -> Result<()> {
        let root = |list| roots.iter().find(|root| root.list == list);
        let end_of = |list| root(list).map_or([0, 0], |root| root.end);
        let rows_of = |list| root(list).map_or(0, |root| root.next_row);
        let [store_bytes, _] = end_of(IndexList::Blocks);
        let [content_bytes, fresh_bytes] = end_of(IndexList::Epochs);
        let [member_content_bytes, _] = end_of(IndexList::Members);
        let first_member = self
            .generation
            .map_or(0, |generation| generation.first_member);
        let members = self.member_count - first_member;
        let named = if members >= NAMES_FROM as u64 { members } else { 0 };
        let facts = [
            ("store bytes of the index", store_bytes, self.store_bytes),
            ("fresh bytes of the index", fresh_bytes, self.store_bytes),
            (
                "content bytes of the index",
                content_bytes,
                self.content_bytes,
            ),
            (
                "content bytes of all members",
                member_content_bytes,
                self.content_bytes,
            ),
            (
                "members of the index",
                rows_of(IndexList::Members),
                self.member_count,
            ),
            ("names of the index", rows_of(IndexList::Names), named),
        ];
        for (what, found, expected) in facts {
            check_equal(what, found, expected)?;
        }
        check_at_most(
            "blocks that were not coded as planned",
            self.fallback_count,
            rows_of(IndexList::Blocks),
        )
    }
}

/// The last bytes of an archive: the distance back to its last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// The distance from the start of the End (or Whole) frame to the start of the tail in bytes.
    pub back_bytes: u64,
}

const BACK_BYTES_MAX: u64 = (1 << 48) - 1;

impl Tail {
    /// Parses the last [`TAIL_BYTES`] bytes of an archive.
    ///
    /// # Errors
    /// They are not a tail, or the distance is too small for a frame.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new("tail of an archive", bytes);
        let number = reader.u64()?;
        reader.finish()?;
        let magic = (number >> 48) as u16;
        if magic != u16::from_le_bytes(TAIL_MAGIC) {
            return Err(FormatError::Value {
                what: "last two bytes of the archive",
                value: u64::from(magic),
                rule: "the mark of an archive's tail",
            });
        }
        let back_bytes = number & BACK_BYTES_MAX;
        if back_bytes >= FRAME_HEADER_BYTES as u64 {
            Ok(Self { back_bytes })
        } else {
            Err(FormatError::Value {
                what: "bytes of the last frame",
                value: back_bytes,
                rule: "at least a frame header",
            })
        }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; TAIL_BYTES] {
        let magic = u64::from(u16::from_le_bytes(TAIL_MAGIC));
        (self.back_bytes & BACK_BYTES_MAX | magic << 48).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;

    fn sample() -> ArchiveEnd {
        ArchiveEnd {
            content_bytes: 0,
            store_bytes: 0,
            frame_count: 6,
            member_count: 0,
            archive_bytes: 200,
            totals: ExtentTotals::default(),
            fallback_count: 0,
            root_hash: [3; 32],
            generation: None,
            last_decoder: None,
        }
    }

    #[test]
    fn parses_from_the_end_of_the_file() {
        let file = |sequence| {
            let mut file = vec![0; 30];
            let frame = sample().to_frame(&[], 7, sequence).unwrap();
            file.extend_from_slice(&frame);
            let back_bytes = frame.len() as u64;
            file.extend(Tail { back_bytes }.to_bytes());
            file
        };
        let read = |file: &[u8]| ArchiveEnd::from_end_of_file(file, 200).map(|(end, _)| end);
        let good = file(5);
        assert_eq!(read(&good), Ok(sample()));
        assert_eq!(read(&good[30..]), Ok(sample()));
        assert!(ArchiveEnd::from_end_of_file(&good, 201).is_err());
        assert!(read(&good[..good.len() - 1]).is_err());
        assert!(read(&good[31..]).is_err());
        assert!(read(&[]).is_err());
        assert!(read(&file(4)).is_err(), "a wrong count");
    }

    #[test]
    fn tails_parse_as_written() {
        let tail = Tail { back_bytes: 77 };
        assert_eq!(tail.to_bytes(), [77, 0, 0, 0, 0, 0, b'R', 0xfe]);
        assert_eq!(Tail::parse(&tail.to_bytes()), Ok(tail));
        assert!(Tail::parse(&Tail { back_bytes: 31 }.to_bytes()).is_err());
        assert!(Tail::parse(&[0; 8]).is_err());
    }

    #[test]
    fn rejects_sums_that_contradict_each_other_or_the_roots() {
        let changed = |change: fn(&mut ArchiveEnd)| {
            let mut end = sample();
            change(&mut end);
            end.to_frame(&[], 7, 5).unwrap_err().class()
        };
        assert_eq!(
            changed(|end| end.archive_bytes = u64::MAX),
            ErrorClass::Limit
        );
        assert_eq!(changed(|end| end.archive_bytes = 39), ErrorClass::Damaged);
        assert_eq!(changed(|end| end.content_bytes = 1), ErrorClass::Damaged);
        assert_eq!(changed(|end| end.member_count = 1), ErrorClass::Damaged);
        assert_eq!(changed(|end| end.fallback_count = 1), ErrorClass::Damaged);
        let both = changed(|end| {
            end.store_bytes = 1;
            end.content_bytes = 1;
        });
        assert_eq!(both, ErrorClass::Damaged);
    }
}
