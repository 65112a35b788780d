//! What the parts of one restore share.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use refrain_pool::Lock;
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;

use super::created::Placed;
use super::directories::{Directories, MissingParents};
use super::directory::{Directory, already_exists};
use super::metadata::Applier;
use super::options::RestoreOptions;
use super::path::ConfinedPath;
use super::replace::replace;
use super::summary::{Problem, Tally, is_full};
use super::unconfirmed::UnconfirmedFiles;

/// Receives the path of everything except directories as it is restored, from several threads.
pub type RestoredObserver = Box<dyn Fn(&[u8]) + Send + Sync>;

#[derive(Default)]
pub(super) struct Observer(OnceLock<RestoredObserver>);

impl Observer {
    /// Sets the observer, unless there is one already.
    pub(super) fn set(&self, observer: RestoredObserver) {
        let _ = self.0.set(observer);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: RestoreOptions,
    pub(super) target_is_new: bool,
    pub(super) directories: Directories,
    pub(super) applier: Applier,
    pub(super) tally: Arc<Tally>,
    pub(super) observer: Observer,
    /// Complete files that wait to be read back, if files are.
    pub(super) unconfirmed: Option<UnconfirmedFiles>,
    /// Whether files can be created without a name, as far as known.
    pub(super) has_unnamed_files: AtomicBool,
    /// Whether they can be named through their descriptor, as far as known.
    pub(super) links_directly: AtomicBool,
    /// Set if nothing more can be written, or the restore was dropped.
    ended: AtomicBool,
    stopped: Lock<Option<io::Error>>,
}

/// Where an entry is created.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) directory: Arc<Directory>,
    pub(super) name: &'a OsStr,
    pub(super) path: &'a ConfinedPath,
}

impl Shared {
    pub(super) fn new(
        options: RestoreOptions,
        target_is_new: bool,
        directories: Directories,
    ) -> Shared {
        let tally = Arc::new(Tally::default());
        Shared {
            options,
            target_is_new,
            directories,
            applier: Applier::new(options, Arc::clone(&tally)),
            tally,
            observer: Observer::default(),
            unconfirmed: options.reads_back.then(UnconfirmedFiles::new),
            has_unnamed_files: AtomicBool::new(can_name_later()),
            links_directly: AtomicBool::new(true),
            ended: AtomicBool::new(false),
            stopped: Lock::default(),
        }
    }

    /// Called when the entry at this path, not a directory, was restored.
    pub(super) fn done(&self, path: &ConfinedPath) {
        self.tally.entry();
        if let Some(observer) = self.observer.0.get() {
            observer(path.as_bytes());
        }
    }

    /// How new files are opened.
    pub(super) fn access(&self) -> OFlags {
        if self.options.reads_back { OFlags::RDWR } else { OFlags::WRONLY }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_stopped(&self) -> Option<io::Error> {
        self.stopped.lock().take()
    }

    /// Records why an entry was not restored. A full file system ends the restore.
    pub(super) fn fail(&self, path: &[u8], error: io::Error) {
        if !is_full(&error) {
            return self.tally.problem(path, error);
        }
        self.end();
        let mut stopped = self.stopped.lock();
        if stopped.is_none() {
            let kind = error.kind();
            let path = path.to_vec();
            let text = Problem { path, error }.to_string();
            *stopped = Some(io::Error::new(kind, text));
        }
    }

    /// Opens the directory of an entry that is not a directory, creating missing parents.
    pub(super) fn place<'a>(&self, path: &'a ConfinedPath) -> io::Result<Place<'a>> {
        let Some((parent, name)) = path.split() else {
            let text = "the archive gives the target a type other than directory";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        };
        let directory = self.directories.open(parent, MissingParents::Create)?;
        Ok(Place {
            directory,
            name,
            path,
        })
    }

    /// Whether an entry with this path may be replaced.
    pub(super) fn may_replace(&self, path: &ConfinedPath) -> bool {
        self.options.overwrite || self.directories.created.has(path.as_bytes())
    }

    /// Calls `create` with the name of an entry; it must fail with `EEXIST` if the name is in use.
    /// If permitted, an existing entry is replaced once the new one is complete.
    pub(super) fn create<T>(
        &self,
        place: &Place<'_>,
        create: impl Fn(&OsStr) -> rustix::io::Result<T>,
    ) -> io::Result<(T, Placed)> {
        match create(place.name) {
            Err(Errno::EXIST) if is_directory(place) => Err(already_exists("is a directory")),
            Err(Errno::EXIST) if self.may_replace(place.path) => {
                let created = replace(&place.directory, place.name, create)?;
                Ok((created, Placed::Replacing))
            }
            Err(Errno::EXIST) => Err(already_exists("")),
            created => Ok((created?, Placed::New)),
        }
    }
}

/// Whether the name of an entry belongs to a directory.
fn is_directory(place: &Place<'_>) -> bool {
    let found = rustix::fs::statat(&place.directory, place.name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
}

/// Whether files without a name can be named later.
fn can_name_later() -> bool {
    cfg!(target_os = "linux") && rustix::fs::stat("/proc/self/fd").is_ok()
}
