//! Finds the intact frames of an archive whose index, or any other part, is damaged.
//!
//! Frames are self-describing: a block states its range of the store, an epoch its range of the
//! content. An index is rebuilt from the frames that remain, with gaps where frames are missing.
//! Content in a gap cannot be read; all other content can.

use std::collections::{BTreeSet, HashMap};

use refrain_format::{
    ArchiveHeader, FORMAT_MAJOR, FORMAT_MINOR, FRAME_HEADER_BYTES, FrameKind, Index, IndexBlock,
    IndexEntries, IndexEpoch, IndexMember, Limits, MAGIC, MemberEnd, MemberKind, MemberStart,
    Payload, REACH_UNLIMITED, REPEAT_WINDOW_MAX, TAIL_BYTES, Tail, find_frame,
};
use refrain_storage::Source;

use crate::error::{ErrorKind, Result};
use crate::read::native::salvage::{DamagedBlock, damaged_block_at, fits_between};
use crate::store::frames::{CheckedFrame, read_any_frame_at};

/// The number of bytes that are searched at once.
const WINDOW_BYTES: usize = 1 << 20;

/// The result of a scan.
pub(crate) struct ScannedArchive {
    /// The settings, or substitutes if their frame is lost.
    pub head: ArchiveHeader,
    /// The blocks, epochs and members that were found, with gaps.
    pub index: Index,
    /// The number of each block of the index.
    pub block_ids: Vec<u64>,
    /// The offsets of the frames of damaged blocks, of which a part may remain.
    pub damaged_blocks: BTreeSet<u64>,
    /// The number of bytes outside the frames that were found.
    pub skipped_bytes: u64,
}

/// Searches the whole archive for frames.
pub(crate) fn scan(source: &dyn Source, limits: &Limits) -> Result<ScannedArchive> {
    let mut found = FoundFrames::default();
    let mut own_id = stated_id(source, limits)?;
    let mut window = vec![0; WINDOW_BYTES];
    let (mut at, mut skipped_bytes) = (0, 0);
    while let Some(offset) = next_header(source, at, &mut window)? {
        skipped_bytes += offset - at;
        at = match read_any_frame_at(source, offset, limits) {
            // A frame of another archive, inside content that is damaged, or behind this archive.
            Ok(frame) if own_id.is_some_and(|id| id != frame.header.archive_id) => {
                skipped_bytes += 1;
                offset + 1
            }
            Ok(frame) => {
                own_id = Some(frame.header.archive_id);
                found.add(&frame, limits);
                frame.offset + frame.header.frame_bytes()
            }
            Err(error) if error.kind == ErrorKind::Io => return Err(error),
            // The payload of this header is damaged: the next frame may begin anywhere after it.
            Err(_) => {
                let damaged = damaged_block_at(source, offset, own_id, limits)?;
                found.damaged.extend(damaged);
                skipped_bytes += 1;
                offset + 1
            }
        };
    }
    skipped_bytes += source.size_bytes()?.saturating_sub(at);
    // The magic and the tail are not frames.
    let around = (MAGIC.len() + TAIL_BYTES) as u64;
    Ok(found.into_archive(skipped_bytes.saturating_sub(around)))
}

/// The id in the Archive frame at the start, or else in the End frame at the end.
fn stated_id(source: &dyn Source, limits: &Limits) -> Result<Option<u32>> {
    match read_any_frame_at(source, MAGIC.len() as u64, limits) {
        Ok(frame) if frame.header.kind == FrameKind::Archive => {
            return Ok(Some(frame.header.archive_id));
        }
        Err(error) if error.kind == ErrorKind::Io => return Err(error),
        Ok(_) | Err(_) => {}
    }
    let tail_offset = source.size_bytes()?.saturating_sub(TAIL_BYTES as u64);
    let mut tail = [0; TAIL_BYTES];
    let count = source.read_at(tail_offset, &mut tail)?;
    let Ok(tail) = Tail::parse(&tail[..count]) else {
        return Ok(None);
    };
    let offset = tail_offset.saturating_sub(tail.back_bytes);
    match read_any_frame_at(source, offset, limits) {
        Err(error) if error.kind == ErrorKind::Io => Err(error),
        Err(_) => Ok(None),
        Ok(frame) => Ok((frame.header.kind == FrameKind::End).then_some(frame.header.archive_id)),
    }
}

