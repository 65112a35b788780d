//! The entries of a directory, as shared by the tar stream, the archive format and the engine's
//! API.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A point in time: seconds since 1970-01-01 00:00:00 UTC, which may be negative, and nanoseconds.
/// The derived order is chronological.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    /// Whole seconds, rounded down.
    pub seconds: i64,
    /// Nanoseconds after `seconds`: 0 to 999,999,999.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// The number of nanoseconds in a second; `nanoseconds` is below it.
    pub const NANOSECONDS_END: u32 = 1_000_000_000;

    /// Whether `nanoseconds` is in its range.
    #[must_use]
    pub fn is_valid(self) -> bool {
        self.nanoseconds < Self::NANOSECONDS_END
    }

    /// The same time in the standard library's type; `None` if it is invalid or out of range there.
    #[must_use]
    pub fn to_system_time(self) -> Option<SystemTime> {
        if !self.is_valid() {
            return None;
        }
        let whole = Duration::from_secs(self.seconds.unsigned_abs());
        let seconds = if self.seconds < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(whole)?
        } else {
            SystemTime::UNIX_EPOCH.checked_add(whole)?
        };
        seconds.checked_add(Duration::from_nanos(self.nanoseconds.into()))
    }
}

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EntryKind {
    /// A regular file.
    #[default]
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// Another name of an earlier file.
    Hardlink,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// Any other type that a tar stream can hold.
    Other,
    /// Bytes of a recorded tar stream that do not belong to an entry: global pax headers, the end
    /// mark, non-zero padding. It has no path, and lists do not show it.
    Raw,
    /// In the changes of a layered tree: nothing has this path any more. Whole trees have no such
    /// entries.
    Removed,
}

impl EntryKind {
    /// Whether entries of this kind have a link target.
    #[must_use]
    pub fn is_link(self) -> bool {
        matches!(self, Self::Symlink | Self::Hardlink)
    }

    /// Whether entries of this kind have a device number.
    #[must_use]
    pub fn is_device(self) -> bool {
        matches!(self, Self::CharacterDevice | Self::BlockDevice)
    }

    /// Whether entries of this kind refer to content.
    #[must_use]
    pub fn has_data(self) -> bool {
        matches!(self, Self::File | Self::Other | Self::Raw)
    }
}

/// The owner and the group of an entry, as numbers and as names. Many entries share one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Owner {
    /// The id of the user.
    pub uid: u64,
    /// The id of the group.
    pub gid: u64,
    /// The name of the user as bytes; empty if unknown.
    pub user: Vec<u8>,
    /// The name of the group as bytes; empty if unknown.
    pub group: Vec<u8>,
}

/// An extended attribute. Access control lists (`system.posix_acl_access`, `…_default`) and file
/// capabilities (`security.capability`) are extended attributes, too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtendedAttribute {
    /// The name with its namespace, for example `user.comment`; without NUL bytes.
    pub name: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// One file, directory, link or device of a directory member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// The path inside the tree as bytes, components separated by `/`; not empty, without NUL
    /// bytes. It comes from an archive or a file system and is not trusted: extraction checks it.
    pub path: Vec<u8>,
    /// The type of the entry.
    pub kind: EntryKind,
    /// Permission bits, as in `st_mode & 0o7777`.
    pub mode: u32,
    /// The owner and the group.
    pub owner: Arc<Owner>,
    /// The time of the last modification.
    pub modified: Timestamp,
    /// The number of bytes of the file, holes included; 0 for entries without data.
    pub size_bytes: u64,
    /// The offset of its data in the member's content; 0 if it has none. Entries with equal data
    /// may share content. The reader, which knows the length of the content, checks that the data
    /// ends inside it.
    pub content_offset: u64,
    /// For a sparse file, the data ranges of the file: ascending, not empty, not adjacent. The rest
    /// are holes, which the content leaves out. `None`: all is data.
    pub data_ranges: Option<Vec<Range<u64>>>,
    /// The target of a link as bytes; present for links only.
    pub link_target: Option<Vec<u8>>,
    /// The major and minor number of a device; zeros for others.
    pub device: (u32, u32),
    /// The extended attributes, by ascending name.
    pub attributes: Vec<ExtendedAttribute>,
    /// In a recorded tar stream: how the header differs from the predicted one (see the module
    /// `tar`). Empty where the prediction is exact, and in trees that were read from a directory.
    pub header_recipe: Vec<u8>,
    /// Whether the content holds the file's machine code with far references as addresses: readers
    /// restore it (`docs/machine-code.md`). Only for files that are data as a whole.
    pub is_rebased: bool,
    /// A hash of the inode number of a file and the time of its last change of any kind, by which
    /// an unchanged file is recognised without reading it. 0: unknown. It is no property of the
    /// file: hashes of entries do not cover it.
    pub change_stamp: u32,
}

impl Entry {
    /// The number of content bytes that the entry refers to: its data without holes.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        match &self.data_ranges {
            Some(ranges) => ranges.iter().map(|range| range.end - range.start).sum(),
            None if self.kind.has_data() => self.size_bytes,
            None => 0,
        }
    }

    /// The range of the member's content that holds the entry's data.
    #[must_use]
    pub fn content_range(&self) -> Range<u64> {
        self.content_offset..self.content_offset.saturating_add(self.stored_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_convert_to_system_time_and_invalid_ones_do_not() {
        let time = |seconds, nanoseconds| Timestamp {
            seconds,
            nanoseconds,
        };
        let before_epoch = time(-2, 750_000_000).to_system_time().unwrap();
        let distance = SystemTime::UNIX_EPOCH.duration_since(before_epoch).unwrap();
        assert_eq!(distance, Duration::from_millis(1250));
        let after_epoch = time(3, 1).to_system_time().unwrap();
        let distance = after_epoch.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(distance, Duration::new(3, 1));
        assert_eq!(time(0, 1_000_000_000).to_system_time(), None);
    }
}
