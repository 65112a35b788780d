//! The frames of an archive found by a scan, and the index rebuilt from them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use refrain_format::{
    ArchiveEnd, ArchiveHeader, Catalog, FORMAT_MAJOR, FORMAT_MINOR, FrameHeader, FrameKind, Index,
    IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexNode, Limits, MAGIC, MemberEnd,
    MemberStart, NodeRows, Payload, REACH_UNLIMITED, REFERENCE_WINDOW_MAX, TAIL_BYTES, whole,
};
use refrain_storage::Source;

use crate::damage::DamagedPlace;
use crate::error::Result;
use crate::read::native::given_back::GivenBackFrames;
use crate::read::native::lost_members::with_lost_members;
use crate::read::native::lost_places::{SeenFrame, Surroundings, is_appendix, lost_places};
use crate::read::native::salvage::{DamagedBlock, damaged_block_at, fits_between};
use crate::store::frames::CheckedFrame;

/// An archive found by a scan.
pub(crate) struct ScannedArchive {
    /// The settings, or substitutes if their frame is lost.
    pub head: ArchiveHeader,
    /// The blocks, epochs, members and frames of entries found, with gaps.
    pub index: Index,
    /// The number of each block of the index.
    pub block_ids: Vec<u64>,
    /// The ids of the index's members with lost ends.
    pub open_members: BTreeSet<u64>,
    /// The offsets of damaged blocks' frames, of which a part may remain.
    pub damaged_blocks: BTreeSet<u64>,
    /// What its last catalog says that was given back.
    pub given_back: GivenBackFrames,
    /// The offsets of its decoders' frames.
    pub decoder_frames: Vec<u64>,
    /// Its End frame, if intact.
    pub end: Option<ArchiveEnd>,
    /// What is damaged or missing.
    pub lost: Vec<DamagedPlace>,
    /// Its bytes in the file.
    pub bytes: Range<u64>,
}

impl ScannedArchive {
    /// Whether no content was found.
    pub(crate) fn is_empty(&self) -> bool {
        let index = &self.index;
        index.epochs.is_empty() && index.members.is_empty() && index.entries.is_empty()
    }
}

pub(super) struct FoundFrames {
    pub archive_id: u32,
    /// All of them, in file order.
    pub seen: Vec<SeenFrame>,
    /// Whether its End or Whole frame was found.
    pub has_end: bool,
    /// The ordinary form of an archive that is a single frame.
    pub whole: Option<Vec<u8>>,
    head: Option<ArchiveHeader>,
    archive_end: Option<ArchiveEnd>,
    blocks: Vec<(IndexBlock, u64)>,
    damaged: Vec<DamagedBlock>,
    /// The last catalog.
    catalog: Option<Catalog>,
    given_back: GivenBackFrames,
    epochs: Vec<IndexEpoch>,
    starts: Vec<(u64, MemberStart)>,
    ends: Vec<(u64, MemberEnd)>,
    entries: Vec<IndexEntries>,
    /// Members from the index, as far as it is intact.
    indexed: BTreeMap<u64, IndexMember>,
}

impl FoundFrames {
    pub(super) fn new(archive_id: u32) -> FoundFrames {
        FoundFrames {
            archive_id,
            seen: Vec::new(),
            has_end: false,
            whole: None,
            head: None,
            archive_end: None,
            blocks: Vec::new(),
            damaged: Vec::new(),
            catalog: None,
            given_back: GivenBackFrames::default(),
            epochs: Vec::new(),
            starts: Vec::new(),
            ends: Vec::new(),
            entries: Vec::new(),
            indexed: BTreeMap::new(),
        }
    }

    /// An archive that is a single frame with a damaged header: its bytes in the file, and its
    /// ordinary form.
    pub(super) fn from_whole(bytes: Range<u64>, whole: Vec<u8>) -> FoundFrames {
        let offset = bytes.start + MAGIC.len() as u64;
        let frame = SeenFrame {
            offset,
            frame_bytes: bytes.end.saturating_sub(offset + TAIL_BYTES as u64),
            kind: FrameKind::Whole,
            sequence: 0,
            block_id: None,
            is_damaged: false,
            is_mended: true,
        };
        FoundFrames {
            seen: vec![frame],
            has_end: true,
            whole: Some(whole),
            ..FoundFrames::new(0)
        }
    }

