//! Where an extraction puts the members of an archive.

use std::path::{Path, PathBuf};

use refrain::storage::Sink;
use refrain::{Error, ErrorKind, Member, MemberKind, MemberStart, Targets, TreeSink};

use crate::exit::Exit;
use crate::failure::{EXISTS_TEXT, Failure, Result};
use crate::files::{self, NewFile};
use crate::names;

/// Where members go.
pub enum Place {
    /// One after the other to standard output; trees as tar streams.
    Stdout,
    /// The only member goes exactly here: a file, or the root of a tree.
    Only(PathBuf),
    /// Like `Only`, but a file goes below this existing directory under its own name.
    OnlyBelow(PathBuf),
    /// Each member goes below this directory under its own name.
    Below(PathBuf),
}

/// The engine's [`Targets`] on files and standard output.
pub struct Restore {
    archive: String,
    place: Place,
    overwrite: bool,
    open: Option<PathBuf>,
    restored: Vec<String>,
}

impl Restore {
    /// Restores the members of `archive` (a name for messages) to `place`.
    pub fn new(archive: &str, place: Place, overwrite: bool) -> Restore {
        let archive = archive.to_string();
        Restore {
            archive,
            place,
            overwrite,
            open: None,
            restored: Vec::new(),
        }
    }

    /// Whether contents went to standard output.
    pub fn is_stdout(&self) -> bool {
        matches!(self.place, Place::Stdout)
    }

    /// The paths that were published.
    pub fn restored(&self) -> &[String] {
        &self.restored
    }

    fn path_of(&self, member: &MemberStart) -> Result<PathBuf> {
        let is_tree = member.kind == MemberKind::Tree;
        match &self.place {
            Place::Only(_) | Place::OnlyBelow(_) if member.index > 0 => Err(Failure::usage(
                self.archive.as_str(),
                "has several members, which from a pipe only fit on standard output: \
                 restore them from a file",
            )),
            Place::Only(path) => Ok(path.clone()),
            Place::OnlyBelow(path) if is_tree => Ok(path.clone()),
            Place::OnlyBelow(base) | Place::Below(base) => {
                let relative = names::safe_member_path(&self.archive, &member.name)?;
                files::make_parents(base, &relative)?;
                Ok(base.join(relative))
            }
            Place::Stdout => Ok(PathBuf::from("-")),
        }
    }

    fn file_sink(&self, path: &Path, member: &MemberStart) -> Result<Box<dyn Sink>> {
        files::check_free(path, self.overwrite)?;
        let new = NewFile {
            overwrite: self.overwrite,
            mode: member.mode,
            modified: member.modified,
        };
        files::file_sink(path, new)
    }

    fn tree_sink(&self, path: &Path) -> Result<Box<dyn Sink>> {
        let sink = TreeSink::create(path, self.overwrite).map_err(Failure::Storage)?;
        Ok(Box::new(sink))
    }

    fn open_member(&mut self, member: &MemberStart) -> Result<Box<dyn Sink>> {
        let path = self.path_of(member)?;
        let sink = match (&self.place, member.kind) {
            // Whether a terminal may have it was settled when the place was chosen.
            (Place::Stdout, _) => files::stdout_sink(true),
            (_, MemberKind::Tree) => self.tree_sink(&path),
            _ => self.file_sink(&path, member),
        };
        self.open = Some(path);
        sink
    }
}

impl Targets for Restore {
    fn open(&mut self, member: &MemberStart) -> refrain::Result<Option<Box<dyn Sink>>> {
        self.open_member(member).map(Some).map_err(into_error)
    }

    fn close(&mut self, _member: &Member, sink: Option<Box<dyn Sink>>) -> refrain::Result<()> {
        let (Some(path), Some(mut sink)) = (self.open.take(), sink) else {
            return Ok(());
        };
        files::publish(sink.as_mut(), &path).map_err(into_error)?;
        self.restored.push(path.to_string_lossy().into_owned());
        Ok(())
    }
}

/// A failure of ours as the engine hands failures through.
fn into_error(failure: Failure) -> Error {
    let kind = match failure.exit() {
        Exit::Usage => ErrorKind::Usage,
        _ => ErrorKind::Io,
    };
    let (file, cause): (Option<String>, Box<dyn std::error::Error + Send + Sync>) = match failure {
        Failure::Engine(error) => return error,
        Failure::Usage { file, text } => (Some(file), text.into()),
        Failure::Io { file, error, .. } => (Some(file), error.into()),
        Failure::Storage(error) => (None, error.into()),
        Failure::Exists { file } => (Some(file), EXISTS_TEXT.into()),
    };
    let place = refrain::Place {
        file: file.as_deref().map(names::shown),
        ..Default::default()
    };
    Error { kind, place, cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(index: usize, name: &str, kind: MemberKind) -> MemberStart {
        let (mode, modified, content_bytes) = (None, None, None);
        MemberStart {
            index,
            name: name.into(),
            kind,
            mode,
            modified,
            content_bytes,
        }
    }

    #[test]
    fn hostile_member_names_stay_out() {
        let restore = Restore::new("x.rfn", Place::Below(PathBuf::new()), true);
        for name in ["/etc/passwd", "../x", "a/../../x", ""] {
            assert!(
                restore.path_of(&start(0, name, MemberKind::File)).is_err(),
                "{name:?}"
            );
        }
        assert_eq!(
            restore.path_of(&start(0, "x", MemberKind::File)).unwrap(),
            Path::new("x")
        );
    }

    #[test]
    fn an_only_place_holds_one_member() {
        let restore = Restore::new("x.rfn", Place::Only(PathBuf::from("out")), true);
        assert_eq!(
            restore
                .path_of(&start(0, "../evil", MemberKind::File))
                .unwrap(),
            Path::new("out"),
            "the name in the archive does not matter when the user gave one",
        );
        assert!(restore.path_of(&start(1, "b", MemberKind::File)).is_err());
    }

    #[test]
    fn failures_keep_their_exit_code_on_the_way_through_the_engine() {
        let failures = || {
            [
                Failure::usage("f", "text"),
                Failure::Exists { file: "f".into() },
                Failure::Io {
                    file: "f".into(),
                    action: "write",
                    error: std::io::Error::from(std::io::ErrorKind::StorageFull),
                },
            ]
        };
        for (before, after) in failures().into_iter().zip(failures().map(into_error)) {
            assert_eq!(before.exit(), Exit::from(after.kind));
            assert_eq!(after.place.file.as_deref(), Some("f"));
        }
    }
}
