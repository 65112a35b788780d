//! One restored file: its data from any thread, then its metadata, then its name.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refrain_pool::Lock;
use refrain_pool::trace::{Device, writing};
use refrain_storage::open_at;
use refrain_storage::{RangedFile, ReadBack, Sharing, WrittenDigests, read_back};
use rustix::fs::{AtFlags, Mode, OFlags, Stat};

use super::directory::Directory;
use super::metadata::Metadata;
use super::path::ConfinedPath;
use super::shared::{Place, Shared};
use super::unconfirmed::Unconfirmed;
use super::unnamed;
use refrain_entries::Entry;

/// An aligned block of this many zeros becomes a hole: the block size of most file systems.
const HOLE_BYTES: usize = 4096;
static ZERO_BLOCK: [u8; HOLE_BYTES] = [0; HOLE_BYTES];

/// A regular file whose data is arriving. Dropping it before [`finish`](RestoredFile::finish)
/// removes the file.
#[derive(Debug)]
pub struct RestoredFile {
    shared: Arc<Shared>,
    /// Writes by several threads never mix, even if they overlap.
    file: RangedFile,
    found: Stat,
    directory: Arc<Directory>,
    /// The present name of the file; `None` if it has none yet.
    named: Option<OsString>,
    path: ConfinedPath,
    metadata: Metadata,
    layout: Layout,
    size_bytes: u64,
    /// The number of bytes of data written or skipped as zeros.
    received_bytes: AtomicU64,
    /// The end of the last byte written.
    written_end: AtomicU64,
    has_failed: AtomicBool,
    /// What was written where, if it will be read back.
    digests: Option<Lock<WrittenDigests>>,
}

/// Where the stored data of a file is in the file.
#[derive(Debug)]
enum Layout {
    Plain,
    /// Ranges of data, each with the number of stored bytes before it.
    Sparse(Vec<(u64, Range<u64>)>),
}

impl Layout {
    fn for_entry(entry: &Entry) -> io::Result<Layout> {
        let Some(ranges) = &entry.data_ranges else {
            return Ok(Layout::Plain);
        };
        let (mut stored, mut end) = (0, 0);
        let mut placed = Vec::with_capacity(ranges.len());
        for range in ranges {
            if range.start < end || range.end < range.start || range.end > entry.size_bytes {
                let text = "the ranges of its data are not in order";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            placed.push((stored, range.clone()));
            stored += range.end - range.start;
            end = range.end;
        }
        Ok(Layout::Sparse(placed))
    }

    /// The offset in the file of a position in the stored data, and the number of bytes up to the
    /// next hole.
    fn locate(&self, position: u64) -> (u64, u64) {
        match self {
            Layout::Plain => (position, u64::MAX),
            Layout::Sparse(ranges) => {
                let after = ranges.partition_point(|(stored, _)| *stored <= position);
                let range = after.checked_sub(1).and_then(|index| ranges.get(index));
                range.map_or((position, 0), |(stored, range)| {
                    let offset = range.start.saturating_add(position - stored);
                    (offset, range.end.saturating_sub(offset))
                })
            }
        }
    }
}

impl RestoredFile {
    pub(super) fn create(
        shared: &Arc<Shared>,
        entry: &Entry,
        path: ConfinedPath,
    ) -> io::Result<RestoredFile> {
        let layout = Layout::for_entry(entry)?;
        let place = shared.place(&path)?;
        let metadata = Metadata::from_entry(entry);
        let (file, named) = if shared.target_is_new {
            (
                create_named(shared, &place, metadata.first_mode())?,
                Some(place.name.to_owned()),
            )
        } else {
            unnamed::create(shared, &place, metadata.first_mode())?
        };
        let found = rustix::fs::fstat(&file)?;
        let file = RangedFile::empty(file, Sharing::Ranges);
        let directory = place.directory;
        Ok(RestoredFile {
            shared: Arc::clone(shared),
            file,
            found,
            directory,
            named,
            path,
            metadata,
            layout,
            size_bytes: entry.size_bytes,
            received_bytes: AtomicU64::new(0),
            written_end: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            digests: shared.unconfirmed.is_some().then(Lock::default),
        })
    }

    /// Writes a piece of the file's stored data, which does not include holes. Threads may write
    /// different pieces at once. Aligned blocks of zeros become holes.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for bytes past the end of the data; errors of the operating system. They are
    /// recorded as a problem of the entry, and the file can no longer be finished.
    pub fn write_at(&self, offset_in_data: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_pieces(offset_in_data, bytes)
            .map_err(|error| self.note(error))
    }

