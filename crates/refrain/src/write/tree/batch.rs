//! Batches: the data of several files, or a piece of a large one, read and hashed by one job.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain_pool::stages::stage;
use refrain_protect::{HASH_BYTES, SEGMENT_BYTES, content_hash};
use refrain_tree::{Entry, FileRoot, OpenedFile, Prefetcher, Problem, ProblemKind, relative_path};

use crate::error::{Error, Result};

/// Data of files for the member's content.
#[derive(Default)]
pub(crate) struct ReadBatch {
    pub bytes: BatchBytes,
    pub objects: Vec<ReadObject>,
    pub problems: Vec<Problem>,
}

/// The first capacity of a batch's buffer: most batches are a little larger than a segment.
const TYPICAL_BYTES: usize = SEGMENT_BYTES + SEGMENT_BYTES / 4;

/// The largest capacity of a buffer that is used again.
const SPARE_BYTES_MAX: usize = 2 * SEGMENT_BYTES;

/// The bytes of a batch, in a buffer that is used again: clearing it for each batch would take as
/// long as reading.
#[derive(Default)]
pub(crate) struct BatchBytes {
    buffer: Vec<u8>,
    filled: usize,
}

impl BatchBytes {
    /// An empty batch in the memory of an earlier one.
    pub(crate) fn in_memory_of(buffer: Vec<u8>) -> BatchBytes {
        BatchBytes { buffer, filled: 0 }
    }

    /// The memory for another batch, unless it is larger than most batches need: a few files of
    /// megabytes would make all buffers that large (by 200 MB with 512 MiB of memory).
    pub(crate) fn into_memory(self) -> Option<Vec<u8>> {
        (self.buffer.capacity() <= SPARE_BYTES_MAX).then_some(self.buffer)
    }

    pub(crate) fn len(&self) -> usize {
        self.filled
    }

    pub(crate) fn get(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// Appends `count` bytes with any content, to be overwritten.
    pub(crate) fn extend(&mut self, count: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled += count;
        if self.buffer.len() < self.filled {
            // Doubling would double the memory of batches with a large file.
            self.buffer
                .reserve_exact(self.filled.max(TYPICAL_BYTES) - self.buffer.len());
            self.buffer.resize(self.filled, 0);
        }
        &mut self.buffer[start..self.filled]
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.filled = self.filled.min(length);
    }
}

/// The data of a file, or a piece of it, in a batch.
pub(crate) struct ReadObject {
    /// The number of its entry in the window.
    pub entry: u32,
    pub outcome: Outcome,
}

/// What became of a file.
pub(crate) enum Outcome {
    /// All of its data.
    Whole {
        range: Range<usize>,
        hash: [u8; HASH_BYTES],
        /// The entry, if it is not as listed.
        changed: Option<Box<Entry>>,
    },
    /// A piece of a file that is too large for one batch.
    Piece {
        range: Range<usize>,
        /// The offset in the file.
        offset_in_file: u64,
        is_first: bool,
    },
    /// A large file: its entry and the ranges of its data. Its pieces follow.
    Large {
        entry: Box<Entry>,
        ranges: Vec<Range<u64>>,
    },
    /// It could not be read.
    Gone,
}

/// Files larger than this are read in pieces, in bytes. Equal ones are found by the match stage.
pub(crate) const WHOLE_BYTES_MAX: u64 = 8 << 20;

/// Where the files of a window are read.
pub(crate) struct FileReading {
    pub root: Arc<FileRoot>,
    pub window: Arc<Vec<Entry>>,
    /// The name before every path of the window.
    pub name: PathBuf,
    /// Whether a file that cannot be read ends the run.
    pub is_strict: bool,
    /// Requests readahead while files come slowly.
    pub prefetcher: Prefetcher,
}

/// The time of reading a file tells whether the disk is slow only if the file is small.
const TIMED_BYTES_MAX: u64 = 64 << 10;

impl FileReading {
    fn entry(&self, index: u32) -> Result<&Entry> {
        let missing = || Error::new(crate::error::ErrorKind::Internal, "no such entry");
        self.window.get(index as usize).ok_or_else(missing)
    }

