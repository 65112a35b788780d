//! Files and special files of an extraction, with their modes and times.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use crate::confined::ConfinedPath;
use crate::entry::{EntryKind, Timestamp};
use crate::header::TarHeader;

/// An aligned block of this many zeros becomes a hole: the block size of most file systems.
const HOLE_BYTES: usize = 4096;
static ZERO_BLOCK: [u8; HOLE_BYTES] = [0; HOLE_BYTES];

/// Small writes are buffered up to this length.
const BUFFER_BYTES: usize = 64 << 10;

/// The permission bits that are restored. Owners are not restored, so set-user-id and set-group-id
/// bits would grant the rights of the user who extracts.
const MODE_MASK: u32 = 0o1777;

/// The mode and the time that an entry gets when it is complete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes {
    mode: Mode,
    modified: Timestamp,
}

impl Attributes {
    pub(crate) fn of(header: &TarHeader) -> Attributes {
        Attributes {
            mode: Mode::from_raw_mode((header.mode & MODE_MASK) as _),
            modified: header.modified,
        }
    }

    pub(crate) fn set(self, file: BorrowedFd<'_>) -> io::Result<()> {
        rustix::fs::fchmod(file, self.mode)?;
        rustix::fs::futimens(file, &times(self.modified))?;
        Ok(())
    }

    /// Sets the time of a symbolic link or special file, which is not opened.
    pub(crate) fn set_link_time(self, directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        let times = times(self.modified);
        match rustix::fs::utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW) {
            // Not every file system stores times of links.
            Err(Errno::NOTSUP | Errno::NOSYS) => Ok(()),
            result => Ok(result?),
        }
    }
}

/// Access and modification time: the access time is not archived, and the present time would
/// differ between runs.
fn times(modified: Timestamp) -> Timestamps {
    let time = Timespec {
        tv_sec: modified.seconds,
        tv_nsec: modified.nanoseconds.into(),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

/// A regular file whose data is arriving.
#[derive(Debug)]
pub(crate) struct FileWriter {
    file: File,
    path: ConfinedPath,
    attributes: Attributes,
    /// The offset in the file of the buffered bytes.
    offset: u64,
    buffer: Vec<u8>,
}

impl FileWriter {
    /// Creates `name` in `directory`; it must not exist.
    pub(crate) fn create(
        directory: BorrowedFd<'_>,
        name: &OsStr,
        path: ConfinedPath,
        attributes: Attributes,
    ) -> io::Result<FileWriter> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let private = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(directory, name, flags, private)?;
        Ok(FileWriter {
            file: File::from(file),
            path,
            attributes,
            offset: 0,
            buffer: Vec::new(),
        })
    }

    /// The path of the file, for messages.
    pub(crate) fn path(&self) -> &ConfinedPath {
        &self.path
    }

    /// Appends bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.is_empty() && bytes.len() >= BUFFER_BYTES {
            return self.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        match self.buffer.len() >= BUFFER_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Appends zeros as a hole; fewer than a block are written, which costs less.
    pub(crate) fn append_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        if length_bytes < HOLE_BYTES as u64 {
            let zeros = ZERO_BLOCK.get(..length_bytes as usize);
            return self.append(zeros.unwrap_or_default());
        }
        self.flush()?;
        self.offset = self.offset.saturating_add(length_bytes);
        Ok(())
    }

    /// Completes the file: length, mode and time.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        // A hole at the end exists only through the length.
        self.file.set_len(self.offset)?;
        self.attributes.set(self.file.as_fd())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = self.write(&buffer);
        buffer.clear();
        self.buffer = buffer;
        written
    }

    /// Writes at the current offset. Aligned blocks of zeros are skipped, which leaves holes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let to_boundary = HOLE_BYTES - (self.offset % HOLE_BYTES as u64) as usize;
            let is_hole = |bytes: &[u8]| {
                bytes
                    .first_chunk::<HOLE_BYTES>()
                    .is_some_and(|block| *block == ZERO_BLOCK)
            };
            if to_boundary == HOLE_BYTES && is_hole(rest) {
                self.offset = self.offset.saturating_add(HOLE_BYTES as u64);
                rest = rest.get(HOLE_BYTES..).unwrap_or_default();
                continue;
            }
            let mut length = to_boundary.min(rest.len());
            while rest
                .get(length..)
                .is_some_and(|tail| !tail.is_empty() && !is_hole(tail))
            {
                length = length.saturating_add(HOLE_BYTES).min(rest.len());
            }
            let (data, tail) = rest.split_at(length);
            self.file.write_all_at(data, self.offset)?;
            self.offset = self.offset.saturating_add(length as u64);
            rest = tail;
        }
        Ok(())
    }
}

/// Creates a device or FIFO with its mode and time.
pub(crate) fn create_special_file(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    header: &TarHeader,
    attributes: Attributes,
) -> io::Result<()> {
    let (kind, device) = match header.kind {
        EntryKind::CharacterDevice => (FileType::CharacterDevice, header.device),
        EntryKind::BlockDevice => (FileType::BlockDevice, header.device),
        _ => (FileType::Fifo, (0, 0)),
    };
    let device = rustix::fs::makedev(device.0, device.1);
    match rustix::fs::mknodat(directory, name, kind, Mode::RUSR | Mode::WUSR, device) {
        Err(Errno::PERM) => {
            let text = "only root may create devices; extract to a tar stream instead (-o -)";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        created => created?,
    }
    rustix::fs::chmodat(directory, name, attributes.mode, AtFlags::empty())?;
    attributes.set_link_time(directory, name)
}
