//! A file that appears complete or not at all.
//!
//! On Linux the bytes are written to a file without a name (`O_TMPFILE`), which `linkat` names when
//! it is complete: nothing remains even after `SIGKILL` or a power cut. Elsewhere they are written
//! to a hidden name in the same directory, which is renamed.
//! Renaming over an existing file is atomic. Replacing a file by an unnamed one needs a hidden name
//! too, but only for a moment and for a complete file.

use std::ffi::{OsStr, OsString};
use std::fs::{File, FileTimes};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{FileType, Mode, Stat};
use rustix::io::Errno;

use crate::appender::Appender;
use crate::confined::ConfinedDirectory;
use crate::directory::{Directory, resolve};
use crate::failure::at;
use crate::latch::FirstFailure;
use crate::leftovers::Leftover;
use crate::read_back::ReadBack;
use crate::sink::Sink;
use crate::source::Source;

/// What to do if the output already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// Fail with [`io::ErrorKind::AlreadyExists`], at creation or at publishing.
    #[default]
    Refuse,
    /// Replace it atomically when the new file is complete.
    Replace,
}

/// Whether publishing calls `fsync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Sync file and directory: after [`Sink::publish`] the output survives a power cut. The
    /// default, because callers often remove the input next.
    #[default]
    Synced,
    /// Leave writing to the operating system: a power cut may leave an empty or partial file under
    /// the final name. For temporary output and measurements.
    Unsynced,
}

/// Whether the disk is asked what it has, before a file gets its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checking {
    /// No.
    #[default]
    Off,
    /// The file is synced, read back past the page cache where the system allows it, and compared
    /// with digests of what was written. A file that differs is not published.
    ReadBack,
    /// As [`Checking::ReadBack`], but a file that differs is published as well, with an error.
    ReadBackAndKeep,
}

/// Where the bytes are until they are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Temporary {
    /// A file without a name where the system supports it, otherwise [`Temporary::Hidden`].
    #[default]
    Unnamed,
    /// A hidden name in the same directory.
    Hidden,
}

/// Options for an output file. By default it refuses to overwrite, syncs, writes the zeros of
/// `write_all` as data and sets the usual mode.
#[derive(Debug, Clone, Default)]
pub struct OutputOptions {
    /// What to do if the output already exists.
    pub overwrite: Overwrite,
    /// Whether publishing calls `fsync`.
    pub durability: Durability,
    /// Whether publishing reads the file back first.
    pub checking: Checking,
    /// Where the bytes are until they are published.
    pub temporary: Temporary,
    /// Whether whole aligned blocks of zeros in [`Sink::write_all`] become holes. Zeros of
    /// [`Sink::write_zeros`] always do.
    pub sparse: bool,
    /// Permission bits (`0o777`). Other bits are ignored: set-user-id must not be copied without
    /// the owner. `None`: the mode of the file that is replaced, else `0o666` without the process's
    /// umask.
    pub mode: Option<u32>,
    /// An upper bound on the permission bits if `mode` is `None`.
    pub mode_limit: Option<u32>,
    /// The modification time to set. `None`: now.
    pub modified: Option<SystemTime>,
    /// What the page cache may hold: of a file larger than half of it, pages are dropped behind the
    /// writer. `None`: the system decides what stays.
    pub cache_bytes: Option<u64>,
}

const PERMISSION_BITS: u32 = 0o777;

/// A regular file that appears under its name, complete, at [`Sink::publish`].
///
/// With [`Overwrite::Replace`] symbolic links are followed: their target is created or replaced,
/// the link remains. With [`Overwrite::Refuse`] a link counts as an existing file, even if its
/// target does not exist. Other hard links to a replaced file retain the old content. After a
/// failed operation all further ones fail. Dropping an unpublished file removes everything.
#[derive(Debug)]
pub struct AtomicFile {
    appender: Appender,
    directory: Directory,
    name: OsString,
    path: PathBuf,
    /// `None` while the file has no name.
    hidden: Option<OsString>,
    leftover: Option<Leftover>,
    options: OutputOptions,
    mode: Option<Mode>,
    read_back: Option<ReadBack>,
    failure: FirstFailure,
}

impl AtomicFile {
    /// Creates a file that is published as `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the file exists and is not to be replaced;
    /// [`io::ErrorKind::InvalidInput`] if `path` is not a regular file (see
    /// [`create_output`](crate::create_output)); and errors of the system.
    pub fn create(path: impl AsRef<Path>, options: &OutputOptions) -> io::Result<Self> {
        let path = path.as_ref();
        Self::begin(path, options).map_err(at("create", path))
    }

