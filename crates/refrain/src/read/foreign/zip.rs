//! Reads and restores the entries of zip files as a directory's.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use refrain_entries::{Entry, EntryKind, Selection, Timestamp};
use refrain_filesystem::restore::TreeRestore;
use refrain_foreign::{Description, Error as ForeignError, ZipEntry, ZipFile, ZipKind};
use refrain_pool::pool::checkpoint;
use refrain_pool::{Lane, crew};
use refrain_storage::{Sink, Source, read_full};

use refrain_filesystem::{Problem, ProblemKind};

use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::{Progress, Watch, is_cancelled};
use crate::read::content_limit::{ContentLimit, ContentMeter};
use crate::read::foreign::content::engine_error;
use crate::read::tree::chosen::Chosen;

/// The estimated memory of an entry, in bytes.
pub(crate) const ENTRY_BYTES: u64 = 512;
/// The longest time between checks for cancellation.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// The longest target of a symbolic link.
const LINK_BYTES_MAX: u64 = 4096;
/// How much of the file's end is searched for its end record.
const TAIL_BYTES: u64 = 1 << 20;

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

/// Errors of this crate may come from a decoder's callback.
impl From<ForeignError> for Error {
    fn from(error: ForeignError) -> Error {
        engine_error(error)
    }
}

/// A zip file and its entries.
pub(crate) struct Zip {
    file: ZipFile<Cursor>,
    entries: Vec<Entry>,
    /// What is wrong with unreadable entries, by their numbers.
    unreadable: BTreeMap<u64, Problem>,
    /// Parts of the file that belong to no entry.
    others: Vec<Problem>,
    file_bytes: u64,
    limit: ContentLimit,
    threads: usize,
    memory_bytes: u64,
}

