//! Zip files: their entries as those of a directory, read and restored.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use refrain_foreign::{Error as ForeignError, ZipEntry, ZipFile, ZipKind};
use refrain_pool::{Lane, crew};
use refrain_storage::{Sink, Source};
use refrain_tree::restore::TreeRestore;
use refrain_tree::{Entry, EntryKind, Selection, Timestamp};

use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::{Progress, Watch, is_cancelled};
use crate::read::content_limit::{ContentLimit, ContentMeter};
use crate::read::foreign::content::engine_error;
use crate::read::tree::chosen::Chosen;

/// The memory of an entry, in bytes: an estimate.
const ENTRY_BYTES: u64 = 512;
/// The longest time between two looks at a cancellation.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// The longest target of a symbolic link.
const LINK_BYTES_MAX: u64 = 4096;

/// A source with a position.
#[derive(Clone)]
struct Cursor {
    source: Arc<dyn Source>,
    size_bytes: u64,
    position: u64,
}

impl Read for Cursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read_at(self.position, buffer)?;
        self.position = self.position.saturating_add(count as u64);
        Ok(count)
    }
}

impl Seek for Cursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(distance) => self.size_bytes.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        let message = "a position before the beginning of the file";
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, message);
        self.position = position.ok_or_else(invalid)?;
        Ok(self.position)
    }
}

/// Errors of this crate may come from the callback of a decoder.
impl From<ForeignError> for Error {
    fn from(error: ForeignError) -> Error {
        engine_error(error)
    }
}

/// A zip file and its entries.
pub struct Zip {
    file: ZipFile<Cursor>,
    entries: Vec<Entry>,
    file_bytes: u64,
    meter: Arc<ContentMeter>,
    threads: usize,
}