    /// Where its first frame starts.
    pub(super) fn start(&self) -> u64 {
        self.seen.first().map_or(0, |first| first.offset)
    }

    /// Where its last intact frame ends.
    pub(super) fn end(&self) -> u64 {
        let intact = self.seen.iter().rev().find(|seen| !seen.is_damaged);
        intact.map_or(0, |last| last.bytes().end)
    }

    /// Its bytes up to its last frame, as far as its frames tell.
    pub(super) fn span(&self) -> Range<u64> {
        let end = self.end();
        let stated = (self.archive_end)
            .map(|stated| (end + TAIL_BYTES as u64).saturating_sub(stated.archive_bytes));
        stated.map_or(self.start(), |start| start.min(self.start()))..end
    }

    /// Whether frames before the first one found are lost.
    pub(super) fn starts_late(&self) -> bool {
        self.seen.first().is_some_and(|first| first.sequence > 0)
    }

    /// The bytes of frames with damaged payloads.
    pub(super) fn damaged_ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let damaged = self.seen.iter().filter(|seen| seen.is_damaged);
        damaged.map(SeenFrame::bytes)
    }

    /// How many bytes of a range are not in its frames. The magic and the tail are not frames.
    pub(super) fn skipped_bytes(&self, range: Range<u64>) -> u64 {
        let intact = self.seen.iter().filter(|seen| !seen.is_damaged);
        let found: u64 = intact.map(|seen| seen.frame_bytes).sum();
        let generations = self.seen.iter();
        let generations = generations.filter(|seen| seen.kind == FrameKind::Generation);
        let mut kinds = self
            .seen
            .iter()
            .map(|seen| is_appendix(seen.kind))
            .peekable();
        let mut appendices = 0;
        while let Some(is_appended) = kinds.next() {
            appendices += usize::from(is_appended && kinds.peek() != Some(&true));
        }
        let tails = TAIL_BYTES * (1 + generations.count() + appendices);
        let around = (MAGIC.len() + tails) as u64;
        (range.end - range.start).saturating_sub(found.saturating_add(around))
    }

    pub(super) fn add(&mut self, frame: &CheckedFrame, limits: &Limits) {
        let (frame_offset, frame_bytes) = (frame.offset, frame.header.frame_bytes());
        let mut seen = SeenFrame {
            offset: frame_offset,
            frame_bytes,
            kind: frame.header.kind,
            sequence: frame.header.sequence,
            block_id: None,
            is_damaged: false,
            is_mended: frame.is_mended,
        };
        if frame.header.kind == FrameKind::Whole {
            self.whole = whole::expand_payload(frame.header.archive_id, &frame.payload).ok();
            self.has_end = true;
            self.seen.push(seen);
            return;
        }
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
                    hash: None,
                };
                seen.block_id = Some(head.block_id);
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
            Ok(Payload::Index(node)) => self.add_node(node),
            Ok(Payload::End { end, roots }) => {
                self.has_end = true;
                self.archive_end = Some(end);
                roots.into_iter().for_each(|node| self.add_node(node));
            }
            Ok(Payload::Catalog(catalog)) => self.catalog = Some(catalog),
            Ok(Payload::Generation(_) | Payload::Skipped) => {}
            // Its checksums are right, so it was written like this.
            Err(_) => seen.is_damaged = true,
        }
        self.seen.push(seen);
    }

    /// Adds a frame with a damaged payload.
    pub(super) fn add_damaged(
        &mut self,
        source: &dyn Source,
        offset: u64,
        header: &FrameHeader,
        limits: &Limits,
    ) -> Result<()> {
        let block = damaged_block_at(source, offset, Some(self.archive_id), limits)?;
        self.seen.push(SeenFrame {
            offset,
            frame_bytes: header.frame_bytes(),
            kind: header.kind,
            sequence: header.sequence,
            block_id: block
                .filter(|block| block.has_pieces)
                .map(|block| block.block_id),
            is_damaged: true,
            is_mended: false,
        });
        self.damaged.extend(block);
        Ok(())
    }

    /// Uses the members of the index, which has copies of their frames. Everything else is rebuilt
    /// from the frames themselves.
    fn add_node(&mut self, node: IndexNode) {
        if let NodeRows::Members(rows) = node.rows {
            let rows = rows.into_iter().map(|row| (row.start.member_id, row));
            self.indexed.extend(rows);
        }
    }

    pub(super) fn into_archive(mut self, around: &Surroundings) -> ScannedArchive {
        let lost = lost_places(&self.seen, around);
        let decoders = self
            .seen
            .iter()
            .filter(|seen| seen.kind == FrameKind::Decoder);
        let decoder_frames = decoders.map(|seen| seen.offset).collect();
        self.blocks.sort_by_key(|(block, _)| block.store_start);
        self.blocks.dedup_by_key(|(block, _)| block.store_start);
        let damaged_blocks = self.add_damaged_blocks();
        self.epochs.sort_by_key(|epoch| epoch.content_start);
        self.epochs.dedup_by_key(|epoch| epoch.content_start);
        self.entries
            .sort_by_key(|row| (row.member_id, row.first_entry));
        self.entries
            .dedup_by_key(|row| (row.member_id, row.first_entry));
        let (members, open_members) = self.members();
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
            open_members,
            damaged_blocks,
            given_back: self.given_back,
            decoder_frames,
            end: self.archive_end,
            lost,
            bytes: around.bytes.clone(),
        }
    }

    /// What was given back of an archive that starts here is no damage.
    pub(super) fn set_given_back(&mut self, archive_start: u64) {
        let catalog = self.catalog.as_ref();
        let given_back = catalog.map(|catalog| GivenBackFrames::of(catalog, archive_start));
        let given_back = given_back.unwrap_or_default();
        (self.damaged)
            .retain(|block| block.has_pieces || given_back.contains(block.row.frame_offset));
        for seen in &mut self.seen {
            seen.is_damaged &= !given_back.has_frame(seen.kind, seen.offset);
        }
        self.given_back = given_back;
    }

    /// Adds damaged blocks that fit between the intact ones. Returns the offsets of their frames.
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

    /// The members by their frames and the index, and the ids of those with lost ends.
    fn members(&mut self) -> (Vec<IndexMember>, BTreeSet<u64>) {
        let mut starts: BTreeMap<u64, (u64, MemberStart)> = BTreeMap::new();
        let mut ends: HashMap<u64, (u64, MemberEnd)> = HashMap::new();
        for (id, row) in std::mem::take(&mut self.indexed) {
            starts.insert(id, (row.start_frame_offset, row.start));
            ends.insert(id, (row.end_frame_offset, row.end));
        }
        // Frames take precedence over their copies.
        let found = std::mem::take(&mut self.starts);
        starts.extend(
            found
                .into_iter()
                .rev()
                .map(|found| (found.1.member_id, found)),
        );
        let found = std::mem::take(&mut self.ends);
        ends.extend(
            found
                .into_iter()
                .rev()
                .map(|found| (found.1.member_id, found)),
        );
        let content_end = self
            .epochs
            .last()
            .map_or(0, |last| last.content_start + last.content_bytes);
        let starts = starts.into_values().collect();
        let starts = with_lost_members(starts, &ends, &self.entries, content_end);
        let next_starts = starts.iter().skip(1).map(|(_, next)| next.content_start);
        let bounds: Vec<u64> = next_starts.chain([content_end]).collect();
        let next_ids: Vec<u64> = starts
            .iter()
            .skip(1)
            .map(|(_, next)| next.member_id)
            .collect();
        let mut open = BTreeSet::new();
        let members = starts.into_iter().zip(bounds).enumerate();
        let members = members.map(|(number, ((start_frame_offset, start), bound))| {
            let end = ends.remove(&start.member_id);
            let (end_frame_offset, end) = end.unwrap_or_else(|| {
                // The start of the next member is the end of this one.
                let has_next = next_ids.get(number) == Some(&(start.member_id + 1));
                if !has_next || start.kind.has_entries() {
                    open.insert(start.member_id);
                }
                let content_bytes = bound.saturating_sub(start.content_start);
                (0, MemberEnd::of_content(start.member_id, content_bytes))
            });
            IndexMember {
                start_frame_offset,
                end_frame_offset,
                start,
                end,
            }
        });
        (members.collect(), open)
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
        reference_window: REFERENCE_WINDOW_MAX,
    }
}
