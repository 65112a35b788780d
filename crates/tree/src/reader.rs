//! A directory as a tar stream.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::entry::{Entry, EntryKind, Timestamp};
use crate::header::TarHeader;
use crate::open::{descending, open_regular_file};
use crate::prefetch::Prefetcher;
use crate::tar::record::{RECORD_BYTES, padding_bytes};

/// The end mark: two records of zeros.
const END_MARK_BYTES: usize = 2 * RECORD_BYTES;

/// The path of the entry of the root itself, which records its mode and time.
const ROOT_PATH: &[u8] = b".";

/// One header of the stream with its entry's data, as a [`HeaderObserver`] receives it.
#[derive(Debug, Clone, Copy)]
pub struct StreamedHeader<'a> {
    /// The offset of the header in the stream; the data follows the header.
    pub offset: u64,
    /// The header, pax records included: a multiple of 512 bytes.
    pub header: &'a [u8],
    /// The number of bytes of data, without the padding up to the next multiple of 512.
    pub size_bytes: u64,
    /// The path of the file that holds the data, relative to the root; empty without data.
    pub path: &'a Path,
}

/// Receives every header when the reader makes it, before its bytes can be read.
pub type HeaderObserver = Box<dyn FnMut(&StreamedHeader<'_>) + Send>;

/// Reads a directory as a deterministic tar stream and collects its entry list.
///
/// The root comes first (as `./`), then each directory before its contents, names in ascending byte
/// order. The same directory gives the same bytes on every machine: no user names, no access times,
/// no inode numbers. Memory does not depend on the size of files; it holds the entry list, and the
/// names of one directory for each level of depth.
///
/// A file whose size changes while it is read is padded or truncated to the size in its header,
/// with a notice. Sockets, and entries that vanish before they are reached, are skipped with a
/// notice. An entry that cannot be read is an error: an archive must not be silently incomplete.
pub struct TreeReader {
    root: PathBuf,
    /// The prefix of every path in the stream; may be empty.
    prefix: PathBuf,
    /// The directories whose entries are being read, the deepest last.
    listings: Vec<DirectoryListing>,
    /// Bytes to return next: headers, padding, the end mark.
    ready: io::Cursor<Vec<u8>>,
    file: Option<FileReader>,
    is_root_written: bool,
    is_end_written: bool,
    /// The number of bytes returned or ready, which is the offset of the next header or data.
    offset: u64,
    entries: Vec<Entry>,
    /// The path that was archived first, by device and inode, of files with several links.
    links: BTreeMap<(u64, u64), Vec<u8>>,
    notices: Vec<String>,
    observer: Option<HeaderObserver>,
    pub(crate) prefetcher: Option<Prefetcher>,
}

/// The names of a directory that have not been read yet, in descending order.
#[derive(Debug)]
struct DirectoryListing {
    path: PathBuf,
    names: Vec<OsString>,
}

/// The file whose data is being read.
#[derive(Debug)]
struct FileReader {
    file: File,
    path: PathBuf,
    remaining: u64,
    padding: u64,
    /// Whether the file ended before the size in its header.
    is_short: bool,
    /// The time of opening by the prefetcher's clock; `None` after the first read.
    opened_ns: Option<u64>,
}

impl TreeReader {
    /// Starts a stream of the directory `root`.
    ///
    /// # Errors
    ///
    /// When `root` is not a directory that can be listed.
    pub fn open(root: &Path) -> io::Result<TreeReader> {
        TreeReader::open_named(root, Path::new(""))
    }

    /// Starts a stream in which every path begins with `name`, as with `tar -c NAME`.
    ///
    /// # Errors
    ///
    /// As [`TreeReader::open`].
    pub fn open_named(root: &Path, name: &Path) -> io::Result<TreeReader> {
        let listing = DirectoryListing::read(root, PathBuf::new())?;
        Ok(TreeReader::start(root, name, listing, false))
    }

    /// Starts a stream of these paths below `root` and of everything below them, without `root`
    /// itself and the directories that lead to them, as with `tar -c NAME/PATH`.
    pub fn open_paths(root: &Path, name: &Path, paths: Vec<OsString>) -> TreeReader {
        let path = PathBuf::new();
        let listing = DirectoryListing::of_names(path, paths);
        TreeReader::start(root, name, listing, true)
    }

    fn start(
        root: &Path,
        name: &Path,
        listing: DirectoryListing,
        is_root_written: bool,
    ) -> TreeReader {
        TreeReader {
            root: root.to_path_buf(),
            prefix: name.to_path_buf(),
            listings: vec![listing],
            ready: io::Cursor::default(),
            file: None,
            is_root_written,
            is_end_written: false,
            offset: 0,
            entries: Vec::new(),
            links: BTreeMap::new(),
            notices: Vec::new(),
            observer: None,
            prefetcher: None,
        }
    }

    /// Starts threads that request readahead for the next files while opening files is slow.
    pub fn start_prefetching(&mut self) {
        self.prefetcher = Some(Prefetcher::new(&self.root));
    }

    /// Calls `observer` for every header from now on.
    pub fn observe_headers(&mut self, observer: HeaderObserver) {
        self.observer = Some(observer);
    }

    /// The directory that is read.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes the entries collected so far; all of them once the stream has ended.
    pub fn take_entries(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries)
    }

    /// Takes the notices since the last call: files that changed, vanished or were skipped.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Prepares the next header, or the end mark.
    fn advance(&mut self) -> io::Result<()> {
        if !self.is_root_written {
            self.is_root_written = true;
            let metadata = with_path(&self.root, fs::metadata(&self.root))?;
            return self.add(PathBuf::new(), &metadata);
        }
        while let Some(listing) = self.listings.last_mut() {
            match listing.names.pop() {
                Some(name) => {
                    let path = listing.path.join(name);
                    return self.add_path(path);
                }
                None => {
                    self.listings.pop();
                }
            }
        }
        if !self.is_end_written {
            self.is_end_written = true;
            self.make_ready(vec![0; END_MARK_BYTES]);
        }
        Ok(())
    }

    fn add_path(&mut self, path: PathBuf) -> io::Result<()> {
        let full = self.root.join(&path);
        match fs::symlink_metadata(&full) {
            Ok(metadata) => self.add(path, &metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.notice_vanished(&path);
                Ok(())
            }
            error => with_path(&full, error).map(drop),
        }
    }

    fn notice_vanished(&mut self, path: &Path) {
        self.notices
            .push(format!("{}: vanished before it was read", path.display()));
    }

    /// Adds one entry.
    fn add(&mut self, path: PathBuf, metadata: &Metadata) -> io::Result<()> {
        let full = self.root.join(&path);
        let kind = metadata.file_type();
        let mut header = header_of(&self.path_in_stream(&path), metadata);
        if kind.is_dir() {
            return self.add_directory(path, header);
        }
        if kind.is_socket() {
            self.notices
                .push(format!("{}: skipped: a socket", path.display()));
            return Ok(());
        }
        if self.is_second_link(&mut header, metadata) {
            self.add_header(header, Path::new(""));
            return Ok(());
        }
        if kind.is_file() {
            return self.add_file(path, header);
        }
        if kind.is_symlink() {
            header.kind = EntryKind::Symlink;
            header.link = with_path(&full, fs::read_link(&full))?
                .into_os_string()
                .into_vec();
        } else if kind.is_fifo() {
            header.kind = EntryKind::Fifo;
        } else {
            let is_block = kind.is_block_device();
            header.kind = if is_block {
                EntryKind::BlockDevice
            } else {
                EntryKind::CharacterDevice
            };
            let device = metadata.rdev();
            header.device = (rustix::fs::major(device), rustix::fs::minor(device));
        }
        self.add_header(header, Path::new(""));
        Ok(())
    }

    fn path_in_stream(&self, path: &Path) -> PathBuf {
        match path.as_os_str().is_empty() {
            // `join` would append a slash.
            true => self.prefix.clone(),
            false => self.prefix.join(path),
        }
    }

    fn add_directory(&mut self, path: PathBuf, mut header: TarHeader) -> io::Result<()> {
        header.kind = EntryKind::Directory;
        // `open` has listed the root.
        if !path.as_os_str().is_empty() {
            match DirectoryListing::read(&self.root.join(&path), path.clone()) {
                Ok(listing) => self.listings.push(listing),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.notice_vanished(&path);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.add_header(header, Path::new(""));
        Ok(())
    }

    fn add_file(&mut self, path: PathBuf, mut header: TarHeader) -> io::Result<()> {
        let full = self.root.join(&path);
        let opened_ns = self.prefetcher.as_ref().map(Prefetcher::now_ns);
        let file = match open_regular_file(&full) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.notice_vanished(&path);
                return Ok(());
            }
            error => with_path(&full, error)?,
        };
        // The metadata of the open file: the name may refer to another file meanwhile.
        let metadata = with_path(&full, file.metadata())?;
        if !metadata.is_file() {
            self.notices.push(format!(
                "{}: skipped: replaced while it was read",
                path.display()
            ));
            return Ok(());
        }
        header.size_bytes = metadata.len();
        let (remaining, padding) = (header.size_bytes, padding_bytes(header.size_bytes));
        self.add_header(header, &path);
        self.file = Some(FileReader {
            file,
            path,
            remaining,
            padding,
            is_short: false,
            opened_ns,
        });
        Ok(())
    }

    /// Turns the header of a file that was archived under another name into a hard link to it.
    fn is_second_link(&mut self, header: &mut TarHeader, metadata: &Metadata) -> bool {
        if metadata.nlink() < 2 {
            return false;
        }
        match self.links.entry((metadata.dev(), metadata.ino())) {
            std::collections::btree_map::Entry::Occupied(first) => {
                header.kind = EntryKind::Hardlink;
                header.link = first.get().clone();
                header.size_bytes = 0;
                true
            }
            std::collections::btree_map::Entry::Vacant(first) => {
                first.insert(header.path.clone());
                false
            }
        }
    }

    /// Adds a header and its entry. `path` is the path of the file that holds the data, relative to
    /// the root; it is empty without data.
    fn add_header(&mut self, mut header: TarHeader, path: &Path) {
        let mut entry = entry_of(&header);
        if header.kind == EntryKind::Directory {
            header.path.push(b'/');
        }
        let bytes = header.encode();
        if let Some(observer) = &mut self.observer {
            observer(&StreamedHeader {
                offset: self.offset,
                header: &bytes,
                size_bytes: header.size_bytes,
                path,
            });
        }
        self.make_ready(bytes);
        entry.content_offset = self.offset;
        self.entries.push(entry);
    }

    fn make_ready(&mut self, bytes: Vec<u8>) {
        self.offset = self.offset.saturating_add(bytes.len() as u64);
        self.ready = io::Cursor::new(bytes);
    }

    /// Reads data of the open file. Returns zero if no file is open or its data is complete.
    fn read_file(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else {
            return Ok(0);
        };
        let length = usize::try_from(file.remaining)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let piece = buffer.get_mut(..length).unwrap_or_default();
        let full = self.root.join(&file.path);
        let read = file
            .read(piece)
            .map_err(|error| read_error(&full, &error))?;
        self.offset = self.offset.saturating_add(read as u64);
        if let (Some(prefetcher), Some(since_ns)) = (&self.prefetcher, file.opened_ns.take()) {
            prefetcher.file_read(Some(since_ns));
        }
        if file.remaining == 0 {
            self.notices.extend(file.change_notice());
            let padding = usize::try_from(file.padding).unwrap_or(0);
            self.file = None;
            self.make_ready(vec![0; padding]);
        }
        Ok(read)
    }
}

