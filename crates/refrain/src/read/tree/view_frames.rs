//! The frames of entries of tar views in compact form, shared by all who read ranges of the views.
//!
//! A view has no index of its own: where an entry is follows from all entries before it. So the end
//! of each frame in the view is remembered once it is known, and its entries are packed again in
//! small parts, which can be read alone. Decoded, a frame takes ten times the memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use refrain_entries::Entry;
use refrain_entries::tar::TarView;
use refrain_format::{PackedEntries, pack_entries};
use refrain_pool::{Lock, OnceCache};

use crate::error::{Error, Result};
use crate::read::tree::content::TreeContent;
use crate::read::tree::entry_memory::EntryMemory;

/// Compact frames may take 1/8 of the memory.
const FRAMES_SHARE: u64 = 8;

/// The entries of a part. A read unpacks the parts that it touches.
const PART_ENTRIES: usize = 128;

/// The memory of the state of a recorded view, in bytes: the latest records of some types, and how
/// pax records are written.
const RECORDED_STATE_BYTES: usize = 3 << 10;

/// Consecutive entries of a frame.
pub(crate) struct ViewPart {
    /// Where it starts in the view of its frame.
    pub start: u64,
    /// The state of the view before it.
    pub view: TarView,
    entries: PackedEntries,
}

impl ViewPart {
    /// Its entries.
    ///
    /// # Errors
    /// None for entries that were packed.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        Ok(self.entries.unpack()?)
    }
}

/// The entries of a frame, or of a slice.
pub(crate) struct ViewFrame {
    parts: Vec<ViewPart>,
    /// The length of its view.
    view_bytes: u64,
}

impl ViewFrame {
    /// Packs entries for a view that restarts before them.
    fn pack(entries: &[Entry], mut view: TarView) -> Result<ViewFrame> {
        let mut parts = Vec::with_capacity(entries.len().div_ceil(PART_ENTRIES));
        let mut view_bytes = 0_u64;
        for entries in entries.chunks(PART_ENTRIES) {
            let part = ViewPart {
                start: view_bytes,
                view: view.clone(),
                entries: pack_entries(entries)?,
            };
            for entry in entries {
                let entry_bytes = view.entry_bytes(entry).map_err(malformed)?;
                view_bytes = view_bytes.saturating_add(entry_bytes);
            }
            parts.push(part);
        }
        Ok(ViewFrame { parts, view_bytes })
    }

    /// The parts from the one with this byte of the frame's view on.
    pub(crate) fn parts_from(&self, offset: u64) -> &[ViewPart] {
        let after = self.parts.partition_point(|part| part.start <= offset);
        self.parts
            .get(after.saturating_sub(1)..)
            .unwrap_or_default()
    }

    fn memory_bytes(&self, is_recorded: bool) -> usize {
        let state_bytes = if is_recorded { RECORDED_STATE_BYTES } else { 0 };
        let packed = self.parts.iter().map(|part| part.entries.raw.capacity());
        self.parts.len() * (size_of::<ViewPart>() + state_bytes) + packed.sum::<usize>()
    }
}

/// The error of an entry that has no view.
pub(crate) fn malformed(error: refrain_entries::tar::ViewError) -> Error {
    Error::damaged(error.to_string())
}

/// The view of a tree, at its beginning.
pub(crate) fn view_of(content: &dyn TreeContent) -> TarView {
    if content.is_recorded() { TarView::recorded() } else { TarView::canonical() }
}

/// The compact frames of all archives that share memory, by archive, member and frame.
pub(crate) struct SharedViewFrames(OnceCache<(u64, usize, usize), ViewFrame>);

impl SharedViewFrames {
    /// `memory_bytes` is the budget of all readers.
    pub(crate) fn new(memory_bytes: u64) -> Arc<SharedViewFrames> {
        let bytes_max = usize::try_from(memory_bytes / FRAMES_SHARE).unwrap_or(usize::MAX);
        Arc::new(SharedViewFrames(OnceCache::new(bytes_max)))
    }

    /// Their memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes() as u64
    }
}

impl std::fmt::Debug for SharedViewFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedViewFrames").finish_non_exhaustive()
    }
}

/// The compact frames of all members of an archive.
pub(crate) struct ViewFrames {
    shared: Arc<SharedViewFrames>,
    /// The number of the archive among those that share the memory.
    archive: u64,
    /// For each member, where its first frames end in its view.
    ends: Lock<BTreeMap<usize, Vec<u64>>>,
}

/// A byte of a view.
pub(crate) enum ViewPlace {
    /// In this frame, whose view starts at this offset.
    Frame(usize, u64),
    /// After all frames, whose views end here.
    End(u64),
}

impl ViewFrames {
    pub(crate) fn new(shared: Arc<SharedViewFrames>, archive: u64) -> ViewFrames {
        ViewFrames {
            shared,
            archive,
            ends: Lock::default(),
        }
    }

    /// A frame of a member.
    ///
    /// # Errors
    /// From reading it; `Damaged` for entries without a view.
    pub(crate) fn frame(
        &self,
        content: &dyn TreeContent,
        memory: &EntryMemory,
        (member, frame): (usize, usize),
    ) -> Result<Arc<ViewFrame>> {
        let key = (self.archive, member, frame);
        self.shared.0.get_or_try_init(key, || {
            let packed = memory.with_frame(content, frame, |entries| {
                ViewFrame::pack(&entries, view_of(content))
            })??;
            let memory_bytes = packed.memory_bytes(content.is_recorded());
            Ok((packed, memory_bytes))
        })
    }

    /// Where the byte at `offset` of a member's view is. Reads the frames up to it whose ends are
    /// unknown.
    ///
    /// # Errors
    /// As [`ViewFrames::frame`].
    pub(crate) fn find(
        &self,
        content: &dyn TreeContent,
        memory: &EntryMemory,
        member: usize,
        offset: u64,
    ) -> Result<ViewPlace> {
        let frame_count = content.entry_frames()?;
        loop {
            let (next, start) = match self.known(member, offset) {
                Ok(place) => return Ok(place),
                Err(known) if known.0 == frame_count => return Ok(ViewPlace::End(known.1)),
                Err(known) => known,
            };
            let view_bytes = self.frame(content, memory, (member, next))?.view_bytes;
            let mut ends = self.ends.lock();
            let ends = ends.entry(member).or_default();
            if ends.len() == next {
                ends.push(start.saturating_add(view_bytes));
            }
        }
    }

    /// Where the byte is, or the number of frames whose ends are known and the last end.
    fn known(&self, member: usize, offset: u64) -> std::result::Result<ViewPlace, (usize, u64)> {
        let ends = self.ends.lock();
        let ends = ends.get(&member).map_or(&[][..], Vec::as_slice);
        let frame = ends.partition_point(|&end| end <= offset);
        let end_before = |frame: usize| {
            let before = frame.checked_sub(1).and_then(|before| ends.get(before));
            before.copied().unwrap_or_default()
        };
        if frame < ends.len() {
            Ok(ViewPlace::Frame(frame, end_before(frame)))
        } else {
            Err((ends.len(), end_before(ends.len())))
        }
    }
}
