//! An archive opened for random access: any range of any member, by many threads at once.

use std::sync::Arc;

use refrain_storage::Source;
use refrain_tree::Entry;

use crate::archive_info::{ArchiveInfo, BlockInfo, Member};
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::reading::indexed::IndexedArchive;
#[cfg(feature = "lrzip")]
use crate::reading::lrzip::{self, LrzipArchive};

/// An archive opened for random access. Many threads may share it.
///
/// Opening reads the archive's two ends only. A read opens the blocks that hold what is asked for, as far as is
/// needed, and keeps them within the options' memory. Frames are checked by their checksums; the hash of a whole
/// member is compared by [`verify`](crate::verify) and [`extract`](crate::extract()) only.
///
/// An archive of lrzip has no index: opening it reads the records of all of its chunks, and a range is opened from the
/// front of the blocks that hold it.
pub struct Archive {
    opened: Opened,
}

/// Whose archive it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// Ours, or none that this build knows.
    Native,
    /// lrzip's: one member without a name, no index.
    Lrzip,
}

impl Dialect {
    /// Bytes at the beginning that tell a dialect, at most.
    pub const PREFIX_BYTES: usize = refrain_format::MAGIC.len();

    /// That of an archive which begins with these bytes; `None` if no archive does. Fewer than [`Dialect::PREFIX_BYTES`] are all that
    /// there is.
    pub fn of_prefix(first: &[u8]) -> Option<Dialect> {
        #[cfg(feature = "lrzip")]
        if refrain_format::lrzip::is_lrzip(first) {
            return Some(Dialect::Lrzip);
        }
        refrain_format::check_magic(first)
            .is_ok()
            .then_some(Dialect::Native)
    }

    /// That of the archive in `source`, by its first bytes.
    ///
    /// # Errors
    /// `Io`.
    pub fn of(source: &dyn Source) -> Result<Dialect> {
        #[cfg(feature = "lrzip")]
        if lrzip::is_lrzip(source)? {
            return Ok(Dialect::Lrzip);
        }
        let _ = source;
        Ok(Dialect::Native)
    }
}

/// An archive of either dialect.
enum Opened {
    Native(Box<IndexedArchive>),
    #[cfg(feature = "lrzip")]
    Lrzip(Box<LrzipArchive>),
}

impl Archive {
    /// Opens an archive by the index at its end.
    ///
    /// # Errors
    /// `Damaged` if it is no archive, was cut off, or its ends contradict each other; `Unsupported` for a later version;
    /// `Limit` if its index takes more memory than allowed; `Io`.
    pub fn open(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        #[cfg(feature = "lrzip")]
        if lrzip::is_lrzip(&*source)? {
            let opened = Opened::Lrzip(Box::new(LrzipArchive::open(source, options)?));
            return Ok(Archive { opened });
        }
        let opened = Opened::Native(Box::new(IndexedArchive::open(source, options)?));
        Ok(Archive { opened })
    }

    /// Opens what is left of a damaged archive, without its index: reads all of it once, and takes every frame that is whole.
    /// Ranges whose blocks and extents are there can be read; others fail as `Damaged`. A member whose end is lost has a
    /// hash of zeros, content whose member is lost belongs to one without a name.
    ///
    /// # Errors
    /// `Damaged` if not one frame with content is found; `Io`.
    pub fn open_by_scan(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        let opened = Opened::Native(Box::new(IndexedArchive::open_by_scan(source, options)?));
        Ok(Archive { opened })
    }

    /// Bytes that belong to no whole frame; known, and possibly not 0, only after [`Archive::open_by_scan`]. Of an
    /// archive of lrzip: bytes behind its end.
    pub fn skipped_bytes(&self) -> u64 {
        match &self.opened {
            Opened::Native(archive) => archive.skipped_bytes(),
            #[cfg(feature = "lrzip")]
            Opened::Lrzip(archive) => archive.trailing_bytes(),
        }
    }

    /// The members, in the archive's order. That of an lrzip archive has no name.
    pub fn members(&self) -> &[Member] {
        match &self.opened {
            Opened::Native(archive) => archive.members(),
            #[cfg(feature = "lrzip")]
            Opened::Lrzip(archive) => archive.members(),
        }
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
        match &self.opened {
            Opened::Native(archive) => archive.read_at(member, offset, buffer),
            #[cfg(feature = "lrzip")]
            Opened::Lrzip(archive) => archive.read_at(offset, buffer),
        }
    }

    /// The entry list of a tree member; empty for others.
    ///
    /// # Errors
    /// As [`Archive::read_at`].
    pub fn entries(&self, member: usize) -> Result<Vec<Entry>> {
        match &self.opened {
            Opened::Native(archive) => archive.entries(member),
            #[cfg(feature = "lrzip")]
            Opened::Lrzip(_) => Ok(vec![]),
        }
    }

    /// What the archive is made of, without opening its blocks.
    pub fn info(&self) -> ArchiveInfo {
        match &self.opened {
            Opened::Native(archive) => archive.info(),
            #[cfg(feature = "lrzip")]
            Opened::Lrzip(archive) => archive.info(),
        }
    }

    /// Every block of the store, by their heads.
    ///
    /// # Errors
    /// As [`Archive::read_at`].
    pub fn blocks(&self) -> Result<Vec<BlockInfo>> {
        match &self.opened {
            Opened::Native(archive) => archive.blocks(),
            #[cfg(feature = "lrzip")]
            Opened::Lrzip(archive) => Ok(archive.blocks()),
        }
    }
}
