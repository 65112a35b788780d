//! The content and the entries of one member of an archive that is opened for random access.

use std::ops::{Deref, Range};

use refrain_codec::Workspace;
use refrain_format::{EntriesHeader, FrameKind, MemberKind};
use refrain_protect::HASH_BYTES;
use refrain_tree::Entry;

use crate::error::{Error, Result};
use crate::read::native::frame_index::MemberOutline;
use crate::read::native::indexed::IndexedArchive;
use crate::read::store_reader::Depth;
use crate::read::tree::content::{TreeContent, check_inside};
use crate::read::work_meter::WorkMeter;
use crate::store::coding::decode_entries;
use crate::store::frames::read_frame_at;

/// The content of an epoch whose blocks are looked for at once, in bytes. That of ordinary epochs
/// is less.
const PREFETCH_BYTES_MAX: u64 = 64 << 20;

/// A member of an opened archive, for one read or verb: what is decoded for it counts together.
pub(crate) struct MemberContent<A> {
    archive: A,
    number: usize,
    outline: MemberOutline,
    /// The numbers of its Entries frames.
    frames: Range<u64>,
    meter: WorkMeter,
}

impl<A: Deref<Target = IndexedArchive>> MemberContent<A> {
    /// Member `number`, read as `meter` says; `None` if it has no entries.
    ///
    /// # Errors
    /// `Usage` if there is no such member; those of the index.
    pub(super) fn of(
        archive: A,
        number: usize,
        meter: WorkMeter,
    ) -> Result<Option<MemberContent<A>>> {
        let outline = archive.outline(number)?;
        if !outline.kind.has_entries() {
            return Ok(None);
        }
        let frames = archive.index.entries_frames(&outline)?;
        Ok(Some(MemberContent {
            archive,
            number,
            outline,
            frames,
            meter,
        }))
    }
}

impl<A: Deref<Target = IndexedArchive> + Sync> TreeContent for MemberContent<A> {
    fn content_bytes(&self) -> u64 {
        self.outline.content_bytes
    }

    fn read(&self, offset: u64, buffer: &mut [u8], depth: Depth) -> Result<()> {
        let start = self.outline.content_start + offset;
        let range = start..start + buffer.len() as u64;
        self.archive.read_content(range, buffer, depth, &self.meter)
    }

    fn entry_frames(&self) -> Result<usize> {
        // Far fewer than frames, whose number has 32 bits.
        Ok((self.frames.end - self.frames.start) as usize)
    }

    fn stated_entries(&self) -> Result<Option<(u64, [u8; HASH_BYTES])>> {
        let member = self.archive.index.member(self.number)?;
        Ok(member.and_then(|row| Some((row.end.entry_count, row.end.entries_hash?))))
    }

    fn frames_for_path(&self, path: &[u8]) -> Result<Range<usize>> {
        let found = self.archive.index.frames_for_path(&self.outline, path)?;
        let first = self.frames.start;
        let in_member = |number: u64| number.saturating_sub(first) as usize;
        Ok(in_member(found.start)..in_member(found.end))
    }

    fn entries_of(&self, frame: usize) -> Result<Vec<Entry>> {
        self.meter.allow_reading()?;
        let number = self.frames.start.saturating_add(frame as u64);
        let batch = self.archive.index.entries_frame(number)?;
        let (offset, limits) = (batch.frame_offset, &self.archive.limits);
        let frame = read_frame_at(
            &*self.archive.source,
            offset,
            FrameKind::Entries,
            Some(batch.frame_bytes),
            limits,
        )?;
        let open = || {
            let (head, data) = EntriesHeader::parse(&frame.payload, limits)?;
            batch.check(&frame.header, &head)?;
            let entries = decode_entries(&mut Workspace::new(), &head, data, limits)?;
            check_inside(&entries, self.content_bytes())?;
            Ok(entries)
        };
        open().map_err(|error: Error| error.at_offset(offset))
    }

    fn is_sorted(&self) -> bool {
        self.outline.entries_are_sorted
    }

    fn is_recorded(&self) -> bool {
        self.outline.kind == MemberKind::Tar
    }

    fn blocks_to_prefetch(&self, content: Range<u64>) -> Result<Vec<u64>> {
        let start = self.outline.content_start;
        let (mut at, end) = (start + content.start, start + content.end);
        let mut blocks = vec![];
        while at < end {
            let stop = at.saturating_add(PREFETCH_BYTES_MAX);
            let (found, found_to) = self.archive.blocks_to_prefetch(at, stop, &self.meter)?;
            blocks.extend(found.iter().map(|location| location.store_start));
            at = found_to;
        }
        Ok(blocks)
    }

    fn decode_block(&self, block: u64) -> Result<()> {
        let location = self.archive.store.locate(block)?;
        let store = &self.archive.store;
        let raw_bytes = location.raw_bytes;
        store.open(&location, raw_bytes, Depth::Whole, Some(&self.meter))?;
        Ok(())
    }
}
