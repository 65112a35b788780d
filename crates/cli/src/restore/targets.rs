//! Opens, writes and publishes the members of an extraction.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use refrain::directory::{OwnerPolicy, RestoreOptions, TreeRestore};
use refrain::storage::Sink;
use refrain::{
    DamagedFile, Error, ErrorKind, Member, MemberKind, MemberStart, TarSink, Target, Targets,
    Timestamp, TreeTarget,
};

use refrain_storage::{Checking, ReadBack, temporary_content};

use super::not_restored::NotRestored;
use super::place::{Place, Root};
use super::placement::Placement;
use crate::args::{OutputArgs, OwnerArgs};
use crate::exit::Exit;
use crate::failure::{EXISTS_TEXT, Failure, Result};
use crate::files;
use crate::paths::{self, NewFile};
use crate::report::FileNamer;
use crate::selection::{ArchiveSelection, Wanted};
use crate::text::printable;

/// Where a member is restored.
struct OpenTarget {
    place: Place,
    /// A part of a directory is restored to a new one, which is not left behind empty.
    is_new_part: bool,
    is_file: bool,
    number: usize,
}

/// The engine's [`Targets`] on files and standard output.
pub struct Restore {
    /// The archive's name in messages.
    archive: String,
    placement: Placement,
    /// The directory of the placement, once it is needed.
    root: Root,
    memory_bytes: Option<u64>,
    overwrite: bool,
    synced: bool,
    checking: Checking,
    /// What was read back so far.
    read_back: Option<ReadBack>,
    /// The archive's file, which no member may replace.
    archive_file: Option<Metadata>,
    /// Mode and time for members whose archive does not store them.
    attributes: (Option<u32>, Option<Timestamp>),
    owners: OwnerArgs,
    /// What to restore, and the number of members if known.
    selection: Option<(ArchiveSelection, Option<usize>)>,
    losses: NotRestored,
    /// Whether files with missing parts are published.
    keeps_broken: bool,
    /// The number of members, if known before the end.
    members: Option<usize>,
    /// The number of files and entries restored.
    restored_count: u64,
    open: Option<OpenTarget>,
    /// The member closed last. It is published when the next one begins or the archive was read to
    /// its end, so that an archive of one member without its end restores nothing.
    complete: Option<(OpenTarget, Target)>,
    restored: Vec<PathBuf>,
    /// Names files as they are restored.
    name_file: Option<Arc<FileNamer>>,
    /// Whether everything published is in regular files.
    is_stored: bool,
}

impl Restore {
    /// Restores the members of `archive` (its name in messages) to `placement`.
    pub fn new(archive: &str, placement: Placement, output: &OutputArgs) -> Restore {
        Restore {
            archive: archive.to_string(),
            placement,
            root: Root::default(),
            memory_bytes: None,
            overwrite: output.force,
            synced: output.is_synced(),
            checking: paths::checking(output.check),
            read_back: None,
            archive_file: None,
            attributes: (None, None),
            owners: OwnerArgs::default(),
            selection: None,
            losses: NotRestored::default(),
            keeps_broken: false,
            members: None,
            restored_count: 0,
            open: None,
            complete: None,
            restored: Vec::new(),
            name_file: None,
            is_stored: true,
        }
    }

    /// Sets what names files as they are restored.
    pub fn name_files(&mut self, name_file: Option<FileNamer>) {
        self.name_file = name_file.map(Arc::new);
    }

    /// Sets the run's memory.
    pub fn set_memory(&mut self, memory_bytes: u64) {
        self.memory_bytes = Some(memory_bytes);
    }

    /// Refuses to replace the file that the archive is read from.
    pub fn protect(&mut self, archive: Option<Metadata>) {
        self.archive_file = archive;
    }

    /// Gives members the mode and time of their archive. lrzip stores neither; it gives an archive
    /// its source's.
    pub fn take_attributes_of(&mut self, archive: &Metadata) {
        self.attributes = (paths::mode(archive), paths::modified(archive));
    }

    /// Sets how owners are restored.
    pub fn set_owners(&mut self, owners: &OwnerArgs) {
        self.owners = owners.clone();
    }

    /// Restores only a part of the archive, which has `member_count` members (unknown for a
    /// stream).
    pub fn select(&mut self, selection: &ArchiveSelection, member_count: Option<usize>) {
        if !selection.is_everything() {
            self.selection = Some((selection.clone(), member_count));
        }
    }

    /// Also publishes files with missing parts, or, for the single one of `members`, only the part
    /// before the damage.
    pub fn keep_broken(&mut self, keeps_broken: bool, members: Option<usize>) {
        self.keeps_broken = keeps_broken;
        self.members = members;
    }

    /// The number of files and entries restored so far.
    pub fn restored_count(&self) -> u64 {
        self.restored_count
    }

