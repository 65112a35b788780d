//! The list of entries of a member, frame by frame, for those who keep a part of it in memory.

use std::ops::Range;

use refrain_entries::Entry;

use crate::archive::Archive;
use crate::error::Result;
use crate::read::read_control::ReadControl;
use crate::read::tree::content::TreeContent;
use crate::read::tree::entry_memory::EntryMemory;

/// The list of entries of a directory or tar member.
///
/// Its methods fail as [`Archive::read_at`] does.
pub struct EntryList<'a> {
    tree: Box<dyn TreeContent + 'a>,
    memory: &'a EntryMemory,
}

impl Archive {
    /// The list of entries of a directory or tar member.
    ///
    /// # Errors
    /// As [`Archive::read_at`]; `Usage` for a member without entries.
    pub fn entry_list(&self, member: usize) -> Result<EntryList<'_>> {
        let tree = self.tree_with_entries(member, &ReadControl::default())?;
        Ok(EntryList {
            tree,
            memory: self.memory.entries(),
        })
    }
}

impl EntryList<'_> {
    /// The number of frames in the list.
    pub fn frame_count(&self) -> Result<usize> {
        self.tree.entry_frames()
    }

    /// Whether the entries ascend by path over all frames, component by component: a directory
    /// precedes its contents, which precede its siblings. A tar stream's are in stream order.
    pub fn is_sorted(&self) -> bool {
        self.tree.is_sorted()
    }

    /// Calls `work` with the entries of one frame, which may include
    /// [`EntryKind::Raw`](crate::EntryKind::Raw) ones. A frame takes much memory, so they should
    /// not outlive it; frames beyond the archive's memory wait.
    pub fn with_frame<R>(&self, frame: usize, work: impl FnOnce(Vec<Entry>) -> R) -> Result<R> {
        (self.memory).with_frame(&*self.tree, frame, |entries| work(entries.into_vec()))
    }

    /// The frames that may have the entry with this path or, in a directory without it, the first
    /// one after it.
    pub fn frames_for_path(&self, path: &[u8]) -> Result<Range<usize>> {
        self.tree.frames_for_path(path)
    }

    /// The hash of the entries: of their paths, types, attributes and ranges of content. `None` if
    /// it is lost.
    pub fn hash(&self) -> Result<Option<[u8; 32]>> {
        self.tree.list_hash()
    }
}
