//! The memory for decoding frames of entries: a frame takes some 15 MB while it is decoded, and
//! every reader may need another one.

use refrain_entries::Entry;
use refrain_pool::Permits;

use crate::error::Result;
use crate::read::tree::content::TreeContent;
use crate::read::tree::frame_entries::FrameEntries;

/// Frames that are decoded at the same time may take 1/8 of the memory. One always may.
const DECODING_SHARE: u64 = 8;

/// What an entry takes on the heap, with the section that it comes from, in bytes.
const HEAP_BYTES: u64 = 96;

/// Lets readers decode frames as far as there is memory for them; others wait.
#[derive(Debug)]
pub(crate) struct EntryMemory(Permits);

impl EntryMemory {
    /// `memory_bytes` is the budget of all readers.
    pub(crate) fn new(memory_bytes: u64) -> EntryMemory {
        EntryMemory(Permits::new(memory_bytes / DECODING_SHARE))
    }

    /// Calls `work` with the entries of a frame, which should not outlive it.
    ///
    /// # Errors
    /// From reading the frame.
    pub(crate) fn with_frame<R>(
        &self,
        content: &dyn TreeContent,
        frame: usize,
        work: impl FnOnce(FrameEntries) -> R,
    ) -> Result<R> {
        let entry_bytes = size_of::<Entry>() as u64 + HEAP_BYTES;
        let frame_bytes = content.decoded_count(frame)?.saturating_mul(entry_bytes);
        let _held = self.0.acquire(frame_bytes);
        Ok(work(content.entries_of(frame)?))
    }
}
