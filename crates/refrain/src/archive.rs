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
/// Opening reads the archive's two ends only. A read opens the blocks that hold what is asked for, as far as is
/// needed, and keeps them within the options' memory. Frames are checked by their checksums; the hash of a whole
/// member is compared by [`verify`](crate::verify) and [`extract`](crate::extract()) only.
///
/// An archive of lrzip has no index: opening it reads the records of all of its chunks, and a range is opened from the
/// front of the blocks that hold it.
pub struct Archive {
    opened: Box<dyn OpenedArchive>,
}

impl Archive {
    /// Opens an archive by the index at its end.
    ///
    /// # Errors
    /// `Damaged` if it is no archive, was cut off, or its ends contradict each other; `Unsupported` for a later version;
    /// `Limit` if its index takes more memory than allowed; `Io`.
    pub fn open(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        let opened = (reader_of(&*source)?.open)(source, options)?;
        Ok(Archive { opened })
    }

    /// Opens what is left of a damaged archive, without its index: reads all of it once, and takes every frame that is whole.
    /// Ranges whose blocks and extents are there can be read; others fail as `Damaged`. A member whose end is lost has a
    /// hash of zeros, content whose member is lost belongs to one without a name.
    ///
    /// # Errors
    /// `Damaged` if not one frame with content is found; `Io`.
    pub fn open_by_scan(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        let opened = Box::new(IndexedArchive::open_by_scan(source, options)?);
        Ok(Archive { opened })
    }

    /// Bytes that belong to no whole frame; known, and possibly not 0, only after [`Archive::open_by_scan`]. Of an
    /// archive of lrzip: bytes behind its end.
    pub fn skipped_bytes(&self) -> u64 {
        self.opened.skipped_bytes()
    }

    /// The members, in the archive's order. That of an lrzip archive has no name.
    pub fn members(&self) -> &[Member] {
        self.opened.members()
    }

    /// Reads content of a member from `offset` on into `buffer`. Returns the bytes read: fewer than asked for only at the
    /// member's end.
    ///
    /// # Errors
    /// `Usage` if there is no such member; `Damaged`, `Unsupported`, `Limit` and `Io` for what lies behind the range.
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

    /// What the archive is made of, without opening its blocks.
    pub fn info(&self) -> ArchiveInfo {
        self.opened.info()
    }

    /// Every block of the store, by their heads.
    ///
    /// # Errors
    /// As [`Archive::read_at`].
    pub fn blocks(&self) -> Result<Vec<BlockInfo>> {
        self.opened.blocks()
    }
}
