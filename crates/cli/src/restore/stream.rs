//! The paths of a stream's members, whose number is unknown until its end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use refrain::{MemberKind, MemberStart};

use super::place::Place;
use crate::failure::{Failure, Result};
use crate::names;
use crate::paths::{ends_with_slash, io_failure, is_directory};

/// `-o PATH` for an archive from a pipe.
///
/// The result is the same as from a file: a single member becomes PATH itself (a file goes below
/// PATH if that is a directory), several go below it under their names. When a second member
/// begins, the first one, which is complete, is moved.
#[derive(Debug)]
pub struct StreamPlacement {
    path: PathBuf,
    /// Whether PATH was a directory with entries. A member's entries could not be told from them,
    /// so the member cannot be moved.
    was_full: bool,
    /// Whether PATH is, or is to become, a directory.
    is_directory: bool,
    /// The name of the first member while it is at PATH itself.
    first_at_path: Option<Vec<u8>>,
}

impl StreamPlacement {
    /// The placement for `-o path`.
    pub fn at(path: &Path) -> Result<StreamPlacement> {
        let mut was_full = false;
        if path.is_dir() {
            let mut entries = fs::read_dir(path).map_err(io_failure(path, "list"))?;
            was_full = entries.next().is_some();
        }
        Ok(StreamPlacement {
            path: path.to_path_buf(),
            was_full,
            is_directory: is_directory(path),
            first_at_path: None,
        })
    }

    /// PATH itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The place of the next member. May move the first one, whose path is in `restored`.
    pub fn place_of(
        &mut self,
        archive: &str,
        member: &MemberStart,
        restored: &mut [PathBuf],
    ) -> Result<Place> {
        let is_first = member.index == 0;
        let is_below = match member.kind {
            MemberKind::Tree => ends_with_slash(&self.path),
            _ => self.is_directory,
        };
        if is_first && !is_below {
            self.first_at_path = Some(member.name.clone());
            return Ok(Place::Named(self.path.clone()));
        }
        if let Some(name) = self.first_at_path.take() {
            let moved = self.move_first(archive, &name)?;
            if let Some(first) = restored.first_mut() {
                *first = moved;
            }
        }
        Ok(Place::Below {
            root: self.path.clone(),
            relative: names::safe_member_path(archive, &member.name)?,
        })
    }

    /// Moves the first member from PATH to PATH/`name`, by way of a new directory beside PATH,
    /// which is then renamed to PATH. Only a kill between the two renames leaves the member there.
    fn move_first(&self, archive: &str, name: &[u8]) -> Result<PathBuf> {
        if self.was_full {
            let text = "has several members, and the output directory was not empty: \
                        restore it into a new directory, or from a file";
            return Err(Failure::usage(archive, text));
        }
        let relative = names::safe_member_path(archive, name)?;
        // Renaming a symbolic link would not move its target.
        let path = fs::canonicalize(&self.path).map_err(io_failure(&self.path, "open"))?;
        let beside = path.parent().unwrap_or(Path::new("/"));
        let grown = tempfile::Builder::new()
            .prefix(".refrain-")
            .suffix(".partial")
            .permissions(fs::Permissions::from_mode(0o777)) // minus the umask
            .tempdir_in(beside)
            .map_err(io_failure(beside, "create a directory in"))?;
        let inside = grown.path().join(&relative);
        let parent = inside.parent().unwrap_or(grown.path());
        fs::create_dir_all(parent).map_err(io_failure(parent, "create directory"))?;
        fs::rename(&path, &inside).map_err(io_failure(&path, "move"))?;
        if let Err(error) = fs::rename(grown.path(), &path) {
            let _ = fs::rename(&inside, &path);
            return Err(io_failure(&path, "move")(error));
        }
        // It was renamed, so there is nothing to remove.
        let _ = grown.keep();
        Ok(self.path.join(relative))
    }
}
