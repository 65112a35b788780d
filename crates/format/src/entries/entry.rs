//! One entry of a tree member.

use crate::check::{check_positive, check_range, check_text};
use crate::error::{FormatError, Result};
use crate::limits::PATH_BYTES_MAX;
use crate::member::Timestamp;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// 1: a regular file.
    File,
    /// 2: a folder.
    Directory,
    /// 3: a symbolic link.
    Symlink,
    /// 4: another name of an earlier entry.
    Hardlink,
    /// 5: a character device.
    CharacterDevice,
    /// 6: a block device.
    BlockDevice,
    /// 7: a named pipe.
    Fifo,
    /// 8: anything else that the tar stream holds.
    Other,
}

impl EntryKind {
    pub(super) const ALL: [Self; 8] = [
        Self::File,
        Self::Directory,
        Self::Symlink,
        Self::Hardlink,
        Self::CharacterDevice,
        Self::BlockDevice,
        Self::Fifo,
        Self::Other,
    ];

    pub(super) fn id(self) -> u8 {
        match self {
            Self::File => 1,
            Self::Directory => 2,
            Self::Symlink => 3,
            Self::Hardlink => 4,
            Self::CharacterDevice => 5,
            Self::BlockDevice => 6,
            Self::Fifo => 7,
            Self::Other => 8,
        }
    }

    pub(super) fn from_id(id: u8) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.id() == id)
            .ok_or(FormatError::Value {
                what: "entry kind",
                value: u64::from(id),
                rule: "from 1 to 8",
            })
    }

    /// True for the kinds that have a link target.
    #[must_use]
    pub fn is_link(self) -> bool {
        matches!(self, Self::Symlink | Self::Hardlink)
    }
}

/// One file, folder or link of a tree member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path inside the tree as bytes, parts separated by `/`; not empty, no zero byte. Like a member's name it is no promise.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits, as in `st_mode & 0o7777`.
    pub mode: u32,
    /// When it was last modified.
    pub modified: Timestamp,
    /// Bytes of its data.
    pub size_bytes: u64,
    /// Where its data begins in the member's content. Whether it ends inside the member is for the reader to check, who
    /// knows the member's length.
    pub content_offset: u64,
    /// Where a link leads; there for links only.
    pub link_target: Option<Vec<u8>>,
}

impl Entry {
    pub(super) fn check(&self) -> Result<()> {
        check_positive("entry path bytes", self.path.len() as u64)?;
        check_text("entry path", &self.path, PATH_BYTES_MAX)?;
        check_range("end of an entry", self.content_offset, self.size_bytes)?;
        self.modified.check()?;
        match (&self.link_target, self.kind.is_link()) {
            (Some(target), true) => check_text("link target", target, PATH_BYTES_MAX),
            (None, false) => Ok(()),
            (target, _) => Err(FormatError::Value {
                what: "link target bytes",
                value: target.as_ref().map_or(0, |target| target.len() as u64),
                rule: "there for links and only for links",
            }),
        }
    }

    /// Bytes of path and link target together.
    pub(super) fn text_bytes(&self) -> usize {
        self.path.len() + self.link_target.as_ref().map_or(0, Vec::len)
    }
}