    /// Counts entries written by others.
    pub fn count(&mut self, entries: u64) {
        self.restored_count += entries;
    }

    /// What was not restored so far.
    pub fn take_losses(&mut self) -> NotRestored {
        std::mem::take(&mut self.losses)
    }

    /// Whether everything published is in regular files.
    pub fn is_stored(&self) -> bool {
        self.is_stored
    }

    /// Also publishes files that differ from what was written, when they are read back.
    #[cfg(feature = "lrzip")]
    pub fn keep_different(&mut self) {
        if self.checking == Checking::ReadBack {
            self.checking = Checking::ReadBackAndKeep;
        }
    }

    /// What was read back from the disk so far, if that was requested.
    pub fn read_back(&self) -> Option<ReadBack> {
        self.read_back
    }

    fn add_read_back(&mut self, found: Option<ReadBack>) {
        if let Some(found) = found {
            self.read_back.get_or_insert_default().add(found);
        }
    }

    /// Where the members went, for people; `None` for standard output and for nothing.
    pub fn place_text(&self) -> Option<String> {
        let path = match self.restored.as_slice() {
            [] => return None,
            [only] => only,
            _ => self.placement.directory()?,
        };
        let is_here = path.as_os_str().is_empty();
        let text = if is_here { ".".into() } else { path.to_string_lossy() };
        let slash = if is_here || (path.is_dir() && !text.ends_with('/')) { "/" } else { "" };
        Some(format!("{text}{slash}"))
    }

    /// The published paths.
    pub fn restored(&self) -> Vec<String> {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        self.restored.iter().map(text).collect()
    }

    /// Publishes the complete member. Must be called again after the whole archive was verified.
    pub fn publish_complete(&mut self) -> Result<()> {
        let Some((open, target)) = self.complete.take() else {
            return Ok(());
        };
        let OpenTarget {
            place,
            is_new_part,
            is_file,
            ..
        } = open;
        let path = place.path();
        match target {
            Target::Nowhere | Target::Skipped => return Ok(()),
            Target::Sink(mut sink) => {
                files::publish(sink.as_mut(), &path)?;
                self.is_stored &= sink.is_stored();
                self.add_read_back(sink.read_back_result());
                self.restored_count += 1;
                self.losses.add_file();
                let name_file = self.name_file.as_ref().filter(|_| is_file);
                if let Some(name_file) = name_file {
                    name_file(path.as_os_str().as_bytes());
                }
            }
            Target::Tree(tree) => {
                let summary = tree.restore.finish().map_err(Failure::Storage)?;
                self.add_read_back(summary.read_back);
                let entries = summary.entries;
                self.restored_count += entries;
                self.losses.add(&path, summary);
                if entries == 0 && is_new_part {
                    // It is empty: nothing in the archive was requested.
                    self.root.remove_if_empty(&place);
                    return Ok(());
                }
            }
        }
        if self.synced && path.is_dir() {
            files::sync_tree(&path)?;
        }
        self.restored.push(path);
        Ok(())
    }

    fn file_sink(&mut self, place: &Place, member: &MemberStart) -> Result<Box<dyn Sink>> {
        if let Some(archive) = self.archive_file.as_ref().filter(|_| self.overwrite) {
            paths::check_other_than(archive, &place.path())?;
        }
        let new = NewFile {
            overwrite: self.overwrite,
            mode: member.mode.or(self.attributes.0),
            modified: member.modified.or(self.attributes.1),
            synced: self.synced,
            checking: self.checking,
            ..NewFile::default()
        };
        self.root.file(place, new)
    }

    fn restore_options(&self) -> RestoreOptions {
        let owners = match (self.owners.same_owner, self.owners.no_same_owner) {
            (_, true) => OwnerPolicy::Current,
            (true, false) => OwnerPolicy::Same,
            (false, false) => OwnerPolicy::AsPermitted,
        };
        let usual = RestoreOptions::default();
        RestoreOptions {
            overwrite: self.overwrite,
            owners,
            numeric_owner: self.owners.numeric_owner,
            reads_back: self.checking != Checking::Off,
            memory_bytes: self.memory_bytes.unwrap_or(usual.memory_bytes),
            ..usual
        }
    }

    /// Names the files below a place as they are restored.
    fn observe(&self, restore: &TreeRestore, place: &Place) {
        if let Some(name_file) = self.name_file.clone() {
            let path = place.path();
            restore.observe(Box::new(move |file| {
                let file = path.join(OsStr::from_bytes(file));
                name_file(file.as_os_str().as_bytes());
            }));
        }
    }

    /// What to restore of a member.
    fn wanted(&self, member: &MemberStart) -> Result<Wanted> {
        let Some((selection, member_count)) = &self.selection else {
            return Ok(Wanted::Everything);
        };
        match member.kind {
            MemberKind::Tree | MemberKind::Tar => selection.for_tree(&member.name, *member_count),
            MemberKind::File | MemberKind::Stream => selection.for_file(&member.name),
        }
    }

