//! The inputs of a run, known by their metadata.

use std::cell::OnceCell;
use std::fs::{self, Metadata};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain::ReadOptions;
use refrain::storage::Source;
use refrain_cache::Tiers;
use refrain_server::SourceWaits;

use crate::args::SecretArgs;
use crate::failure::{Failure, Result};
use crate::inherited::{Stream, check_open};
use crate::paths::{self, STDIN_PATH, is_dash, label};
use crate::urls;
use crate::volumes;

/// `paths`, or standard input if empty.
///
/// # Errors
/// `Usage` if standard input would be a terminal.
pub fn or_stdin(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let paths = if paths.is_empty() { vec![PathBuf::from("-")] } else { paths.to_vec() };
    let has_stdin = paths.iter().any(|path| is_dash(path));
    if has_stdin {
        check_stdin()?;
    }
    if has_stdin && io::stdin().is_terminal() {
        Err(Failure::usage(
            "",
            "no FILE given and standard input is a terminal; see --help",
        ))
    } else {
        Ok(paths)
    }
}

/// Refuses a standard input that was closed when the program started.
fn check_stdin() -> Result<()> {
    check_open(Stream::Input).map_err(paths::io_failure(Path::new("-"), "read"))
}

/// An archive to read from beginning to end.
#[derive(Debug)]
pub struct ArchiveInput {
    /// As given, or the last part of a URL. For names of restored files.
    pub path: PathBuf,
    /// The name in messages.
    pub label: String,
    /// The path or URL to open.
    pub open_path: PathBuf,
    /// The directory for data fetched from a URL that does not fit into memory.
    pub temporary: Option<PathBuf>,
    /// `None` for standard input, a URL or volumes.
    pub metadata: Option<Metadata>,
    /// The option that gives a password.
    pub password_option: Option<&'static str>,
    /// Whether it is a folder of volumes, or a head in one.
    pub is_in_volumes: bool,
}

impl ArchiveInput {
    /// The archive at `path`, which may be a URL; `-` is standard input.
    ///
    /// # Errors
    /// `Io` if the file does not exist, `Usage` if it is a directory.
    pub fn new(path: &Path, options: &ReadOptions) -> Result<ArchiveInput> {
        let is_in_volumes = volumes::at_path(path).is_some();
        let metadata = if is_dash(path) || urls::is_url(path) || is_in_volumes {
            None
        } else {
            Some(archive_metadata(path)?)
        };
        Ok(ArchiveInput {
            path: urls::local_name(path),
            label: label(path),
            open_path: path.to_path_buf(),
            temporary: options.temporary.clone(),
            metadata,
            password_option: None,
            is_in_volumes,
        })
    }

    /// Adds the option that gives a password.
    #[must_use]
    pub fn with_password(self, password: &SecretArgs) -> ArchiveInput {
        ArchiveInput {
            password_option: password.given(),
            ..self
        }
    }

    /// Whether the archive can only be read forward.
    pub fn is_stream(&self) -> bool {
        let is_file = self.metadata.as_ref().is_some_and(Metadata::is_file);
        !self.is_remote() && !self.is_in_volumes && !is_file
    }

    /// Whether the archive is not on this machine's file systems.
    pub fn is_remote(&self) -> bool {
        urls::is_url(&self.open_path)
    }

    /// Whether the archive is one file on this machine, a pipe or a device.
    pub fn is_file(&self) -> bool {
        !self.is_remote() && !self.is_in_volumes
    }
}

/// An archive that is read at any offset.
pub struct SeekableInput {
    /// As given, or the last part of a URL. For names of members.
    pub path: PathBuf,
    /// The name in messages.
    pub label: String,
    /// The path or URL to open.
    pub open_path: PathBuf,
    /// The directory for data fetched from a URL that does not fit into memory.
    pub temporary: Option<PathBuf>,
    /// The option that gives a password.
    pub password_option: Option<&'static str>,
    /// The opened source, so that it is opened once.
    pub opened: OnceCell<Arc<dyn Source>>,
    /// How long reads of the archive take, once it is opened.
    pub waits: Arc<SourceWaits>,
    /// What is asked before the archive.
    pub tiers: Option<Arc<Tiers>>,
}

impl SeekableInput {
    /// The archive at `path`, which may be a URL; `-` is standard input, which must be a file.
    ///
    /// # Errors
    /// `Usage` for a pipe, a directory, or a standard input that was already read from; `Io` if the
    /// file does not exist.
    pub fn new(path: &Path, options: &ReadOptions, password: &SecretArgs) -> Result<SeekableInput> {
        let open_path = if is_dash(path) {
            check_stdin()?;
            PathBuf::from(STDIN_PATH)
        } else {
            path.to_path_buf()
        };
        let input = SeekableInput {
            path: urls::local_name(path),
            label: label(path),
            open_path,
            temporary: options.temporary.clone(),
            password_option: password.given(),
            opened: OnceCell::new(),
            waits: Arc::default(),
            tiers: None,
        };
        if urls::is_url(path) || volumes::at_path(path).is_some() {
            return Ok(input);
        }
        let metadata = if is_dash(path) {
            fs::metadata(&input.open_path).ok()
        } else {
            Some(archive_metadata(path)?)
        };
        if !metadata.as_ref().is_some_and(paths::can_seek) {
            let text = "is not a regular file: this verb reads the archive at any offset";
            return Err(Failure::usage(label(path), text));
        }
        // Opened again it starts at offset 0, which is right only if nothing was read from it
        // before.
        if is_dash(path) && rustix::fs::tell(io::stdin()) != Ok(0) {
            let text = "was already read from; this verb needs the archive from its first byte";
            return Err(Failure::usage(label(path), text));
        }
        Ok(input)
    }

    /// Puts tiers in front of it.
    #[must_use]
    pub fn behind(self, tiers: Option<Arc<Tiers>>) -> SeekableInput {
        SeekableInput { tiers, ..self }
    }
}

impl std::fmt::Debug for SeekableInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SeekableInput").field(&self.label).finish()
    }
}

fn archive_metadata(path: &Path) -> Result<Metadata> {
    let metadata = paths::metadata(path)?;
    if metadata.is_dir() {
        Err(Failure::usage(
            label(path),
            "is a directory, not an archive",
        ))
    } else {
        Ok(metadata)
    }
}
