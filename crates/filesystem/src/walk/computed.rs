//! File systems that compute the contents of files when they are read.

use std::os::fd::BorrowedFd;

use super::metadata::Metadata;

/// The size of an entry whose file states none: usually the maximum of such files.
pub(crate) const UNKNOWN_SIZE_BYTES: u64 = 4096;

/// Linux's numbers of file systems that store content, so that files of size 0 are empty: ext2 to
/// ext4, xfs, btrfs, tmpfs, ramfs, f2fs, overlayfs, zfs, bcachefs, fat, exfat, ntfs (two),
/// squashfs, erofs, iso9660, udf, jfs. Others (proc, cgroup, debugfs, FUSE) may compute contents
/// when they are read.
#[cfg(target_os = "linux")]
const STORED: [u64; 18] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x8584_58f6,
    0xf2f5_2010,
    0x794c_7630,
    0x2fc1_2fc1,
    0xca45_1a4e,
    0x4d44,
    0x2011_bab0,
    0x5346_544e,
    0x7366_746e,
    0x7371_7368,
    0xe0f5_e1e2,
    0x9660,
    0x1501_3346,
    0x3153_464a,
];

/// Whether a directory is on `device` and its file system may have files with content although they
/// state the size 0.
#[cfg(target_os = "linux")]
#[allow(
    clippy::cast_sign_loss,
    clippy::unnecessary_cast,
    reason = "the type of the field differs between architectures"
)]
pub(crate) fn is_computed(directory: BorrowedFd<'_>, device: u64) -> bool {
    let Ok(stat) = rustix::fs::fstat(directory) else {
        return false;
    };
    let is_there = Metadata::from_stat(&stat).id.device == device;
    let kind = rustix::fs::fstatfs(directory).map(|system| system.f_type as u64);
    is_there && kind.is_ok_and(|kind| !STORED.contains(&(kind & 0xffff_ffff)))
}

/// Unknown on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_computed(_: BorrowedFd<'_>, _: u64) -> bool {
    false
}