/// The offset of the next intact frame header at or after `at`.
fn next_header(source: &dyn Source, mut at: u64, window: &mut [u8]) -> Result<Option<u64>> {
    loop {
        let count = source.read_at(at, window)?;
        if let Some(position) = find_frame(&window[..count], 0) {
            return Ok(Some(at + position as u64));
        }
        if count < window.len() {
            return Ok(None);
        }
        // A header may begin in this window and end in the next.
        at += (count - (FRAME_HEADER_BYTES - 1)) as u64;
    }
}

#[derive(Default)]
struct FoundFrames {
    head: Option<ArchiveHeader>,
    blocks: Vec<(IndexBlock, u64)>,
    damaged: Vec<DamagedBlock>,
    epochs: Vec<IndexEpoch>,
    starts: Vec<(u64, MemberStart)>,
    ends: Vec<(u64, MemberEnd)>,
    entries: Vec<IndexEntries>,
}

impl FoundFrames {
    fn add(&mut self, frame: &CheckedFrame, limits: &Limits) {
        let (frame_offset, frame_bytes) = (frame.offset, frame.header.frame_bytes());
        match Payload::parse(frame.header.kind, &frame.payload, limits) {
            Ok(Payload::Archive(head)) => self.head = self.head.or(Some(head)),
            Ok(Payload::MemberStart(start)) => self.starts.push((frame_offset, start)),
            Ok(Payload::MemberEnd(end)) => self.ends.push((frame_offset, end)),
            Ok(Payload::Block { header: head, .. }) => {
                let block = IndexBlock {
                    frame_offset,
                    frame_bytes,
                    store_start: head.store_start,
                    raw_bytes: head.raw_bytes,
                    codec: head.coding.codec(),
                    filter_ids: head.coding.filter_ids(),
                };
                self.blocks.push((block, head.block_id));
            }
            Ok(Payload::Extents { header: head, .. }) => self.epochs.push(IndexEpoch {
                frame_offset,
                frame_bytes,
                content_start: head.content_start,
                content_bytes: head.content_bytes,
                store_start: head.store_start,
                fresh_bytes: head.fresh_bytes,
                extent_count: head.extent_count,
            }),
            Ok(Payload::Entries { header: head, .. }) => {
                self.entries
                    .push(IndexEntries::new(frame_offset, frame_bytes, &head))
            }
            // The index is rebuilt from the frames; a stored one adds nothing.
            Ok(Payload::Index(_) | Payload::End { .. } | Payload::Skipped) | Err(_) => {}
        }
    }

    fn into_archive(mut self, skipped_bytes: u64) -> ScannedArchive {
        self.blocks.sort_by_key(|(block, _)| block.store_start);
        self.blocks.dedup_by_key(|(block, _)| block.store_start);
        let damaged_blocks = self.add_damaged_blocks();
        self.epochs.sort_by_key(|epoch| epoch.content_start);
        self.epochs.dedup_by_key(|epoch| epoch.content_start);
        let members = self.members();
        self.entries
            .sort_by_key(|row| (row.member_id, row.first_entry));
        let (blocks, block_ids) = self.blocks.into_iter().unzip();
        let index = Index {
            blocks,
            epochs: self.epochs,
            members,
            entries: self.entries,
            slices: Vec::new(),
        };
        let head = self.head.unwrap_or_else(|| substitute_settings(&index));
        ScannedArchive {
            head,
            index,
            block_ids,
            damaged_blocks,
            skipped_bytes,
        }
    }

