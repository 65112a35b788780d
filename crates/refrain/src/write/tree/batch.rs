//! Batches: the data of several files, or a piece of a large one, read and hashed by one job.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain_codec::rebase::Code;
use refrain_entries::Entry;
use refrain_pool::stages::stage;
use refrain_protect::{HASH_BYTES, content_hash};

use refrain_filesystem::{FileRoot, OpenedFile, Prefetcher, Problem, ProblemKind, relative_path};

use crate::error::{Error, Result};
use crate::store::machine_code::{code_to_rebase, header_bytes, rebase};
use crate::write::tree::batch_bytes::BatchBytes;
use crate::write::tree::file_data::{
    Follows, Piece, Read, WHOLE_BYTES_MAX, read_full_at, read_piece, read_whole,
};

/// File data for the member's content.
#[derive(Default)]
pub(crate) struct ReadBatch {
    pub bytes: BatchBytes,
    pub objects: Vec<ReadObject>,
    pub problems: Vec<Problem>,
}

/// The data of a file, or a piece of it, in a batch.
pub(crate) struct ReadObject {
    /// The number of its entry in the window.
    pub entry: u32,
    pub outcome: Outcome,
}

/// The result of reading a file.
pub(crate) enum Outcome {
    /// All of its data.
    Whole {
        range: Range<usize>,
        hash: [u8; HASH_BYTES],
        /// Its code, which is rebased.
        code: Option<Code>,
        /// The entry, if it differs from the listing.
        changed: Option<Box<Entry>>,
    },
    /// A piece of a file that is too large for one batch.
    Piece {
        range: Range<usize>,
        piece: Piece,
        follows: Follows,
        /// What is wrong with the file, if this is its end.
        problem: Option<Problem>,
    },
    /// The rest of a large file cannot be read.
    Unreadable(Problem),
    /// A large file that stays open, with its entry. Its pieces follow.
    Large {
        entry: Box<Entry>,
        file: Arc<OpenedFile>,
        code: Option<Arc<LargeCode>>,
    },
    /// It has more data than listed, and is read by a separate batch at the end.
    Later,
    /// It could not be read.
    Gone,
}

/// The code of a large file, which is rebased piece by piece.
pub(crate) struct LargeCode {
    code: Code,
    /// The beginning of the file, as the code was found by. It is stored even if the file changes.
    header: Vec<u8>,
}

impl LargeCode {
    fn find(
        file: &OpenedFile,
        entry: &Entry,
        code_bytes_min: u64,
    ) -> io::Result<Option<LargeCode>> {
        let mut header = vec![0; header_bytes(entry.size_bytes)];
        let count = read_full_at(file, 0, &mut header)?;
        header.truncate(count);
        let code = code_to_rebase(entry, &header, code_bytes_min);
        Ok(code.map(|code| LargeCode { code, header }))
    }

    fn rebase(&self, piece: &Piece, bytes: &mut [u8]) {
        let start = piece.range.start;
        let beginning = bytes.iter_mut().zip(&self.header);
        if start == 0 {
            beginning.for_each(|(byte, stated)| *byte = *stated);
        }
        if start < self.code.end() {
            rebase(&self.code, start, bytes);
        }
    }
}

/// Where the files of a window are read.
pub(crate) struct FileReading {
    pub root: Arc<FileRoot>,
    pub window: Arc<Vec<Entry>>,
    /// The prefix of every path in the window.
    pub name: PathBuf,
    /// Whether an unreadable file ends the run.
    pub is_strict: bool,
    /// How much code makes a program one whose code is rebased, bytes.
    pub code_bytes_min: u64,
    /// Requests readahead while files are slow.
    pub prefetcher: Prefetcher,
}

