//! What a file system tells about one file.

use rustix::fs::{FileType, Stat};

use refrain_entries::{EntryKind, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) file_type: FileType,
    /// The bits `0o7777` of the mode.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size_bytes: u64,
    /// Bytes on disk: fewer than `size_bytes` for a sparse or compressed file.
    pub(crate) allocated_bytes: u64,
    pub(crate) id: FileId,
    pub(crate) links: u64,
    /// The major and minor number of a device.
    pub(crate) device: (u32, u32),
    pub(crate) modified: Timestamp,
    pub(crate) changed: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl Metadata {
    #[allow(
        clippy::unnecessary_cast,
        clippy::useless_conversion,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        reason = "the types of the fields differ between architectures"
    )]
    pub(crate) fn from_stat(stat: &Stat) -> Metadata {
        let is_device = matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::CharacterDevice | FileType::BlockDevice
        );
        let device = if is_device {
            (
                rustix::fs::major(stat.st_rdev),
                rustix::fs::minor(stat.st_rdev),
            )
        } else {
            (0, 0)
        };
        Metadata {
            file_type: FileType::from_raw_mode(stat.st_mode),
            mode: u32::from(stat.st_mode) & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size_bytes: stat.st_size as u64,
            allocated_bytes: (stat.st_blocks as u64).saturating_mul(512),
            id: FileId {
                device: stat.st_dev as u64,
                inode: stat.st_ino as u64,
            },
            links: stat.st_nlink as u64,
            device,
            modified: timestamp(stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: timestamp(stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }

    /// `None` for sockets and types that no archive can hold.
    pub(crate) fn kind(&self) -> Option<EntryKind> {
        match self.file_type {
            FileType::RegularFile => Some(EntryKind::File),
            FileType::Directory => Some(EntryKind::Directory),
            FileType::Symlink => Some(EntryKind::Symlink),
            FileType::CharacterDevice => Some(EntryKind::CharacterDevice),
            FileType::BlockDevice => Some(EntryKind::BlockDevice),
            FileType::Fifo => Some(EntryKind::Fifo),
            _ => None,
        }
    }
}

/// Kernels return nanoseconds in range; other values are clamped.
fn timestamp(seconds: i64, nanoseconds: u64) -> Timestamp {
    let last = Timestamp::NANOSECONDS_END - 1;
    Timestamp {
        seconds,
        nanoseconds: u32::try_from(nanoseconds).unwrap_or(last).min(last),
    }
}
