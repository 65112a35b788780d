//! The data of one file in a tar stream.

use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::walk::ProblemKind;
use refrain_entries::padding_bytes;

/// A file that states up to this size is read before its header is made.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// A file that has more content than this must state its size: its header comes first.
const UNSTATED_BYTES_MAX: u64 = 8 << 20;

/// The result of reading a file before its header is made.
pub(crate) enum SmallFile {
    /// All of its data; and what happened to it meanwhile.
    Read {
        data: Vec<u8>,
        problem: Option<&'static str>,
    },
    /// It states a small size and has more content than can be read beforehand.
    TooLarge(String),
    /// It is read when its header was made.
    Large,
}

/// Reads a file that states a small size to its end: that of `/proc` states 0.
pub(crate) fn read_small(file: &File, opened: &Metadata) -> io::Result<SmallFile> {
    let stated_bytes = opened.len();
    if stated_bytes > SMALL_BYTES_MAX {
        return Ok(SmallFile::Large);
    }
    let mut data = Vec::with_capacity(stated_bytes as usize + 1);
    file.take(UNSTATED_BYTES_MAX + 1).read_to_end(&mut data)?;
    let now = file.metadata()?;
    let read_bytes = data.len() as u64;
    let problem = match has_changed(opened, &now) {
        false if read_bytes > UNSTATED_BYTES_MAX => {
            let text = format!(
                "states {stated_bytes} bytes and has more than {UNSTATED_BYTES_MAX}, which a tar \
                 stream cannot hold"
            );
            return Ok(SmallFile::TooLarge(text));
        }
        false => None,
        true if read_bytes > stated_bytes && now.len() > stated_bytes => {
            data.truncate(stated_bytes as usize);
            Some("grew while it was read")
        }
        true if read_bytes < stated_bytes => Some("shrank while it was read"),
        true => Some("changed while it was read"),
    };
    Ok(SmallFile::Read { data, problem })
}

/// Whether a file was changed between two calls. (A change of the number of its names alone is
/// none, although it sets the status time.)
fn has_changed(before: &Metadata, now: &Metadata) -> bool {
    let content = |found: &Metadata| (found.len(), found.mtime(), found.mtime_nsec());
    let status = |found: &Metadata| (found.ctime(), found.ctime_nsec());
    content(before) != content(now)
        || (status(before) != status(now) && before.nlink() == now.nlink())
}

/// The file whose data is being read.
#[derive(Debug)]
pub(crate) struct FileReader {
    data: Data,
    /// Its path relative to the root.
    pub(crate) path: PathBuf,
    remaining_bytes: u64,
    padding_bytes: usize,
    /// The time of opening by the prefetcher's clock; `None` after the first read.
    pub(crate) opened_ns: Option<u64>,
}

#[derive(Debug)]
enum Data {
    Memory(Cursor<Vec<u8>>),
    File {
        file: File,
        opened: Box<Metadata>,
        /// Why there is less than the header states.
        missing: Option<(ProblemKind, String)>,
    },
}

/// What follows the data of a file.
pub(crate) struct FileEnd {
    pub padding_bytes: usize,
    pub problem: Option<(ProblemKind, String)>,
}

impl FileReader {
    /// A file that was read already.
    pub(crate) fn of_data(data: Vec<u8>, opened_ns: Option<u64>) -> FileReader {
        let remaining_bytes = data.len() as u64;
        FileReader::new(Data::Memory(Cursor::new(data)), remaining_bytes, opened_ns)
    }

    /// A file that is read now.
    pub(crate) fn of_file(
        file: File,
        path: PathBuf,
        opened: &Metadata,
        opened_ns: Option<u64>,
    ) -> FileReader {
        let data = Data::File {
            file,
            opened: Box::new(opened.clone()),
            missing: None,
        };
        FileReader {
            path,
            ..FileReader::new(data, opened.len(), opened_ns)
        }
    }

    fn new(data: Data, remaining_bytes: u64, opened_ns: Option<u64>) -> FileReader {
        FileReader {
            data,
            path: PathBuf::new(),
            remaining_bytes,
            padding_bytes: usize::try_from(padding_bytes(remaining_bytes)).unwrap_or_default(),
            opened_ns,
        }
    }

    /// The number of bytes that are still to be read.
    pub(crate) fn remaining_bytes(&self) -> u64 {
        self.remaining_bytes
    }

    /// Reads the next data; zeros where the file has less than its header states.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> usize {
        let length = usize::try_from(self.remaining_bytes).unwrap_or(usize::MAX);
        let length = length.min(buffer.len());
        let piece = buffer.get_mut(..length).unwrap_or_default();
        let read = match &mut self.data {
            Data::Memory(data) => data.read(piece).unwrap_or_default(),
            Data::File { file, missing, .. } => {
                if missing.is_none() && !piece.is_empty() {
                    match read_some(file, piece) {
                        Ok(0) => {
                            let text = "shrank while it was read; the rest is zeros";
                            *missing = Some((ProblemKind::Changed, text.into()));
                        }
                        Ok(read) => {
                            self.remaining_bytes -= read as u64;
                            return read;
                        }
                        Err(error) => {
                            let text = format!("{error}; the rest is zeros");
                            *missing = Some((ProblemKind::Unreadable, text));
                        }
                    }
                }
                piece.fill(0);
                piece.len()
            }
        };
        self.remaining_bytes -= read as u64;
        read
    }

    /// What follows, if all data was read.
    pub(crate) fn end(&mut self) -> Option<FileEnd> {
        if self.remaining_bytes > 0 {
            return None;
        }
        let problem = match &mut self.data {
            Data::Memory(_) => None,
            Data::File {
                file,
                opened,
                missing,
            } => missing.take().or_else(|| change(file, opened)),
        };
        Some(FileEnd {
            padding_bytes: self.padding_bytes,
            problem,
        })
    }
}

/// What happened to a file whose data was read as far as it was stated.
fn change(file: &mut File, opened: &Metadata) -> Option<(ProblemKind, String)> {
    let now = match file.metadata() {
        Ok(now) => now,
        Err(error) => return Some((ProblemKind::Unreadable, error.to_string())),
    };
    let text = match has_changed(opened, &now) {
        true if now.len() > opened.len() => "grew while it was read; cut at its initial size",
        true => "changed while it was read",
        false => match read_some(file, &mut [0]) {
            Ok(0) => return None,
            _ => "has more content than it states; cut at the stated size",
        },
    };
    Some((ProblemKind::Changed, text.to_string()))
}

fn read_some(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