/// Only for small files does the reading time tell whether the disk is slow.
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

    /// Reads the files with these numbers. A large one is opened for its pieces only if it
    /// `may_be_large`, as the only one of its batch: few files are open at once.
    pub(crate) fn read_files(
        &self,
        indices: &[u32],
        may_be_large: bool,
        memory: Vec<u8>,
    ) -> Result<ReadBatch> {
        let mut stage = stage("read", 0);
        let mut batch = ReadBatch {
            bytes: BatchBytes::in_memory_of(memory),
            ..ReadBatch::default()
        };
        for &index in indices {
            // Sizes may have changed arbitrarily, and the batch must fit into memory.
            let outcome = if batch.bytes.len() as u64 > WHOLE_BYTES_MAX {
                Outcome::Later
            } else {
                self.read_file(index, may_be_large, &mut batch)?
            };
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

    /// Rebases code and hashes the contents as they are stored: a sparse file has holes, and so may
    /// have the data of a program without being rebased.
    fn hash(&self, batch: &mut ReadBatch) {
        let _stage = stage("hash files", batch.bytes.len() as u64);
        for object in &mut batch.objects {
            if let Outcome::Whole {
                range, hash, code, ..
            } = &mut object.outcome
            {
                let bytes = batch.bytes.get_mut(range.clone());
                if let Some(code) = code {
                    rebase(code, 0, bytes);
                }
                *hash = content_hash(bytes);
            }
        }
    }

    fn read_file(&self, index: u32, may_be_large: bool, batch: &mut ReadBatch) -> Result<Outcome> {
        let entry = self.entry(index)?;
        let start = batch.bytes.len();
        let since_ns = self.prefetcher.now_ns();
        let read = self.root.open_file(self.path(entry)).and_then(|file| {
            let read = read_whole(&file, entry, &mut batch.bytes)?;
            Ok((file, read))
        });
        let is_timed = entry.size_bytes <= TIMED_BYTES_MAX;
        self.prefetcher.file_read(is_timed.then_some(since_ns));
        match read {
            Ok((
                _,
                Read::Whole {
                    entry: mut read,
                    problem,
                },
            )) => {
                batch.problems.extend(problem);
                let code = code_to_rebase(
                    &read,
                    batch.bytes.get(start..batch.bytes.len()),
                    self.code_bytes_min,
                );
                read.is_rebased = code.is_some();
                Ok(Outcome::Whole {
                    range: start..batch.bytes.len(),
                    hash: [0; HASH_BYTES],
                    code,
                    changed: (read != *entry).then(|| Box::new(read)),
                })
            }
            Ok((_, Read::TooLarge { .. })) if !may_be_large => Ok(Outcome::Later),
            Ok((file, Read::TooLarge { mut entry, problem })) => {
                batch.problems.extend(problem);
                // A file whose beginning cannot be read says so when its first piece is read.
                let code = LargeCode::find(&file, &entry, self.code_bytes_min).unwrap_or_default();
                entry.is_rebased = code.is_some();
                Ok(Outcome::Large {
                    entry: Box::new(entry),
                    file: Arc::new(file),
                    code: code.map(Arc::new),
                })
            }
            Err(error) => {
                batch.bytes.truncate(start);
                let problem = self.problem_of(entry, error)?;
                batch.problems.push(problem);
                Ok(Outcome::Gone)
            }
        }
    }

    /// The problem of an unreadable file.
    fn problem_of(&self, entry: &Entry, error: io::Error) -> Result<Problem> {
        let problem = Problem::from_error(&entry.path, &error);
        if self.is_strict && problem.kind != ProblemKind::Vanished {
            let path = String::from_utf8_lossy(&entry.path).into_owned();
            return Err(Error::from(error).in_file(path));
        }
        Ok(problem)
    }

    /// Reads a piece of a large file, whose entry is `entry`.
    pub(crate) fn read_piece(
        &self,
        index: u32,
        piece: Piece,
        (file, entry, code): (&OpenedFile, &Entry, Option<&LargeCode>),
        memory: Vec<u8>,
    ) -> Result<ReadBatch> {
        let mut stage = stage("read", 0);
        let mut batch = ReadBatch {
            bytes: BatchBytes::in_memory_of(memory),
            ..ReadBatch::default()
        };
        let outcome = match read_piece(file, &piece, entry, &mut batch.bytes) {
            Ok((follows, problem)) => {
                let range = 0..batch.bytes.len();
                if let Some(code) = code {
                    code.rebase(&piece, batch.bytes.get_mut(range.clone()));
                }
                Outcome::Piece {
                    range,
                    piece,
                    follows,
                    problem,
                }
            }
            Err(error) => {
                batch.bytes.truncate(0);
                Outcome::Unreadable(self.problem_of(entry, error)?)
            }
        };
        stage.add_bytes(batch.bytes.len() as u64);
        batch.objects.push(ReadObject {
            entry: index,
            outcome,
        });
        Ok(batch)
    }
}

/// The path of an entry's file below the root of a tree with this name.
pub(crate) fn path_below<'a>(name: &Path, entry: &'a Entry) -> &'a [u8] {
    relative_path(name, &entry.path).unwrap_or(&entry.path)
}
