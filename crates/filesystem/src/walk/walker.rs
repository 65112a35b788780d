//! The entries of a tree in path order.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use refrain_storage::open_at;
use rustix::fs::{Mode, OFlags};

use super::attributes::{AttributesOf, read_attributes};
use super::cache_tag::{TAG_NAME, is_cache};
use super::computed::{UNKNOWN_SIZE_BYTES, is_computed};
use super::directories::{DIRECTORY_FLAGS, Directories, Directory, metadata_at};
use super::listed::{Children, ListedPaths};
use super::metadata::{FileId, Metadata};
use super::names::{ListBuffer, Names};
use super::owners::Owners;
use super::problem::{Problem, ProblemKind};
use refrain_entries::{Decision, Entry, EntryKind, ExtendedAttribute, Selection};

/// The path of the root's entry if paths have no prefix.
const ROOT_PATH: &[u8] = b".";

const OWN_OUTPUT_TEXT: &str = "left out: it is the output of this run";

/// What is walked of a tree, and how errors are handled.
#[derive(Debug, Clone, Default)]
pub struct WalkOptions {
    /// Which entries are wanted, by their paths relative to the root.
    pub selection: Selection,
    /// Do not enter directories on file systems other than the root's (or a listed directory's).
    /// The directory itself, a mount point, is kept. Files are not compared: a union file system
    /// reports other devices for them.
    pub one_file_system: bool,
    /// Of directories with a valid `CACHEDIR.TAG`, keep only the directory and the tag.
    pub exclude_caches: bool,
    /// Fail with an error instead of reporting a [`Problem`].
    pub is_strict: bool,
    /// Devices and inodes of files that the run writes or is about to replace. They are left out,
    /// under any name.
    pub own_outputs: Vec<(u64, u64)>,
    /// Listed directories stand for themselves only, not for everything below.
    pub no_recursion: bool,
    /// Leave the extended attributes of regular, non-empty files to [`OpenedFile::refresh`], for
    /// callers that open these: the walk then takes three fifths of the time.
    ///
    /// [`OpenedFile::refresh`]: super::OpenedFile::refresh
    pub attributes_when_opened: bool,
    /// Give files stamps by which it is seen later that they did not change
    /// ([`Entry::change_stamp`]).
    pub stamps: bool,
}

/// Lists a directory tree in path order with all metadata (see [`compare_paths`]).
///
/// The data of files is not read: open them with a [`FileRoot`] by their [`relative_path`].
/// Symbolic links are never followed, except to the root itself. Of several hard links to one file,
/// the first in path order is the file, and the others are [`EntryKind::Hardlink`] entries with the
/// path of the first as their target; only the first has the attributes.
///
/// Files of file systems that compute contents (such as `/proc`) state no size. Their entries have
/// the size 4096, so that they count as files with data; reading them tells the real size
/// ([`OpenedFile::is_of_unknown_size`]).
///
/// [`OpenedFile::is_of_unknown_size`]: super::OpenedFile::is_of_unknown_size
///
/// What cannot be read is left out and reported by [`Walker::take_problems`]; with
/// [`WalkOptions::is_strict`] it is an error.
///
/// Memory: the names of one directory per level of depth, and the path of each file with further
/// hard links until the last of them was seen. At most 65 directories are open.
///
/// [`compare_paths`]: refrain_entries::compare_paths
/// [`FileRoot`]: super::FileRoot
#[derive(Debug)]
pub struct Walker {
    /// The prefix of all paths; may be empty.
    name: Vec<u8>,
    /// The path of the root in the file system.
    root: Vec<u8>,
    options: WalkOptions,
    listed: ListedPaths,
    directories: Directories,
    /// The path of the deepest directory relative to the root, with a name while that is read.
    path: Vec<u8>,
    /// Entries to return next.
    ready: VecDeque<Entry>,
    /// Directories returned only if something below them is, with their depths.
    pending: Vec<(usize, Entry)>,
    links: BTreeMap<FileId, FirstLink>,
    owners: Owners,
    /// Whether the files of a device state no size.
    devices: BTreeMap<u64, bool>,
    problems: Vec<Problem>,
    buffer: ListBuffer,
    /// Whether open directories can be reached through `/proc/self/fd`.
    has_proc: bool,
    /// Reused to save allocations.
    attributes_path: Vec<u8>,
}

