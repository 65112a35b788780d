//! A tar stream becomes a directory again: whole, or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use refrain_storage::{Leftover, Sink};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;

use crate::confined::{Confined, ConfinedPath, Missing};
use crate::entry::{EntryKind, Timestamp};
use crate::header::TarHeader;
use crate::parser::{TarError, TarHandler, TarParser};

/// Zeros of this length, aligned, become a hole: the block size of most file systems.
const HOLE_BYTES: usize = 4096;
/// A block of zeros to compare with.
static HOLE: [u8; HOLE_BYTES] = [0; HOLE_BYTES];

/// Small pieces are gathered up to this length before they are written.
const GATHER_BYTES: usize = 64 << 10;

/// Names tried for the temporary directory before giving up.
const TEMPORARY_NAMES_MAX: u32 = 1000;

/// Permission bits that are restored. Owners are not restored, so set-user-id and set-group-id
/// would hand out the rights of whoever extracts.
const MODE_MASK: u32 = 0o1777;

/// Restores a tar stream below a root.
///
/// If the root does not exist, everything happens in a hidden directory beside it, which gets its
/// name when all is there; dropped before that, it leaves nothing. If the root exists, entries are
/// added to it: existing files are refused, or replaced with `overwrite`; dropped unpublished, what
/// was made is removed again (what was replaced is not brought back). No link is ever followed
/// below the root, and no entry lands outside.
///
/// Modes (without set-id bits) and times of modification are kept, those of directories set last.
/// Zeros become holes. Devices need the rights to make them; lacking these is an error.
///
/// Publishing does not wait for the disk: `syncfs` waits for everybody's data, and `fsync` for each
/// of many small files takes too long. Who removes the archive afterwards should sync first.
#[derive(Debug)]
pub struct TreeSink {
    untar: TarParser,
    unpack: Unpack,
}

impl TreeSink {
    /// Prepares to restore into `root`; makes its parents.
    ///
    /// # Errors
    ///
    /// When the root is there and not a directory, or the directory beside it cannot be made.
    pub fn create(root: &Path, overwrite: bool) -> io::Result<TreeSink> {
        let place = Place::prepare(root)?;
        let confined = Confined::open(place.directory()).map_err(named("open", root))?;
        let unpack = Unpack {
            place,
            confined,
            overwrite,
            current: None,
            made: Vec::new(),
            directories: Vec::new(),
        };
        Ok(TreeSink {
            untar: TarParser::default(),
            unpack,
        })
    }
}

impl Sink for TreeSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.untar.push(bytes, &mut self.unpack)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.untar.push_zeros(length_bytes, &mut self.unpack)
    }

    fn publish(&mut self) -> io::Result<()> {
        self.untar.finish().map_err(io::Error::from)?;
        self.unpack.finish_directories()?;
        self.unpack.place.publish()?;
        self.unpack.made.clear();
        Ok(())
    }
}

impl From<TarError> for io::Error {
    fn from(error: TarError) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

// ------------------------------------------------------------------------------- the root

/// Where the entries go until they are published.
#[derive(Debug)]
enum Place {
    /// A new directory beside the root, renamed to it in the end.
    Beside {
        temporary: PathBuf,
        root: PathBuf,
        _leftover: Leftover,
    },
    /// The root, which was there before.
    Existing { root: PathBuf },
    /// Nothing more to do.
    Published,
}

impl Place {
    fn prepare(root: &Path) -> io::Result<Place> {
        match fs::metadata(root) {
            Ok(found) if found.is_dir() => Ok(Place::Existing {
                root: root.to_path_buf(),
            }),
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{}: exists already and is not a directory", root.display()),
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Place::beside(root),
            Err(error) => Err(named("open", root)(error)),
        }
    }

