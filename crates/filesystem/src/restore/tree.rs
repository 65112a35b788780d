//! A tree restored below a target directory.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_pool::Lock;
use refrain_storage::ConfinedDirectory;
use rustix::fs::{AtFlags, Mode};

use super::created::PathRecord;
use super::directories::{Directories, MissingParents};
use super::file::RestoredFile;
use super::metadata::{Metadata, mode_of, new_directory_mode};
use super::options::RestoreOptions;
use super::path::{ConfinedPath, split_last};
use super::shared::{RestoredObserver, Shared};
use super::special::{self, Linked};
use super::summary::{HardLink, Problem, RestoreSummary};
use super::target::Target;
use super::unconfirmed::UnconfirmedFiles;
use super::waiting_links::WaitingLinks;
use refrain_entries::{Entry, EntryKind};

/// Restores the entries of a tree below a target directory, from many threads at once.
///
/// A target that does not exist is built as a hidden directory beside its name, which
/// [`finish`](TreeRestore::finish) renames. Entries are added to an existing target. An existing
/// file is a problem, or is replaced with [`overwrite`](RestoreOptions::overwrite).
///
/// Entries may come in any order: missing parents are created. Of several entries with one path the
/// last call wins. No symbolic link below the target is followed, and no entry is created outside
/// of it. An entry that cannot be restored is recorded as a [`Problem`] (`InvalidData` for a
/// refused path), and the others go on. A full file system ends the restore: see
/// [`has_ended`](TreeRestore::has_ended).
///
/// Dropping it before `finish` removes what it created where nothing was: each existing path stays,
/// as it was or as in the archive. After [`keep_partial`](TreeRestore::keep_partial), dropping
/// finishes it instead.
///
/// Finishing does not call `fsync`: one call for each of many small files takes too long, and
/// `syncfs` waits for all data of all processes. A caller that then removes the archive should sync
/// first. With [`reads_back`](RestoreOptions::reads_back) files are synced before they are read
/// back, but directories, links and metadata are not.
#[derive(Debug)]
pub struct TreeRestore {
    pub(super) shared: Arc<Shared>,
    target: Target,
    hard_links: Lock<WaitingLinks>,
    keeps_partial: AtomicBool,
    is_finished: bool,
}

impl TreeRestore {
    /// Prepares to restore below `target`, and creates the parents of the target. A temporary
    /// directory that a killed process left beside the target is removed.
    ///
    /// # Errors
    ///
    /// If the target exists and is not a directory, or the directory beside it cannot be created.
    pub fn create(target: &Path, options: RestoreOptions) -> io::Result<TreeRestore> {
        TreeRestore::start(Target::prepare(target)?, options)
    }

    /// As [`create`](TreeRestore::create), for a target that may not leave a directory: symbolic
    /// links in `relative` are not followed, and `..` and absolute paths are refused.
    ///
    /// # Errors
    ///
    /// `InvalidData` for a path that leaves the directory; otherwise as `create`.
    pub fn create_below(
        root: &ConfinedDirectory,
        relative: &Path,
        options: RestoreOptions,
    ) -> io::Result<TreeRestore> {
        TreeRestore::start(Target::prepare_below(root, relative)?, options)
    }

    fn start(
        (target, opened): (Target, OwnedFd),
        options: RestoreOptions,
    ) -> io::Result<TreeRestore> {
        let directories = Directories::new(opened, target.is_new(), &options)?;
        Ok(TreeRestore {
            shared: Arc::new(Shared::new(options, target.is_new(), directories)),
            target,
            hard_links: Lock::new(WaitingLinks::new(options.memory_bytes)),
            keeps_partial: AtomicBool::new(false),
            is_finished: false,
        })
    }

    /// Reports to `observer` everything restored from now on.
    pub fn observe(&self, observer: RestoredObserver) {
        self.shared.observer.set(observer);
    }

    /// Counts a requested entry for [`RestoreSummary::files_asked`]: before it is restored, or even
    /// though the restore has ended.
    pub fn expect(&self, entry: &Entry) {
        if !matches!(
            entry.kind,
            EntryKind::Directory | EntryKind::Raw | EntryKind::Removed
        ) {
            self.shared.tally.expect_file();
        }
    }

