//! The content and entries of one member of an archive opened for random access.

use std::ops::{Deref, Range};
use std::sync::Arc;

use refrain_entries::Entry;
use refrain_format::limits::FIRST_PATH_BYTES_MAX;
use refrain_format::{IndexSlice, MemberKind, TreeLayer, TreeLayers, member_hash};
use refrain_protect::HASH_BYTES;

use crate::damage::{DamagedPart, DamagedPlace, in_member};
use crate::error::{Error, ErrorKind, Result};
use crate::read::lost_entries::LostEntries;
use crate::read::native::entry_frames::{check_frame, read_entries, slice_of};
use crate::read::native::frame_index::MemberOutline;
use crate::read::native::indexed::IndexedArchive;
use crate::read::store_reader::Depth;
use crate::read::tree::content::{TreeContent, check_inside};
use crate::read::tree::frame_entries::FrameEntries;
use crate::read::work_meter::WorkMeter;
use crate::store::opened_code::OpenedCode;

/// The maximum content of an epoch whose blocks are looked up at once, in bytes. Ordinary epochs
/// have less.
const PREFETCH_BYTES_MAX: u64 = 64 << 20;

/// A member of an opened archive, for one read or verb, whose decoding is counted together.
pub(crate) struct MemberContent<A> {
    archive: A,
    outline: MemberOutline,
    /// The numbers of its Entries frames.
    frames: Range<u64>,
    /// The numbers of the slices in path order, if the frames are not.
    slices: Option<Range<u64>>,
    meter: Arc<WorkMeter>,
    opened_code: OpenedCode,
}

impl<A: Deref<Target = IndexedArchive>> MemberContent<A> {
    /// Member `number`, read under `meter`; `None` if it has no entries.
    ///
    /// # Errors
    /// `Usage` if there is no such member; otherwise from the index.
    pub(super) fn new(
        archive: A,
        number: usize,
        meter: WorkMeter,
    ) -> Result<Option<MemberContent<A>>> {
        let outline = archive.outline(number)?;
        if !outline.kind.has_entries() {
            return Ok(None);
        }
        Self::of(archive, outline, Arc::new(meter)).map(Some)
    }

    pub(super) fn of(
        archive: A,
        outline: MemberOutline,
        meter: Arc<WorkMeter>,
    ) -> Result<MemberContent<A>> {
        let frames = archive.index.entries_frames(&outline)?;
        let slices = if outline.has_slices { Some(archive.index.slices(&frames)?) } else { None };
        Ok(MemberContent {
            archive,
            outline,
            frames,
            slices,
            meter,
            opened_code: OpenedCode::default(),
        })
    }

    pub(super) fn outline(&self) -> &MemberOutline {
        &self.outline
    }

    /// What a layered tree consists of besides its own entries.
    pub(super) fn layers(&self) -> Option<&TreeLayers> {
        self.outline.layers.as_ref()
    }
}

impl<A: Deref<Target = IndexedArchive>> MemberContent<A> {
    /// The numbers of its Entries frames, in file order.
    pub(super) fn frames(&self) -> Range<u64> {
        self.frames.clone()
    }

    /// The entries of a frame.
    pub(super) fn frame(&self, number: u64) -> Result<Vec<Entry>> {
        self.meter.before_waiting()?;
        let row = self.archive.index.entries_frame(number)?;
        let archive = &*self.archive;
        let decoders = archive.store.decoders();
        let read = read_entries(&*archive.source, &row, decoders, &archive.limits);
        let checked = read.and_then(|entries| {
            // If a member's end is lost, its content may have been longer.
            if !self.outline.is_open {
                check_inside(&entries, self.outline.inner_bytes())
                    .map_err(|error| error.at_offset(row.frame_offset))?;
            }
            Ok(entries)
        });
        if let Err(error) = &checked
            && error.kind == ErrorKind::Damaged
        {
            let start = row.frame_offset;
            self.archive.log.add(DamagedPlace {
                part: DamagedPart::Entries,
                bytes: start..start.saturating_add(row.frame_bytes),
            });
        }
        checked
    }

    fn slice(&self, slices: &Range<u64>, slice: u64) -> Result<FrameEntries> {
        let number = slices.start.saturating_add(slice);
        let index = &self.archive.index;
        let row = index
            .slice(number)?
            .filter(|row| self.frames.contains(&row.frame));
        let row = row.ok_or_else(|| Error::damaged("the index has no such slice of entries"))?;
        let next = if number + 1 < slices.end { index.slice(number + 1)? } else { None };
        slice_of(self.sorted_frame(row.frame)?, &row, next.as_ref())
    }

