//! The place of one member.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use refrain::directory::{RestoreOptions, TreeRestore};
use refrain::storage::Sink;
use refrain_storage::ConfinedDirectory;

use crate::failure::{Failure, Result};
use crate::files;
use crate::paths::{self, NewFile, label};

/// The place of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Exactly this path, given by the user, who may use symbolic links in it.
    Named(PathBuf),
    /// A path below a directory, made of names that may come from an archive: symbolic links below
    /// the directory are not followed.
    Below { root: PathBuf, relative: PathBuf },
}

impl Place {
    /// The path, for messages and inspection only.
    pub fn path(&self) -> PathBuf {
        match self {
            Place::Named(path) => path.clone(),
            Place::Below { root, relative } => root.join(relative),
        }
    }

    /// A directory for temporary content, most likely on the same disk.
    pub fn temporary_directory(&self) -> PathBuf {
        match self {
            Place::Named(path) => path.parent().unwrap_or(Path::new("")).to_path_buf(),
            Place::Below { root, .. } => root.clone(),
        }
    }
}

/// The directory below which the members of a run go, opened once.
#[derive(Debug, Default)]
pub struct Root {
    opened: Option<ConfinedDirectory>,
}

impl Root {
    /// Prepares to restore a directory.
    pub fn tree(&mut self, place: &Place, options: RestoreOptions) -> Result<TreeRestore> {
        match place {
            Place::Named(path) => TreeRestore::create(path, options).map_err(Failure::Storage),
            Place::Below { root, relative } => {
                let root = self.open(root)?;
                let restore = TreeRestore::create_below(root, relative, options);
                restore.map_err(|error| failure(root, relative, error))
            }
        }
    }

    /// Creates a file. It appears complete when published, or not at all.
    pub fn file(&mut self, place: &Place, new: NewFile) -> Result<Box<dyn Sink>> {
        let path = place.path();
        match place {
            Place::Named(path) => {
                paths::check_free(path, new.overwrite)?;
                files::file_sink(path, new)
            }
            Place::Below { root, relative } => {
                paths::check_no_url(&path)?;
                if path.is_dir() && !path.is_symlink() {
                    return Err(paths::is_a_directory(&path));
                }
                let root = self.open(root)?;
                let sink = files::file_sink_below(root, relative, new);
                sink.map_err(|error| failure(root, relative, error))
            }
        }
    }

    /// Removes a directory in which nothing was restored.
    pub fn remove_if_empty(&mut self, place: &Place) {
        match place {
            Place::Named(path) => drop(fs::remove_dir(path)),
            Place::Below { root, relative } => {
                if let Ok(root) = self.open(root) {
                    root.remove_if_empty(relative);
                }
            }
        }
    }

    fn open(&mut self, path: &Path) -> Result<&ConfinedDirectory> {
        let opened = match self.opened.take() {
            Some(opened) if opened.path() == path => opened,
            _ => ConfinedDirectory::open(path).map_err(Failure::Storage)?,
        };
        Ok(self.opened.insert(opened))
    }
}

fn failure(root: &ConfinedDirectory, relative: &Path, error: io::Error) -> Failure {
    let file = label(&root.path_of(relative));
    match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Exists { file },
        io::ErrorKind::NotADirectory => Failure::usage("", error.to_string()),
        _ => Failure::Storage(error),
    }
}