impl FileReader {
    /// Reads the next data, or zeros if the file has ended too early.
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        if !self.is_short && !piece.is_empty() {
            read = loop {
                match self.file.read(piece) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => break result?,
                }
            };
            self.is_short = read == 0;
        }
        if self.is_short {
            piece.fill(0);
            read = piece.len();
        }
        self.remaining = self.remaining.saturating_sub(read as u64);
        Ok(read)
    }

    /// The notice for a file whose length differs from its header.
    fn change_notice(&mut self) -> Option<String> {
        let path = self.path.display();
        if self.is_short {
            return Some(format!(
                "{path}: shrank while it was read; padded with zeros"
            ));
        }
        match self.file.read(&mut [0; 1]) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(format!(
                "{path}: grew while it was read; truncated to its initial size"
            )),
        }
    }
}

impl std::fmt::Debug for TreeReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeReader")
            .field("root", &self.root)
            .field("offset", &self.offset)
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl Read for TreeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let read = self.ready.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            let read = self.read_file(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            let is_at_end = self.is_end_written && self.is_ready_empty();
            if is_at_end {
                return Ok(0);
            }
            if self.file.is_none() && self.is_ready_empty() {
                self.advance()?;
            }
        }
    }
}

impl TreeReader {
    #[cfg(test)]
    pub(crate) fn entry_count(&self) -> usize {
        self.entries.len()
    }

