//! A tar stream restored as a directory: completely, or not at all.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use refrain_storage::Sink;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::confined::{ConfinedPath, ConfinedRoot, MissingParents};
use crate::entry::EntryKind;
use crate::error::{named, refused, restore_error};
use crate::extraction_root::ExtractionRoot;
use crate::file_writer::{Attributes, FileWriter, create_special_file};
use crate::header::TarHeader;
use crate::parser::{TarError, TarHandler, TarParser};

/// Restores a tar stream below a root.
///
/// If the root does not exist, entries are created in a hidden directory beside it, which
/// [`publish`](Sink::publish) renames. Dropping the sink before that removes the hidden directory.
/// If the root exists, entries are added to it. An existing file is an error, or is replaced with
/// `overwrite`. Dropping the sink before `publish` removes the entries that were created; replaced
/// files are not brought back.
///
/// No symbolic link below the root is followed, and no entry is created outside the root. An error
/// of the kind [`InvalidData`](io::ErrorKind::InvalidData) means that the stream is malformed or
/// contains a path that is refused.
///
/// Modes (without set-id bits) and modification times are restored, those of directories last.
/// Zeros become holes. Creating devices needs the rights to do so; lacking them is an error.
///
/// Publishing does not call `fsync`: one call for each of many small files takes too long, and
/// `syncfs` waits for all data of all processes. A caller that removes the archive afterwards
/// should sync first.
#[derive(Debug)]
pub struct TreeSink {
    parser: TarParser,
    extractor: Extractor,
}

impl TreeSink {
    /// Prepares to restore into `root` and creates its parents.
    ///
    /// # Errors
    ///
    /// When the root exists and is not a directory, or the directory beside it cannot be created.
    pub fn create(root: &Path, overwrite: bool) -> io::Result<TreeSink> {
        let extraction_root = ExtractionRoot::prepare(root)?;
        let confined =
            ConfinedRoot::open(extraction_root.directory()).map_err(named("open", root))?;
        let extractor = Extractor {
            root: extraction_root,
            confined,
            overwrite,
            current: None,
            created: Vec::new(),
            directories: Vec::new(),
        };
        Ok(TreeSink {
            parser: TarParser::default(),
            extractor,
        })
    }
}

impl Sink for TreeSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.parser.push(bytes, &mut self.extractor)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.parser.push_zeros(length_bytes, &mut self.extractor)
    }

    fn publish(&mut self) -> io::Result<()> {
        self.parser.finish().map_err(io::Error::from)?;
        self.extractor.finish_directories()?;
        self.extractor.root.publish()?;
        self.extractor.created.clear();
        Ok(())
    }
}

impl From<TarError> for io::Error {
    fn from(error: TarError) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Creates the entries of the stream.
#[derive(Debug)]
struct Extractor {
    root: ExtractionRoot,
    confined: ConfinedRoot,
    overwrite: bool,
    current: Option<FileWriter>,
    /// The entries created in an existing root, which are removed if it is not published.
    created: Vec<CreatedEntry>,
    /// Directories whose mode and time are set last, in the order of the stream.
    directories: Vec<(ConfinedPath, Attributes)>,
}

#[derive(Debug)]
struct CreatedEntry {
    components: Vec<OsString>,
    is_directory: bool,
}

impl TarHandler for Extractor {
    type Error = io::Error;

    fn entry(&mut self, header: TarHeader) -> io::Result<()> {
        let path = ConfinedPath::new(&header.path)?;
        let text = path.display();
        self.create(&header, path)
            .map_err(|error| self.creation_error(&text, &error))
    }

    fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.with_current(|file| file.append(bytes))
    }

    fn zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.with_current(|file| file.append_zeros(length_bytes))
    }

    fn entry_end(&mut self) -> io::Result<()> {
        let result = self.with_current(FileWriter::finish);
        self.current = None;
        result
    }
}

impl Extractor {
    fn with_current(
        &mut self,
        step: impl FnOnce(&mut FileWriter) -> io::Result<()>,
    ) -> io::Result<()> {
        match &mut self.current {
            Some(file) => step(file).map_err(|error| restore_error(&file.path().display(), &error)),
            None => Ok(()),
        }
    }

    /// Explains why an entry could not be created.
    fn creation_error(&self, path: &str, error: &io::Error) -> io::Error {
        match (&self.root, error.kind()) {
            (ExtractionRoot::Existing { root }, io::ErrorKind::AlreadyExists) => {
                let text = format!("{}: already exists", root.join(path).display());
                io::Error::new(io::ErrorKind::AlreadyExists, text)
            }
            // Everything below a staged root comes from the stream, links and files alike.
            (ExtractionRoot::Staged { .. }, io::ErrorKind::NotADirectory) => {
                refused(&format!("restore {path:?}: {NOT_A_DIRECTORY}"))
            }
            (_, io::ErrorKind::NotADirectory) => {
                let text = format!("restore {path:?}: {NOT_A_DIRECTORY}");
                io::Error::new(io::ErrorKind::NotADirectory, text)
            }
            _ => restore_error(path, error),
        }
    }

