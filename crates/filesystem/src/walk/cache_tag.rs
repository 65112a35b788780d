//! Directories marked as caches (the "Cache Directory Tagging Specification"): a file with a fixed
//! name that begins with a fixed signature.

use std::os::fd::BorrowedFd;

use refrain_storage::open_at;
use rustix::fs::{Mode, OFlags};

use super::names::Names;

pub(crate) const TAG_NAME: &[u8] = b"CACHEDIR.TAG";

const SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Whether a directory with these `names` is marked as a cache.
pub(crate) fn is_cache(directory: BorrowedFd<'_>, names: &Names) -> bool {
    names.contains(TAG_NAME) && has_signature(directory).unwrap_or(false)
}

fn has_signature(directory: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tag = open_at(directory, TAG_NAME, flags, Mode::empty())?;
    let mut start = [0; SIGNATURE.len()];
    let read = rustix::io::pread(&tag, &mut start, 0)?;
    Ok(read == start.len() && start == SIGNATURE)
}