    /// The entries of a frame of a tree, of which parts are needed again and again.
    fn sorted_frame(&self, number: u64) -> Result<Arc<Vec<Entry>>> {
        // Two that need the same frame at once may both decode it.
        if let Some(entries) = self.archive.entry_frames.lock().get(number) {
            return Ok(entries);
        }
        let entries = self.frame(number)?;
        check_frame(&entries)?;
        let entries = Arc::new(entries);
        self.archive.entry_frames.lock().add(number, &entries);
        Ok(entries)
    }

    /// The entries of a part, as [`TreeContent::entries_of`], kept for the next call.
    pub(super) fn entries_again(&self, part: usize) -> Result<FrameEntries> {
        let Some(slices) = &self.slices else {
            let entries = self.sorted_frame(self.frames.start.saturating_add(part as u64))?;
            let all = 0..entries.len();
            return Ok(FrameEntries::slice(entries, all).unwrap_or_default());
        };
        self.slice(slices, part as u64)
    }
}

impl<A: Deref<Target = IndexedArchive> + Clone> MemberContent<A> {
    /// A layer of the tree; `None` if it is lost.
    ///
    /// # Errors
    /// `Damaged` if it is not the one that is meant; `Unsupported` if the member was proven by a
    /// signature: that does not extend to the content of its layers.
    pub(super) fn layer(&self, layer: &TreeLayer) -> Result<Option<MemberContent<A>>> {
        if self.archive.index.expects_members() {
            let text = "a tree that consists of earlier ones cannot be read with a signature in \
                        this version: `test` the archive with it";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        MemberContent::of_layer(self.archive.clone(), layer, self.meter.clone())
    }

    /// A layer of a tree of this archive; `None` if it is lost.
    ///
    /// # Errors
    /// `Damaged` if it is not the one that is meant.
    pub(super) fn of_layer(
        archive: A,
        layer: &TreeLayer,
        meter: Arc<WorkMeter>,
    ) -> Result<Option<MemberContent<A>>> {
        let id = layer.member_id;
        let Some(row) = archive.member_with_id(id)? else {
            return Ok(None);
        };
        if !row.start.kind.is_tree() || member_hash(&row.start, &row.end) != layer.hash {
            let text = format!("member {id} is not the one of which a tree consists");
            return Err(Error::damaged(text));
        }
        let outline = archive.index.outline_of(id)?;
        let content = |outline| MemberContent::of(archive, outline, meter);
        outline.map(content).transpose()
    }
}

impl<A: Deref<Target = IndexedArchive>> MemberContent<A> {
    /// The range and the hash of the content that no other member has, as the member's end states
    /// them.
    pub(super) fn stated_content(&self) -> Result<Option<(Range<u64>, [u8; HASH_BYTES])>> {
        let row = self.archive.index.member_with_id(self.outline.member_id)?;
        let start = self.outline.own_start;
        let range = |content_bytes: u64| start..start.saturating_add(content_bytes);
        Ok(row.map(|row| (range(row.end.content_bytes), row.end.blake3)))
    }

    /// Where in path order a part other than the first begins: no path of an earlier part is there
    /// or behind it.
    pub(super) fn start_of(&self, part: usize) -> Result<Vec<u8>> {
        let index = &self.archive.index;
        let (start, is_cut) = match &self.slices {
            Some(slices) => {
                let row = index.slice(slices.start.saturating_add(part as u64))?;
                row.map_or_else(Default::default, |row| {
                    let is_cut = row.is_cut();
                    (row.separator, is_cut)
                })
            }
            None => {
                let number = self.frames.start.saturating_add(part as u64);
                let first_path = index.entries_frame(number)?.first_path;
                let is_cut = first_path.len() >= FIRST_PATH_BYTES_MAX;
                (first_path, is_cut)
            }
        };
        if !is_cut {
            return Ok(start);
        }
        let entries = match &self.slices {
            Some(slices) => self.slice(slices, part as u64)?,
            None => self
                .frame(self.frames.start.saturating_add(part as u64))?
                .into(),
        };
        Ok(entries.first().map_or(start, |entry| entry.path.clone()))
    }

    /// Fills `buffer` with the archive's content at an offset.
    pub(super) fn read_archive(&self, start: u64, buffer: &mut [u8], depth: Depth) -> Result<()> {
        let range = start..start.saturating_add(buffer.len() as u64);
        self.archive.read_content(range, buffer, depth, &self.meter)
    }

