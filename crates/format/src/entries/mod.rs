//! The Entries frame: a batch of the files and folders inside a tree member, so that listing and reaching one of them
//! needs neither the content nor the tar stream.

mod pack;

pub use pack::{PackedEntries, entry_batches, pack_entries, unpack_entries};

use crate::archive::check_positive;
use crate::block::check_raw;
use crate::bytes::Reader;
use crate::coding::{CODING_BYTES, Coding};
use crate::error::{FormatError, Result};
use crate::frame::{FrameBuilder, FrameKind};
use crate::limits::{ENTRIES_PER_FRAME_MAX, Limits, PATH_BYTES_MAX, check_limit, check_range};
use crate::member::{Timestamp, check_text};

/// Bytes of the head; the coded section follows.
pub const ENTRIES_HEAD_BYTES: usize = 72;

const _: () = assert!(ENTRIES_HEAD_BYTES == 5 * 8 + CODING_BYTES);

/// Bytes that an entry takes in a packed section at least: kind, shared and own path length, mode, seconds, nanoseconds,
/// size, place. (A path may share everything with the one before it.)
pub(crate) const ENTRY_PACKED_BYTES_MIN: u64 = 8;

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
    const ALL: [Self; 8] = [
        Self::File,
        Self::Directory,
        Self::Symlink,
        Self::Hardlink,
        Self::CharacterDevice,
        Self::BlockDevice,
        Self::Fifo,
        Self::Other,
    ];

    pub(crate) fn id(self) -> u8 {
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

    pub(crate) fn from_id(id: u8) -> Result<Self> {
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
    fn check(&self) -> Result<()> {
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
    fn text_bytes(&self) -> usize {
        self.path.len() + self.link_target.as_ref().map_or(0, Vec::len)
    }
}

/// Head of an Entries frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntriesHead {
    /// The member that the entries belong to.
    pub member_id: u64,
    /// How many entries of this member stand in earlier frames.
    pub first_entry: u64,
    /// Entries in this frame.
    pub entry_count: u64,
    /// Bytes of the packed section before coding.
    pub packed_raw_bytes: u64,
    /// XXH3-64 of the packed section before coding.
    pub packed_checksum: u64,
    /// How the packed section is coded.
    pub coding: Coding,
}

impl EntriesHead {
    /// Reads the payload of an Entries frame: the head and the coded section.
    ///
    /// # Errors
    /// Damaged lengths, counts or coding; anything over the limits.
    pub fn parse<'a>(payload: &'a [u8], limits: &Limits) -> Result<(Self, &'a [u8])> {
        let mut reader = Reader::new("entries head", payload);
        let head = Self {
            member_id: reader.u64()?,
            first_entry: reader.u64()?,
            entry_count: reader.u64()?,
            packed_raw_bytes: reader.u64()?,
            packed_checksum: reader.u64()?,
            coding: Coding::parse(&mut reader)?,
        };
        let data = reader.take(reader.remaining())?;
        head.check(data.len(), &limits.capped())?;
        Ok((head, data))
    }

    /// Compares the decoded section with the head; part of [`unpack_entries`].
    ///
    /// # Errors
    /// The length or the checksum differs.
    pub fn check_raw(&self, raw: &[u8]) -> Result<()> {
        check_raw("entries", raw, self.packed_raw_bytes, self.packed_checksum)
    }

    /// A frame with room for this head; append the coded section with [`FrameBuilder::payload`].
    #[must_use]
    pub fn builder(buffer: Vec<u8>) -> FrameBuilder {
        FrameBuilder::with_head(FrameKind::Entries, false, buffer, ENTRIES_HEAD_BYTES)
    }

    /// Fills in the head. What is left is [`seal`](crate::seal).
    ///
    /// # Errors
    /// What [`parse`](Self::parse) would refuse under the format's own limits.
    pub fn finish(&self, builder: FrameBuilder) -> Result<Vec<u8>> {
        self.check(builder.appended_bytes(), &Limits::default())?;
        let fields = [
            self.member_id,
            self.first_entry,
            self.entry_count,
            self.packed_raw_bytes,
            self.packed_checksum,
        ];
        let mut head: Vec<u8> = fields.into_iter().flat_map(u64::to_le_bytes).collect();
        self.coding.write(&mut head);
        Ok(builder.finish_with_head(&head))
    }

    fn check(&self, data_bytes: usize, limits: &Limits) -> Result<()> {
        check_positive("entries", self.entry_count)?;
        check_limit("entries", self.entry_count, ENTRIES_PER_FRAME_MAX)?;
        check_limit(
            "packed entries bytes",
            self.packed_raw_bytes,
            limits.packed_raw_bytes_max,
        )?;
        check_range("entries of a member", self.first_entry, self.entry_count)?;
        if self.entry_count > self.packed_raw_bytes / ENTRY_PACKED_BYTES_MIN {
            return Err(FormatError::Value {
                what: "entries",
                value: self.entry_count,
                rule: "at most an eighth of the packed bytes",
            });
        }
        self.coding
            .check_data_bytes(self.packed_raw_bytes, data_bytes as u64)
    }
}
