//! Opening files and ordering names, as both the reader and its prefetcher do it.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a regular file for reading. If the name has become something else meanwhile, a symbolic
/// link is an error and a FIFO does not block.
///
/// # Errors
///
/// The error of the operating system, without the path.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Compares two names of a directory in descending byte order: names are taken from the end of a
/// sorted list.
pub(crate) fn descending(a: &OsStr, b: &OsStr) -> Ordering {
    b.as_bytes().cmp(a.as_bytes())
}
