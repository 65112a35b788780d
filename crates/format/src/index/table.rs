//! The index as a table: appending, parsing, writing.

use super::rows::{FrameSpan, IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexTotals};
use crate::bytes::{ByteReader, add_difference, difference, put_varint};
use crate::check::{check_limit, check_positive, check_range, check_text};
use crate::error::{FormatError, Result};
use crate::frame::complete_frame;
use crate::head::{SplitPayload, head_of, take_extensions};
use crate::layout::{FRAME_HEADER_BYTES, FrameKind, MAGIC};
use crate::limits::{
    BLOCK_RAW_BYTES_MAX, EPOCH_BYTES_MAX, FIRST_PATH_BYTES_MAX, INDEX_BYTES_MAX, Limits,
};
use crate::member::{MemberEnd, MemberStart};

/// The smallest sizes of a row: one byte for each number in it.
const BLOCK_ROW_BYTES_MIN: usize = 5;
const EPOCH_ROW_BYTES_MIN: usize = 5;
const ENTRIES_ROW_BYTES_MIN: usize = 3 + 8 + 1;
/// Two offsets, two lengths, a count, and the two payloads.
const MEMBER_ROW_BYTES_MIN: usize = 5 + 5 + 36;

/// The payload of an Index frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Index {
    /// All blocks, in store order.
    pub blocks: Vec<IndexBlock>,
    /// All epochs, in content order.
    pub epochs: Vec<IndexEpoch>,
    /// All members, in content order.
    pub members: Vec<IndexMember>,
    /// The sums.
    pub totals: IndexTotals,
}

impl Index {
    /// Appends a block. Its store offset follows from the blocks before it.
    pub fn push_block(&mut self, span: FrameSpan, raw_bytes: u64, codec: u16, filter_ids: [u8; 2]) {
        self.blocks.push(IndexBlock {
            frame_offset: span.0,
            frame_bytes: span.1,
            store_start: self.store_bytes(),
            raw_bytes,
            codec,
            filter_ids,
        });
    }

    /// Appends an epoch. Its offsets in content and store follow from the epochs before it.
    pub fn push_epoch(
        &mut self,
        span: FrameSpan,
        content_bytes: u64,
        fresh_bytes: u64,
        extent_count: u64,
    ) {
        self.epochs.push(IndexEpoch {
            frame_offset: span.0,
            frame_bytes: span.1,
            content_start: self.content_bytes(),
            content_bytes,
            store_start: self.fresh_bytes(),
            fresh_bytes,
            extent_count,
        });
    }

    /// Returns the number of raw bytes of all blocks.
    #[must_use]
    pub fn store_bytes(&self) -> u64 {
        self.blocks
            .last()
            .map_or(0, |last| last.store_start.saturating_add(last.raw_bytes))
    }

