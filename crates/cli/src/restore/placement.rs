//! The place of each member.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use refrain::{MemberKind, MemberStart};

use super::place::Place;
use super::stream::StreamPlacement;
use crate::failure::{Failure, Result};
use crate::names;
use crate::paths::{ends_with_slash, is_directory, label};

/// Where members go.
#[derive(Debug)]
pub enum Placement {
    /// All to standard output, one after the other; directories as tar streams.
    Stdout,
    /// The only member goes exactly here: a file, or the root of a directory.
    Exact {
        place: Place,
        /// Whether to unpack the member as a tar stream, although its archive calls it a file.
        unpacks_tar: bool,
    },
    /// The members of a stream: like `Exact` for one member, like `Below` for more.
    Stream(StreamPlacement),
    /// Each member goes below this directory, under its own name.
    Below(PathBuf),
}

impl Placement {
    /// For the only member, with this kind and name, of the archive at `archive`: a file goes
    /// beside its archive, as with gzip; a directory below the current directory, as with tar.
    pub fn for_only_member(
        archive: &Path,
        output: Option<&Path>,
        kind: MemberKind,
        name: &[u8],
    ) -> Result<Placement> {
        let below = |root: &Path, relative: PathBuf| Place::Below {
            root: root.to_path_buf(),
            relative,
        };
        let place = match (output, kind) {
            (Some(output), MemberKind::Tree) if !ends_with_slash(output) => {
                Place::Named(output.to_path_buf())
            }
            // A directory keeps its own name, which the archive may not have.
            (_, MemberKind::Tree) => {
                let name = names::safe_member_path(&label(archive), name)?;
                below(output.unwrap_or(Path::new("")), name)
            }
            (Some(output), _) if !is_directory(output) => Place::Named(output.to_path_buf()),
            // As without -o: a single file gets its archive's name.
            (Some(output), _) if names::has_archive_suffix(archive) => {
                let name = Path::new(archive.file_name().unwrap_or_default());
                below(output, names::without_suffix(name)?)
            }
            (Some(output), _) => return Ok(Placement::Below(output.to_path_buf())),
            (None, _) => {
                let path = names::without_suffix(archive)?;
                let name = path.file_name().unwrap_or_default();
                below(path.parent().unwrap_or(Path::new("")), name.into())
            }
        };
        Ok(Placement::Exact {
            place,
            unpacks_tar: false,
        })
    }

    /// Exactly the path given by the user.
    pub fn named(path: &Path, unpacks_tar: bool) -> Placement {
        Placement::Exact {
            place: Place::Named(path.to_path_buf()),
            unpacks_tar,
        }
    }

    /// The place for a part of an archive's only member, a tar stream: its entries go where `tar
    /// -x` would put them.
    pub fn for_tar_part(output: Option<&Path>) -> Placement {
        Placement::named(output.unwrap_or(Path::new(".")), true)
    }

    /// The directory for a part of a tar stream that is a member.
    pub fn place_of_tar_part(&self, archive: &str, member: &MemberStart) -> Result<Place> {
        Ok(match self {
            Placement::Stdout => Place::Named(PathBuf::from("-")),
            Placement::Exact { place, .. } => place.clone(),
            Placement::Stream(stream) => Place::Named(stream.path().to_path_buf()),
            Placement::Below(root) => {
                let path = names::safe_member_path(archive, &member.name)?;
                let is_tar = path.extension() == Some(OsStr::new("tar"));
                Place::Below {
                    root: root.clone(),
                    relative: if is_tar { path.with_extension("") } else { path },
                }
            }
        })
    }

    /// The directory of all members, if it has a name.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Placement::Stdout => None,
            Placement::Exact { .. } => Some(Path::new("")),
            Placement::Stream(stream) => Some(stream.path()),
            Placement::Below(root) => Some(root),
        }
    }

    /// The place of a member. `restored` has the paths published so far, which may change.
    pub fn place_of(
        &mut self,
        archive: &str,
        member: &MemberStart,
        restored: &mut [PathBuf],
    ) -> Result<Place> {
        match self {
            Placement::Stdout => Ok(Place::Named(PathBuf::from("-"))),
            Placement::Exact { .. } if member.index > 0 => Err(Failure::refused(
                archive,
                "the archive has more members than its index lists",
            )),
            Placement::Exact { place, .. } => Ok(place.clone()),
            Placement::Stream(stream) => stream.place_of(archive, member, restored),
            Placement::Below(root) => Ok(Place::Below {
                root: root.clone(),
                relative: names::safe_member_path(archive, &member.name)?,
            }),
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
        let place = placement.place_of("x.rfn", &start(index, name), &mut []);
        place.map(|place| place.path())
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
        let mut exact = Placement::named(Path::new("out"), false);
        assert_eq!(path_of(&mut exact, 0, "../evil").unwrap(), Path::new("out"));
        assert!(path_of(&mut exact, 1, "b").is_err());
    }

    #[test]
    fn directories_go_below_the_current_directory_and_files_beside_their_archive() {
        let place = |output: Option<&str>, kind, name: &[u8]| {
            let (archive, output) = (Path::new("a/x.rfn"), output.map(Path::new));
            let placement = Placement::for_only_member(archive, output, kind, name).unwrap();
            match placement {
                Placement::Exact { place, .. } => place,
                other => panic!("{other:?}"),
            }
        };
        let below = |root: &str, relative: &str| Place::Below {
            root: root.into(),
            relative: relative.into(),
        };
        let (tree, file) = (MemberKind::Tree, MemberKind::File);
        assert_eq!(place(None, tree, b"d"), below("", "d"));
        assert_eq!(place(None, file, b"d"), below("a", "x"));
        assert_eq!(place(Some("o/"), tree, b"d"), below("o/", "d"));
        assert_eq!(place(Some("o/"), file, b"d"), below("o/", "x"));
        assert_eq!(place(Some("o"), tree, b"d"), Place::Named("o".into()));
        assert_eq!(place(Some("o"), file, b"d"), Place::Named("o".into()));
    }
}