/// The path of a file with several links, and how many of them are still to come.
#[derive(Debug)]
struct FirstLink {
    path: Vec<u8>,
    remaining: u64,
}

/// The path of an entry relative to the root of the tree, with which a
/// [`FileRoot`](super::FileRoot) opens it. The paths of the tree's entries begin with `name`, which
/// may be empty. Empty for the root itself; `None` if the path does not begin with `name`.
#[must_use]
pub fn relative_path<'a>(name: &Path, path: &'a [u8]) -> Option<&'a [u8]> {
    let name = name.as_os_str().as_bytes();
    if name.is_empty() {
        return Some(if path == ROOT_PATH { &[] } else { path });
    }
    match path.strip_prefix(name)? {
        [] => Some(&[]),
        [b'/', rest @ ..] => Some(rest),
        _ => None,
    }
}

impl Walker {
    /// Walks everything below `root`. The paths of the entries begin with `name`, which may be
    /// empty; the root itself is then `.`.
    ///
    /// # Errors
    ///
    /// If `root` is not a directory that can be listed.
    pub fn open(root: &Path, name: &Path, options: WalkOptions) -> io::Result<Walker> {
        let everything = Children::everything();
        Walker::start(root, name, ListedPaths::default(), everything, options)
    }

    /// Walks the listed paths, which are relative to `root`, in path order. A directory stands for
    /// everything below it unless [`WalkOptions::no_recursion`] is set. The directories above a
    /// path are entries too, so that a restore can set their modes. A path that does not exist is a
    /// [`Problem`].
    ///
    /// # Errors
    ///
    /// As [`Walker::open`]; `InvalidInput` for paths that are empty or absolute or contain `..`.
    pub fn for_paths(
        root: &Path,
        name: &Path,
        paths: Vec<Vec<u8>>,
        options: WalkOptions,
    ) -> io::Result<Walker> {
        let listed = ListedPaths::new(paths, !options.no_recursion)?;
        let children = listed.root();
        Walker::start(root, name, listed, children, options)
    }

    fn start(
        root: &Path,
        name: &Path,
        listed: ListedPaths,
        children: Children,
        options: WalkOptions,
    ) -> io::Result<Walker> {
        let flags = DIRECTORY_FLAGS.difference(OFlags::NOFOLLOW);
        let file = rustix::fs::open(root, flags, Mode::empty())?;
        let metadata = Metadata::from_stat(&rustix::fs::fstat(&file)?);
        let is_wanted = children.is_wanted();
        let mut walker = Walker {
            name: name.as_os_str().as_bytes().to_vec(),
            root: root.as_os_str().as_bytes().to_vec(),
            listed,
            directories: Directories::new(Directory::new(
                file.try_clone()?,
                metadata.id,
                Names::default(),
            )),
            path: Vec::new(),
            ready: VecDeque::new(),
            pending: Vec::new(),
            links: BTreeMap::new(),
            owners: Owners::default(),
            devices: BTreeMap::new(),
            problems: Vec::new(),
            buffer: ListBuffer::new(),
            has_proc: std::fs::metadata("/proc/self/fd").is_ok(),
            attributes_path: Vec::new(),
            options,
        };
        let mut directory = walker.list(file, metadata, children)?;
        directory.device = walker.options.one_file_system.then_some(metadata.id.device);
        let mut entry = walker.entry_of(&metadata, EntryKind::Directory);
        walker.directories = Directories::new(directory);
        entry.attributes = walker.attributes(None)?;
        let is_selected = walker.options.selection.decide(ROOT_PATH, true);
        walker.return_directory(entry, is_selected != Decision::Include || !is_wanted);
        Ok(walker)
    }

    /// The next entries in path order, at most `count`; empty at the end.
    ///
    /// # Errors
    ///
    /// With [`WalkOptions::is_strict`], the first problem. In any case, a lack of memory or file
    /// descriptors. The walk must not continue after an error.
    pub fn next_entries(&mut self, count: usize) -> io::Result<Vec<Entry>> {
        while self.ready.len() < count && self.step()? {}
        let count = count.min(self.ready.len());
        Ok(self.ready.drain(..count).collect())
    }

