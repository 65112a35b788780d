//! What a file system tells about one file.

use rustix::fs::{FileType, Stat};

use refrain_entries::{EntryKind, Timestamp};
use refrain_sync::clock::unix_seconds;

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

/// A file that changed so shortly before it was looked at may change again without another time:
/// the clocks of file systems are coarse.
const SETTLED_SECONDS: i64 = 2;

impl Metadata {
    /// A hash of the inode number and the time of the last change, of content, attributes or names;
    /// 0 if it would tell little: for files with several names, and if the last change was just now
    /// or in the future. Programs can set other times, but not this one.
    pub(crate) fn change_stamp(&self) -> u32 {
        let settled_at = self.changed.seconds.saturating_add(SETTLED_SECONDS);
        if self.links > 1 || settled_at > unix_seconds() {
            return 0;
        }
        let mut hash = StampHash::default();
        hash.add(self.id.inode);
        hash.add(self.changed.seconds as u64);
        hash.add(u64::from(self.changed.nanoseconds));
        hash.value()
    }
}

/// Mixes numbers: the finalizer of SplitMix64 (Steele and others, OOPSLA 2014).
#[derive(Default)]
struct StampHash(u64);

impl StampHash {
    fn add(&mut self, value: u64) {
        let mut mixed = (self.0 ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = mixed ^ (mixed >> 31);
    }

    fn value(&self) -> u32 {
        (self.0 as u32).max(1)
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