    fn create(&mut self, header: &TarHeader, path: ConfinedPath) -> io::Result<()> {
        let attributes = Attributes::of(header);
        if header.kind == EntryKind::Directory {
            return self.create_directory(path, attributes);
        }
        let Some((parents, name)) = path.split() else {
            return Err(refused(
                "the archive gives the root a type other than directory",
            ));
        };
        let target = self.hard_link_target(header)?;
        self.remove_existing(parents, name)?;
        let log = CreationLog::new(&self.root, &mut self.created);
        let directory = self
            .confined
            .directory(parents, MissingParents::Create, |created| {
                log.directory(created)
            })?;
        match (header.kind, target) {
            (EntryKind::Symlink, _) => {
                rustix::fs::symlinkat(header.link.as_slice(), directory, name)?;
                attributes.set_link_time(directory, name)?;
            }
            (EntryKind::Hardlink, Some((target_directory, target))) => {
                rustix::fs::linkat(target_directory, target, directory, name, AtFlags::empty())?;
            }
            (EntryKind::Fifo | EntryKind::CharacterDevice | EntryKind::BlockDevice, _) => {
                create_special_file(directory, name, header, attributes)?;
            }
            _ => {
                let file = FileWriter::create(directory, name, path.clone(), attributes)?;
                self.current = Some(file);
            }
        }
        self.note_created(path.components());
        Ok(())
    }

    /// The open parent directory and the name of a hard link's target; `None` for other entries.
    fn hard_link_target(&mut self, header: &TarHeader) -> io::Result<Option<(OwnedFd, OsString)>> {
        if header.kind != EntryKind::Hardlink {
            return Ok(None);
        }
        let target = ConfinedPath::new(&header.link)?;
        let Some((parents, name)) = target.split() else {
            return Err(refused("a hard link to the root"));
        };
        let directory = self
            .confined
            .directory(parents, MissingParents::Refuse, |_| {})?;
        Ok(Some((directory.try_clone_to_owned()?, name.to_owned())))
    }

    /// With `overwrite`, removes what exists under the name of the entry, unless it is a directory.
    fn remove_existing(&mut self, parents: &[OsString], name: &OsStr) -> io::Result<()> {
        if !self.overwrite {
            return Ok(());
        }
        let directory = self
            .confined
            .directory(parents, MissingParents::Refuse, |_| {});
        let removed = match directory {
            Ok(directory) => rustix::fs::unlinkat(directory, name, AtFlags::empty()),
            // The parents do not exist, so neither does the entry; or they are not directories,
            // which the next step reports.
            Err(_) => Ok(()),
        };
        match removed {
            Err(error) if error != Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn create_directory(&mut self, path: ConfinedPath, attributes: Attributes) -> io::Result<()> {
        let log = CreationLog::new(&self.root, &mut self.created);
        let (components, missing) = (path.components(), MissingParents::Create);
        self.confined
            .directory(components, missing, |created| log.directory(created))?;
        self.directories.push((path, attributes));
        Ok(())
    }

    fn note_created(&mut self, components: &[OsString]) {
        if self.root.existed() {
            self.created.push(CreatedEntry {
                components: components.to_vec(),
                is_directory: false,
            });
        }
    }

    /// Sets modes and times of directories, the deepest first: a later change inside would alter
    /// the time again, and a mode without write permission would forbid the change.
    fn finish_directories(&mut self) -> io::Result<()> {
        let mut directories = std::mem::take(&mut self.directories);
        directories.sort_by_key(|(path, _)| std::cmp::Reverse(path.components().len()));
        for (path, attributes) in directories {
            let directory =
                self.confined
                    .directory(path.components(), MissingParents::Refuse, |_| {});
            let set = directory.and_then(|directory| attributes.set(directory));
            set.map_err(|error| restore_error(&path.display(), &error))?;
        }
        Ok(())
    }

    fn remove_created(&mut self) {
        for created in std::mem::take(&mut self.created).into_iter().rev() {
            let Some((name, parents)) = created.components.split_last() else {
                continue;
            };
            let flags = match created.is_directory {
                true => AtFlags::REMOVEDIR,
                false => AtFlags::empty(),
            };
            let directory = self
                .confined
                .directory(parents, MissingParents::Refuse, |_| {});
            if let Ok(directory) = directory {
                let _ = rustix::fs::unlinkat(directory, name, flags);
            }
        }
    }
}

const NOT_A_DIRECTORY: &str =
    "part of the path is not a directory (symbolic links are not followed)";

impl Drop for Extractor {
    fn drop(&mut self) {
        self.current = None;
        self.root.discard();
        self.remove_created();
    }
}

/// Records the directories that are created in an existing root.
struct CreationLog<'a> {
    created: RefCell<Option<&'a mut Vec<CreatedEntry>>>,
}

impl<'a> CreationLog<'a> {
    fn new(root: &ExtractionRoot, created: &'a mut Vec<CreatedEntry>) -> CreationLog<'a> {
        CreationLog {
            created: RefCell::new(root.existed().then_some(created)),
        }
    }

    fn directory(&self, components: &[OsString]) {
        if let Some(created) = self.created.borrow_mut().as_mut() {
            created.push(CreatedEntry {
                components: components.to_vec(),
                is_directory: true,
            });
        }
    }
}
