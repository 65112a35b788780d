//! Reads a file past the system's page cache: what the disk has, not what memory holds.
//!
//! The file's pages are dropped from the cache, and `mincore` confirms it. What is read then comes
//! from the disk; with `O_DIRECT`, where the file system has it, also without entering the cache.
//! `O_DIRECT` alone is no proof: some file systems accept it and read through the cache.
//!
//! What the drive, or the host of a virtual machine, holds in memory of its own is beyond reach.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memmap2::MmapMut;
use refrain_pool::trace::{Device, reading};

use crate::page_residency::{drop_pages, resident_pages};
use crate::scratch_file::is_memory_file;

/// How much is read at a time.
const BUFFER_BYTES: u64 = 4 << 20;

/// Direct reads begin and end at multiples of this, the largest block of common disks.
const ALIGNMENT_BYTES: u64 = 4 << 10;

/// How much of a file is looked at at a time; a multiple of any page size.
const WINDOW_BYTES: u64 = 64 << 20;

/// Reads a file that was synced.
pub(crate) struct DiskReader<'a> {
    file: &'a File,
    // A mapping begins at a page, as direct reads need it.
    buffer: MmapMut,
    direct: Direct<'a>,
    /// Whether the system says which pages are in the cache.
    is_known: bool,
    cached: Option<&'static str>,
}

impl<'a> DiskReader<'a> {
    /// Drops the pages of the file, as far as the system does that. The file must be open for
    /// reading.
    ///
    /// # Errors
    /// If there is no memory for a buffer.
    pub(crate) fn new(file: &'a File, length_bytes: u64) -> io::Result<DiskReader<'a>> {
        let buffer_bytes = length_bytes.clamp(1, BUFFER_BYTES);
        let buffer_bytes = buffer_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let buffer = MmapMut::map_anon(buffer_bytes as usize)?;
        drop_pages(file, 0, None);
        let is_absent = is_absent(file, length_bytes);
        let direct = Direct::begin(file);
        let cached = match is_absent {
            Ok(true) => None,
            _ if is_memory_file(file) => Some("its file system keeps files in memory"),
            Ok(false) => Some("the system kept it in memory"),
            Err(_) if direct.is_on() => None,
            Err(_) => Some(UNKNOWN),
        };
        Ok(DiskReader {
            file,
            buffer,
            direct,
            is_known: is_absent.is_ok(),
            cached,
        })
    }

    /// Why reads may come from the cache; `None` if they come from the disk.
    pub(crate) fn cached(&self) -> Option<&'static str> {
        self.cached
    }

    /// Up to `length_bytes` bytes from `offset`, at least one unless the file ends there.
    ///
    /// # Errors
    /// From the operating system.
    pub(crate) fn read(&mut self, offset: u64, length_bytes: u64) -> io::Result<&[u8]> {
        // What precedes the offset in its block is read, too.
        let before = offset % ALIGNMENT_BYTES;
        let wanted = before.saturating_add(length_bytes);
        let wanted = wanted.min(self.buffer.len() as u64) as usize;
        let count = self.read_aligned(offset - before, wanted)?;
        let read = self.buffer.get(before as usize..count.min(wanted));
        Ok(read.unwrap_or_default())
    }

    fn read_aligned(&mut self, offset: u64, wanted: usize) -> io::Result<usize> {
        let length = wanted.next_multiple_of(ALIGNMENT_BYTES as usize);
        loop {
            let part = self.buffer.get_mut(..length).unwrap_or_default();
            match reading(Device::Disk, || self.file.read_at(part, offset)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The device has larger blocks, or the file system no direct reads after all.
                Err(error)
                    if error.kind() == io::ErrorKind::InvalidInput && self.direct.is_on() =>
                {
                    self.direct.end();
                    if !self.is_known {
                        self.cached = Some(UNKNOWN);
                    }
                }
                read => return read,
            }
        }
    }
}

const UNKNOWN: &str = "its file system does not say what it keeps in memory";

/// Whether no page of the file's first `length_bytes` is in the cache.
fn is_absent(file: &File, length_bytes: u64) -> io::Result<bool> {
    let mut offset = 0;
    while offset < length_bytes {
        let window = WINDOW_BYTES.min(length_bytes - offset);
        if resident_pages(file, offset, window as usize)?.contains(&true) {
            return Ok(false);
        }
        offset += window;
    }
    Ok(true)
}

/// Direct reads through a descriptor, until this is dropped.
struct Direct<'a> {
    file: &'a File,
    is_on: bool,
}

impl<'a> Direct<'a> {
    fn begin(file: &'a File) -> Direct<'a> {
        let is_on = set_direct(file, true);
        Direct { file, is_on }
    }

    fn is_on(&self) -> bool {
        self.is_on
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_on) {
            set_direct(self.file, false);
        }
    }
}

impl Drop for Direct<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns whether it was possible.
#[cfg(target_os = "linux")]
fn set_direct(file: &File, is_on: bool) -> bool {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    fcntl_getfl(file).is_ok_and(|mut flags| {
        flags.set(OFlags::DIRECT, is_on);
        fcntl_setfl(file, flags).is_ok()
    })
}

#[cfg(not(target_os = "linux"))]
fn set_direct(_: &File, _: bool) -> bool {
    false
}
