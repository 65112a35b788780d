//! The entries of a directory, as the tar stream, the archive format and the engine's API share
//! them.

use std::time::{Duration, SystemTime};

/// A point in time: seconds since 1970-01-01 00:00:00 UTC, which may be negative, and nanoseconds.
///
/// The order of the fields makes the derived order chronological.
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
        let seconds = match self.seconds < 0 {
            true => SystemTime::UNIX_EPOCH.checked_sub(whole)?,
            false => SystemTime::UNIX_EPOCH.checked_add(whole)?,
        };
        seconds.checked_add(Duration::from_nanos(self.nanoseconds.into()))
    }

    /// The time of the last modification of a file's content.
    #[cfg(feature = "filesystem")]
    #[must_use]
    pub fn modified(metadata: &std::fs::Metadata) -> Timestamp {
        use std::os::unix::fs::MetadataExt;
        Timestamp {
            seconds: metadata.mtime(),
            // Kernels return a value in range; a file system that does not is clamped.
            nanoseconds: u32::try_from(metadata.mtime_nsec())
                .unwrap_or(0)
                .min(Self::NANOSECONDS_END - 1),
        }
    }
}

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
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
}

impl EntryKind {
    /// Whether entries of this kind have a link target.
    #[must_use]
    pub fn is_link(self) -> bool {
        matches!(self, Self::Symlink | Self::Hardlink)
    }
}

/// One file, directory, link or device of a directory member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path inside the tree as bytes, components separated by `/`; not empty, without NUL
    /// bytes. It comes from an archive or a file system and is not trusted: extraction checks it.
    pub path: Vec<u8>,
    /// The type of the entry.
    pub kind: EntryKind,
    /// Permission bits, as in `st_mode & 0o7777`.
    pub mode: u32,
    /// The time of the last modification.
    pub modified: Timestamp,
    /// The number of bytes of its data.
    pub size_bytes: u64,
    /// The offset of its data in the member's content. The reader, which knows the length of the
    /// member, checks that the data ends inside it.
    pub content_offset: u64,
    /// The target of a link as bytes; present for links only.
    pub link_target: Option<Vec<u8>>,
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
