//! The open directories between the root of a walk and its current entry.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use refrain_storage::open_at;
use rustix::fs::{AtFlags, Mode, OFlags};

use super::listed::Children;
use super::metadata::{FileId, Metadata};
use super::names::Names;

pub(crate) const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// How many of the deepest directories stay open, besides the root; others are reopened on the way
/// back. So deep trees need few file descriptors.
const OPEN_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Directory {
    /// `None` unless it is among the deepest.
    file: Option<OwnedFd>,
    id: FileId,
    /// The length of its path relative to the root.
    pub(crate) path_length: usize,
    pub(crate) names: Names,
    /// What is walked of each name, in the order of the names; everything if empty.
    pub(crate) children: Vec<Children>,
    pub(crate) next: usize,
    /// The file system that the walk must not leave, if it is confined to one.
    pub(crate) device: Option<u64>,
}

impl Directory {
    pub(crate) fn new(file: OwnedFd, id: FileId, names: Names) -> Directory {
        Directory {
            file: Some(file),
            id,
            path_length: 0,
            names,
            children: Vec::new(),
            next: 0,
            device: None,
        }
    }
}

/// The directories from the root to the present one.
#[derive(Debug)]
pub(crate) struct Directories {
    levels: Vec<Directory>,
}

impl Directories {
    pub(crate) fn new(root: Directory) -> Directories {
        Directories { levels: vec![root] }
    }

    /// The number of directories from the root to the deepest, inclusive.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    pub(crate) fn deepest(&self) -> Option<&Directory> {
        self.levels.last()
    }

    pub(crate) fn deepest_mut(&mut self) -> Option<&mut Directory> {
        self.levels.last_mut()
    }

    /// The descriptor of the deepest directory.
    pub(crate) fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.levels.last()?.file.as_ref()?.as_fd())
    }

    pub(crate) fn enter(&mut self, directory: Directory) {
        self.levels.push(directory);
        let too_many = self.levels.len().saturating_sub(OPEN_MAX);
        if let Some(level) = self.levels.get_mut(too_many)
            && too_many > 0
        {
            level.file = None;
        }
    }

    /// Leaves the deepest directory, and reopens its parent if it was closed. `path` is the path of
    /// the directory to leave.
    ///
    /// # Errors
    ///
    /// If the parent is no longer where it was. It then has no descriptor, and must be left too.
    pub(crate) fn leave(&mut self, path: &[u8]) -> io::Result<()> {
        let Some(left) = self.levels.pop() else {
            return Ok(());
        };
        let Some(above) = self.levels.last() else {
            return Ok(());
        };
        if above.file.is_some() {
            return Ok(());
        }
        let (id, path) = (above.id, path.get(..above.path_length).unwrap_or_default());
        let file = match &left.file {
            Some(file) => open_if(file.as_fd(), b"..", id),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        let file = file.or_else(|_| self.open_again(path, id))?;
        if let Some(above) = self.levels.last_mut() {
            above.file = Some(file);
        }
        Ok(())
    }

    /// Opens a directory by its path from the root.
    fn open_again(&self, path: &[u8], id: FileId) -> io::Result<OwnedFd> {
        let root = self.levels.first().and_then(|root| root.file.as_ref());
        let mut file = root.ok_or(io::ErrorKind::NotFound)?.try_clone()?;
        for name in path.split(|byte| *byte == b'/') {
            file = open_at(&file, name, DIRECTORY_FLAGS, Mode::empty())?;
        }
        check_id(file, id)
    }
}

/// Opens a directory if it is the expected one.
fn open_if(at: BorrowedFd<'_>, name: &[u8], id: FileId) -> io::Result<OwnedFd> {
    let file = open_at(at, name, DIRECTORY_FLAGS, Mode::empty())?;
    check_id(file, id)
}

fn check_id(file: OwnedFd, id: FileId) -> io::Result<OwnedFd> {
    if Metadata::from_stat(&rustix::fs::fstat(&file)?).id == id {
        Ok(file)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Metadata of a name in an open directory; symbolic links are not followed.
pub(crate) fn metadata_at(at: BorrowedFd<'_>, name: &[u8]) -> io::Result<Metadata> {
    let stat = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(Metadata::from_stat(&stat))
}