    /// The path of an entry's file below the root.
    fn path<'a>(&self, entry: &'a Entry) -> &'a [u8] {
        path_below(&self.name, entry)
    }

    /// Reads the files with these numbers.
    pub(crate) fn read_files(&self, indices: &[u32], memory: Vec<u8>) -> Result<ReadBatch> {
        let mut stage = stage("read", 0);
        let mut batch = ReadBatch {
            bytes: BatchBytes::in_memory_of(memory),
            ..ReadBatch::default()
        };
        for &index in indices {
            let outcome = self.read_file(index, &mut batch)?;
            batch.objects.push(ReadObject {
                entry: index,
                outcome,
            });
        }
        stage.add_bytes(batch.bytes.len() as u64);
        drop(stage);
        self.hash(&mut batch);
        Ok(batch)
    }

    /// Hashes all files of a batch.
    fn hash(&self, batch: &mut ReadBatch) {
        let _stage = stage("hash files", batch.bytes.len() as u64);
        for object in &mut batch.objects {
            if let Outcome::Whole { range, hash, .. } = &mut object.outcome {
                *hash = content_hash(batch.bytes.get(range.clone()));
            }
        }
    }

    fn read_file(&self, index: u32, batch: &mut ReadBatch) -> Result<Outcome> {
        let entry = self.entry(index)?;
        let start = batch.bytes.len();
        let since_ns = self.prefetcher.now_ns();
        let read = self
            .root
            .open_file(self.path(entry))
            .and_then(|file| read_whole(&file, entry, &mut batch.bytes));
        let is_timed = entry.size_bytes <= TIMED_BYTES_MAX;
        self.prefetcher.file_read(is_timed.then_some(since_ns));
        match read {
            Ok(Read::Whole { changed, problem }) => {
                batch.problems.extend(problem.map(|text| Problem {
                    path: entry.path.clone(),
                    kind: ProblemKind::Changed,
                    text,
                }));
                Ok(Outcome::Whole {
                    range: start..batch.bytes.len(),
                    hash: [0; HASH_BYTES],
                    changed,
                })
            }
            Ok(Read::TooLarge { entry, ranges }) => {
                batch.bytes.truncate(start);
                Ok(Outcome::Large { entry, ranges })
            }
            Err(error) => {
                batch.bytes.truncate(start);
                self.unreadable(entry, error, batch)?;
                Ok(Outcome::Gone)
            }
        }
    }

    fn unreadable(&self, entry: &Entry, error: io::Error, batch: &mut ReadBatch) -> Result<()> {
        let problem = Problem::of_error(&entry.path, &error);
        if self.is_strict && problem.kind != ProblemKind::Vanished {
            let path = String::from_utf8_lossy(&entry.path).into_owned();
            return Err(Error::from(error).in_file(path));
        }
        batch.problems.push(problem);
        Ok(())
    }

    /// Reads the piece `range` of a large file.
    pub(crate) fn read_piece(
        &self,
        index: u32,
        range: Range<u64>,
        (is_first, is_last): (bool, bool),
        listed: &Entry,
        memory: Vec<u8>,
    ) -> Result<ReadBatch> {
        let mut stage = stage("read", 0);
        let mut batch = ReadBatch {
            bytes: BatchBytes::in_memory_of(memory),
            ..ReadBatch::default()
        };
        let entry = self.entry(index)?;
        let length = (range.end - range.start) as usize;
        let result = self.root.open_file(self.path(entry)).and_then(|file| {
            let piece = batch.bytes.extend(length);
            let count = read_full_at(&file, range.start, piece)?;
            // What is missing becomes zeros: the entry has its size already.
            piece[count..].fill(0);
            let changed = count < length || (is_last && is_changed(&file, listed)?);
            Ok(changed)
        });
        match result {
            Ok(false) => {}
            Ok(true) => batch.problems.push(Problem {
                path: entry.path.clone(),
                kind: ProblemKind::Changed,
                text: "changed while it was read".into(),
            }),
            Err(error) => {
                batch.bytes.truncate(0);
                batch.bytes.extend(length).fill(0);
                self.unreadable(entry, error, &mut batch)?;
            }
        }
        stage.add_bytes(length as u64);
        batch.objects.push(ReadObject {
            entry: index,
            outcome: Outcome::Piece {
                range: 0..length,
                offset_in_file: range.start,
                is_first,
            },
        });
        Ok(batch)
    }
}

