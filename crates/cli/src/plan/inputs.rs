//! The inputs of a run, known by their metadata.

use std::fs::{self, Metadata};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::paths::{self, STDIN_PATH, is_dash, label};

/// `paths`, or standard input if there are none.
///
/// # Errors
/// `Usage` if standard input would be a terminal.
pub fn or_stdin(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let paths = if paths.is_empty() {
        vec![PathBuf::from("-")]
    } else {
        paths.to_vec()
    };
    match paths.iter().any(|path| is_dash(path)) && io::stdin().is_terminal() {
        true => Err(Failure::usage(
            "",
            "no FILE given and standard input is a terminal; see --help",
        )),
        false => Ok(paths),
    }
}

/// An archive to read from beginning to end.
#[derive(Debug)]
pub struct ArchiveInput {
    pub path: PathBuf,
    /// The name in messages.
    pub label: String,
    /// `None` is standard input.
    pub metadata: Option<Metadata>,
}

impl ArchiveInput {
    /// The archive at `path`; `-` is standard input.
    ///
    /// # Errors
    /// `Io` if there is no such file, `Usage` if it is a directory.
    pub fn new(path: &Path) -> Result<ArchiveInput> {
        let metadata = match is_dash(path) {
            true => None,
            false => Some(archive_metadata(path)?),
        };
        Ok(ArchiveInput {
            path: path.to_path_buf(),
            label: label(path),
            metadata,
        })
    }

    /// Whether the archive can only be read forward.
    pub fn is_stream(&self) -> bool {
        !self.metadata.as_ref().is_some_and(Metadata::is_file)
    }
}

/// An archive to read at any offset.
#[derive(Debug)]
pub struct SeekableInput {
    /// As given; for messages and names.
    pub path: PathBuf,
    /// The name in messages.
    pub label: String,
    /// The path to open.
    pub open_path: PathBuf,
}

impl SeekableInput {
    /// The archive at `path`; `-` is standard input, which must be a file.
    ///
    /// # Errors
    /// `Usage` for a pipe, a directory, or a standard input that was read from before; `Io` if
    /// there is no such file.
    pub fn new(path: &Path) -> Result<SeekableInput> {
        let open_path = match is_dash(path) {
            true => PathBuf::from(STDIN_PATH),
            false => path.to_path_buf(),
        };
        let metadata = match is_dash(path) {
            true => fs::metadata(&open_path).ok(),
            false => Some(archive_metadata(path)?),
        };
        if !metadata.as_ref().is_some_and(paths::can_seek) {
            let text = "is not a regular file: this verb reads the archive at any offset";
            return Err(Failure::usage(label(path), text));
        }
        // Opened again it begins at offset 0, which is right only if nothing was read from it
        // before.
        if is_dash(path) && rustix::fs::tell(io::stdin()) != Ok(0) {
            let text =
                "has been read from before; this verb needs an archive from its first byte on";
            return Err(Failure::usage(label(path), text));
        }
        Ok(SeekableInput {
            path: path.to_path_buf(),
            label: label(path),
            open_path,
        })
    }
}

fn archive_metadata(path: &Path) -> Result<Metadata> {
    let metadata = paths::metadata(path)?;
    match metadata.is_dir() {
        true => Err(Failure::usage(
            label(path),
            "is a directory, not an archive",
        )),
        false => Ok(metadata),
    }
}
