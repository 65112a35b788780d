//! Checks that a disk returns what was written to it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::disk_reader::DiskReader;
use crate::failure::{Failure, at};
use crate::file::seek_data;
use crate::written_digests::{Comparison, WrittenDigests};

/// What was read back, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadBack {
    /// The number of files.
    pub files: u64,
    /// Their bytes, holes included.
    pub bytes: u64,
    /// The number of these files that may have come from memory instead of the disk.
    pub cached_files: u64,
    /// Why the first of those did: half a sentence, for people.
    pub cached: Option<&'static str>,
}

impl ReadBack {
    /// Adds other files.
    pub fn add(&mut self, other: ReadBack) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.cached_files += other.cached_files;
        self.cached = self.cached.or(other.cached);
    }
}

/// What was read back is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAsWritten {
    /// The file has another length.
    Length {
        /// The length that it has.
        found_bytes: u64,
        /// The length that was written.
        length_bytes: u64,
    },
    /// Something differs in this range.
    Bytes(Range<u64>),
}

impl NotAsWritten {
    /// Whether this is what an error of this crate is about.
    pub fn is_inside(error: &io::Error) -> bool {
        let cause = Failure::inside(error).and_then(|failure| failure.cause.get_ref());
        cause.is_some_and(|cause| cause.is::<NotAsWritten>())
    }
}

impl std::fmt::Display for NotAsWritten {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotAsWritten::Length {
                found_bytes,
                length_bytes,
            } => write!(
                formatter,
                "it has {found_bytes} bytes on the disk instead of {length_bytes}"
            ),
            NotAsWritten::Bytes(Range { start, end }) => write!(
                formatter,
                "bytes {start}..{end} were read back from the disk other than they were written"
            ),
        }
    }
}

impl std::error::Error for NotAsWritten {}

/// Reads a file, past the page cache where the system allows it, and compares it with what was
/// written.
///
/// It must have been synced, be open for reading and for nobody else to write, and its descriptor
/// must not be used meanwhile. Errors name it `path`.
///
/// # Errors
/// [`NotAsWritten`] if the length or a byte differs; otherwise from the operating system.
pub fn read_back(
    file: &File,
    path: &Path,
    length_bytes: u64,
    digests: &WrittenDigests,
) -> io::Result<ReadBack> {
    compare(file, length_bytes, digests).map_err(at("confirm what was written to", path))
}

/// As [`read_back`], for parts of a file, which are given themselves.
///
/// # Errors
/// As [`read_back`].
pub fn read_back_parts<'a>(
    file: &File,
    path: &Path,
    parts: impl IntoIterator<Item = (u64, &'a [u8])>,
) -> io::Result<ReadBack> {
    let at_path = at("confirm what was written to", path);
    let mut found = ReadBack {
        files: 1,
        ..ReadBack::default()
    };
    let length_bytes = file.metadata().map_err(&at_path)?.len();
    let mut reader = DiskReader::new(file, length_bytes).map_err(&at_path)?;
    for (offset, bytes) in parts {
        let end = offset.saturating_add(bytes.len() as u64);
        let mut rest = bytes;
        while !rest.is_empty() {
            let start = end - rest.len() as u64;
            let read = reader.read(start, rest.len() as u64).map_err(&at_path)?;
            match rest.split_at_checked(read.len()) {
                Some((now, later)) if now == read && !read.is_empty() => rest = later,
                _ => return Err(at_path(differs(offset..end))),
            }
        }
        found.bytes += bytes.len() as u64;
    }
    found.cached = reader.cached();
    found.cached_files = u64::from(found.cached.is_some());
    Ok(found)
}

fn compare(file: &File, length_bytes: u64, digests: &WrittenDigests) -> io::Result<ReadBack> {
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.len() != length_bytes {
        let found_bytes = metadata.len();
        return Err(io::Error::other(NotAsWritten::Length {
            found_bytes,
            length_bytes,
        }));
    }
    let mut reader = DiskReader::new(file, length_bytes)?;
    let mut comparison = Comparison::new(digests);
    let mut position = 0;
    while position < length_bytes {
        let (start, end) = data_range(file, position, length_bytes);
        comparison.hole(start - position).map_err(differs)?;
        position = start;
        while position < end {
            let read = reader.read(position, end - position)?;
            if read.is_empty() {
                return Err(differs(position..length_bytes));
            }
            comparison.read(read).map_err(differs)?;
            position += read.len() as u64;
        }
    }
    let cached = reader.cached();
    Ok(ReadBack {
        files: 1,
        bytes: length_bytes,
        cached_files: u64::from(cached.is_some()),
        cached,
    })
}

/// The next range that may hold data; an empty one at the end if only a hole follows.
fn data_range(file: &File, position: u64, length_bytes: u64) -> (u64, u64) {
    match seek_data(file, position) {
        Ok(None) => (length_bytes, length_bytes),
        Ok(Some((start, end))) if position <= start && start < end => {
            (start.min(length_bytes), end.min(length_bytes))
        }
        // Not supported, or inconsistent.
        Ok(Some(_)) | Err(_) => (position, length_bytes),
    }
}

fn differs(range: Range<u64>) -> io::Error {
    io::Error::other(NotAsWritten::Bytes(range))
}

#[cfg(test)]
#[path = "read_back_tests.rs"]
mod tests;