    /// Fills `buffer` with what can be read of the archive's content at an offset. Returns the
    /// ranges of content that are missing.
    pub(super) fn archive_remains(&self, start: u64, buffer: &mut [u8]) -> Result<Vec<Range<u64>>> {
        let range = start..start.saturating_add(buffer.len() as u64);
        self.archive.content_remains(range, buffer, &self.meter)
    }

    /// The blocks with a range of the archive's content.
    pub(super) fn blocks_of_archive(&self, content: Range<u64>) -> Result<Vec<u64>> {
        let (mut at, end) = (content.start, content.end);
        let mut blocks = vec![];
        while at < end {
            let stop = end.min(at.saturating_add(PREFETCH_BYTES_MAX));
            let (found, found_to) = self.archive.blocks_to_prefetch(at, stop, &self.meter)?;
            blocks.extend(found.iter().map(|location| location.store_start));
            at = found_to;
        }
        Ok(blocks)
    }
}

impl<A: Deref<Target = IndexedArchive> + Sync> TreeContent for MemberContent<A> {
    fn content_bytes(&self) -> u64 {
        self.outline.content_bytes
    }

    fn opened_code(&self) -> &OpenedCode {
        &self.opened_code
    }

    fn read(&self, offset: u64, buffer: &mut [u8], depth: Depth) -> Result<()> {
        self.read_archive(self.outline.content_start + offset, buffer, depth)
    }

    fn read_remains(&self, offset: u64, buffer: &mut [u8]) -> Result<Vec<Range<u64>>> {
        let start = self.outline.content_start.saturating_add(offset);
        let missing = self.archive_remains(start, buffer)?;
        Ok(in_member(missing, self.outline.content_start))
    }

    fn lost_entries(&self) -> LostEntries {
        self.archive.index.lost_entries(&self.outline)
    }

    fn is_open(&self) -> bool {
        self.outline.is_open
    }

    fn stated_count(&self, frame: usize) -> Result<u64> {
        if let Some(slices) = &self.slices {
            let row = self
                .archive
                .index
                .slice(slices.start.saturating_add(frame as u64))?;
            return Ok(row.map_or(0, |row| row.entry_count));
        }
        let number = self.frames.start.saturating_add(frame as u64);
        Ok(self.archive.index.entries_frame(number)?.entry_count)
    }

    fn decoded_count(&self, frame: usize) -> Result<u64> {
        let Some(slices) = &self.slices else {
            return self.stated_count(frame);
        };
        let index = &self.archive.index;
        let row = index.slice(slices.start.saturating_add(frame as u64))?;
        let count = |row: IndexSlice| Ok(index.entries_frame(row.frame)?.entry_count);
        row.map_or(Ok(0), count)
    }

    fn entry_frames(&self) -> Result<usize> {
        let rows = self.slices.as_ref().unwrap_or(&self.frames);
        Ok(usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX))
    }

    fn stated_entries(&self) -> Result<Option<(u64, [u8; HASH_BYTES])>> {
        let member = (self.archive.index).member_with_id(self.outline.member_id)?;
        Ok(member.and_then(|row| Some((row.end.entry_count, row.end.entries_hash?))))
    }

    fn frames_for_path(&self, path: &[u8]) -> Result<Range<usize>> {
        let index = &self.archive.index;
        let (found, first) = match &self.slices {
            Some(slices) => (index.slices_for_path(&self.frames, path)?, slices.start),
            None => (
                index.frames_for_path(&self.outline, path)?,
                self.frames.start,
            ),
        };
        let in_member = |number: u64| number.saturating_sub(first) as usize;
        Ok(in_member(found.start)..in_member(found.end))
    }

    fn entries_of(&self, frame: usize) -> Result<FrameEntries> {
        match &self.slices {
            Some(slices) => self.slice(slices, frame as u64),
            None => {
                let number = self.frames.start.saturating_add(frame as u64);
                self.frame(number).map(FrameEntries::from)
            }
        }
    }

    fn is_sorted(&self) -> bool {
        self.outline.entries_are_sorted || self.slices.is_some()
    }

    fn is_recorded(&self) -> bool {
        self.outline.kind == MemberKind::Tar
    }

    fn blocks_to_prefetch(&self, content: Range<u64>) -> Result<Vec<u64>> {
        let start = self.outline.content_start;
        self.blocks_of_archive(start + content.start..start + content.end)
    }

    fn decode_block(&self, block: u64) -> Result<()> {
        let location = self.archive.store.locate(block)?;
        let store = &self.archive.store;
        let raw_bytes = location.raw_bytes;
        store.open(&location, raw_bytes, Depth::Whole, Some(&self.meter))?;
        Ok(())
    }
}