    /// As [`write_at`](RestoredFile::write_at), for zeros: a hole where possible.
    ///
    /// # Errors
    ///
    /// As `write_at`.
    pub fn write_zeros_at(&self, offset_in_data: u64, length_bytes: u64) -> io::Result<()> {
        let end = offset_in_data.checked_add(length_bytes);
        if end.is_none_or(|end| end > self.stored_bytes()) {
            return Err(self.note(too_much_data()));
        }
        // Nothing was written there, so it is a hole already.
        self.received_bytes
            .fetch_add(length_bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Sets length, owner, extended attributes, mode and time, and gives the file its name. If it
    /// is to be [read back](super::RestoreOptions::reads_back), that happens later.
    ///
    /// # Errors
    ///
    /// If data is missing or the file cannot be named, it is removed. If metadata cannot be set, it
    /// stays. The error is recorded as a problem of the entry.
    pub fn finish(mut self) -> io::Result<()> {
        if self.has_failed.load(Ordering::Relaxed) {
            return Err(io::Error::other("an earlier step failed"));
        }
        self.complete_data().map_err(|error| self.note(error))?;
        let shared = Arc::clone(&self.shared);
        match &shared.unconfirmed {
            Some(unconfirmed) => {
                unconfirmed.add(Box::new(self));
                Ok(())
            }
            None => self.complete().map_err(|error| self.note(error)),
        }
    }

    /// Removes the unfinished file, and records why.
    pub fn abandon(self, reason: io::Error) {
        self.note(reason);
    }

    fn write_pieces(&self, offset_in_data: u64, bytes: &[u8]) -> io::Result<()> {
        let (mut position, mut rest) = (offset_in_data, bytes);
        while !rest.is_empty() {
            let (offset, follow) = self.layout.locate(position);
            let length = usize::try_from(follow)
                .unwrap_or(usize::MAX)
                .min(rest.len());
            let end = offset.checked_add(length as u64);
            if length == 0 || end.is_none_or(|end| end > self.size_bytes) {
                return Err(too_much_data());
            }
            let (piece, tail) = rest.split_at(length);
            let range = offset..offset.saturating_add(length as u64);
            (self.file).change(range, |file| self.write_data(file, offset, piece))?;
            self.add_digest(offset, piece);
            position = position.saturating_add(length as u64);
            rest = tail;
        }
        let length = bytes.len() as u64;
        self.received_bytes.fetch_add(length, Ordering::Relaxed);
        Ok(())
    }

    fn add_digest(&self, offset: u64, piece: &[u8]) {
        if let Some(digests) = &self.digests {
            let mut digest = WrittenDigests::default();
            digest.add(offset, piece);
            digests.lock().append(digest);
        }
    }

    /// Writes `bytes` without the blocks of zeros in them.
    fn write_data(&self, file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (mut offset, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let to_boundary = HOLE_BYTES - (offset % HOLE_BYTES as u64) as usize;
            if to_boundary == HOLE_BYTES && is_hole(rest) {
                offset += HOLE_BYTES as u64;
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
            writing(Device::Disk, data.len(), || file.write_all_at(data, offset))?;
            offset += length as u64;
            self.written_end.fetch_max(offset, Ordering::Relaxed);
            rest = tail;
        }
        Ok(())
    }

    fn complete_data(&self) -> io::Result<()> {
        if self.received_bytes.load(Ordering::Relaxed) != self.stored_bytes() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not all of its data was written",
            ));
        }
        if self.written_end.load(Ordering::Relaxed) != self.size_bytes {
            self.file.alone(|file| file.set_len(self.size_bytes))?;
        }
        Ok(())
    }

    fn complete(&mut self) -> io::Result<()> {
        let applied = self.shared.applier.apply(
            self.file.file().as_fd(),
            &self.found,
            self.directory.gives_acl,
            &self.metadata,
        );
        self.publish()?;
        self.shared.done(&self.path);
        applied
    }

    fn stored_bytes(&self) -> u64 {
        match &self.layout {
            Layout::Plain => self.size_bytes,
            Layout::Sparse(ranges) => ranges
                .last()
                .map_or(0, |(stored, range)| stored + (range.end - range.start)),
        }
    }

    fn publish(&mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        if !shared.target_is_new {
            if shared.has_ended() {
                return Err(io::Error::other("the restore has ended"));
            }
            let Some((_, name)) = self.path.split() else {
                return Ok(());
            };
            let place = Place {
                directory: Arc::clone(&self.directory),
                name,
                path: &self.path,
            };
            let placed =
                unnamed::publish(&shared, &place, self.file.file(), self.named.as_deref())?;
            self.named = None; // nothing to remove
            return shared
                .directories
                .created
                .note(self.path.as_bytes(), placed);
        }
        self.named = None;
        Ok(())
    }

    /// Records the first error, and returns it.
    fn note(&self, error: io::Error) -> io::Error {
        if self.has_failed.swap(true, Ordering::Relaxed) {
            return error;
        }
        let copy = match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(error.kind(), error.to_string()),
        };
        self.shared.fail(self.path.as_bytes(), copy);
        error
    }
}

impl Unconfirmed for RestoredFile {
    fn file(&self) -> &File {
        self.file.file()
    }

    fn device(&self) -> u64 {
        self.found.st_dev
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn confirm(mut self: Box<Self>) -> ReadBack {
        let digests = self.digests.take();
        let digests = digests.map(|digests| std::mem::take(&mut *digests.lock()));
        let path = PathBuf::from(OsStr::from_bytes(self.path.as_bytes()));
        let found = read_back(
            self.file.file(),
            &path,
            self.size_bytes,
            &digests.unwrap_or_default(),
        );
        // Only now: reading changes the time of the last access.
        let completed = found.and_then(|found| self.complete().map(|()| found));
        completed.unwrap_or_else(|error| {
            self.note(error);
            ReadBack::default()
        })
    }

    fn refuse(self: Box<Self>, reason: io::Error) {
        self.abandon(reason);
    }
}

impl Drop for RestoredFile {
    fn drop(&mut self) {
        let Some(name) = &self.named else { return };
        let named = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
        // A later entry with the same path may have replaced it.
        let is_same =
            |now: Stat| (now.st_dev, now.st_ino) == (self.found.st_dev, self.found.st_ino);
        if named.is_ok_and(is_same) {
            let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
        }
    }
}

/// Creates a file under its final name, invisible until the target is published.
fn create_named(shared: &Shared, place: &Place<'_>, mode: Mode) -> io::Result<File> {
    let flags =
        shared.access() | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = |name: &OsStr| open_at(&place.directory, name, flags, mode);
    Ok(File::from(shared.create(place, create)?.0))
}

fn too_much_data() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "more data than the entry has")
}

/// Whether `bytes` starts with a block of zeros.
fn is_hole(bytes: &[u8]) -> bool {
    bytes
        .first_chunk::<HOLE_BYTES>()
        .is_some_and(|block| *block == ZERO_BLOCK)
}
