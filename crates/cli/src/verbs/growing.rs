//! A place for members of which nobody knows how many will come: those of a pipe.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use refrain::{MemberKind, MemberStart};

use crate::failure::{Failure, Result};
use crate::files;
use crate::names;

/// The path of `-o PATH` when the archive comes through a pipe.
///
/// What is restored is the same as from a file: an only member becomes PATH itself (a file goes
/// below PATH if that is a directory), several go below it under their names. That there are
/// several shows when the second one comes; then the first one, which is complete, is moved.
pub struct Growing {
    path: PathBuf,
    /// PATH was a directory with something in it: a tree that was added to it cannot be told apart
    /// from what was there, so it cannot be moved either.
    was_full: bool,
    /// PATH is, or is to be, a directory.
    is_directory: bool,
    /// The name of the first member, once it lies at PATH itself.
    alone: Option<String>,
}

impl Growing {
    /// A place at `path`.
    pub fn at(path: &Path) -> Result<Growing> {
        let mut was_full = false;
        if path.is_dir() {
            let mut entries = fs::read_dir(path).map_err(files::io_failure(path, "list"))?;
            was_full = entries.next().is_some();
        }
        Ok(Growing {
            path: path.to_path_buf(),
            was_full,
            is_directory: files::is_directory(path),
            alone: None,
        })
    }

    /// Where the next member goes. May move the first one, whose path is in `restored`.
    pub fn path_of(
        &mut self,
        archive: &str,
        member: &MemberStart,
        restored: &mut [PathBuf],
    ) -> Result<PathBuf> {
        let is_first = member.index == 0;
        if is_first && (member.kind == MemberKind::Tree || !self.is_directory) {
            self.alone = Some(member.name.clone());
            return Ok(self.path.clone());
        }
        if let Some(name) = self.alone.take() {
            let moved = self.move_first(archive, &name)?;
            if let Some(first) = restored.first_mut() {
                *first = moved;
            }
        }
        let relative = names::safe_member_path(archive, &member.name)?;
        files::make_parents(&self.path, &relative)?;
        Ok(self.path.join(relative))
    }

    /// Moves what lies at PATH to PATH/`name`: into a new directory beside it, which then takes its
    /// place. The first member is where it was or where it belongs; only a kill between the two
    /// renames leaves it in the directory beside.
    fn move_first(&self, archive: &str, name: &str) -> Result<PathBuf> {
        if self.was_full {
            let text = "has several members, and there were files in the output directory before: \
                        restore it into a new directory, or from a file";
            return Err(Failure::usage(archive, text));
        }
        let relative = names::safe_member_path(archive, name)?;
        // Renaming a symbolic link would leave what it points at where it is.
        let path = fs::canonicalize(&self.path).map_err(files::io_failure(&self.path, "open"))?;
        let beside = path.parent().unwrap_or(Path::new("/"));
        let grown = tempfile::Builder::new()
            .prefix(".refrain-")
            .suffix(".partial")
            .permissions(fs::Permissions::from_mode(0o777)) // less what the mask takes
            .tempdir_in(beside)
            .map_err(files::io_failure(beside, "create a directory in"))?;
        files::make_parents(grown.path(), &relative)?;
        let inside = grown.path().join(&relative);
        fs::rename(&path, &inside).map_err(files::io_failure(&path, "move"))?;
        if let Err(error) = fs::rename(grown.path(), &path) {
            let _ = fs::rename(&inside, &path);
            return Err(files::io_failure(&path, "move")(error));
        }
        // It has another name now, so there is nothing to remove.
        let _ = grown.keep();
        Ok(self.path.join(relative))
    }
}