impl Zip {
    /// Reads the central directory, and the targets of symbolic links.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported` and `Io` for the file; `Limit` if the entries do not fit into
    /// memory.
    pub(crate) fn open(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Zip> {
        let file_bytes = source.size_bytes()?;
        let cursor = Cursor {
            source,
            size_bytes: file_bytes,
            position: 0,
        };
        let file = ZipFile::open(cursor.clone(), file_bytes)?;
        let count = file.entry_count();
        if count as u64 > options.memory_bytes / ENTRY_BYTES {
            return Err(Error::limit(format!(
                "the zip file has {count} entries: raise the memory limit"
            )));
        }
        let mut zip = Zip {
            file,
            entries: Vec::new(),
            unreadable: BTreeMap::new(),
            others: Vec::new(),
            file_bytes,
            limit: ContentLimit::new(options, file_bytes),
            threads: options.threads.max(1),
            memory_bytes: options.memory_bytes,
        };
        let mut first = zip.file.directory_offset();
        for index in 0..count {
            let found = zip.file.entry(index)?;
            first = first.min(found.offset);
            let target = zip.look(index, &found)?;
            zip.entries.push(entry(index, found, target));
        }
        zip.others = zip.find_others(first, &cursor)?;
        Ok(zip)
    }

    /// Records what is wrong with an entry. Returns the target of a symbolic link.
    fn look(&mut self, index: usize, found: &ZipEntry) -> Result<Option<Vec<u8>>> {
        let unsupported = |text: &str| Problem {
            path: found.path.clone(),
            kind: ProblemKind::Unsupported,
            text: text.to_owned(),
        };
        let mut target = None;
        let problem = match found.kind {
            _ if found.is_encrypted => Some(unsupported("encrypted, which is not supported")),
            ZipKind::Directory if found.content_bytes > 0 => {
                Some(unsupported("a directory that has data"))
            }
            ZipKind::Symlink => match self.link_target(index, found) {
                Ok(read) => {
                    target = Some(read);
                    None
                }
                Err(error) => Some(entry_problem(&found.path, error)?),
            },
            _ => None,
        };
        if let Some(problem) = problem {
            self.unreadable.insert(index as u64, problem);
        }
        Ok(target)
    }

    /// Parts of the file that belong to no entry: before the first one, after the end, or with the
    /// name of a later entry.
    fn find_others(&self, first: u64, cursor: &Cursor) -> Result<Vec<Problem>> {
        let mut found = Vec::new();
        if first > 0 {
            found.push(format!(
                "{first} bytes before the first entry are not part of it and were ignored"
            ));
        }
        if let Some(bytes) = self.bytes_behind(cursor)? {
            found.push(format!(
                "{bytes} bytes follow the end of the zip file and were ignored"
            ));
        }
        if self.file.has_equal_names() {
            let text = "several entries have the same name: only the last of them is read";
            found.push(text.to_owned());
        }
        let found = found.into_iter();
        Ok(found.map(|text| Problem::damaged(b"", text)).collect())
    }

    /// How many bytes follow the end, unless they are zeros.
    fn bytes_behind(&self, cursor: &Cursor) -> Result<Option<u64>> {
        let start = (self.file_bytes.saturating_sub(TAIL_BYTES)).max(self.file.directory_offset());
        let mut tail = vec![0; (self.file_bytes - start.min(self.file_bytes)) as usize];
        let read = |at, part: &mut [u8]| cursor.source.read_at(at, part);
        let count = read_full(start, &mut tail, read)?;
        tail.truncate(count);
        Ok(match self.file.end_in(&tail) {
            // More follows than a reader searches.
            None => Some(tail.len() as u64),
            Some(end) => {
                let behind = &tail[end..];
                let is_data = behind.iter().any(|byte| *byte != 0);
                is_data.then_some(behind.len() as u64)
            }
        })
    }

    /// The parts of the file that belong to no entry.
    pub(crate) fn others(&self) -> &[Problem] {
        &self.others
    }

    /// Reports to the watch what belongs to no entry.
    fn report_others(&self, watch: &dyn Watch) {
        for problem in &self.others {
            watch.problem(0, problem);
        }
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
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What the central directory states.
    ///
    /// # Errors
    /// `Damaged`.
    pub(crate) fn describe(&self) -> Result<Description> {
        Ok(self.file.clone().describe(self.file_bytes)?)
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Writes a range of the file that is this entry. The whole entry is decoded, and its CRC-32
    /// compared. The sink is not published.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Limit` and `Io` for the file; errors of the sink; `Cancelled`.
    pub(crate) fn write_entry(
        &self,
        entry: &Entry,
        range: &Range<u64>,
        sink: &mut dyn Sink,
        watch: &dyn Watch,
    ) -> Result<()> {
        let mut offset = 0_u64;
        let meter = ContentMeter::new(self.limit.clone());
        let index = entry.content_offset as usize;
        self.file.clone().read(index, &mut |bytes| -> Result<bool> {
            meter.add(bytes.len() as u64)?;
            let end = offset + bytes.len() as u64;
            let from = range.start.clamp(offset, end);
            let to = range.end.clamp(from, end);
            sink.write_all(&bytes[(from - offset) as usize..(to - offset) as usize])?;
            offset = end;
            report(offset, watch)?;
            // To the end, where the checksum is compared.
            Ok(true)
        })
    }

    /// Decodes every entry and compares its CRC-32. Unreadable ones are reported to the watch.
    ///
    /// # Errors
    /// `Limit` and `Io`; `Cancelled`.
    pub(crate) fn verify(&self, watch: &dyn Watch) -> Result<u64> {
        for problem in self.unreadable.values() {
            watch.problem(0, problem);
        }
        self.report_others(watch);
        let is_readable = |entry: &&Entry| {
            entry.kind == EntryKind::File && !self.unreadable.contains_key(&entry.content_offset)
        };
        let mut entries = self.entries.iter().filter(is_readable).cloned();
        self.run(watch, &mut || entries.next(), None)
    }

    /// Restores entries below a target, by several threads. Returns the number of bytes decoded.
    ///
    /// # Errors
    /// `Limit` and `Io`; `Cancelled`. Problems of single entries are recorded by the target, or
    /// reported to the watch if they cannot be read.
    pub(crate) fn restore(
        &self,
        (target, selection): (&TreeRestore, Option<&Selection>),
        watch: &dyn Watch,
    ) -> Result<u64> {
        let mut chosen = Chosen::for_recorded(selection, self.memory_bytes);
        let mut files = Vec::new();
        for entry in &self.entries {
            chosen.choose(entry.clone(), |entry| {
                target.expect(&entry);
                let unreadable = self.unreadable.get(&entry.content_offset);
                if let Some(problem) = unreadable {
                    watch.problem(0, problem);
                }
                match entry.kind {
                    EntryKind::Directory => target.directory(&entry),
                    _ if unreadable.is_some() => {}
                    // Their numbers, to avoid a second copy of the entries.
                    EntryKind::File => files.push(entry.content_offset as usize),
                    _ => target.other(&entry),
                }
            })?;
        }
        self.report_others(watch);
        let mut files = files.into_iter();
        let mut next = || self.entries.get(files.next()?).cloned();
        self.run(watch, &mut next, Some(target))
    }

    /// Decodes entries, several at once, and writes them to the target if there is one.
    fn run(
        &self,
        watch: &dyn Watch,
        next: &mut dyn FnMut() -> Option<Entry>,
        target: Option<&TreeRestore>,
    ) -> Result<u64> {
        let shared = Shared {
            meter: &ContentMeter::new(self.limit.clone()),
            content_bytes: AtomicU64::new(0),
        };
        let shared = &shared;
        crew(self.threads, |crew| {
            loop {
                let has_ended = target.is_some_and(TreeRestore::has_ended);
                while !has_ended
                    && crew.in_flight() < 2 * self.threads
                    && let Some(entry) = next()
                {
                    let file = self.file.clone();
                    crew.submit(Lane::Normal, move || {
                        let decoded = decode(file, &entry, target, shared);
                        decoded.or_else(|error| entry_problem(&entry.path, error).map(Some))
                    });
                }
                if crew.in_flight() == 0 {
                    return Ok(shared.content_bytes.load(Ordering::Relaxed));
                }
                let decoded = crew.next_within(REPORT_INTERVAL);
                let content_bytes = shared.content_bytes.load(Ordering::Relaxed);
                let reported = report(content_bytes, watch);
                let outcome = decoded
                    .map(|decoded| -> Result<Option<Problem>> { decoded? })
                    .transpose();
                if let Some(problem) = reported.and(outcome)?.flatten() {
                    watch.problem(0, &problem);
                }
            }
        })
    }
}

/// Shared by the jobs of a run.
struct Shared<'a> {
    meter: &'a ContentMeter,
    content_bytes: AtomicU64,
}

fn report(content_bytes: u64, watch: &dyn Watch) -> Result<()> {
    watch.progress(&Progress {
        content_bytes_done: content_bytes,
        content_bytes_total: None,
        archive_bytes: 0,
    });
    if is_cancelled(watch) { Err(Error::cancelled()) } else { Ok(()) }
}

/// The problem of an unreadable entry; returns other errors.
fn entry_problem(path: &[u8], error: Error) -> Result<Problem> {
    let kind = match error.kind {
        ErrorKind::Damaged => ProblemKind::Damaged,
        ErrorKind::Unsupported => ProblemKind::Unsupported,
        _ => return Err(error),
    };
    Ok(Problem {
        path: path.to_vec(),
        kind,
        text: error.to_string(),
    })
}

/// Decodes an entry, and writes it to a target if there is one.
fn decode(
    mut file: ZipFile<Cursor>,
    entry: &Entry,
    target: Option<&TreeRestore>,
    shared: &Shared<'_>,
) -> Result<Option<Problem>> {
    // Without a file, the failure was recorded; the content is still checked.
    let restored = target.and_then(|target| target.file(entry));
    let index = entry.content_offset as usize;
    let mut offset = 0_u64;
    file.read(index, &mut |bytes| -> Result<bool> {
        let count = bytes.len() as u64;
        shared.meter.add(count)?;
        shared.content_bytes.fetch_add(count, Ordering::Relaxed);
        checkpoint();
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
    Ok(None)
}

/// A zip entry as a directory entry. Owners are unknown.
fn entry(index: usize, found: ZipEntry, link_target: Option<Vec<u8>>) -> Entry {
    let kind = match found.kind {
        ZipKind::File => EntryKind::File,
        ZipKind::Directory => EntryKind::Directory,
        ZipKind::Symlink => EntryKind::Symlink,
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

/// The error for a zip file that is read as if it held one sequence of bytes.
pub(crate) fn holds_files() -> Error {
    let message = "a zip file holds files: name one of them, or a directory to restore them to";
    Error::new(ErrorKind::Usage, message)
}

/// The error for a zip file that cannot be read at any offset.
pub(crate) fn needs_a_file() -> Error {
    let message =
        "a zip file has its directory at the end: it is read from a file, not from a pipe";
    Error::new(ErrorKind::Usage, message)
}
