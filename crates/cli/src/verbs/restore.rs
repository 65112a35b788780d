//! Where an extraction puts the members of an archive.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use refrain::storage::Sink;
use refrain::{Error, ErrorKind, Member, MemberKind, MemberStart, Targets, Timestamp, TreeSink};

use super::growing::Growing;
use crate::args::OutputArgs;
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
    /// Like `Only` as long as one member has come, like `Below` from the second on.
    Growing(Growing),
    /// Each member goes below this directory under its own name.
    Below(PathBuf),
    /// The only member is a tar stream, whatever its archive calls it; its entries go below this directory.
    #[cfg(feature = "lrzip")]
    Unpacked(PathBuf),
}

/// The engine's [`Targets`] on files and standard output.
pub struct Restore {
    archive: String,
    place: Place,
    overwrite: bool,
    synced: bool,
    /// The archive's file, which no member may replace.
    archive_file: Option<Metadata>,
    /// Mode and time of members whose archive does not keep them.
    attributes: (Option<u32>, Option<Timestamp>),
    open: Option<PathBuf>,
    /// The member that was closed last. It is published when the next one begins or the archive is
    /// read to its end, so that an archive without an end gives nothing rather than all but nothing.
    complete: Option<(PathBuf, Box<dyn Sink>)>,
    restored: Vec<PathBuf>,
}

impl Restore {
    /// Restores the members of `archive` (a name for messages) to `place`.
    pub fn new(archive: &str, place: Place, output: &OutputArgs) -> Restore {
        let archive = archive.to_string();
        Restore {
            archive,
            place,
            overwrite: output.force,
            synced: output.is_synced(),
            archive_file: None,
            attributes: (None, None),
            open: None,
            complete: None,
            restored: Vec::new(),
        }
    }

    /// Keeps members from replacing the file that the archive is read from.
    pub fn protect(&mut self, archive: Option<Metadata>) {
        self.archive_file = archive;
    }

    /// Gives members mode and time of their archive: lrzip keeps neither, and gives its archives those of their sources.
    pub fn take_attributes_of(&mut self, archive: &Metadata) {
        self.attributes = (files::mode(archive), files::modified(archive));
    }

    /// Whether contents went to standard output.
    pub fn is_stdout(&self) -> bool {
        matches!(self.place, Place::Stdout)
    }

    /// The paths that were published.
    pub fn restored(&self) -> Vec<String> {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        self.restored.iter().map(text).collect()
    }

    /// Publishes what is complete. To be called once more when the whole archive was good.
    pub fn publish_complete(&mut self) -> Result<()> {
        let Some((path, mut sink)) = self.complete.take() else {
            return Ok(());
        };
        files::publish(sink.as_mut(), &path)?;
        if self.synced && path.is_dir() {
            files::sync_tree(&path)?;
        }
        self.restored.push(path);
        Ok(())
    }

    fn path_of(&mut self, member: &MemberStart) -> Result<PathBuf> {
        match &mut self.place {
            Place::Only(_) if member.index > 0 => Err(Failure::usage(
                self.archive.as_str(),
                "has more members than its index names",
            )),
            Place::Only(path) => Ok(path.clone()),
            Place::Growing(growing) => growing.path_of(&self.archive, member, &mut self.restored),
            Place::Below(base) => {
                let relative = names::safe_member_path(&self.archive, &member.name)?;
                files::make_parents(base, &relative)?;
                Ok(base.join(relative))
            }
            Place::Stdout => Ok(PathBuf::from("-")),
            #[cfg(feature = "lrzip")]
            Place::Unpacked(path) => Ok(path.clone()),
        }
    }

    fn file_sink(&self, path: &Path, member: &MemberStart) -> Result<Box<dyn Sink>> {
        files::check_free(path, self.overwrite)?;
        if let Some(archive) = &self.archive_file {
            files::check_other_than(archive, path)?;
        }
        let new = NewFile {
            overwrite: self.overwrite,
            mode: member.mode.or(self.attributes.0),
            modified: member.modified.or(self.attributes.1),
            synced: self.synced,
        };
        files::file_sink(path, new)
    }

    fn tree_sink(&self, path: &Path) -> Result<Box<dyn Sink>> {
        let sink = TreeSink::create(path, self.overwrite).map_err(Failure::Storage)?;
        Ok(Box::new(sink))
    }

    fn open_member(&mut self, member: &MemberStart) -> Result<Box<dyn Sink>> {
        self.publish_complete()?;
        let path = self.path_of(member)?;
        let sink = match (&self.place, member.kind) {
            // Whether a terminal may have it was settled when the place was chosen.
            (Place::Stdout, _) => files::stdout_sink(true),
            #[cfg(feature = "lrzip")]
            (Place::Unpacked(_), _) => self.tree_sink(&path),
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
        self.complete = self.open.take().zip(sink);
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

    fn restore(place: Place) -> Restore {
        Restore::new("x.rfn", place, &OutputArgs::default())
    }

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
        let mut restore = restore(Place::Below(PathBuf::new()));
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
        let mut restore = restore(Place::Only(PathBuf::from("out")));
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
