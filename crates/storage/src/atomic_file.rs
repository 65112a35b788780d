//! A file that appears whole or not at all.
//!
//! On Linux the bytes go to a file without a name (`O_TMPFILE`), which gets its name when it is
//! whole (`linkat`): nothing is left behind even by `SIGKILL` or a power cut. Where that is not to
//! be had, they go to a hidden name in the same directory, which is renamed.
//!
//! A rename over an existing file is atomic. Replacing by way of an unnamed file needs a hidden
//! name too, but only for an instant and for a file that is already whole.

use std::ffi::OsString;
use std::fs::{File, FileTimes};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::appender::Appender;
use crate::directory::{Directory, resolve};
use crate::failure::at;
use crate::latch::FirstFailure;
use crate::leftovers::Leftover;
use crate::sink::Sink;
use crate::source::Source;

/// What to do when the output already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// Fail with [`io::ErrorKind::AlreadyExists`]: at once when it is there, else at publishing.
    #[default]
    Refuse,
    /// Put the new file in its place, in one step, when it is whole.
    Replace,
}

/// Whether publishing waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// File and directory are synced: after [`Sink::publish`] the output survives a power cut. The
    /// default, because the next step is often to remove what the output was made from.
    #[default]
    Synced,
    /// The operating system writes when it likes; a power cut may leave an empty or partial file
    /// under the final name. For scratch output and measurements.
    Unsynced,
}

/// Where the bytes are until they are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Temporary {
    /// A file without a name where the system has such files, else as [`Temporary::Hidden`].
    #[default]
    Unnamed,
    /// A hidden name in the same directory.
    Hidden,
}

/// How an output file is made. `default()`: refuse to overwrite, synced, dense, the usual mode.
#[derive(Debug, Clone, Default)]
pub struct OutputOptions {
    /// What to do when the output already exists.
    pub overwrite: Overwrite,
    /// Whether publishing waits for the disk.
    pub durability: Durability,
    /// Where the bytes are until then.
    pub temporary: Temporary,
    /// Leave holes for whole aligned blocks of zeros in [`Sink::write_all`] too. Those of
    /// [`Sink::write_zeros`] are holes in any case.
    pub sparse: bool,
    /// Permission bits (`0o777`; others are ignored, set-user-id must not travel by itself). None:
    /// those of the file that is replaced, else what the process's mask leaves of `0o666`.
    pub mode: Option<u32>,
    /// The time of last change to be set. None: now.
    pub modified: Option<SystemTime>,
}

const PERMISSION_BITS: u32 = 0o777;

/// A regular file that appears under its name, whole, at [`Sink::publish`].
///
/// With [`Overwrite::Replace`] symbolic links are written through: the file they point at is made or replaced, the link stays. Else a
/// link is in the way, also one that points at nothing.
/// Other hard links to a file that is replaced keep the old content. After a failed operation all
/// further ones fail. Dropping it unpublished leaves no trace.
#[derive(Debug)]
pub struct AtomicFile {
    appender: Appender,
    directory: Directory,
    name: OsString,
    path: PathBuf,
    /// The name the file has until it is published; `None` while it has no name.
    hidden: Option<OsString>,
    leftover: Option<Leftover>,
    options: OutputOptions,
    mode: Option<Mode>,
    failure: FirstFailure,
}

impl AtomicFile {
    /// Begins a file that will be `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when there is such a file and it is not to be replaced;
    /// [`io::ErrorKind::InvalidInput`] when `path` is something else than a regular file (see
    /// [`create_output`](crate::create_output)); and whatever the system says.
    pub fn create(path: impl AsRef<Path>, options: &OutputOptions) -> io::Result<Self> {
        let path = path.as_ref();
        Self::begin(path, options).map_err(at("create", path))
    }