    /// Creates a directory. If this restore created it, or with `overwrite`, its metadata is set
    /// last.
    pub fn directory(&self, entry: &Entry) {
        self.with_path(entry, |path| {
            let (shared, path) = (&self.shared, path.as_bytes());
            let directories = &shared.directories;
            directories.create(path, shared.options.overwrite)?;
            if shared.options.overwrite || directories.created.has_directory(path) {
                directories
                    .created
                    .note_metadata(path, &Metadata::from_entry(entry));
            }
            shared.tally.directory();
            Ok(())
        });
    }

    /// Creates a file, to which data can be written. `None` if that failed, which is recorded as a
    /// problem, or if the restore has ended.
    pub fn file(&self, entry: &Entry) -> Option<RestoredFile> {
        self.with_path(entry, |path| {
            RestoredFile::create(&self.shared, entry, path)
        })
    }

    /// Creates a file with all its stored data, by [`file`](TreeRestore::file),
    /// [`write_at`](RestoredFile::write_at) and [`finish`](RestoredFile::finish). Returns whether
    /// it was restored.
    pub fn write_file(&self, entry: &Entry, data: &[u8]) -> bool {
        let Some(file) = self.file(entry) else {
            return false;
        };
        file.write_at(0, data).is_ok() && file.finish().is_ok()
    }

    /// Creates a symbolic link, device or FIFO. A hard link is created later, by
    /// [`link`](TreeRestore::link) or [`finish`](TreeRestore::finish). Other kinds of entries are
    /// ignored.
    pub fn other(&self, entry: &Entry) {
        match entry.kind {
            EntryKind::Hardlink => {
                let added = self.hard_links.lock().add(HardLink {
                    path: entry.path.clone(),
                    target: entry.link_target.clone().unwrap_or_default(),
                });
                if let Err(error) = added {
                    self.shared.fail(&entry.path, error);
                }
            }
            EntryKind::Symlink
            | EntryKind::CharacterDevice
            | EntryKind::BlockDevice
            | EntryKind::Fifo => {
                self.with_path(entry, |path| special::create(&self.shared, entry, &path));
            }
            EntryKind::Directory
            | EntryKind::File
            | EntryKind::Other
            | EntryKind::Raw
            | EntryKind::Removed => {}
        }
    }

    /// Creates the hard links given so far. Returns those whose target was not restored: the caller
    /// may restore the data under one of the names and pass the others again.
    pub fn link(&self) -> Vec<HardLink> {
        if let Some(unconfirmed) = &self.shared.unconfirmed {
            unconfirmed.confirm_rest();
        }
        let mut waiting = std::mem::take(&mut self.hard_links.lock().links);
        loop {
            let count = waiting.len();
            // The target of a link may be another link.
            waiting.retain(|link| self.is_waiting(link));
            if waiting.len() == count || waiting.is_empty() {
                return waiting;
            }
        }
    }

    /// Whether waiting hard links take enough memory to call
    /// [`link_if_many`](TreeRestore::link_if_many).
    #[must_use]
    pub fn has_many_links(&self) -> bool {
        self.hard_links.lock().are_many()
    }

    /// Creates the hard links given so far, if they take much memory. Links whose target was not
    /// restored yet keep waiting. No file may be unfinished: a link would keep it.
    pub fn link_if_many(&self) {
        if !self.has_many_links() {
            return;
        }
        let waiting = self.link();
        self.hard_links.lock().put_back(waiting);
    }

    fn is_waiting(&self, link: &HardLink) -> bool {
        if self.has_ended() {
            return false;
        }
        match special::link(&self.shared, link) {
            Ok(linked) => linked == Linked::TargetIsMissing,
            Err(error) => {
                self.shared.fail(&link.path, error);
                false
            }
        }
    }

    /// Whether nothing more is restored, because the file system is full or the user's quota is
    /// used up. Complete files stay.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }

    /// Removes and returns the problems so far, so that they can be reported early.
    #[must_use]
    pub fn take_problems(&self) -> Vec<Problem> {
        self.shared.tally.take_problems()
    }