    fn beside(root: &Path) -> io::Result<Place> {
        let (Some(name), Some(parent)) = (root.file_name(), root.parent()) else {
            let text = format!("{}: has no name to restore to", root.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        };
        if !parent.as_os_str().is_empty() {
            fs::create_dir_all(parent).map_err(named("create directory", parent))?;
        }
        for attempt in 0..TEMPORARY_NAMES_MAX {
            let temporary = parent.join(temporary_name(name, attempt));
            match make_private_directory(&temporary) {
                Ok(()) => {
                    return Ok(Place::Beside {
                        _leftover: Leftover::note(&temporary),
                        temporary,
                        root: root.to_path_buf(),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(named("create directory", &temporary)(error)),
            }
        }
        let text = format!("{}: no free temporary name beside it", root.display());
        Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
    }

    fn directory(&self) -> &Path {
        match self {
            Place::Beside { temporary, .. } => temporary,
            Place::Existing { root } => root,
            Place::Published => Path::new("."),
        }
    }

    fn publish(&mut self) -> io::Result<()> {
        if let Place::Beside {
            temporary, root, ..
        } = self
        {
            rename_new(temporary, root).map_err(named("publish", root))?;
        }
        *self = Place::Published;
        Ok(())
    }
}

/// Renames onto a name that must still be free.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // File systems without the flag: rename replaces nothing but an empty directory.
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to),
        result => Ok(result?),
    }
}

/// Hidden, and telling apart the processes and attempts that could meet here.
fn temporary_name(name: &OsStr, attempt: u32) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}-{attempt}.partial", std::process::id()));
    temporary
}

fn make_private_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

// ---------------------------------------------------------------------------- the entries

/// Takes the entries of the stream and makes them.
#[derive(Debug)]
struct Unpack {
    place: Place,
    confined: Confined,
    overwrite: bool,
    current: Option<OpenFile>,
    /// What was made in an existing root, to be removed if it is not published.
    made: Vec<Made>,
    /// Directories whose mode and time are set last, in the order of the stream.
    directories: Vec<(ConfinedPath, Attributes)>,
}

#[derive(Debug)]
struct Made {
    parts: Vec<OsString>,
    is_directory: bool,
}

/// A file whose data is arriving.
#[derive(Debug)]
struct OpenFile {
    file: File,
    path: ConfinedPath,
    attributes: Attributes,
    /// Where the gathered bytes belong.
    offset: u64,
    gathered: Vec<u8>,
}

/// What is set when an entry is complete.
#[derive(Debug, Clone, Copy)]
struct Attributes {
    mode: Mode,
    modified: Timestamp,
}

impl TarHandler for Unpack {
    type Error = io::Error;

    fn entry(&mut self, header: TarHeader) -> io::Result<()> {
        let path = ConfinedPath::new(&header.path)?;
        let shown = path.display();
        self.make(&header, path)
            .map_err(|error| match (&self.place, error.kind()) {
                (Place::Existing { root }, io::ErrorKind::AlreadyExists) => {
                    let text = format!("{}: exists already", root.join(&shown).display());
                    io::Error::new(io::ErrorKind::AlreadyExists, text)
                }
                _ => restore_error(&shown, &error),
            })
    }

    fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.current {
            Some(open) => open
                .take(bytes)
                .map_err(|e| restore_error(&open.path.display(), &e)),
            None => Ok(()),
        }
    }

    fn zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        match &mut self.current {
            Some(open) => open
                .skip(length_bytes)
                .map_err(|e| restore_error(&open.path.display(), &e)),
            None => Ok(()),
        }
    }

    fn entry_end(&mut self) -> io::Result<()> {
        match self.current.take() {
            Some(mut open) => open
                .finish()
                .map_err(|e| restore_error(&open.path.display(), &e)),
            None => Ok(()),
        }
    }
}

impl Unpack {
    fn make(&mut self, header: &TarHeader, path: ConfinedPath) -> io::Result<()> {
        let attributes = Attributes {
            mode: Mode::from_raw_mode((header.mode & MODE_MASK) as _),
            modified: header.modified,
        };
        if header.kind == EntryKind::Directory {
            return self.make_directory(path, attributes);
        }
        let Some((parents, name)) = path.split() else {
            return Err(refused(
                "the root of the tree is not a directory in the archive",
            ));
        };
        let link = self.link_target(header)?;
        self.make_way(parents, name)?;
        let journal = Journal::of(&self.place, &mut self.made);
        let directory = self
            .confined
            .directory(parents, Missing::Make, |parts| journal.directory(parts))?;
        match (header.kind, link) {
            (EntryKind::Symlink, _) => {
                rustix::fs::symlinkat(header.link.as_slice(), directory, name)?;
                set_link_time(directory, name, attributes.modified)?;
            }
            (EntryKind::Hardlink, Some((target_directory, target))) => {
                rustix::fs::linkat(target_directory, target, directory, name, AtFlags::empty())?;
            }
            (EntryKind::Fifo | EntryKind::CharacterDevice | EntryKind::BlockDevice, _) => {
                make_node(directory, name, header, attributes)?;
            }
            _ => {
                let file = create_file(directory, name)?;
                let path = path.clone();
                let gathered = Vec::new();
                self.current = Some(OpenFile {
                    file,
                    path,
                    attributes,
                    offset: 0,
                    gathered,
                });
            }
        }
        self.remember(path.parts(), false);
        Ok(())
    }

