//! The path of each member.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use refrain::{MemberKind, MemberStart};

use super::stream::StreamPlacement;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names;
use crate::paths::{ends_with_slash, is_directory, label};

/// Where members go.
#[derive(Debug)]
pub enum Placement {
    /// One after the other to standard output; directories as tar streams.
    Stdout,
    /// The only member goes to exactly this path: a file, or the root of a directory.
    Exact {
        path: PathBuf,
        /// Whether the member is a tar stream to unpack, although its archive calls it a file.
        unpacks_tar: bool,
    },
    /// The members of a stream: like `Exact` for one member, like `Below` from the second on.
    Stream(StreamPlacement),
    /// Each member goes below this directory, under its own name.
    Below(PathBuf),
}

impl Placement {
    /// `path` for the only member of the archive at `archive`, which has this kind and name.
    pub fn of_only_member(
        archive: &Path,
        output: Option<&Path>,
        kind: MemberKind,
        name: &[u8],
    ) -> Result<Placement> {
        let path = match (output, kind) {
            // A directory keeps its own name, which the archive may not have.
            (Some(output), MemberKind::Tree) if ends_with_slash(output) => {
                return Ok(Placement::Below(output.to_path_buf()));
            }
            (Some(output), MemberKind::Tree) => output.to_path_buf(),
            (Some(output), _) if !is_directory(output) => output.to_path_buf(),
            // As without -o: a single file is called like its archive.
            (Some(output), _) if names::has_archive_suffix(archive) => {
                let name = Path::new(archive.file_name().unwrap_or_default());
                let name = names::without_suffix(name)?;
                files::make_parents(output, &name)?;
                output.join(name)
            }
            (Some(output), _) => return Ok(Placement::Below(output.to_path_buf())),
            (None, MemberKind::Tree) => {
                let name = names::safe_member_path(&label(archive), name)?;
                archive.parent().unwrap_or(Path::new("")).join(name)
            }
            (None, _) => names::without_suffix(archive)?,
        };
        Ok(Placement::Exact {
            path,
            unpacks_tar: false,
        })
    }

    /// The path for a part of the only member of the archive at `archive`, a tar stream: its
    /// entries go where `tar -x` beside the archive would put them.
    pub fn of_tar_part(archive: &Path, output: Option<&Path>) -> Placement {
        let beside = archive.parent().unwrap_or(Path::new(""));
        Placement::Exact {
            path: here_if_empty(output.unwrap_or(beside)),
            unpacks_tar: true,
        }
    }

    /// The directory for a part of a tar stream that is a member.
    pub fn path_of_tar_part(&self, archive: &str, member: &MemberStart) -> Result<PathBuf> {
        match self {
            Placement::Stdout => Ok(PathBuf::from("-")),
            Placement::Exact { path, .. } => Ok(path.clone()),
            Placement::Stream(stream) => Ok(stream.path().to_path_buf()),
            Placement::Below(base) => {
                let relative = names::safe_member_path(archive, &member.name)?;
                files::make_parents(base, &relative)?;
                let path = base.join(relative);
                let is_tar = path.extension() == Some(OsStr::new("tar"));
                Ok(if is_tar {
                    path.with_extension("")
                } else {
                    path
                })
            }
        }
    }

    /// The path of a member. `restored` are the paths published so far, which may change.
    pub fn path_of(
        &mut self,
        archive: &str,
        member: &MemberStart,
        restored: &mut [PathBuf],
    ) -> Result<PathBuf> {
        match self {
            Placement::Stdout => Ok(PathBuf::from("-")),
            Placement::Exact { .. } if member.index > 0 => Err(Failure::refused(
                archive,
                "the archive has more members than its index lists",
            )),
            Placement::Exact { path, .. } => Ok(path.clone()),
            Placement::Stream(stream) => stream.path_of(archive, member, restored),
            Placement::Below(base) => {
                let relative = names::safe_member_path(archive, &member.name)?;
                files::make_parents(base, &relative)?;
                Ok(base.join(relative))
            }
        }
    }

    /// Whether the member becomes a directory.
    pub fn makes_directory(&self, kind: MemberKind) -> bool {
        let unpacks_tar = matches!(
            self,
            Placement::Exact {
                unpacks_tar: true,
                ..
            }
        );
        unpacks_tar || kind == MemberKind::Tree
    }
}

fn here_if_empty(path: &Path) -> PathBuf {
    match path.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(index: usize, name: &str) -> MemberStart {
        MemberStart {
            index,
            name: name.into(),
            kind: MemberKind::File,
            mode: None,
            modified: None,
            content_bytes: None,
        }
    }

    fn path_of(placement: &mut Placement, index: usize, name: &str) -> Result<PathBuf> {
        placement.path_of("x.rfn", &start(index, name), &mut [])
    }

    #[test]
    fn unsafe_member_names_are_refused() {
        let mut below = Placement::Below(PathBuf::new());
        for name in ["/etc/passwd", "../x", "a/../../x", ""] {
            assert!(path_of(&mut below, 0, name).is_err(), "{name:?}");
        }
        assert_eq!(path_of(&mut below, 0, "x").unwrap(), Path::new("x"));
    }

    #[test]
    fn an_exact_path_is_for_one_member_whatever_its_name() {
        let mut exact = Placement::Exact {
            path: PathBuf::from("out"),
            unpacks_tar: false,
        };
        assert_eq!(path_of(&mut exact, 0, "../evil").unwrap(), Path::new("out"));
        assert!(path_of(&mut exact, 1, "b").is_err());
    }
}