impl Zip {
    /// Reads the central directory, and the targets of symbolic links.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported` and `Io` for the file; `Limit` for more entries than the memory
    /// holds.
    pub fn open(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Zip> {
        let file_bytes = source.size_bytes()?;
        let cursor = Cursor {
            source,
            size_bytes: file_bytes,
            position: 0,
        };
        let file = ZipFile::open(cursor, file_bytes)?;
        let count = file.entry_count();
        if count as u64 > options.memory_bytes / ENTRY_BYTES {
            return Err(Error::limit(format!(
                "the zip file has {count} entries: raise the memory limit"
            )));
        }
        let meter = ContentMeter::new(ContentLimit::new(options, file_bytes));
        let mut zip = Zip {
            file,
            entries: Vec::new(),
            file_bytes,
            meter: Arc::new(meter),
            threads: options.threads.max(1),
        };
        for index in 0..count {
            let found = zip.file.entry(index)?;
            let target = match found.kind {
                ZipKind::Symlink if !found.is_encrypted => Some(zip.link_target(index, &found)?),
                _ => None,
            };
            zip.entries.push(entry(index, found, target));
        }
        Ok(zip)
    }

    /// The target of the symbolic link that is entry number `index`.
    fn link_target(&mut self, index: usize, entry: &ZipEntry) -> Result<Vec<u8>> {
        if entry.content_bytes > LINK_BYTES_MAX {
            let bytes = entry.content_bytes;
            let message = format!("the target of a symbolic link has {bytes} bytes");
            return Err(Error::damaged(message).at_offset(entry.offset));
        }
        let mut target = Vec::new();
        self.file.read(index, &mut |bytes| -> Result<bool> {
            target.extend_from_slice(bytes);
            Ok(true)
        })?;
        Ok(target)
    }

    /// The entries, in the order of the central directory. Their `content_offset` is their number.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What the central directory states about an entry.
    ///
    /// # Errors
    /// `Damaged` if there is none.
    pub fn details(&mut self, index: usize) -> Result<ZipEntry> {
        Ok(self.file.entry(index)?)
    }

    /// The bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Writes a range of the file that is entry number `index`. Its beginning is decoded, too. The
    /// CRC-32 is compared if the range goes to the end. The sink is not published.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Limit` and `Io` for the file; those of the sink; `Cancelled`.
    pub fn write_entry(
        &mut self,
        index: usize,
        range: &Range<u64>,
        sink: &mut dyn Sink,
        watch: &dyn Watch,
    ) -> Result<()> {
        let mut offset = 0_u64;
        let length_bytes = self.file.entry(index)?.content_bytes;
        let is_to_the_end = range.end >= length_bytes;
        let meter = Arc::clone(&self.meter);
        self.file.read(index, &mut |bytes| -> Result<bool> {
            meter.add(bytes.len() as u64)?;
            let end = offset + bytes.len() as u64;
            let from = range.start.clamp(offset, end);
            let to = range.end.clamp(from, end);
            sink.write_all(&bytes[(from - offset) as usize..(to - offset) as usize])?;
            offset = end;
            report(offset, watch)?;
            Ok(is_to_the_end || offset < range.end)
        })
    }

    /// Decodes every entry and compares its CRC-32.
    ///
    /// # Errors
    /// As [`Zip::write_entry`].
    pub fn verify(&self, watch: &dyn Watch) -> Result<u64> {
        let has_data = |entry: &&Entry| entry.kind == EntryKind::File;
        let indices = self.entries.iter().filter(has_data);
        let mut indices = indices.map(|entry| entry.content_offset as usize);
        self.run(
            watch,
            &mut || indices.next().map(|index| (index, None)),
            None,
        )
    }

    /// Restores entries below a target, by several threads. Returns the bytes that were decoded.
    ///
    /// # Errors
    /// As [`Zip::write_entry`]. Problems of single entries are recorded by the target.
    pub fn restore(
        &self,
        (target, selection): (&TreeRestore, Option<&Selection>),
        watch: &dyn Watch,
    ) -> Result<u64> {
        let mut chosen = Chosen::of_recorded(selection);
        let mut files = Vec::new();
        for entry in &self.entries {
            chosen.choose(entry.clone(), |entry| match entry.kind {
                EntryKind::Directory => target.directory(&entry),
                EntryKind::File => files.push(entry),
                _ => target.other(&entry),
            });
        }
        let mut files = files.into_iter();
        let mut next = || {
            let entry = files.next()?;
            Some((entry.content_offset as usize, Some(entry)))
        };
        self.run(watch, &mut next, Some(target))
    }

    /// Decodes entries, several at once, and writes those that are given to the target.
    fn run(
        &self,
        watch: &dyn Watch,
        next: &mut dyn FnMut() -> Option<(usize, Option<Entry>)>,
        target: Option<&TreeRestore>,
    ) -> Result<u64> {
        let shared = Shared {
            meter: &self.meter,
            content_bytes: AtomicU64::new(0),
            is_cancelled: AtomicBool::new(false),
        };
        let shared = &shared;
        crew(self.threads, |crew| {
            loop {
                let has_ended = target.is_some_and(TreeRestore::has_ended);
                while !has_ended
                    && crew.in_flight() < 2 * self.threads
                    && let Some((index, entry)) = next()
                {
                    let file = self.file.clone();
                    crew.submit(Lane::Normal, move || {
                        decode(file, index, entry.as_ref().zip(target), shared)
                    });
                }
                if crew.in_flight() == 0 {
                    return Ok(shared.content_bytes.load(Ordering::Relaxed));
                }
                let decoded = crew.next_within(REPORT_INTERVAL);
                let content_bytes = shared.content_bytes.load(Ordering::Relaxed);
                let reported = report(content_bytes, watch);
                // The jobs that run end soon after a failure.
                let outcome = decoded
                    .map(|decoded| -> Result<()> { decoded? })
                    .transpose();
                if let Err(error) = reported.and(outcome.map(|_| ())) {
                    shared.is_cancelled.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        })
    }
}

/// What the jobs of a run share.
struct Shared<'a> {
    meter: &'a ContentMeter,
    content_bytes: AtomicU64,
    is_cancelled: AtomicBool,
}

fn report(content_bytes: u64, watch: &dyn Watch) -> Result<()> {
    watch.progress(&Progress {
        content_bytes_done: content_bytes,
        content_bytes_total: None,
        archive_bytes: 0,
    });
    match is_cancelled(watch) {
        true => Err(Error::cancelled()),
        false => Ok(()),
    }
}

/// Decodes an entry, and writes it to a target if there is one.
fn decode(
    mut file: ZipFile<Cursor>,
    index: usize,
    target: Option<(&Entry, &TreeRestore)>,
    shared: &Shared<'_>,
) -> Result<()> {
    // Without a file the failure is recorded, and the content is checked all the same.
    let restored = target.and_then(|(entry, target)| target.file(entry));
    let mut offset = 0_u64;
    file.read(index, &mut |bytes| -> Result<bool> {
        let count = bytes.len() as u64;
        shared.meter.add(count)?;
        shared.content_bytes.fetch_add(count, Ordering::Relaxed);
        if shared.is_cancelled.load(Ordering::Relaxed) {
            return Err(Error::cancelled());
        }
        let is_written = restored
            .as_ref()
            .is_none_or(|restored| restored.write_at(offset, bytes).is_ok());
        offset = offset.saturating_add(count);
        Ok(is_written)
    })?;
    if let Some(restored) = restored {
        // A failure is recorded.
        let _ = restored.finish();
    }
    Ok(())
}

/// An entry of a zip file as one of a directory. Owners are not known.
fn entry(index: usize, found: ZipEntry, link_target: Option<Vec<u8>>) -> Entry {
    let kind = match found.kind {
        ZipKind::File => EntryKind::File,
        ZipKind::Directory => EntryKind::Directory,
        ZipKind::Symlink => EntryKind::Symlink,
        ZipKind::Other => EntryKind::Other,
    };
    let default_mode = match kind {
        EntryKind::Directory => 0o755,
        _ => 0o644,
    };
    Entry {
        path: found.path,
        kind,
        mode: found.mode.filter(|mode| *mode != 0).unwrap_or(default_mode),
        modified: Timestamp {
            seconds: found.modified.unwrap_or_default(),
            nanoseconds: 0,
        },
        size_bytes: match kind {
            EntryKind::File => found.content_bytes,
            _ => 0,
        },
        content_offset: index as u64,
        link_target,
        ..Entry::default()
    }
}

/// The error for a zip file that cannot be read at any offset.
pub(crate) fn needs_a_file() -> Error {
    let message =
        "a zip file has its directory at the end: it is read from a file, not from a pipe";
    Error::new(ErrorKind::Usage, message)
}