    /// Refuses a place to which another member of this archive was restored: joined archives may
    /// have members of one name, and not even `--force` means that one of them is lost.
    fn check_is_untaken(&self, place: &Place) -> Result<()> {
        let path = place.path();
        let mut taken = self.restored.iter();
        if !taken.any(|taken| taken.as_os_str() == path.as_os_str()) {
            return Ok(());
        }
        let text = "two members have this name: `rfn -dc` writes the contents of all members, one \
                    after the other";
        Err(Failure::usage(path.to_string_lossy(), text))
    }

    fn open_member(&mut self, member: &MemberStart) -> Result<Target> {
        self.publish_complete()?;
        let selection = match self.wanted(member)? {
            Wanted::Nothing => return Ok(Target::Skipped),
            Wanted::Part(selection) => Some(*selection),
            Wanted::Everything => None,
        };
        let is_part = selection.is_some();
        let place = match member.kind {
            MemberKind::Tar if is_part => {
                self.placement.place_of_tar_part(&self.archive, member)?
            }
            _ => (self.placement).place_of(&self.archive, member, &mut self.restored)?,
        };
        let is_new = fs::symlink_metadata(place.path()).is_err();
        if !is_new && !is_part {
            self.check_is_untaken(&place)?;
        }
        let is_new_part = is_part && is_new;
        let has_entries = matches!(member.kind, MemberKind::Tree | MemberKind::Tar);
        let makes_directory = is_part || self.placement.makes_directory(member.kind);
        let is_file = !makes_directory && !matches!(self.placement, Placement::Stdout);
        let target = match &self.placement {
            Placement::Stdout => files::content_sink(self.overwrite).map(Target::Sink),
            _ if makes_directory => {
                let restore = self.root.tree(&place, self.restore_options())?;
                self.observe(&restore, &place);
                Ok(if has_entries {
                    Target::Tree(Box::new(TreeTarget { restore, selection }))
                } else {
                    Target::Sink(Box::new(TarSink::new(restore)))
                })
            }
            _ => self.file_sink(&place, member).map(Target::Sink),
        };
        self.open = Some(OpenTarget {
            place,
            is_new_part,
            is_file,
            number: member.index,
        });
        target
    }
}

impl Targets for Restore {
    fn open(&mut self, member: &MemberStart) -> refrain::Result<Target> {
        self.open_member(member).map_err(into_error)
    }

    fn close(&mut self, _member: &Member, target: Target) -> refrain::Result<()> {
        self.complete = self.open.take().map(|open| (open, target));
        Ok(())
    }

    fn is_part(&self) -> bool {
        self.selection.is_some()
    }

    /// Publishes what precedes the damage of the only member, unless that replaces a file; with
    /// `--keep-broken` everything that was delivered.
    fn close_broken(
        &mut self,
        _member: &Member,
        target: Target,
        file: &mut DamagedFile,
    ) -> refrain::Result<()> {
        let (Some(open), Target::Sink(mut sink)) = (self.open.take(), target) else {
            return Ok(());
        };
        let path = open.place.path();
        if matches!(self.placement, Placement::Stdout) {
            let published = files::publish(sink.as_mut(), &path);
            return published.map_err(into_error);
        }
        let is_only = self
            .members
            .map_or(open.number == 0, |members| members == 1);
        let is_free = fs::symlink_metadata(&path).is_err();
        let is_wanted = if self.keeps_broken {
            open.is_file && !file.missing.is_empty()
        } else {
            open.is_file && is_only && is_free && file.delivered_bytes > 0
        };
        file.is_kept = is_wanted && self.keeps_broken;
        if !is_wanted || file.missing.is_empty() {
            file.delivered_bytes = 0;
            return Ok(());
        }
        files::publish(sink.as_mut(), &path).map_err(into_error)?;
        self.is_stored &= sink.is_stored();
        self.add_read_back(sink.read_back_result());
        self.restored.push(path);
        Ok(())
    }

    /// On a stream, what follows could not be told from what is missing.
    fn ends_at_damage(&self) -> bool {
        matches!(self.placement, Placement::Stdout) && !self.keeps_broken
    }

    fn spill(&mut self) -> refrain::Result<Box<dyn Sink>> {
        let directory = match (&self.placement, &self.open) {
            (Placement::Stdout, _) | (_, None) => std::env::temp_dir(),
            (_, Some(open)) => open.place.temporary_directory(),
        };
        Ok(temporary_content(&directory)?)
    }
}

/// Converts a failure into an error that the engine passes through.
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
            // Keeps the kind, by which a broken pipe is recognized.
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
