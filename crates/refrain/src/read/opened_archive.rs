//! The interface of an opened archive of any dialect.

use crate::archive_info::{ArchiveInfo, BlockInfo, Member};
use crate::error::Result;
use crate::read::tree::content::TreeContent;

/// An archive opened for random access, by many threads at once. Each dialect has its own.
pub(crate) trait OpenedArchive: Send + Sync {
    /// The members, in the archive's order.
    fn members(&self) -> &[Member];

    /// Reads content of member `member`, which exists, from `offset` into `buffer`. Returns the
    /// number of bytes read, which is less than the length of `buffer` only at the member's end.
    fn read_at(&self, member: usize, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// The content and the entries of a member, if the dialect gives access to them.
    fn content(&self, member: usize) -> Option<Box<dyn TreeContent + '_>>;

    /// Sets the memory for decoded blocks, in bytes.
    fn set_cache_bytes(&self, _bytes: u64) {}

    /// The properties of the archive. Decodes no block.
    fn info(&self) -> ArchiveInfo;

    /// All blocks of the store, from their headers.
    fn blocks(&self) -> Result<Vec<BlockInfo>>;

    /// The number of bytes that belong to no part of the archive that was recognized.
    fn skipped_bytes(&self) -> u64;
}
