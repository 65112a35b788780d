//! Writes the members of a native archive: their hashes, entries and ends.

use refrain_format::{Coding, MemberEnd, MemberKind, MemberStart};
use refrain_protect::{DigestAlgorithm, DigestHasher, MemberHasher, MemberSegment};
use refrain_storage::in_zero_pieces;

use crate::digests;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Watch;
use crate::write::input::MemberPlan;
use crate::write::native::output::Frame;
use crate::write::pipeline::pieces::{Digest, PiecesWriter};
use crate::write::tree::entry_list::{SharedEntries, StreamKind};
use crate::write::tree::order::EntriesFrame;

/// A member being written.
pub(crate) struct MemberWriter {
    pub start: MemberStart,
    hasher: MemberHasher,
    entries: Option<SharedEntries>,
    digests: Vec<DigestHasher>,
    /// For the next generation.
    pieces: Option<PiecesWriter>,
    /// The number of its files, once it has ended.
    pub file_count: u64,
    /// The number of files that were not read, once it has ended.
    pub unchanged_count: u64,
}

impl MemberWriter {
    pub(crate) fn new(plan: MemberPlan, digests: &[DigestAlgorithm]) -> MemberWriter {
        MemberWriter {
            hasher: MemberHasher::new(plan.start.hash_kind()),
            start: plan.start,
            // A stream is digested where it is read, because what is taken apart is not its
            // content.
            digests: match plan.entries {
                Some(_) => Vec::new(),
                None => digests::hashers(digests),
            },
            entries: plan.entries,
            pieces: None,
            file_count: 0,
            unchanged_count: 0,
        }
    }

    /// Leaves digests of its pieces to the next generation.
    pub(crate) fn keep_pieces(&mut self, pieces: PiecesWriter) {
        self.pieces = Some(pieces);
    }

    /// Adds the digests of a segment.
    pub(crate) fn push_pieces(&mut self, pieces: &[(u64, Digest)]) {
        if let Some(writer) = &mut self.pieces {
            writer.add(pieces);
        }
    }

    /// The start frame, at the member's first content.
    pub(crate) fn begin(&mut self, content_start: u64) -> MemberStart {
        self.start.content_start = content_start;
        let kind = self.entries.as_ref().and_then(SharedEntries::stream_kind);
        if kind == Some(StreamKind::Tar) {
            self.start.kind = MemberKind::Tar;
        }
        self.start.clone()
    }

    /// Appends the next segment of the member.
    pub(crate) fn push(&mut self, hash: &MemberSegment, bytes: &[u8]) -> Result<()> {
        self.digests
            .iter_mut()
            .for_each(|hasher| hasher.update(bytes));
        self.hasher
            .push(hash)
            .map_err(|error| Error::new(ErrorKind::Internal, error))
    }

    /// Appends a hole. Its zeros take time only if digests are computed.
    pub(crate) fn push_hole(&mut self, length_bytes: u64) -> Result<()> {
        for hasher in &mut self.digests {
            in_zero_pieces(length_bytes, |zeros| {
                hasher.update(zeros);
                Ok::<_, Error>(())
            })?;
        }
        self.hasher
            .push_zeros(length_bytes)
            .map_err(|error| Error::new(ErrorKind::Internal, error))
    }

    /// Whether the entries of its content up to `content_end` are packed.
    pub(crate) fn has_entries_up_to(&self, content_end: u64) -> bool {
        let entries = self.entries.as_ref();
        entries.is_none_or(|entries| entries.is_packed_up_to(content_end))
    }

    /// The entries of the content so far that no frame has yet.
    pub(crate) fn next_entries(&self, watch: &dyn Watch) -> Vec<Frame> {
        let entries = self.entries.as_ref().filter(|_| self.has_entries());
        let frames = entries.map(|entries| entries.take_up_to(self.hasher.content_bytes()));
        self.entries_frames(frames.unwrap_or_default(), watch)
    }