    /// Returns the number of content bytes of all epochs.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.epochs.last().map_or(0, |last| {
            last.content_start.saturating_add(last.content_bytes)
        })
    }

    pub(super) fn fresh_bytes(&self) -> u64 {
        self.epochs
            .last()
            .map_or(0, |last| last.store_start.saturating_add(last.fresh_bytes))
    }

    /// Parses the payload of an Index frame.
    ///
    /// # Errors
    /// Counts that the payload cannot hold, values out of their range, bytes at the end.
    pub fn parse(payload: &[u8], limits: &Limits) -> Result<Self> {
        let limits = limits.capped();
        check_limit("index bytes", payload.len() as u64, limits.index_bytes_max)?;
        let split = SplitPayload::new(payload)?;
        take_extensions(split.fields("index"))?;
        let mut reader = ByteReader::new("index", split.data);
        let mut index = Self::default();
        index.parse_blocks(&mut reader)?;
        index.parse_epochs(&mut reader)?;
        index.parse_members(&mut reader, &limits)?;
        index.totals = IndexTotals {
            matched_bytes: reader.varint()?,
            run_bytes: reader.varint()?,
            fallback_count: reader.varint()?,
            reach_bytes: reader.varint()?,
        };
        reader.finish()?;
        Ok(index)
    }

    /// Returns the payload.
    ///
    /// # Errors
    /// Frames that are not in file order, or other values that [`parse`](Self::parse) rejects.
    pub fn to_payload(&self) -> Result<Vec<u8>> {
        let mut out = head_of(&[]);
        self.put_blocks(&mut out)?;
        self.put_epochs(&mut out)?;
        self.put_members(&mut out)?;
        put_varint(&mut out, self.totals.matched_bytes);
        put_varint(&mut out, self.totals.run_bytes);
        put_varint(&mut out, self.totals.fallback_count);
        put_varint(&mut out, self.totals.reach_bytes);
        check_limit("index bytes", out.len() as u64, INDEX_BYTES_MAX)?;
        Ok(out)
    }

    /// Returns the complete frame.
    ///
    /// # Errors
    /// Those of [`to_payload`](Self::to_payload).
    pub fn to_frame(&self, archive_id: u32, sequence: u64) -> Result<Vec<u8>> {
        let payload = self.to_payload()?;
        let kind = FrameKind::Index;
        Ok(complete_frame(kind, 0, &payload, archive_id, sequence))
    }

    fn parse_blocks(&mut self, reader: &mut ByteReader<'_>) -> Result<()> {
        let count = reader.count(BLOCK_ROW_BYTES_MIN)?;
        self.blocks.reserve_exact(count);
        let mut spans = SpanCoder::new();
        let mut previous_raw_bytes = 0;
        let mut store_start = 0;
        for _ in 0..count {
            let (frame_offset, frame_bytes) = spans.take(reader)?;
            let raw_bytes = add_difference(previous_raw_bytes, reader.varint()?);
            previous_raw_bytes = raw_bytes;
            check_in_range("raw bytes of a block", raw_bytes, BLOCK_RAW_BYTES_MAX)?;
            let codec = take_u16("codec", reader)?;
            let filter_ids = take_u16("filters", reader)?.to_le_bytes();
            self.blocks.push(IndexBlock {
                frame_offset,
                frame_bytes,
                store_start,
                raw_bytes,
                codec,
                filter_ids,
            });
            store_start = check_range("end of the store", store_start, raw_bytes)?;
        }
        Ok(())
    }

    fn put_blocks(&self, out: &mut Vec<u8>) -> Result<()> {
        put_varint(out, self.blocks.len() as u64);
        let mut spans = SpanCoder::new();
        let mut previous_raw_bytes = 0;
        for block in &self.blocks {
            spans.put(out, (block.frame_offset, block.frame_bytes))?;
            check_in_range("raw bytes of a block", block.raw_bytes, BLOCK_RAW_BYTES_MAX)?;
            put_varint(out, difference(block.raw_bytes, previous_raw_bytes));
            previous_raw_bytes = block.raw_bytes;
            put_varint(out, u64::from(block.codec));
            put_varint(out, u64::from(u16::from_le_bytes(block.filter_ids)));
        }
        check_range("end of the store", self.store_bytes(), 0)?;
        Ok(())
    }

    fn parse_epochs(&mut self, reader: &mut ByteReader<'_>) -> Result<()> {
        let count = reader.count(EPOCH_ROW_BYTES_MIN)?;
        self.epochs.reserve_exact(count);
        let mut spans = SpanCoder::new();
        let (mut content_start, mut store_start) = (0, 0);
        for _ in 0..count {
            let (frame_offset, frame_bytes) = spans.take(reader)?;
            let epoch = IndexEpoch {
                frame_offset,
                frame_bytes,
                content_start,
                content_bytes: reader.varint()?,
                store_start,
                fresh_bytes: reader.varint()?,
                extent_count: reader.varint()?,
            };
            check_in_range("epoch bytes", epoch.content_bytes, EPOCH_BYTES_MAX)?;
            content_start = check_range("end of content", content_start, epoch.content_bytes)?;
            store_start = check_range("end of the store", store_start, epoch.fresh_bytes)?;
            self.epochs.push(epoch);
        }
        Ok(())
    }

    fn put_epochs(&self, out: &mut Vec<u8>) -> Result<()> {
        put_varint(out, self.epochs.len() as u64);
        let mut spans = SpanCoder::new();
        for epoch in &self.epochs {
            spans.put(out, (epoch.frame_offset, epoch.frame_bytes))?;
            check_in_range("epoch bytes", epoch.content_bytes, EPOCH_BYTES_MAX)?;
            put_varint(out, epoch.content_bytes);
            put_varint(out, epoch.fresh_bytes);
            put_varint(out, epoch.extent_count);
        }
        check_range("end of content", self.content_bytes(), 0)?;
        check_range("end of the store", self.fresh_bytes(), 0)?;
        Ok(())
    }

    fn parse_members(&mut self, reader: &mut ByteReader<'_>, limits: &Limits) -> Result<()> {
        let count = reader.count(MEMBER_ROW_BYTES_MIN)?;
        check_limit("members", count as u64, limits.members_max)?;
        self.members.reserve_exact(count);
        let mut before = 0;
        for _ in 0..count {
            let start_frame_offset = add_difference(before, reader.varint()?);
            before = start_frame_offset;
            let end_frame_offset = add_difference(start_frame_offset, reader.varint()?);
            let start_bytes = reader.count(1)?;
            let start = MemberStart::parse(reader.take(start_bytes)?)?;
            let end_bytes = reader.count(1)?;
            let end = MemberEnd::parse(reader.take(end_bytes)?)?;
            let entries = parse_entries(reader)?;
            self.members.push(IndexMember {
                start_frame_offset,
                end_frame_offset,
                start,
                end,
                entries,
            });
        }
        Ok(())
    }

    fn put_members(&self, out: &mut Vec<u8>) -> Result<()> {
        put_varint(out, self.members.len() as u64);
        let mut before = 0;
        for member in &self.members {
            put_varint(out, difference(member.start_frame_offset, before));
            before = member.start_frame_offset;
            put_varint(
                out,
                difference(member.end_frame_offset, member.start_frame_offset),
            );
            for payload in [member.start.to_payload()?, member.end.to_payload()?] {
                put_varint(out, payload.len() as u64);
                out.extend_from_slice(&payload);
            }
            put_varint(out, member.entries.len() as u64);
            let mut spans = SpanCoder::new();
            for row in &member.entries {
                spans.put(out, (row.frame_offset, row.frame_bytes))?;
                put_varint(out, row.entry_count);
                out.extend(row.packed_checksum.to_le_bytes());
                check_text("first path", &row.first_path, FIRST_PATH_BYTES_MAX)?;
                out.push(row.first_path.len() as u8);
                out.extend_from_slice(&row.first_path);
            }
        }
        Ok(())
    }
}

