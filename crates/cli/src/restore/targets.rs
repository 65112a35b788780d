//! Opens, writes and publishes the members of an extraction.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use refrain::directory::{RestoreOptions, TreeRestore};
use refrain::storage::Sink;
use refrain::{
    Error, ErrorKind, Member, MemberKind, MemberStart, Target, Targets, Timestamp, TreeSink,
    TreeTarget,
};

use super::placement::Placement;
use crate::args::OutputArgs;
use crate::exit::Exit;
use crate::failure::{EXISTS_TEXT, Failure, Result};
use crate::files;
use crate::paths::{self, NewFile};
use crate::text::printable;

/// The engine's [`Targets`] on files and standard output.
pub struct Restore {
    /// The archive's name in messages.
    archive: String,
    placement: Placement,
    overwrite: bool,
    synced: bool,
    /// The archive's file, which no member may replace.
    archive_file: Option<Metadata>,
    /// Mode and time for members whose archive does not store them.
    attributes: (Option<u32>, Option<Timestamp>),
    open: Option<PathBuf>,
    /// The member that was closed last. It is published when the next one begins or the archive was
    /// read to its end, so that an archive of one member that lacks its end restores nothing.
    complete: Option<(PathBuf, Target)>,
    restored: Vec<PathBuf>,
}

impl Restore {
    /// Restores the members of `archive` (its name in messages) to `placement`.
    pub fn new(archive: &str, placement: Placement, output: &OutputArgs) -> Restore {
        Restore {
            archive: archive.to_string(),
            placement,
            overwrite: output.force,
            synced: output.is_synced(),
            archive_file: None,
            attributes: (None, None),
            open: None,
            complete: None,
            restored: Vec::new(),
        }
    }

    /// Refuses to replace the file that the archive is read from.
    pub fn protect(&mut self, archive: Option<Metadata>) {
        self.archive_file = archive;
    }

    /// Gives members the mode and time of their archive. lrzip stores neither; it gives an archive
    /// those of its source.
    pub fn take_attributes_of(&mut self, archive: &Metadata) {
        self.attributes = (paths::mode(archive), paths::modified(archive));
    }

    /// Whether contents went to standard output.
    pub fn is_stdout(&self) -> bool {
        matches!(self.placement, Placement::Stdout)
    }

    /// The paths that were published.
    pub fn restored(&self) -> Vec<String> {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        self.restored.iter().map(text).collect()
    }

    /// Publishes the member that is complete. Must be called again after the whole archive was
    /// found good.
    pub fn publish_complete(&mut self) -> Result<()> {
        let Some((path, target)) = self.complete.take() else {
            return Ok(());
        };
        match target {
            Target::Nowhere => return Ok(()),
            Target::Sink(mut sink) => files::publish(sink.as_mut(), &path)?,
            Target::Tree(tree) => {
                tree.restore.finish().map_err(Failure::Storage)?;
            }
        }
        if self.synced && path.is_dir() {
            files::sync_tree(&path)?;
        }
        self.restored.push(path);
        Ok(())
    }

    fn file_sink(&self, path: &Path, member: &MemberStart) -> Result<Box<dyn Sink>> {
        paths::check_free(path, self.overwrite)?;
        if let Some(archive) = &self.archive_file {
            paths::check_other_than(archive, path)?;
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

    fn tree_target(&self, path: &Path) -> Result<Target> {
        let options = RestoreOptions {
            overwrite: self.overwrite,
            ..RestoreOptions::default()
        };
        let restore = TreeRestore::create(path, options).map_err(Failure::Storage)?;
        Ok(Target::Tree(Box::new(TreeTarget {
            restore,
            selection: None,
        })))
    }

    fn open_member(&mut self, member: &MemberStart) -> Result<Target> {
        self.publish_complete()?;
        let path = self
            .placement
            .path_of(&self.archive, member, &mut self.restored)?;
        let has_entries = matches!(member.kind, MemberKind::Tree | MemberKind::Tar);
        let target = match &self.placement {
            Placement::Stdout => files::stdout_sink().map(Target::Sink),
            placement if placement.makes_directory(member.kind) => match has_entries {
                true => self.tree_target(&path),
                false => self.tree_sink(&path).map(Target::Sink),
            },
            _ => self.file_sink(&path, member).map(Target::Sink),
        };
        self.open = Some(path);
        target
    }
}

impl Targets for Restore {
    fn open(&mut self, member: &MemberStart) -> refrain::Result<Target> {
        self.open_member(member).map_err(into_error)
    }

    fn close(&mut self, _member: &Member, target: Target) -> refrain::Result<()> {
        self.complete = self.open.take().map(|path| (path, target));
        Ok(())
    }

    fn spill(&mut self) -> refrain::Result<Box<dyn Sink>> {
        let directory = match (&self.placement, &self.open) {
            (Placement::Stdout, _) | (_, None) => std::env::temp_dir(),
            (_, Some(path)) => path.parent().unwrap_or(Path::new("")).to_path_buf(),
        };
        files::temporary_sink(&directory).map_err(into_error)
    }
}

/// Converts a failure into an error that passes through the engine.
fn into_error(failure: Failure) -> Error {
    let kind = match failure.exit() {
        Exit::Usage => ErrorKind::Usage,
        Exit::Damaged => ErrorKind::Damaged,
        _ => ErrorKind::Io,
    };
    let (file, cause): (Option<String>, Box<dyn std::error::Error + Send + Sync>) = match failure {
        Failure::Engine(error) => return error,
        Failure::Usage { file, text }
        | Failure::Refused { file, text }
        | Failure::NotAnArchive { file, text } => (Some(file), text.into()),
        Failure::Io {
            file,
            action,
            error,
        } => {
            // The kind is kept, because a broken pipe is recognised by it.
            let text = format!("cannot {action}: {error}");
            (Some(file), std::io::Error::new(error.kind(), text).into())
        }
        Failure::Storage(error) => (None, error.into()),
        Failure::Exists { file } => (Some(file), EXISTS_TEXT.into()),
    };
    let location = refrain::Location {
        file: file.as_deref().map(printable),
        ..Default::default()
    };
    Error {
        kind,
        location,
        cause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_keep_their_exit_code_on_the_way_through_the_engine() {
        let failures = || {
            [
                Failure::usage("f", "text"),
                Failure::refused("f", "text"),
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
            assert_eq!(after.location.file.as_deref(), Some("f"));
        }
    }
}