    /// Frames of entries, whose files are named.
    fn entries_frames(&self, frames: Vec<EntriesFrame>, watch: &dyn Watch) -> Vec<Frame> {
        let frame = |frame: EntriesFrame| {
            watch.files(&self.start.name, &frame.named);
            Frame::Entries(frame.header, frame.bytes)
        };
        frames.into_iter().map(frame).collect()
    }

    fn has_entries(&self) -> bool {
        self.start.kind.has_entries()
    }

    /// The frames after the member's content: the rest of its entries, if it is a tree, and
    /// MemberEnd.
    pub(crate) fn end(&mut self, watch: &dyn Watch) -> Vec<Frame> {
        let content_bytes = self.hasher.content_bytes();
        let has_entries = self.has_entries();
        let mut list = self.entries.take().map(|entries| entries.take());
        if let Some(list) = &mut list {
            self.digests.append(&mut list.digests);
        }
        let mut list = list.filter(|_| has_entries);
        let entry_count = list.as_ref().map_or(0, |list| list.entry_count);
        self.file_count = list.as_ref().map_or(1, |list| list.file_count);
        self.unchanged_count = list.as_ref().map_or(0, |list| list.unchanged_count);
        let is_layered = self.start.kind == MemberKind::LayeredTree;
        let tree_entry_count = list.as_ref().map(|list| list.tree_entry_count);
        let entries_are_sorted = list.as_ref().is_some_and(|list| list.is_sorted);
        let entries_hash = list.as_ref().map(|list| list.entries_hash);
        let slices = list.as_mut().map(|list| std::mem::take(&mut list.slices));
        let view_bytes = list.as_ref().map_or(content_bytes, |list| list.view_bytes);
        let mut frames = match list {
            Some(list) => self.entries_frames(list.frames, watch),
            None => Vec::new(),
        };
        if !has_entries {
            watch.files(&self.start.name, &[Vec::new()]);
        }
        let end = MemberEnd {
            member_id: self.start.member_id,
            content_bytes,
            view_bytes,
            entry_count,
            tree_entry_count: tree_entry_count.filter(|_| is_layered),
            entries_hash,
            blake3: self.hasher.value(),
            entries_are_sorted,
            digests: digests::finish(std::mem::take(&mut self.digests)),
            extensions: Vec::new(),
        };
        frames.push(Frame::MemberEnd(end, slices.unwrap_or_default()));
        if let Some(mut pieces) = self.pieces.take().filter(|_| !has_entries) {
            let pieces = pieces.finish(self.start.member_id);
            frames.extend(pieces.into_iter().map(Frame::Pieces));
        }
        frames
    }
}

impl Frame {
    /// How its data is coded, if it is.
    pub(crate) fn coding(&self) -> Option<&Coding> {
        match self {
            Frame::Block(header, _) => Some(&header.coding),
            Frame::Extents(header, ..) => Some(&header.coding),
            Frame::Entries(header, _) => Some(&header.coding),
            Frame::MemberStart(_) | Frame::MemberEnd(..) | Frame::Anchors(_) | Frame::Pieces(_) => {
                None
            }
        }
    }

    /// An upper bound on the frame's size, for the reach.
    pub(crate) fn bytes_max(&self) -> u64 {
        const HEADS: u64 = 512;
        const ANCHOR_BYTES_MAX: u64 = 16;
        const PIECE_BYTES_MAX: u64 = 35;
        match self {
            Frame::MemberStart(start) => HEADS + start.name.len() as u64,
            Frame::MemberEnd(end, _) => HEADS + end.digests.len() as u64 * 80,
            Frame::Entries(_, bytes) | Frame::Extents(_, _, bytes) => bytes.len() as u64,
            Frame::Block(_, frame) => frame.frame_bytes(),
            Frame::Pieces(frame) => HEADS + frame.pieces.len() as u64 * PIECE_BYTES_MAX,
            Frame::Anchors(frame) => HEADS + frame.anchors.len() as u64 * ANCHOR_BYTES_MAX,
        }
    }
}