fn parse_entries(reader: &mut ByteReader<'_>) -> Result<Vec<IndexEntries>> {
    let count = reader.count(ENTRIES_ROW_BYTES_MIN)?;
    let mut rows = Vec::with_capacity(count);
    let mut spans = SpanCoder::new();
    for _ in 0..count {
        let (frame_offset, frame_bytes) = spans.take(reader)?;
        rows.push(IndexEntries {
            frame_offset,
            frame_bytes,
            entry_count: reader.varint()?,
            packed_checksum: reader.u64()?,
            first_path: take_first_path(reader)?,
        });
    }
    Ok(rows)
}

fn take_first_path(reader: &mut ByteReader<'_>) -> Result<Vec<u8>> {
    let length = usize::from(reader.u8()?);
    let path = reader.take(length)?;
    check_text("first path", path, FIRST_PATH_BYTES_MAX)?;
    Ok(path.to_vec())
}

/// Codes frame locations as gaps: the frames of a list are in file order, mostly close together.
struct SpanCoder {
    previous_end: u64,
}

impl SpanCoder {
    fn new() -> Self {
        Self {
            previous_end: MAGIC.len() as u64,
        }
    }

    fn take(&mut self, reader: &mut ByteReader<'_>) -> Result<FrameSpan> {
        let gap = reader.varint()?;
        let offset = check_range("frame offset", self.previous_end, gap)?;
        let bytes = reader.varint()?;
        self.step((offset, bytes))?;
        Ok((offset, bytes))
    }

    fn put(&mut self, out: &mut Vec<u8>, (offset, bytes): FrameSpan) -> Result<()> {
        let gap = offset
            .checked_sub(self.previous_end)
            .ok_or(FormatError::Value {
                what: "frame offset in the index",
                value: offset,
                rule: "after the end of the previous frame",
            })?;
        put_varint(out, gap);
        put_varint(out, bytes);
        self.step((offset, bytes))
    }

    fn step(&mut self, (offset, bytes): FrameSpan) -> Result<()> {
        if bytes < FRAME_HEADER_BYTES as u64 {
            return Err(FormatError::Value {
                what: "frame bytes in the index",
                value: bytes,
                rule: "at least a frame header",
            });
        }
        self.previous_end = check_range("end of a frame", offset, bytes)?;
        Ok(())
    }
}

fn check_in_range(what: &'static str, value: u64, limit: u64) -> Result<()> {
    check_positive(what, value)?;
    check_limit(what, value, limit)
}

