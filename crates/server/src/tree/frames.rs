//! Frames of entries: a cache of packed ones, and the list of a member with ascending frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use refrain::directory::compare_paths;
use refrain::{Archive, Entry, EntryList, ErrorKind};
use refrain_pool::{Lock, OnceCache};

use super::frame::EntryFrame;
use super::options::TreeOptions;
use super::paths::{Page, PathList};
use super::position::Position;
use crate::error::Result;
use crate::service::Reporter;

/// The memory of the trees of several archives.
pub(crate) struct TreeMemory {
    /// The most recently used packed frames: by archive, member and number of the frame in its
    /// list.
    frames: OnceCache<(u64, usize, usize), EntryFrame>,
    /// The memory of the frames, as the archives know it, in bytes.
    reserved_bytes: AtomicU64,
    /// The remaining memory for tables.
    pub(super) table_bytes_left: AtomicUsize,
    /// The number of the next tree.
    next: AtomicU64,
}

impl TreeMemory {
    pub(crate) fn new(options: &TreeOptions) -> Arc<TreeMemory> {
        Arc::new(TreeMemory {
            frames: OnceCache::new(options.frame_bytes),
            reserved_bytes: AtomicU64::new(0),
            table_bytes_left: AtomicUsize::new(options.table_bytes),
            next: AtomicU64::new(0),
        })
    }
}

/// The packed frames of an archive.
pub(super) struct FrameCache {
    archive: Arc<Archive>,
    memory: Arc<TreeMemory>,
    /// The number of the tree among those that share the memory.
    tree: u64,
    /// Receives reports of damaged frames.
    reporter: Lock<Option<Arc<Reporter>>>,
}

impl FrameCache {
    pub(super) fn new(archive: Arc<Archive>, memory: Arc<TreeMemory>) -> FrameCache {
        FrameCache {
            archive,
            tree: memory.next.fetch_add(1, Ordering::Relaxed),
            memory,
            reporter: Lock::default(),
        }
    }

    /// Sets the receiver of reports of damaged frames.
    pub(super) fn report_to(&self, reporter: Arc<Reporter>) {
        *self.reporter.lock() = Some(reporter);
    }

    pub(super) fn archive(&self) -> &Arc<Archive> {
        &self.archive
    }

    /// A frame of a member. A damaged frame counts as empty, so that all others remain accessible.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub(super) fn get(&self, member: usize, frame: usize) -> Result<Arc<EntryFrame>> {
        let key = (self.tree, member, frame);
        let found = self.memory.frames.get_or_try_init(key, || {
            let list = self.archive.entry_list(member)?;
            let packed = match list.with_frame(frame, EntryFrame::pack) {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    self.report(&error);
                    EntryFrame::default()
                }
                packed => packed?,
            };
            let memory_bytes = packed.memory_bytes();
            Ok::<_, crate::error::Error>((packed, memory_bytes))
        })?;
        self.reserve();
        Ok(found)
    }

    /// Takes the memory of the frames from that of the archives.
    fn reserve(&self) {
        let now = self.memory.frames.memory_bytes() as u64;
        let before = self.memory.reserved_bytes.swap(now, Ordering::Relaxed);
        if before != now {
            self.archive.reserve_memory(before, now);
        }
    }

    fn report(&self, error: &refrain::Error) {
        let reporter = self.reporter.lock().clone();
        if let Some(reporter) = reporter {
            reporter(&format!("some files are missing from the listing: {error}"));
        }
    }

    /// Whether a frame can be used without decoding it.
    pub(super) fn has(&self, member: usize, frame: usize) -> bool {
        self.memory.frames.has((self.tree, member, frame))
    }
}

/// Calls `work` with the entries of a frame; with none if it is damaged.
pub(super) fn with_intact_entries<R>(
    list: &EntryList<'_>,
    frame: usize,
    mut work: impl FnMut(Vec<Entry>) -> Result<R>,
) -> Result<R> {
    match list.with_frame(frame, &mut work) {
        Err(error) if error.kind == ErrorKind::Damaged => work(Vec::new()),
        worked => worked?,
    }
}

/// The entries of a member whose paths ascend over its frames.
pub(super) struct FrameList<'a> {
    pub frames: &'a FrameCache,
    pub member: usize,
    pub frame_count: usize,
}

impl PathList for FrameList<'_> {
    fn page(&self, page: usize) -> Result<Option<Page>> {
        if page < self.frame_count {
            Ok(Some(Page::Frame(self.frames.get(self.member, page)?)))
        } else {
            Ok(None)
        }
    }

    fn seek(&self, path: &[u8]) -> Result<Position> {
        let archive = self.frames.archive();
        let candidates = archive.entry_list(self.member)?.frames_for_path(path)?;
        for number in candidates.clone() {
            let frame = self.frames.get(self.member, number)?;
            let row = frame.first_not_below(|found| compare_paths(found, path).is_lt());
            if row < frame.len() {
                return Ok(Position::new(number, row));
            }
        }
        Ok(Position::new(candidates.end, 0))
    }
}