    /// From now on, dropping this value keeps what was restored.
    pub fn keep_partial(&self) {
        self.keeps_partial.store(true, Ordering::Relaxed);
    }

    /// Creates the hard links, sets the metadata of directories, and gives the target its name. All
    /// files should be finished or dropped before.
    ///
    /// # Errors
    ///
    /// If the target cannot get its name. Then what was restored is removed.
    pub fn finish(mut self) -> io::Result<RestoreSummary> {
        self.complete()
    }

    fn complete(&mut self) -> io::Result<RestoreSummary> {
        let missing_targets = self.link();
        for link in &missing_targets {
            let target = String::from_utf8_lossy(&link.target);
            let text = format!("the target of the hard link, {target:?}, was not restored");
            let error = io::Error::new(io::ErrorKind::NotFound, text);
            self.shared.fail(&link.path, error);
        }
        self.finish_directories();
        self.target.publish()?;
        self.is_finished = true;
        let tally = &self.shared.tally;
        Ok(RestoreSummary {
            entries: tally.entries(),
            files: tally.files(),
            files_asked: tally.files_asked(),
            problem_count: tally.problem_count(),
            problems: tally.take_problems(),
            left_out: tally.left_out(),
            stopped: self.shared.take_stopped(),
            read_back: (self.shared.unconfirmed.as_ref()).map(UnconfirmedFiles::read_back),
            missing_targets,
        })
    }

    fn with_path<T>(
        &self,
        entry: &Entry,
        step: impl FnOnce(ConfinedPath) -> io::Result<T>,
    ) -> Option<T> {
        if self.has_ended() {
            return None;
        }
        let result = ConfinedPath::new(&entry.path).and_then(step);
        result
            .map_err(|error| self.shared.fail(&entry.path, error))
            .ok()
    }

    /// Sets the metadata of directories, deepest first: a later change inside would alter the time
    /// again, and a mode without write permission would forbid it.
    fn finish_directories(&self) {
        let created = &self.shared.directories.created;
        let parent_mode = mode_of(new_directory_mode());
        let finished = created.drain(|path, record| {
            if let Err(error) = self.finish_directory(path, &record, parent_mode) {
                let is_target = path.is_empty();
                self.shared.fail(if is_target { b"." } else { path }, error);
            }
        });
        if let Err(error) = finished {
            self.shared.fail(b".", error);
        }
    }

    fn finish_directory(
        &self,
        path: &[u8],
        record: &PathRecord,
        parent_mode: Mode,
    ) -> io::Result<()> {
        if !record.is_created_directory && record.metadata.is_none() {
            return Ok(());
        }
        let directories = &self.shared.directories;
        let directory = directories.open(path, MissingParents::Refuse)?;
        match &record.metadata {
            Some(metadata) => {
                let found = rustix::fs::fstat(&directory)?;
                let applier = &self.shared.applier;
                applier.apply(directory.as_fd(), &found, false, metadata)
            }
            // A parent without an entry.
            None => Ok(rustix::fs::fchmod(&directory, parent_mode)?),
        }
    }

    /// Removes what was created in an existing target where nothing was. Replacements stay.
    fn remove_created(&self) {
        // Runs during drop, which cannot return an error.
        let _ = self.shared.directories.created.drain(|path, record| {
            if record.is_new {
                self.remove(
                    path,
                    if record.is_created_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() },
                );
            }
        });
    }

    fn remove(&self, path: &[u8], flags: AtFlags) {
        let (parent, name) = split_last(path);
        let directories = &self.shared.directories;
        if let Ok(parent) = directories.open(parent, MissingParents::Refuse) {
            let _ = rustix::fs::unlinkat(&parent, name, flags);
        }
    }
}

impl Drop for TreeRestore {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        if self.keeps_partial.load(Ordering::Relaxed) && self.complete().is_ok() {
            return;
        }
        self.shared.end();
        // They hold what holds them.
        drop(self.shared.unconfirmed.as_ref().map(UnconfirmedFiles::take));
        if self.target.is_new() { self.target.discard() } else { self.remove_created() }
    }
}