    /// Adds the damaged blocks that have a place between the intact ones. Returns the offsets of
    /// their frames.
    fn add_damaged_blocks(&mut self) -> BTreeSet<u64> {
        let mut fitting = std::mem::take(&mut self.damaged);
        fitting.retain(|block| fits_between(block, &self.blocks));
        let mut offsets = BTreeSet::new();
        for block in fitting {
            // A second one may contradict the first.
            if fits_between(&block, &self.blocks) {
                let start = block.row.store_start;
                let at = (self.blocks).partition_point(|(other, _)| other.store_start < start);
                self.blocks.insert(at, (block.row, block.block_id));
                offsets.insert(block.row.frame_offset);
            }
        }
        offsets
    }

    /// The members by their starts. Content before the first known start belongs to a member
    /// without a name.
    fn members(&mut self) -> Vec<IndexMember> {
        self.starts.sort_by_key(|(_, start)| start.member_id);
        self.starts.dedup_by_key(|(_, start)| start.member_id);
        let first_content = self.epochs.first().map(|epoch| epoch.content_start);
        let is_covered = |at: u64| {
            self.starts
                .iter()
                .any(|(_, start)| start.content_start <= at)
        };
        if let Some(content_start) = first_content.filter(|&at| !is_covered(at)) {
            let unnamed = MemberStart {
                member_id: u64::MAX,
                content_start,
                kind: MemberKind::Stream,
                name: Vec::new(),
                mode: None,
                modified: None,
                content_bytes_hint: None,
                extensions: Vec::new(),
            };
            self.starts.insert(0, (0, unnamed));
        }
        let content_end = self
            .epochs
            .last()
            .map_or(0, |last| last.content_start + last.content_bytes);
        let mut ends: HashMap<u64, (u64, MemberEnd)> = HashMap::new();
        for (offset, end) in std::mem::take(&mut self.ends) {
            ends.entry(end.member_id).or_insert((offset, end));
        }
        let starts = std::mem::take(&mut self.starts);
        let next_starts = starts.iter().skip(1).map(|(_, next)| next.content_start);
        let bounds: Vec<u64> = next_starts.chain([content_end]).collect();
        let members = starts.into_iter().zip(bounds);
        members
            .map(|((start_frame_offset, start), bound)| {
                let end = ends.remove(&start.member_id);
                let (end_frame_offset, end) = end.unwrap_or_else(|| {
                    let content_bytes = bound.saturating_sub(start.content_start);
                    (0, unknown_end(start.member_id, content_bytes))
                });
                IndexMember {
                    start_frame_offset,
                    end_frame_offset,
                    start,
                    end,
                }
            })
            .collect()
    }
}

/// The end of a member whose MemberEnd frame is lost. The unknown hash is zero.
fn unknown_end(member_id: u64, content_bytes: u64) -> MemberEnd {
    MemberEnd {
        member_id,
        content_bytes,
        view_bytes: content_bytes,
        entries_are_sorted: false,
        entry_count: 0,
        entries_hash: None,
        blake3: [0; 32],
        digests: Vec::new(),
        extensions: Vec::new(),
    }
}

/// Substitute settings for an archive whose own are lost.
fn substitute_settings(index: &Index) -> ArchiveHeader {
    ArchiveHeader {
        version: (FORMAT_MAJOR, FORMAT_MINOR),
        required_features: 0,
        level: 0,
        segment_bytes: 1,
        epoch_bytes: index
            .epochs
            .iter()
            .map(|epoch| epoch.content_bytes)
            .max()
            .unwrap_or(1),
        block_bytes_max: index
            .blocks
            .iter()
            .map(|block| block.raw_bytes)
            .max()
            .unwrap_or(1),
        memory_budget_bytes: 0,
        reach_bytes: REACH_UNLIMITED,
        repeat_window: REPEAT_WINDOW_MAX,
    }
}