    fn is_ready_empty(&self) -> bool {
        self.ready.position() >= self.ready.get_ref().len() as u64
    }
}

impl DirectoryListing {
    /// Lists `full`, whose path in the tree is `path`.
    fn read(full: &Path, path: PathBuf) -> io::Result<DirectoryListing> {
        let mut names = Vec::new();
        for entry in with_path(full, fs::read_dir(full))? {
            names.push(with_path(full, entry)?.file_name());
        }
        Ok(DirectoryListing::of_names(path, names))
    }

    /// Puts the names into order: that of the file system varies. Names are taken from the end.
    fn of_names(path: PathBuf, mut names: Vec<OsString>) -> DirectoryListing {
        names.sort_unstable_by(|a, b| descending(a, b));
        DirectoryListing { path, names }
    }
}

fn header_of(path: &Path, metadata: &Metadata) -> TarHeader {
    let path = path.as_os_str().as_bytes();
    TarHeader {
        path: if path.is_empty() {
            ROOT_PATH.to_vec()
        } else {
            path.to_vec()
        },
        kind: EntryKind::File,
        mode: metadata.mode() & 0o7777,
        uid: u64::from(metadata.uid()),
        gid: u64::from(metadata.gid()),
        size_bytes: 0,
        modified: Timestamp {
            seconds: metadata.mtime(),
            nanoseconds: u32::try_from(metadata.mtime_nsec()).unwrap_or(0),
        },
        link: Vec::new(),
        device: (0, 0),
    }
}

fn entry_of(header: &TarHeader) -> Entry {
    Entry {
        path: header.path.clone(),
        kind: header.kind,
        mode: header.mode,
        modified: header.modified,
        size_bytes: header.size_bytes,
        content_offset: 0,
        link_target: (!header.link.is_empty()).then(|| header.link.clone()),
        ..Entry::default()
    }
}

/// Adds the path to an error of the operating system.
fn with_path<T>(path: &Path, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| read_error(path, &error))
}

fn read_error(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("read {}: {error}", path.display()))
}