    /// Creates a file that is published below a directory, and creates the directories above it.
    /// Symbolic links below the directory are not followed: [`Overwrite::Replace`] replaces a link
    /// that has the name of the file.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for a path that leaves the directory; otherwise as
    /// [`AtomicFile::create`].
    pub fn create_below(
        root: &ConfinedDirectory,
        relative: &Path,
        options: &OutputOptions,
    ) -> io::Result<Self> {
        let path = root.path_of(relative);
        let (parent, name) = root.open_parent(relative)?;
        Self::begin_in(Directory::from(parent), name, &path, options).map_err(at("create", &path))
    }

    fn begin(path: &Path, options: &OutputOptions) -> io::Result<Self> {
        // Another user of the directory may have created the link to redirect the output.
        if options.overwrite == Overwrite::Refuse && path.is_symlink() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let target = resolve(path)?;
        let directory = Directory::open(&target.directory)?;
        Self::begin_in(directory, target.name, path, options)
    }

    fn begin_in(
        directory: Directory,
        name: OsString,
        path: &Path,
        options: &OutputOptions,
    ) -> io::Result<Self> {
        let existing = match directory.find(&name) {
            Ok(existing) => existing_mode(&existing, options.overwrite)?,
            Err(_) => None, // it does not exist, or the next step reports the error
        };
        let limit = options.mode_limit.unwrap_or(PERMISSION_BITS);
        let mode = options.mode.or(existing.map(|mode| mode & limit));
        let mode = mode.map(permissions);
        let temporary = create_temporary(&directory, &name, mode, options)?;
        let Temporaries { file, hidden, mode } = temporary;
        let mut appender = Appender::new(file, path.to_owned(), options.sparse);
        if options.checking != Checking::Off {
            appender.keep_digests();
        }
        if let Some(cache_bytes) = options.cache_bytes {
            appender.drop_behind(cache_bytes);
        }
        Ok(AtomicFile {
            appender,
            leftover: hidden
                .as_ref()
                .map(|hidden| Leftover::note(directory.as_fd(), hidden)),
            directory,
            name,
            path: path.to_owned(),
            hidden,
            options: options.clone(),
            mode,
            read_back: None,
            failure: FirstFailure::default(),
        })
    }

    /// Replaces the permission bits given at creation, and their limit. Confidential files need
    /// their mode at creation, so that even the first byte is protected.
    pub fn set_mode(&mut self, mode: u32) {
        self.mode = Some(permissions(mode));
    }

    /// Sets the modification time of the published file.
    pub fn set_modified(&mut self, modified: SystemTime) {
        self.options.modified = Some(modified);
    }

    /// Whether the file has no name at present.
    pub fn is_unnamed(&self) -> bool {
        self.hidden.is_none()
    }

    fn unless_failed<T>(&mut self, step: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        self.failure.check()?;
        let result = step(self);
        self.failure.note(result)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.appender.finish()?;
        set_mode(self.appender.file(), self.mode).map_err(at("set the mode of", &self.path))?;
        let modified = self.options.modified;
        set_modified(self.appender.file(), modified).map_err(at("set the time of", &self.path))?;
        let is_checked = self.options.checking != Checking::Off;
        if is_checked || self.options.durability == Durability::Synced {
            let synced = self.appender.file().sync_all();
            synced.map_err(at("sync", &self.path))?;
        }
        let checked = self.appender.read_back();
        if self.options.checking != Checking::ReadBackAndKeep {
            self.read_back = checked?;
            return self.publish_name();
        }
        self.publish_name()?;
        self.read_back = checked?;
        Ok(())
    }

    fn publish_name(&mut self) -> io::Result<()> {
        self.assign_name().map_err(at("publish", &self.path))?;
        if self.options.durability == Durability::Synced {
            let synced = self.directory.sync();
            synced.map_err(at("sync the directory of", &self.path))?;
        }
        Ok(())
    }

    fn assign_name(&mut self) -> io::Result<()> {
        if self.hidden.is_none() && self.link()? {
            return Ok(());
        }
        let Some(hidden) = &self.hidden else {
            return Err(io::ErrorKind::AlreadyExists.into());
        };
        match self.options.overwrite {
            Overwrite::Refuse => self.directory.rename_new(hidden, &self.name)?,
            Overwrite::Replace => self.directory.rename_over(hidden, &self.name)?,
        }
        self.leftover = None;
        self.hidden = None; // the hidden name is gone
        Ok(())
    }