    /// The open directory and the name of a hard link's target.
    fn link_target(
        &mut self,
        header: &TarHeader,
    ) -> io::Result<Option<(std::os::fd::OwnedFd, OsString)>> {
        if header.kind != EntryKind::Hardlink {
            return Ok(None);
        }
        let target = ConfinedPath::new(&header.link)?;
        let Some((parents, name)) = target.split() else {
            return Err(refused("a hard link to the root"));
        };
        let directory = self.confined.directory(parents, Missing::Refuse, |_| {})?;
        Ok(Some((directory.try_clone_to_owned()?, name.to_owned())))
    }

    /// With `overwrite`, removes what is in the way (never a directory).
    fn make_way(&mut self, parents: &[OsString], name: &OsStr) -> io::Result<()> {
        if !self.overwrite {
            return Ok(());
        }
        let removed = match self.confined.directory(parents, Missing::Refuse, |_| {}) {
            Ok(directory) => rustix::fs::unlinkat(directory, name, AtFlags::empty()),
            // The parents are not there yet, so nothing is in the way; or they are no directories,
            // which the next step reports.
            Err(_) => Ok(()),
        };
        match removed {
            Err(error) if error != Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn make_directory(&mut self, path: ConfinedPath, attributes: Attributes) -> io::Result<()> {
        let journal = Journal::of(&self.place, &mut self.made);
        self.confined
            .directory(path.parts(), Missing::Make, |parts| {
                journal.directory(parts)
            })?;
        self.directories.push((path, attributes));
        Ok(())
    }

    fn remember(&mut self, parts: &[OsString], is_directory: bool) {
        if matches!(self.place, Place::Existing { .. }) {
            self.made.push(Made {
                parts: parts.to_vec(),
                is_directory,
            });
        }
    }

    /// Sets modes and times of directories, the deepest first: a later change inside would move
    /// the time again, and a mode without write permission would forbid it.
    fn finish_directories(&mut self) -> io::Result<()> {
        let mut directories = std::mem::take(&mut self.directories);
        directories.sort_by_key(|(path, _)| std::cmp::Reverse(path.parts().len()));
        for (path, attributes) in directories {
            let directory = self
                .confined
                .directory(path.parts(), Missing::Refuse, |_| {});
            let set = directory.and_then(|directory| attributes.set(directory));
            set.map_err(|error| restore_error(&path.display(), &error))?;
        }
        Ok(())
    }
}

/// Notes directories that are made in an existing root.
struct Journal<'a> {
    made: std::cell::RefCell<Option<&'a mut Vec<Made>>>,
}

impl<'a> Journal<'a> {
    fn of(place: &Place, made: &'a mut Vec<Made>) -> Journal<'a> {
        let is_kept = matches!(place, Place::Existing { .. });
        Journal {
            made: std::cell::RefCell::new(is_kept.then_some(made)),
        }
    }

    fn directory(&self, parts: &[OsString]) {
        if let Some(made) = self.made.borrow_mut().as_mut() {
            made.push(Made {
                parts: parts.to_vec(),
                is_directory: true,
            });
        }
    }
}

impl Drop for Unpack {
    fn drop(&mut self) {
        self.current = None;
        if let Place::Beside { temporary, .. } = &self.place {
            // Directories were made with all rights for us, so this can only fail with the disk.
            let _ = fs::remove_dir_all(temporary);
        }
        for made in std::mem::take(&mut self.made).into_iter().rev() {
            let Some((name, parents)) = made.parts.split_last() else {
                continue;
            };
            let flags = if made.is_directory {
                AtFlags::REMOVEDIR
            } else {
                AtFlags::empty()
            };
            if let Ok(directory) = self.confined.directory(parents, Missing::Refuse, |_| {}) {
                let _ = rustix::fs::unlinkat(directory, name, flags);
            }
        }
    }
}

// --------------------------------------------------------------------- files and attributes

impl OpenFile {
    /// Takes the next bytes.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.gathered.is_empty() && bytes.len() >= GATHER_BYTES {
            return self.write(bytes);
        }
        self.gathered.extend_from_slice(bytes);
        match self.gathered.len() >= GATHER_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Takes zeros: a hole, unless they are so few that a hole would cost more than it saves.
    fn skip(&mut self, length_bytes: u64) -> io::Result<()> {
        if length_bytes < HOLE_BYTES as u64 {
            return self.take(HOLE.get(..length_bytes as usize).unwrap_or_default());
        }
        self.flush()?;
        self.offset = self.offset.saturating_add(length_bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut gathered = std::mem::take(&mut self.gathered);
        let written = self.write(&gathered);
        gathered.clear();
        self.gathered = gathered;
        written
    }

    /// Writes at the present offset; aligned zero blocks are skipped and so become holes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let to_boundary = HOLE_BYTES - (self.offset % HOLE_BYTES as u64) as usize;
            let is_hole = |at: &[u8]| at.first_chunk::<HOLE_BYTES>().is_some_and(|b| *b == HOLE);
            if to_boundary == HOLE_BYTES && is_hole(rest) {
                self.offset = self.offset.saturating_add(HOLE_BYTES as u64);
                rest = rest.get(HOLE_BYTES..).unwrap_or_default();
                continue;
            }
            let mut length = to_boundary.min(rest.len());
            while rest
                .get(length..)
                .is_some_and(|tail| !tail.is_empty() && !is_hole(tail))
            {
                length = length.saturating_add(HOLE_BYTES).min(rest.len());
            }
            let (data, tail) = rest.split_at(length);
            self.file.write_all_at(data, self.offset)?;
            self.offset = self.offset.saturating_add(length as u64);
            rest = tail;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        // A hole at the end exists only through the size.
        self.file.set_len(self.offset)?;
        self.attributes.set(self.file.as_fd())
    }
}

impl Attributes {
    fn set(self, file: BorrowedFd<'_>) -> io::Result<()> {
        rustix::fs::fchmod(file, self.mode)?;
        rustix::fs::futimens(file, &times(self.modified))?;
        Ok(())
    }
}

/// Access and modification at once: the time of access is not archived, and "now" differs.
fn times(modified: Timestamp) -> Timestamps {
    let time = Timespec {
        tv_sec: modified.seconds,
        tv_nsec: modified.nanoseconds.into(),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

fn set_link_time(directory: BorrowedFd<'_>, name: &OsStr, modified: Timestamp) -> io::Result<()> {
    match rustix::fs::utimensat(directory, name, &times(modified), AtFlags::SYMLINK_NOFOLLOW) {
        // Not every file system keeps times of links.
        Err(Errno::NOTSUP | Errno::NOSYS) => Ok(()),
        result => Ok(result?),
    }
}

fn create_file(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let private = Mode::RUSR | Mode::WUSR;
    Ok(File::from(rustix::fs::openat(
        directory, name, flags, private,
    )?))
}

fn make_node(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    header: &TarHeader,
    attributes: Attributes,
) -> io::Result<()> {
    let (kind, device) = match header.kind {
        EntryKind::CharacterDevice => (FileType::CharacterDevice, header.device),
        EntryKind::BlockDevice => (FileType::BlockDevice, header.device),
        _ => (FileType::Fifo, (0, 0)),
    };
    let device = rustix::fs::makedev(device.0, device.1);
    match rustix::fs::mknodat(directory, name, kind, Mode::RUSR | Mode::WUSR, device) {
        Err(Errno::PERM) => {
            let text = "only root may make devices; as a tar stream the rest can be had without it";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        made => made?,
    }
    rustix::fs::chmodat(directory, name, attributes.mode, AtFlags::empty())?;
    set_link_time(directory, name, attributes.modified)
}

fn refused(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn restore_error(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("restore {path:?}: {error}"))
}

fn named(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    let path = path.display().to_string();
    move |error| io::Error::new(error.kind(), format!("{action} {path}: {error}"))
}
