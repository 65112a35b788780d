//! Frames of entries: a cache of packed ones, and the list of a member with ascending frames.

use std::collections::BTreeMap;
use std::sync::Arc;

use refrain::directory::compare_paths;
use refrain::{Archive, Entry, EntryList, ErrorKind};
use refrain_pool::{Lock, OnceValue};

use super::frame::EntryFrame;
use super::paths::{Page, PathList};
use super::position::Position;
use crate::error::Result;
use crate::service::Reporter;

/// A member and the number of a frame in its list.
type Key = (usize, usize);

/// The most recently used packed frames, within a memory limit. Threads that need the same frame
/// wait for the one that decodes it.
pub(super) struct FrameCache {
    archive: Arc<Archive>,
    bytes_max: usize,
    held: Lock<Held>,
    /// Receives reports of damaged frames.
    reporter: Lock<Option<Arc<Reporter>>>,
}

#[derive(Default)]
struct Held {
    slots: BTreeMap<Key, CachedFrame>,
    bytes: usize,
    clock: u64,
}

struct CachedFrame {
    frame: Arc<OnceValue<Arc<EntryFrame>>>,
    /// The memory of the frame; 0 while it is being decoded.
    bytes: usize,
    used: u64,
}

impl FrameCache {
    pub(super) fn new(archive: Arc<Archive>, bytes_max: usize) -> FrameCache {
        FrameCache {
            archive,
            bytes_max,
            held: Lock::default(),
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
        let key = (member, frame);
        let cell = self.held.lock().cell(key);
        if let Some(found) = cell.get() {
            return Ok(Arc::clone(found));
        }
        let decode = || {
            let entries = match self.archive.entry_list(member)?.frame(frame) {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    self.report(&error);
                    Vec::new()
                }
                entries => entries?,
            };
            Ok::<_, crate::error::Error>(Arc::new(EntryFrame::pack(entries)))
        };
        let found = Arc::clone(cell.get_or_try_init(decode)?);
        let mut held = self.held.lock();
        held.decoded(key, found.memory_bytes());
        held.evict(key, self.bytes_max);
        Ok(found)
    }

    fn report(&self, error: &refrain::Error) {
        let reporter = self.reporter.lock().clone();
        if let Some(reporter) = reporter {
            reporter(&format!("some files are missing from the listing: {error}"));
        }
    }

    /// Whether a frame can be used without decoding it.
    pub(super) fn has(&self, member: usize, frame: usize) -> bool {
        let held = self.held.lock();
        let slot = held.slots.get(&(member, frame));
        slot.is_some_and(|slot| slot.frame.get().is_some())
    }
}

/// The entries of a frame; empty if it is damaged.
pub(super) fn intact_entries(list: &EntryList<'_>, frame: usize) -> Result<Vec<Entry>> {
    match list.frame(frame) {
        Err(error) if error.kind == ErrorKind::Damaged => Ok(Vec::new()),
        entries => Ok(entries?),
    }
}

impl Held {
    fn cell(&mut self, key: Key) -> Arc<OnceValue<Arc<EntryFrame>>> {
        self.clock += 1;
        let slot = self.slots.entry(key).or_insert_with(|| CachedFrame {
            frame: Arc::default(),
            bytes: 0,
            used: 0,
        });
        slot.used = self.clock;
        Arc::clone(&slot.frame)
    }

    fn decoded(&mut self, key: Key, bytes: usize) {
        // Several threads may have waited for it; the first counts.
        if let Some(slot) = self.slots.get_mut(&key).filter(|slot| slot.bytes == 0) {
            slot.bytes = bytes;
            self.bytes += bytes;
        }
    }

    /// Removes the least recently used frames, except `keep`.
    fn evict(&mut self, keep: Key, bytes_max: usize) {
        while self.bytes > bytes_max {
            let mut others = self
                .slots
                .iter()
                .filter(|(key, slot)| **key != keep && slot.bytes > 0);
            let Some(oldest) = others.next().map(|first| {
                others.fold(first, |oldest, each| {
                    if each.1.used < oldest.1.used { each } else { oldest }
                })
            }) else {
                return;
            };
            let key = *oldest.0;
            if let Some(slot) = self.slots.remove(&key) {
                self.bytes -= slot.bytes;
            }
        }
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