/// The path of an entry's file below the root of a tree with this name.
pub(crate) fn path_below<'a>(name: &Path, entry: &'a Entry) -> &'a [u8] {
    relative_path(name, &entry.path).unwrap_or(&entry.path)
}

fn is_changed(file: &OpenedFile, listed: &Entry) -> io::Result<bool> {
    let mut now = listed.clone();
    file.refresh(&mut now)?;
    Ok(now.size_bytes != listed.size_bytes
        || now.modified != listed.modified
        || file.has_changed()?)
}

/// The result of reading a file at once.
enum Read {
    Whole {
        changed: Option<Box<Entry>>,
        problem: Option<String>,
    },
    TooLarge {
        entry: Box<Entry>,
        ranges: Vec<Range<u64>>,
    },
}

/// Appends the data of a file, without its holes, to `bytes`.
fn read_whole(file: &OpenedFile, listed: &Entry, bytes: &mut BatchBytes) -> io::Result<Read> {
    let mut entry = listed.clone();
    file.refresh(&mut entry)?;
    entry.data_ranges = file.data_ranges()?;
    if entry.stored_bytes() > WHOLE_BYTES_MAX {
        let all = 0..entry.size_bytes;
        let ranges = entry
            .data_ranges
            .clone()
            .unwrap_or_else(|| Vec::from([all]));
        return Ok(Read::TooLarge {
            entry: Box::new(entry),
            ranges,
        });
    }
    let mut problem = None;
    match &entry.data_ranges {
        Some(ranges) => {
            for range in ranges {
                let part = bytes.extend((range.end - range.start) as usize);
                let count = read_full_at(file, range.start, part)?;
                if count < part.len() {
                    part[count..].fill(0);
                    problem = Some("shrank while it was read; padded with zeros".into());
                }
            }
        }
        None if file.is_of_unknown_size() => {
            // Files of /proc and /sys do not state their size.
            let start = bytes.len();
            read_to_end(file, bytes)?;
            entry.size_bytes = (bytes.len() - start) as u64;
        }
        None => {
            let start = bytes.len();
            let all = bytes.extend(entry.size_bytes as usize);
            let count = read_full_at(file, 0, all)?;
            if (count as u64) < entry.size_bytes {
                problem = Some("shrank while it was read".into());
                bytes.truncate(start + count);
                entry.size_bytes = count as u64;
            }
        }
    }
    if problem.is_none() && file.has_changed()? {
        problem = Some("changed while it was read".into());
    }
    Ok(Read::Whole {
        changed: (entry != *listed).then(|| Box::new(entry)),
        problem,
    })
}

/// Reads at most [`WHOLE_BYTES_MAX`] bytes of a file whose size is unknown.
fn read_to_end(file: &OpenedFile, bytes: &mut BatchBytes) -> io::Result<()> {
    let start = bytes.len();
    loop {
        let at = bytes.len();
        let count = file.read_at((at - start) as u64, bytes.extend(64 << 10))?;
        bytes.truncate(at + count);
        if count == 0 {
            return Ok(());
        }
        if (bytes.len() - start) as u64 > WHOLE_BYTES_MAX {
            let text = "the file states no size and has more than 8 MiB of content";
            return Err(io::Error::other(text));
        }
    }
}

/// Reads until `buffer` is full or the file ends. Returns the number of bytes.
fn read_full_at(file: &OpenedFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    refrain_storage::read_full(offset, buffer, |at, part| file.read_at(at, part))
}

/// The pieces of the data `ranges` of a large file.
pub(crate) fn pieces(ranges: &[Range<u64>]) -> impl Iterator<Item = Range<u64>> {
    let step = SEGMENT_BYTES as u64;
    ranges.iter().flat_map(move |range| {
        let count = (range.end - range.start).div_ceil(step);
        (0..count).map(move |piece| {
            let start = range.start + piece * step;
            start..(start + step).min(range.end)
        })
    })
}
