//! File systems that compute the contents of files when they are read.

use std::os::fd::BorrowedFd;

use super::metadata::Metadata;

/// The size of an entry whose file states none: what such files have at most, as a rule.
pub(crate) const UNKNOWN_SIZE_BYTES: u64 = 4096;

/// The numbers of Linux for file systems whose files have content but size 0: proc, cgroup (1 and
/// 2), debugfs, tracefs, securityfs.
#[cfg(target_os = "linux")]
const COMPUTED: [u64; 6] = [
    0x9fa0,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
];

/// Whether a directory is on the device `device`, and that holds such a file system.
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
    let is_there = Metadata::of(&stat).id.device == device;
    let kind = rustix::fs::fstatfs(directory).map(|system| system.f_type as u64);
    is_there && kind.is_ok_and(|kind| COMPUTED.contains(&(kind & 0xffff_ffff)))
}

/// Whether a directory is on such a file system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_computed(_: BorrowedFd<'_>, _: u64) -> bool {
    false
}
