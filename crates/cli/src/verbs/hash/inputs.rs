//! The files to hash.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use refrain::{DigestAlgorithm, HashInputs};
use refrain_storage::FileIdentity;

use crate::cancellable::CancellableReader;
use crate::paths::is_dash;
use crate::session::Session;
use crate::standard;

/// Files, each with its algorithm.
pub struct FileInputs<'a> {
    session: &'a Session,
    files: Vec<(PathBuf, DigestAlgorithm)>,
    bytes_total: Option<u64>,
}

impl<'a> FileInputs<'a> {
    /// Opens nothing yet.
    pub fn new(files: Vec<(PathBuf, DigestAlgorithm)>, session: &'a Session) -> FileInputs<'a> {
        // Only progress on a terminal needs the sum, which costs a system call per file.
        let bytes_total = io::stderr().is_terminal().then(|| bytes_total(&files));
        FileInputs {
            session,
            files,
            bytes_total: bytes_total.flatten(),
        }
    }
}

/// The total size of all files; `None` if one of them is not a file.
fn bytes_total(files: &[(PathBuf, DigestAlgorithm)]) -> Option<u64> {
    let size = |(path, _): &(PathBuf, DigestAlgorithm)| match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Some(metadata.len()),
        Ok(metadata) if metadata.is_dir() => Some(0),
        Ok(_) => None,
        Err(_) if is_dash(path) => None,
        Err(_) => Some(0),
    };
    files.iter().map(size).sum()
}

/// A file whose end is an error if it changed while it was read: the digest would describe content
/// that never existed.
struct UnchangedFile {
    file: File,
    opened: FileIdentity,
}

impl Read for UnchangedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        if count == 0 && !buffer.is_empty() {
            let now = FileIdentity::from_metadata(&self.file.metadata()?);
            if now.has_changed_since(&self.opened) {
                return Err(io::Error::other("changed while it was read"));
            }
        }
        Ok(count)
    }
}

impl HashInputs for FileInputs<'_> {
    fn count(&self) -> usize {
        self.files.len()
    }

    fn algorithm(&self, index: usize) -> DigestAlgorithm {
        self.files[index].1
    }

    fn open(&self, index: usize) -> io::Result<Box<dyn Read + Send>> {
        let path = &self.files[index].0;
        let file = if is_dash(path) { standard::input()? } else { File::open(path)? };
        let opened = file.metadata()?;
        let kind = opened.file_type();
        if kind.is_file() || kind.is_dir() {
            Ok(Box::new(UnchangedFile {
                opened: FileIdentity::from_metadata(&opened),
                file,
            }))
        } else {
            Ok(Box::new(CancellableReader::new(file, self.session)))
        }
    }

    fn content_bytes_total(&self) -> Option<u64> {
        self.bytes_total
    }
}