    /// Takes the problems found since the last call.
    pub fn take_problems(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.problems)
    }

    /// An entry's path relative to the root; empty for the root itself.
    #[must_use]
    pub fn relative_path<'a>(&self, entry: &'a Entry) -> &'a [u8] {
        let name = Path::new(std::ffi::OsStr::from_bytes(&self.name));
        relative_path(name, &entry.path).unwrap_or(&entry.path)
    }

    /// Reads attributes as on systems without `/proc`.
    #[cfg(test)]
    pub(crate) fn do_without_proc(&mut self) {
        self.has_proc = false;
    }

    /// The number of files of which further links are expected.
    #[cfg(test)]
    pub(crate) fn links_held(&self) -> usize {
        self.links.len()
    }

    /// Reads the next name. Returns whether there was one, or a directory to leave.
    fn step(&mut self) -> io::Result<bool> {
        let Some(directory) = self.directories.deepest_mut() else {
            return Ok(false);
        };
        let Some(name) = directory.names.get(directory.next) else {
            self.leave()?;
            return Ok(true);
        };
        self.path.truncate(directory.path_length);
        if !self.path.is_empty() {
            self.path.push(b'/');
        }
        let name_start = self.path.len();
        self.path.extend_from_slice(name);
        let children = directory.children.get(directory.next).cloned();
        let children = children.unwrap_or_else(Children::everything);
        let is_directory = directory.names.is_directory(directory.next);
        directory.next += 1;
        if is_directory {
            self.visit_directory(name_start, children)?
        } else {
            self.visit(name_start, children)?
        }
        Ok(true)
    }

    fn leave(&mut self) -> io::Result<()> {
        let length = self.directories.deepest().map_or(0, |d| d.path_length);
        self.path.truncate(length);
        let path = std::mem::take(&mut self.path);
        let depth = self.directories.depth();
        self.pending.pop_if(|(pending, _)| *pending == depth);
        let result = self.directories.leave(&path);
        self.path = path;
        if result.is_err() {
            let above = self.directories.deepest().map_or(0, |d| d.path_length);
            self.path.truncate(above);
            if let Some(directory) = self.directories.deepest_mut() {
                directory.next = directory.names.len();
            }
            self.report(ProblemKind::Changed, "was moved while it was read")?;
        }
        Ok(())
    }

    /// Visits the name at the end of `path`.
    fn visit(&mut self, name_start: usize, children: Children) -> io::Result<()> {
        let Some(at) = self.directories.file() else {
            return Ok(());
        };
        let name = self.path.get(name_start..).unwrap_or_default();
        match metadata_at(at, name) {
            Ok(metadata) if metadata.kind() == Some(EntryKind::Directory) => {
                self.visit_directory(name_start, children)
            }
            Ok(metadata) => {
                self.report_below(&children)?;
                if children.is_wanted() {
                    self.visit_file(name_start, &metadata)
                } else {
                    Ok(())
                }
            }
            Err(error) => {
                self.report_below(&children)?;
                if children.is_wanted() { self.report_error(&error) } else { Ok(()) }
            }
        }
    }

    fn decide(&self, is_directory: bool) -> Decision {
        self.options.selection.decide(&self.path, is_directory)
    }

    fn visit_directory(&mut self, name_start: usize, children: Children) -> io::Result<()> {
        let decision = self.decide(true);
        if decision == Decision::Exclude {
            return Ok(());
        }
        let Some(at) = self.directories.file() else {
            return Ok(());
        };
        let name = self.path.get(name_start..).unwrap_or_default();
        let opened = open_at(at, name, DIRECTORY_FLAGS, Mode::empty());
        let file = match opened {
            Ok(file) => file,
            Err(error @ (rustix::io::Errno::ACCESS | rustix::io::Errno::PERM)) => {
                return self.keep_unreadable(name_start, decision, error);
            }
            Err(error) => return self.report_error(&error.into()),
        };
        let metadata = Metadata::from_stat(&rustix::fs::fstat(&file)?);
        let id = (metadata.id.device, metadata.id.inode);
        if self.options.own_outputs.contains(&id) {
            return self.report(ProblemKind::OwnOutput, OWN_OUTPUT_TEXT);
        }
        let mut entry = self.entry_of(&metadata, EntryKind::Directory);
        let is_wanted = children.is_wanted();
        let allowed = self.directories.deepest().and_then(|parent| parent.device);
        let device = allowed.map(
            |device| {
                if children.is_named() { metadata.id.device } else { device }
            },
        );
        let is_mount_point = device.is_some_and(|device| device != metadata.id.device);
        let mut directory = if is_mount_point {
            Directory::new(file, metadata.id, Names::default())
        } else {
            self.list(file, metadata, children)?
        };
        directory.device = device;
        directory.path_length = self.path.len();
        self.directories.enter(directory);
        entry.attributes = self.attributes(None)?;
        self.return_directory(entry, decision != Decision::Include || !is_wanted);
        Ok(())
    }

    /// Returns a directory that cannot be listed, without its contents.
    fn keep_unreadable(
        &mut self,
        name_start: usize,
        decision: Decision,
        error: rustix::io::Errno,
    ) -> io::Result<()> {
        let text = format!("the directory cannot be listed: {}", io::Error::from(error));
        self.report(ProblemKind::Unreadable, &text)?;
        let Some(at) = self.directories.file() else {
            return Ok(());
        };
        if decision != Decision::Include {
            return Ok(());
        }
        let name = self.path.get(name_start..).unwrap_or_default();
        match metadata_at(at, name) {
            Ok(metadata) if metadata.kind() == Some(EntryKind::Directory) => {
                let mut entry = self.entry_of(&metadata, EntryKind::Directory);
                entry.attributes = self.attributes(Some(name_start))?;
                self.return_entry(entry);
                Ok(())
            }
            Ok(_) => self.report(ProblemKind::Changed, "was replaced by something else"),
            Err(error) => self.report_error(&error),
        }
    }

    /// Lists an open directory, or takes the names that lead to listed paths.
    fn list(
        &mut self,
        file: OwnedFd,
        metadata: Metadata,
        children: Children,
    ) -> io::Result<Directory> {
        let (listed_names, listed_children) =
            self.listed.names(children.positions, self.path.len());
        if !children.is_everything {
            let mut directory = Directory::new(file, metadata.id, listed_names);
            directory.children = listed_children;
            return Ok(directory);
        }
        let (mut names, result) = Names::list(&file, &mut self.buffer);
        if let Err(error) = result {
            self.report(ProblemKind::Unreadable, &error.to_string())?;
        }
        if self.options.exclude_caches && is_cache(file.as_fd(), &names) {
            names = Names::default();
            names.push(TAG_NAME);
            return Ok(Directory::new(file, metadata.id, names));
        }
        let mut directory = Directory::new(file, metadata.id, names);
        if listed_names.len() > 0 {
            directory.children = self.join(&directory.names, &listed_names, &listed_children)?;
        }
        Ok(directory)
    }

    /// What is walked in a directory that is walked completely, if some of its names are also
    /// listed. Reports listed names that do not exist.
    fn join(
        &mut self,
        names: &Names,
        listed_names: &Names,
        listed_children: &[Children],
    ) -> io::Result<Vec<Children>> {
        let mut children = Vec::with_capacity(names.len());
        let mut next_listed = 0;
        for position in 0..=names.len() {
            let name = names.get(position);
            while let Some(listed) = listed_names.get(next_listed)
                && name.is_none_or(|name| listed < name)
            {
                self.report_missing(listed_children.get(next_listed))?;
                next_listed += 1;
            }
            if name.is_none() {
                break;
            }
            let is_listed = listed_names.get(next_listed) == name;
            let mut child = Children::everything();
            if is_listed && let Some(listed) = listed_children.get(next_listed) {
                child = listed.clone();
                child.is_everything = true;
                next_listed += 1;
            }
            children.push(child);
        }
        Ok(children)
    }

    fn visit_file(&mut self, name_start: usize, metadata: &Metadata) -> io::Result<()> {
        if self.decide(false) != Decision::Include {
            return Ok(());
        }
        let Some(kind) = metadata.kind() else {
            return self.report(ProblemKind::Skipped, "is a socket");
        };
        let id = (metadata.id.device, metadata.id.inode);
        if self.options.own_outputs.contains(&id) {
            return self.report(ProblemKind::OwnOutput, OWN_OUTPUT_TEXT);
        }
        let mut entry = self.entry_of(metadata, kind);
        if self.make_hard_link(&mut entry, metadata) {
            self.return_entry(entry);
            return Ok(());
        }
        if kind == EntryKind::Symlink {
            match self.link_target(name_start) {
                Ok(target) => entry.link_target = Some(target),
                // It was replaced.
                Err(rustix::io::Errno::INVAL) => {
                    return self.report(ProblemKind::Changed, "was replaced by something else");
                }
                Err(error) => return self.report_error(&error.into()),
            }
        }
        if kind == EntryKind::File && entry.size_bytes == 0 && self.states_no_size(metadata) {
            entry.size_bytes = UNKNOWN_SIZE_BYTES;
        } else if kind == EntryKind::File && self.options.stamps {
            entry.change_stamp = metadata.change_stamp();
        }
        // Only files with data are sure to be opened.
        if entry.size_bytes == 0 || !self.options.attributes_when_opened {
            entry.attributes = self.attributes(Some(name_start))?;
        }
        self.remember_first_link(&entry, metadata);
        self.return_entry(entry);
        Ok(())
    }

    /// Whether the size of an empty file in the deepest directory says nothing.
    fn states_no_size(&mut self, metadata: &Metadata) -> bool {
        let device = metadata.id.device;
        if let Some(known) = self.devices.get(&device) {
            return *known;
        }
        let directory = self.directories.file();
        let states_no_size = directory.is_some_and(|directory| is_computed(directory, device));
        self.devices.insert(device, states_no_size);
        states_no_size
    }

    /// Turns an entry whose file was already returned under another name into a link to it.
    fn make_hard_link(&mut self, entry: &mut Entry, metadata: &Metadata) -> bool {
        if metadata.links < 2 {
            return false;
        }
        let Some(first) = self.links.get_mut(&metadata.id) else {
            return false;
        };
        entry.kind = EntryKind::Hardlink;
        entry.size_bytes = 0;
        entry.device = (0, 0);
        first.remaining = first.remaining.saturating_sub(1);
        if first.remaining > 0 {
            entry.link_target = Some(first.path.clone());
        } else {
            let first = self.links.remove(&metadata.id);
            entry.link_target = first.map(|first| first.path);
        }
        true
    }

    fn remember_first_link(&mut self, entry: &Entry, metadata: &Metadata) {
        if metadata.links > 1 {
            let first = FirstLink {
                path: entry.path.clone(),
                remaining: metadata.links - 1,
            };
            self.links.insert(metadata.id, first);
        }
    }

    fn link_target(&self, name_start: usize) -> rustix::io::Result<Vec<u8>> {
        let at = self.directories.file().ok_or(rustix::io::Errno::NOENT)?;
        let name = self.path.get(name_start..).unwrap_or_default();
        let target = rustix::fs::readlinkat(at, name, Vec::new())?;
        Ok(target.into_bytes())
    }

    /// The attributes of a name in the deepest directory, or of that directory.
    fn attributes(&mut self, name_start: Option<usize>) -> io::Result<Vec<ExtendedAttribute>> {
        let Some(directory) = self.directories.file() else {
            return Ok(Vec::new());
        };
        let mut path = std::mem::take(&mut self.attributes_path);
        let file = match name_start {
            None => AttributesOf::Open(directory),
            Some(name_start) => {
                self.put_attributes_path(&mut path, directory, name_start);
                AttributesOf::Path(&path)
            }
        };
        let result = read_attributes(file);
        self.attributes_path = path;
        result.or_else(|(name, error)| {
            let mut problem = Problem::from_error(&self.entry_path(&self.path), &error.into());
            if problem.kind == ProblemKind::Unreadable {
                let name = String::from_utf8_lossy(&name);
                problem.text = format!("attribute {name}: {}", problem.text);
            }
            self.add_problem(problem)?;
            Ok(Vec::new())
        })
    }

    /// A path to a name in an open directory, for calls that take no descriptor.
    fn put_attributes_path(
        &self,
        path: &mut Vec<u8>,
        directory: BorrowedFd<'_>,
        name_start: usize,
    ) {
        path.clear();
        if self.has_proc {
            path.extend_from_slice(b"/proc/self/fd/");
            path.extend_from_slice(directory.as_raw_fd().to_string().as_bytes());
            path.push(b'/');
            path.extend_from_slice(self.path.get(name_start..).unwrap_or_default());
        } else {
            path.extend_from_slice(&self.root);
            path.push(b'/');
            path.extend_from_slice(&self.path);
        }
    }

    /// The entry of the file at `path`, without the fields that depend on its kind.
    fn entry_of(&mut self, metadata: &Metadata, kind: EntryKind) -> Entry {
        let is_file = kind == EntryKind::File;
        Entry {
            path: self.entry_path(&self.path),
            kind,
            mode: metadata.mode,
            owner: self.owners.get(metadata.uid, metadata.gid),
            modified: metadata.modified,
            size_bytes: if is_file { metadata.size_bytes } else { 0 },
            device: metadata.device,
            ..Entry::default()
        }
    }

    fn entry_path(&self, relative: &[u8]) -> Vec<u8> {
        match (&self.name[..], relative) {
            ([], []) => ROOT_PATH.to_vec(),
            ([], relative) => relative.to_vec(),
            (name, []) => name.to_vec(),
            (name, relative) => [name, b"/", relative].concat(),
        }
    }

    /// Returns the entry of the deepest directory, now or with the first entry below it.
    fn return_directory(&mut self, entry: Entry, is_pending: bool) {
        if is_pending {
            self.pending.push((self.directories.depth(), entry))
        } else {
            self.return_entry(entry)
        }
    }

    /// Returns an entry, preceded by the pending directories above it.
    fn return_entry(&mut self, entry: Entry) {
        let pending = self.pending.drain(..).map(|(_, entry)| entry);
        self.ready.extend(pending);
        self.ready.push_back(entry);
    }

    /// Reports the listed paths below something that is not a directory.
    fn report_below(&mut self, children: &Children) -> io::Result<()> {
        self.report_listed(children.positions.clone())
    }

    /// Reports listed paths with a name that does not exist.
    fn report_missing(&mut self, children: Option<&Children>) -> io::Result<()> {
        let Some(children) = children else {
            return Ok(());
        };
        let own = usize::from(children.is_listed);
        let positions = &children.positions;
        self.report_listed(positions.start.saturating_sub(own)..positions.end)
    }

    fn report_listed(&mut self, positions: Range<usize>) -> io::Result<()> {
        for position in positions {
            let Some(path) = self.listed.get(position) else {
                continue;
            };
            self.add_problem(Problem {
                path: self.entry_path(path),
                kind: ProblemKind::Vanished,
                text: "does not exist".to_string(),
            })?;
        }
        Ok(())
    }

    fn report_error(&mut self, error: &io::Error) -> io::Result<()> {
        use rustix::io::Errno;
        // A lack of resources says nothing about the file, and would affect the next one too.
        let lacks = [Errno::MFILE, Errno::NFILE, Errno::NOMEM].map(Errno::raw_os_error);
        if error
            .raw_os_error()
            .is_some_and(|code| lacks.contains(&code))
        {
            return Err(Problem::from_error(&self.entry_path(&self.path), error).into_error());
        }
        self.add_problem(Problem::from_error(&self.entry_path(&self.path), error))
    }

    fn report(&mut self, kind: ProblemKind, text: &str) -> io::Result<()> {
        self.add_problem(Problem {
            path: self.entry_path(&self.path),
            kind,
            text: text.to_string(),
        })
    }

    fn add_problem(&mut self, problem: Problem) -> io::Result<()> {
        if self.options.is_strict && problem.is_failure() {
            return Err(problem.into_error());
        }
        self.problems.push(problem);
        Ok(())
    }
}
