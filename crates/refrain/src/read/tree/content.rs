//! The interface to the content and entries of a tree being read.

use std::ops::Range;

use refrain_entries::Entry;
use refrain_protect::HASH_BYTES;

use crate::error::{Error, Result};
use crate::read::lost_entries::LostEntries;
use crate::read::store_reader::Depth;
use crate::read::tree::frame_entries::FrameEntries;
use crate::store::opened_code::OpenedCode;

/// The content and entries of a tree member, read by many threads at once.
pub(crate) trait TreeContent: Sync {
    fn content_bytes(&self) -> u64;

    /// Fills `buffer` with content at `offset`; the range is inside the content.
    fn read(&self, offset: u64, buffer: &mut [u8], depth: Depth) -> Result<()>;

    /// Fills `buffer` with the readable content at `offset`, and with zeros elsewhere. Returns the
    /// missing content ranges, ascending.
    fn read_remains(&self, offset: u64, buffer: &mut [u8]) -> Result<Vec<Range<u64>>>;

    /// The code of the rebased files that were read last.
    fn opened_code(&self) -> &OpenedCode;

    /// The entries lost with their frames.
    fn lost_entries(&self) -> LostEntries {
        LostEntries::default()
    }

    /// Whether the member's end is lost, so that its content may have been longer.
    fn is_open(&self) -> bool {
        false
    }

    /// The number of entries of a frame, if known without reading it.
    fn stated_count(&self, _frame: usize) -> Result<u64> {
        Ok(0)
    }

    /// The number of entries that are decoded to read those of a frame: of a slice, more.
    fn decoded_count(&self, frame: usize) -> Result<u64> {
        self.stated_count(frame)
    }

    /// The number of parts in which the entries come: Entries frames or, if a tree's frames are not
    /// in path order, slices of them that are. Both are called frames here.
    fn entry_frames(&self) -> Result<usize>;

    /// The entries of a frame, or of a slice. Their content is inside the member's.
    fn entries_of(&self, frame: usize) -> Result<FrameEntries>;

    /// The number of all entries and their hash, as stated by the member's end; `None` if they need
    /// not be compared, or the end is lost.
    fn stated_entries(&self) -> Result<Option<(u64, [u8; HASH_BYTES])>>;

    /// A hash by which lists of entries are compared, content included; `None` if it is lost.
    fn list_hash(&self) -> Result<Option<[u8; HASH_BYTES]>> {
        Ok(self.stated_entries()?.map(|(_, hash)| hash))
    }

    /// Of a layered tree: the range of the content that is the member's own, and its hash.
    fn own_content(&self) -> Result<Option<(Range<u64>, [u8; HASH_BYTES])>> {
        Ok(None)
    }

    /// Whether the content is the member's own and has a hash, so that it is worth comparing when
    /// all of it was read.
    fn has_all_content(&self) -> bool {
        true
    }

    /// The frames that may have the entry with this path. If several entries have it, the last one
    /// wins.
    fn frames_for_path(&self, path: &[u8]) -> Result<Range<usize>>;

    /// Whether the entries are known to ascend by path, over all frames.
    fn is_sorted(&self) -> bool;

    /// Whether the entries are from a tar stream, whose headers the tar view restores.
    fn is_recorded(&self) -> bool;

    /// The blocks to decode before `content` is read, each as a number for
    /// [`TreeContent::decode_block`]. Empty if decoding ahead gains nothing.
    fn blocks_to_prefetch(&self, content: Range<u64>) -> Result<Vec<u64>>;

    /// Decodes a block ahead of reads.
    fn decode_block(&self, block: u64) -> Result<()>;
}

/// Checks that the data of all entries is inside content of this length.
///
/// # Errors
/// `Damaged`, with the path.
pub(crate) fn check_inside(entries: &[Entry], content_bytes: u64) -> Result<()> {
    match entries
        .iter()
        .find(|entry| entry.content_range().end > content_bytes)
    {
        None => Ok(()),
        Some(entry) => {
            let range = entry.content_range();
            let path = String::from_utf8_lossy(&entry.path);
            Err(Error::damaged(format!(
                "the data of entry {path:?} is at {} to {} of content that has {content_bytes} bytes",
                range.start, range.end
            )))
        }
    }
}