    fn begin(path: &Path, options: &OutputOptions) -> io::Result<Self> {
        let invalid = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        // Whoever may write here could have put the link in the way of a name that looks free.
        if options.overwrite == Overwrite::Refuse && path.is_symlink() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let place = resolve(path)?;
        let existing = match std::fs::symlink_metadata(place.directory.join(&place.name)) {
            Ok(existing) if existing.is_dir() => {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Ok(existing) if !existing.is_file() => return invalid("not a regular file"),
            Ok(_) if options.overwrite == Overwrite::Refuse => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            Ok(existing) => Some(existing.permissions().mode()),
            Err(_) => None, // not there, or the next step says what is wrong
        };
        let mode = options.mode.or(existing).map(permissions);
        // Until the mode is set nobody else may look.
        let first_mode = mode.map_or(permissions(0o666), |_| permissions(0o600));
        let directory = Directory::open(&place.directory)?;
        let (file, hidden) = create_temporary(&directory, &place.name, first_mode, options)?;
        Ok(AtomicFile {
            appender: Appender::new(file, path.to_owned(), options.sparse),
            directory,
            name: place.name,
            path: path.to_owned(),
            leftover: hidden
                .as_ref()
                .map(|hidden| Leftover::note(&place.directory.join(hidden))),
            hidden,
            options: options.clone(),
            mode,
            failure: FirstFailure::default(),
        })
    }

    /// Sets the permission bits that the file will have, in place of those given at creation. For
    /// what nobody else may see, give them at creation: they guard the bytes from the first on.
    pub fn set_mode(&mut self, mode: u32) {
        self.mode = Some(permissions(mode));
    }

    /// Sets the time of the last modification that the published file has.
    pub fn set_modified(&mut self, modified: SystemTime) {
        self.options.modified = Some(modified);
    }

    /// Whether the bytes are in a file without a name now.
    pub fn is_unnamed(&self) -> bool {
        self.hidden.is_none()
    }

    fn guarded<T>(&mut self, step: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        self.failure.check()?;
        let result = step(self);
        self.failure.note(result)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.appender.finish()?;
        set_mode(self.appender.file(), self.mode).map_err(at("set the mode of", &self.path))?;
        let modified = self.options.modified;
        set_modified(self.appender.file(), modified).map_err(at("set the time of", &self.path))?;
        if self.options.durability == Durability::Synced {
            let synced = self.appender.file().sync_all();
            synced.map_err(at("sync", &self.path))?;
        }
        self.give_name().map_err(at("publish", &self.path))?;
        if self.options.durability == Durability::Synced {
            let synced = self.directory.sync();
            synced.map_err(at("sync the directory of", &self.path))?;
        }
        Ok(())
    }

    fn give_name(&mut self) -> io::Result<()> {
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
        self.hidden = None; // the name is the output's now: nothing to remove any more
        Ok(())
    }

    /// Links the unnamed file to its name and says `true`, or, when that name is taken and may be
    /// replaced, links it to a hidden name and says `false`.
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
        self.guarded(|this| this.appender.write_all(bytes))
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.guarded(|this| this.appender.write_zeros(length_bytes))
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        Some(self.appender.view())
    }

    fn publish(&mut self) -> io::Result<()> {
        self.guarded(Self::finish)?;
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

fn create_temporary(
    directory: &Directory,
    name: &std::ffi::OsStr,
    mode: Mode,
    options: &OutputOptions,
) -> io::Result<(File, Option<OsString>)> {
    // Which error says "no such files here" differs between file systems and kernels; a real
    // trouble (full, read-only, forbidden) comes back from the second way.
    if options.temporary == Temporary::Unnamed
        && let Ok(file) = directory.create_unnamed(mode)
    {
        return Ok((file, None));
    }
    let (file, hidden) = directory.create_hidden(name, mode)?;
    Ok((file, Some(hidden)))
}

fn permissions(mode: u32) -> Mode {
    // The raw type is narrower than 32 bits on some systems; nine bits fit everywhere.
    Mode::from_bits_truncate((mode & PERMISSION_BITS) as rustix::fs::RawMode)
}

fn set_mode(file: &File, mode: Option<Mode>) -> io::Result<()> {
    let Some(mode) = mode else { return Ok(()) };
    match rustix::fs::fchmod(file, mode) {
        // File systems without modes. The file was made with a narrower mode than asked for.
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