    /// Links the unnamed file to its name and returns `true`. If that name exists and may be
    /// replaced, links it to a hidden name and returns `false`.
    fn link(&mut self) -> io::Result<bool> {
        match self
            .directory
            .link_unnamed(self.appender.file(), &self.name)
        {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) if self.options.overwrite == Overwrite::Replace => {
                let hidden = self
                    .directory
                    .link_hidden(self.appender.file(), &self.name)?;
                self.hidden = Some(hidden);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Sink for AtomicFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unless_failed(|this| this.appender.write_all(bytes))
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.unless_failed(|this| this.appender.write_zeros(length_bytes))
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        Some(self.appender.view())
    }

    fn is_stored(&self) -> bool {
        true
    }

    fn read_back_result(&self) -> Option<ReadBack> {
        self.read_back
    }

    fn file_id(&self) -> Option<(u64, u64)> {
        let metadata = self.appender.file().metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    }

    fn publish(&mut self) -> io::Result<()> {
        self.unless_failed(Self::finish)?;
        let text = format!("{} is already published", self.path.display());
        self.failure.set(io::ErrorKind::Other, text);
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            self.directory.remove_if_same(hidden, self.appender.file());
        }
    }
}

/// The permission bits of the file to replace; `None` for a symbolic link.
fn existing_mode(existing: &Stat, overwrite: Overwrite) -> io::Result<Option<u32>> {
    match FileType::from_raw_mode(existing.st_mode) {
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        FileType::RegularFile | FileType::Symlink if overwrite == Overwrite::Refuse => {
            Err(io::ErrorKind::AlreadyExists.into())
        }
        FileType::RegularFile => Ok(Some(existing.st_mode)),
        FileType::Symlink => Ok(None),
        _ => {
            let text = "not a regular file";
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    }
}

struct Temporaries {
    file: File,
    hidden: Option<OsString>,
    /// The mode to set at the end, unless the file already has it.
    mode: Option<Mode>,
}

/// Creates the file to write to. Nobody else may read it until it is complete: a file without a
/// name cannot be opened, a hidden one gets its mode last.
fn create_temporary(
    directory: &Directory,
    name: &OsStr,
    mode: Option<Mode>,
    options: &OutputOptions,
) -> io::Result<Temporaries> {
    let limit = permissions(options.mode_limit.unwrap_or(PERMISSION_BITS));
    let usual = permissions(0o666) & limit;
    let first_mode = mode.map_or(usual, |_| permissions(0o600));
    // The error for missing support differs between file systems and kernels. Other errors (full,
    // read-only, forbidden) recur below.
    if options.temporary == Temporary::Unnamed
        && let Ok(file) = directory.create_unnamed(first_mode)
    {
        let hidden = None;
        return Ok(Temporaries { file, hidden, mode });
    }
    let mode = match mode {
        Some(mode) => mode,
        None => directory.usual_mode(name)? & limit,
    };
    let (file, hidden) = directory.create_hidden(name)?;
    Ok(Temporaries {
        file,
        hidden: Some(hidden),
        mode: Some(mode),
    })
}

fn permissions(mode: u32) -> Mode {
    // The raw type is narrower than 32 bits on some systems; nine bits fit everywhere.
    Mode::from_bits_truncate((mode & PERMISSION_BITS) as rustix::fs::RawMode)
}

fn set_mode(file: &File, mode: Option<Mode>) -> io::Result<()> {
    let Some(mode) = mode else { return Ok(()) };
    match rustix::fs::fchmod(file, mode) {
        // File systems without modes. The file was created with a more restrictive mode.
        Err(Errno::PERM | Errno::NOTSUP) => Ok(()),
        other => Ok(other?),
    }
}

fn set_modified(file: &File, modified: Option<SystemTime>) -> io::Result<()> {
    let Some(modified) = modified else {
        return Ok(());
    };
    let set = file.set_times(FileTimes::new().set_modified(modified));
    match set.as_ref().map_err(Errno::from_io_error) {
        Err(Some(Errno::PERM | Errno::NOTSUP)) => Ok(()),
        _ => set,
    }
}

#[cfg(test)]
#[path = "atomic_file_tests.rs"]
mod tests;
