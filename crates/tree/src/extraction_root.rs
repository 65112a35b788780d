//! The directory that an extraction creates entries in, until it is published.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use refrain_storage::Leftover;
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use crate::error::named;

/// The number of names that are tried for the staging directory.
const STAGING_NAMES_MAX: u32 = 1000;

/// The directory that receives the entries.
#[derive(Debug)]
pub(crate) enum ExtractionRoot {
    /// A new hidden directory beside the root, which publishing renames to the root.
    Staged {
        staging: PathBuf,
        root: PathBuf,
        _leftover: Leftover,
    },
    /// The root itself, which existed before.
    Existing { root: PathBuf },
    /// The extraction is complete.
    Published,
}

impl ExtractionRoot {
    /// Uses `root` if it is a directory, and stages a new directory if it does not exist.
    pub(crate) fn prepare(root: &Path) -> io::Result<ExtractionRoot> {
        match fs::metadata(root) {
            Ok(found) if found.is_dir() => Ok(ExtractionRoot::Existing {
                root: root.to_path_buf(),
            }),
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{}: already exists and is not a directory", root.display()),
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => ExtractionRoot::stage(root),
            Err(error) => Err(named("open", root)(error)),
        }
    }

    fn stage(root: &Path) -> io::Result<ExtractionRoot> {
        let (Some(name), Some(parent)) = (root.file_name(), root.parent()) else {
            let text = format!("{}: the path does not end with a name", root.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        };
        if !parent.as_os_str().is_empty() {
            fs::create_dir_all(parent).map_err(named("create directory", parent))?;
        }
        for attempt in 0..STAGING_NAMES_MAX {
            let staging = parent.join(staging_name(name, attempt));
            match create_private_directory(&staging) {
                Ok(()) => {
                    return Ok(ExtractionRoot::Staged {
                        _leftover: Leftover::note(&staging),
                        staging,
                        root: root.to_path_buf(),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(named("create directory", &staging)(error)),
            }
        }
        let text = format!("{}: no unused temporary name beside it", root.display());
        Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
    }

    /// Whether the root existed before, so that a failed extraction removes single entries.
    pub(crate) fn existed(&self) -> bool {
        matches!(self, ExtractionRoot::Existing { .. })
    }

    /// The directory to create entries in.
    pub(crate) fn directory(&self) -> &Path {
        match self {
            ExtractionRoot::Staged { staging, .. } => staging,
            ExtractionRoot::Existing { root } => root,
            ExtractionRoot::Published => Path::new("."),
        }
    }

    /// Gives a staged directory its final name.
    pub(crate) fn publish(&mut self) -> io::Result<()> {
        if let ExtractionRoot::Staged { staging, root, .. } = self {
            rename_to_unused_name(staging, root).map_err(named("publish", root))?;
        }
        *self = ExtractionRoot::Published;
        Ok(())
    }

    /// Removes a staged directory with its contents.
    pub(crate) fn discard(&self) {
        if let ExtractionRoot::Staged { staging, .. } = self {
            // All directories in it still have all rights for their owner.
            let _ = fs::remove_dir_all(staging);
        }
    }
}

/// Renames to a name that must not exist.
fn rename_to_unused_name(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // File systems without the flag. A plain rename replaces only an empty directory.
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to),
        result => Ok(result?),
    }
}

/// A hidden name that differs between processes and attempts.
fn staging_name(name: &OsStr, attempt: u32) -> OsString {
    let mut staging = OsString::from(".");
    staging.push(name);
    staging.push(format!(".{}-{attempt}.partial", std::process::id()));
    staging
}

fn create_private_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}
