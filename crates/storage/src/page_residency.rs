//! Which pages of a file are in the system's page cache.
//!
//! This file contains unsafe code: `mincore` takes an address, so the range is mapped. The mapped
//! bytes are never accessed, so it does not matter who changes or truncates the file meanwhile;
//! `mincore` writes one byte for each page of the mapping, into a vector of that length.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::num::NonZeroU64;

/// One flag for each page of the range from `offset`, a multiple of the page size: whether reading
/// it needs no disk. `length_bytes` must be positive. Pages past the end of the file count as
/// absent.
///
/// # Errors
/// If the file cannot be mapped: it is not open for reading, or its file system has no page cache.
/// Of files that the user could not write, Linux says that everything is resident.
#[cfg(target_os = "linux")]
pub(crate) fn resident_pages(
    file: &File,
    offset: u64,
    length_bytes: usize,
) -> io::Result<Vec<bool>> {
    let mut options = memmap2::MmapOptions::new();
    options.offset(offset).len(length_bytes);
    let map = options.map_raw_read_only(file)?;
    let mut pages = vec![0; length_bytes.div_ceil(rustix::param::page_size())];
    // SAFETY: the mapping begins at a page and is `length_bytes` long; there is a byte for each of
    // its pages.
    let result =
        unsafe { libc::mincore(map.as_mut_ptr().cast(), length_bytes, pages.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(pages.iter().map(|page: &u8| page & 1 == 1).collect())
}

/// Unknown on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn resident_pages(_: &File, _: u64, _: usize) -> io::Result<Vec<bool>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Asks the system to forget what it holds of a file from `offset` on. What was not written to the
/// disk yet stays, and the system begins to write it.
#[cfg(target_os = "linux")]
pub(crate) fn drop_pages(file: &File, offset: u64, length_bytes: Option<NonZeroU64>) {
    let _ = rustix::fs::fadvise(file, offset, length_bytes, rustix::fs::Advice::DontNeed);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn drop_pages(_: &File, _: u64, _: Option<NonZeroU64>) {}
