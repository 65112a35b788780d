//! An archive opened for random access: any range of any member, by many threads at once.

use std::sync::Arc;

use refrain_storage::Source;
use refrain_tree::Entry;

use crate::archive_info::{ArchiveInfo, BlockInfo, Member};
use crate::dialect::reader_of;
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::read::native::indexed::IndexedArchive;
use crate::read::opened_archive::OpenedArchive;

/// An archive opened for random access. Many threads may share it.
///
/// Opening reads only the first and the last frames of the archive. A read decodes the blocks that
/// hold the range, as far as is needed, and retains them within the options' memory. Frames are
/// checked by their checksums; the hash of a whole member is compared by [`verify`](crate::verify)
/// and [`extract`](crate::extract()) only.
///
/// An archive of lrzip has no index: opening it reads the records of all of its chunks, and a range
/// is decoded from the beginning of the blocks that hold it.
pub struct Archive {
    opened: Box<dyn OpenedArchive>,
}

impl Archive {
    /// Opens an archive by the index at its end.
    ///
    /// # Errors
    /// `Damaged` if it is no archive, is truncated, or its first and last frames contradict each
    /// other; `Unsupported` for a later version; `Limit` if its index takes more memory than
    /// allowed; `Io`.
    pub fn open(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        let opened = (reader_of(&*source)?.open)(source, options)?;
        Ok(Archive { opened })
    }

    /// Opens what remains of a damaged archive without its index: reads all of it once and uses
    /// every intact frame. Ranges whose blocks and extents are intact can be read; others fail as
    /// `Damaged`. A member whose end is lost has a hash of zeros. Content whose member is lost
    /// belongs to a member without a name.
    ///
    /// # Errors
    /// `Damaged` if no frame with content is found; `Io`.
    pub fn open_by_scan(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        let opened = Box::new(IndexedArchive::open_by_scan(source, options)?);
        Ok(Archive { opened })
    }

    /// The number of bytes that belong to no intact frame. Always 0 except after
    /// [`Archive::open_by_scan`]. For an archive of lrzip: the number of bytes after its end.
    pub fn skipped_bytes(&self) -> u64 {
        self.opened.skipped_bytes()
    }

    /// The members, in the archive's order. That of an lrzip archive has no name.
    pub fn members(&self) -> &[Member] {
        self.opened.members()
    }

    /// Reads content of a member from `offset` on into `buffer`. Returns the number of bytes read,
    /// which is less than the length of `buffer` only at the member's end.
    ///
    /// # Errors
    /// `Usage` if there is no such member; `Damaged`, `Unsupported`, `Limit` and `Io` for the
    /// frames that the range needs.
    pub fn read_at(&self, member: usize, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if member >= self.members().len() {
            let message = format!(
                "there is no member {member}; there are {}",
                self.members().len()
            );
            return Err(Error::new(ErrorKind::Usage, message));
        }
        self.opened.read_at(member, offset, buffer)
    }

    /// The entry list of a tree member; empty for others.
    ///
    /// # Errors
    /// As [`Archive::read_at`].
    pub fn entries(&self, member: usize) -> Result<Vec<Entry>> {
        self.opened.entries(member)
    }

    /// Describes the archive without decoding its blocks.
    pub fn info(&self) -> ArchiveInfo {
        self.opened.info()
    }

    /// Every block of the store, from their headers.
    ///
    /// # Errors
    /// As [`Archive::read_at`].
    pub fn blocks(&self) -> Result<Vec<BlockInfo>> {
        self.opened.blocks()
    }
}