fn take_u16(what: &'static str, reader: &mut ByteReader<'_>) -> Result<u16> {
    let value = reader.varint()?;
    u16::try_from(value).map_err(|_| FormatError::OverLimit {
        what,
        value,
        limit: u64::from(u16::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::end::ArchiveEnd;
    use crate::member::MemberKind;

    fn member(id: u64, content_start: u64, content_bytes: u64) -> IndexMember {
        IndexMember {
            start_frame_offset: 104 + id * 1000,
            end_frame_offset: 900 + id * 1000,
            start: MemberStart {
                member_id: id,
                content_start,
                kind: MemberKind::Tree,
                name: b"tree".to_vec(),
                mode: None,
                modified: None,
                content_bytes_hint: None,
                extensions: Vec::new(),
            },
            end: MemberEnd {
                member_id: id,
                content_bytes,
                view_bytes: content_bytes,
                entry_count: 5,
                entries_hash: Some([1; 32]),
                blake3: [id as u8; 32],
                entries_are_sorted: true,
                digests: Vec::new(),
                extensions: Vec::new(),
            },
            entries: vec![IndexEntries {
                frame_offset: 700 + id * 1000,
                frame_bytes: 100,
                entry_count: 5,
                packed_checksum: 77,
                first_path: b"tree".to_vec(),
            }],
        }
    }

    /// Two members of 100 and 50 bytes, a store of 120, copies of 20, fills of 10.
    fn sample() -> (Index, ArchiveEnd) {
        let mut index = Index::default();
        index.push_block((250, 150), 70, 2, [1, 0]);
        index.push_block((400, 100), 50, 0, [0, 0]);
        index.push_epoch((500, 150), 90, 70, 3);
        index.push_epoch((1300, 150), 60, 50, 4);
        index.members = vec![member(0, 0, 100), member(1, 100, 50)];
        index.totals = IndexTotals {
            matched_bytes: 20,
            run_bytes: 10,
            fallback_count: 1,
            reach_bytes: 500,
        };
        let end = ArchiveEnd {
            index_frame_offset: 2100,
            index_frame_bytes: 300,
            frame_count: 12,
            content_bytes: 150,
            store_bytes: 120,
            archive_bytes: 2600,
            root_hash: [0; 32],
        };
        (index, end)
    }

    #[test]
    fn a_payload_parses_as_written() {
        let (index, end) = sample();
        index.check(&end).unwrap();
        let payload = index.to_payload().unwrap();
        assert_eq!(Index::parse(&payload, &Limits::default()), Ok(index));
    }

    #[test]
    fn finds_the_block_and_the_epoch_of_a_byte() {
        let (index, _) = sample();
        assert_eq!(index.block_at(0), Some(0));
        assert_eq!(index.block_at(69), Some(0));
        assert_eq!(index.block_at(70), Some(1));
        assert_eq!(index.block_at(119), Some(1));
        assert_eq!(index.block_at(120), None);
        assert_eq!(index.epoch_at(89), Some(0));
        assert_eq!(index.epoch_at(90), Some(1));
        assert_eq!(index.epoch_at(150), None);
        assert_eq!(Index::default().block_at(0), None);
    }

    #[test]
    fn check_finds_contradictions() {
        let assert_rejected = |change: fn(&mut Index, &mut ArchiveEnd)| {
            let (mut index, mut end) = sample();
            change(&mut index, &mut end);
            assert!(index.check(&end).is_err());
        };
        assert_rejected(|_, end| end.content_bytes += 1);
        assert_rejected(|_, end| end.store_bytes -= 1);
        assert_rejected(|_, end| end.index_frame_offset = 1900);
        assert_rejected(|index, _| index.totals.run_bytes += 1);
        assert_rejected(|index, _| index.totals.fallback_count = 3);
        assert_rejected(|index, _| index.blocks[1].frame_offset = 399);
        assert_rejected(|index, _| index.epochs[0].frame_bytes = 801);
        assert_rejected(|index, _| index.members[1].start.content_start = 99);
        assert_rejected(|index, _| index.members[1].end.entry_count = 6);
        assert_rejected(|index, _| index.members.truncate(1));
        assert_rejected(|index, _| index.members.swap(0, 1));
    }

    #[test]
    fn rejects_every_truncation() {
        let (index, _) = sample();
        let payload = index.to_payload().unwrap();
        for length in 0..payload.len() {
            assert!(
                Index::parse(&payload[..length], &Limits::default()).is_err(),
                "{length}"
            );
        }
    }

    #[test]
    fn rejects_forged_counts_before_allocation() {
        let mut payload = Vec::new();
        put_varint(&mut payload, u64::MAX / 8);
        payload.extend([0; 100]);
        assert!(Index::parse(&payload, &Limits::default()).is_err());
        let (index, _) = sample();
        let small = Limits {
            members_max: 1,
            ..Limits::default()
        };
        assert!(matches!(
            Index::parse(&index.to_payload().unwrap(), &small),
            Err(FormatError::OverLimit { .. })
        ));
    }

    #[test]
    fn rejects_frames_out_of_file_order() {
        let (mut index, _) = sample();
        index.blocks.swap(0, 1);
        assert!(index.to_payload().is_err());
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(refrain_testkit::scaled(256)))]
        #[test]
        fn accepted_payloads_encode_to_the_same_bytes(flips in proptest::collection::vec((0_usize..500, proptest::num::u8::ANY), 0..3)) {
            let (index, _) = sample();
            let mut payload = index.to_payload().unwrap();
            for (at, value) in flips {
                if let Some(byte) = payload.get_mut(at) {
                    *byte = value;
                }
            }
            if let Ok(index) = Index::parse(&payload, &Limits::default()) {
                proptest::prop_assert_eq!(index.to_payload().unwrap(), payload);
            }
        }
    }
}
