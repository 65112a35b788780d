//! A directory as a tar stream.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::open::{descending, open_regular_file};
use crate::prefetch::Prefetcher;
use crate::stream_file::{FileReader, SmallFile, read_small};
use crate::walk::{OWN_OUTPUT_TEXT, Problem, ProblemKind};
use refrain_entries::{Entry, EntryKind, RECORD_BYTES, TarHeader, Timestamp};

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

/// Receives what is missing in the stream, or is not as it was at one moment.
pub type ProblemObserver = Box<dyn FnMut(Problem) + Send>;

/// Reads a directory as a deterministic tar stream and collects its entry list.
///
/// The root comes first (as `./`), then each directory before its contents, names in ascending byte
/// order. The same directory gives the same bytes on every machine: no user names, no access times,
/// no inode numbers. Memory does not depend on the size of files; it holds the entry list, and the
/// names of one directory for each level of depth.
///
/// A small file is read before its header is made, which states what was read. The header of a
/// large one states the size of the file when it was opened: if that changes while it is read, the
/// data is padded or truncated. That, and everything that cannot be read and is left out, is a
/// [`Problem`] (see [`observe_problems`](TreeReader::observe_problems)). Only a root that cannot be
/// listed is an error.
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
    observer: Option<HeaderObserver>,
    problem_observer: Option<ProblemObserver>,
    pub(crate) prefetcher: Option<Prefetcher>,
    /// The devices and inodes of files that are left out.
    own_outputs: Vec<(u64, u64)>,
}

/// The names of a directory that have not been read yet, in descending order.
#[derive(Debug)]
struct DirectoryListing {
    path: PathBuf,
    names: Vec<OsString>,
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
            observer: None,
            problem_observer: None,
            prefetcher: None,
            own_outputs: Vec::new(),
        }
    }

    /// Starts threads that request readahead for the next files while opening files is slow.
    pub fn start_prefetching(&mut self) {
        self.prefetcher = Some(Prefetcher::new(&self.root));
    }

    /// Leaves out the files with these devices and inodes, which the run itself writes or is about
    /// to replace, with a notice.
    pub fn leave_out(&mut self, own_outputs: Vec<(u64, u64)>) {
        self.own_outputs = own_outputs;
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

    /// Calls `observer` for every problem from now on.
    pub fn observe_problems(&mut self, observer: ProblemObserver) {
        self.problem_observer = Some(observer);
    }

    fn report(&mut self, path: &Path, kind: ProblemKind, text: impl Into<String>) {
        let path = self.bytes_in_stream(path);
        let text = text.into();
        if let Some(observer) = &mut self.problem_observer {
            observer(Problem { path, kind, text });
        }
    }

    fn report_error(&mut self, path: &Path, error: &io::Error) {
        let problem = Problem::of_error(&self.bytes_in_stream(path), error);
        if let Some(observer) = &mut self.problem_observer {
            observer(problem);
        }
    }

    /// The path of an entry in the stream.
    fn bytes_in_stream(&self, path: &Path) -> Vec<u8> {
        match self.path_in_stream(path).into_os_string().into_vec() {
            path if path.is_empty() => ROOT_PATH.to_vec(),
            path => path,
        }
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
            Err(error) => {
                self.report_error(&path, &error);
                Ok(())
            }
        }
    }

    /// Adds one entry.
    fn add(&mut self, path: PathBuf, metadata: &Metadata) -> io::Result<()> {
        let full = self.root.join(&path);
        let kind = metadata.file_type();
        let mut header = header_of(&self.path_in_stream(&path), metadata);
        if kind.is_dir() {
            self.add_directory(path, header);
            return Ok(());
        }
        if kind.is_socket() {
            self.report(&path, ProblemKind::Skipped, "is a socket");
            return Ok(());
        }
        if kind.is_file() && self.own_outputs.contains(&(metadata.dev(), metadata.ino())) {
            self.report(&path, ProblemKind::OwnOutput, OWN_OUTPUT_TEXT);
            return Ok(());
        }
        if self.is_second_link(&mut header, metadata) {
            self.add_header(header, Path::new(""));
            return Ok(());
        }
        if kind.is_file() {
            if !self.add_file(path) {
                // Its next name is the first one in the stream.
                self.links.remove(&(metadata.dev(), metadata.ino()));
            }
            return Ok(());
        }
        if kind.is_symlink() {
            header.kind = EntryKind::Symlink;
            match fs::read_link(&full) {
                Ok(target) => header.link = target.into_os_string().into_vec(),
                Err(error) => {
                    self.report_error(&path, &error);
                    return Ok(());
                }
            }
        } else if kind.is_fifo() {
            header.kind = EntryKind::Fifo;
        } else {
            let is_block = kind.is_block_device();
            header.kind =
                if is_block { EntryKind::BlockDevice } else { EntryKind::CharacterDevice };
            let device = metadata.rdev();
            header.device = (rustix::fs::major(device), rustix::fs::minor(device));
        }
        self.add_header(header, Path::new(""));
        Ok(())
    }

    fn path_in_stream(&self, path: &Path) -> PathBuf {
        if path.as_os_str().is_empty() {
            self.prefix.clone()
        } else {
            self.prefix.join(path)
        }
    }

    fn add_directory(&mut self, path: PathBuf, mut header: TarHeader) {
        header.kind = EntryKind::Directory;
        // `open` has listed the root.
        if !path.as_os_str().is_empty() {
            match DirectoryListing::read(&self.root.join(&path), path.clone()) {
                Ok(listing) => self.listings.push(listing),
                Err(error) => {
                    self.report_error(&path, &error);
                    if error.kind() == io::ErrorKind::NotFound {
                        return;
                    }
                }
            }
        }
        self.add_header(header, Path::new(""));
    }

    /// Adds a file. Returns whether it is in the stream.
    fn add_file(&mut self, path: PathBuf) -> bool {
        let opened_ns = self.prefetcher.as_ref().map(Prefetcher::now_ns);
        let opened = open_regular_file(&self.root.join(&path));
        // The metadata of the open file: the name may refer to another file meanwhile.
        let opened = opened.and_then(|file| file.metadata().map(|found| (file, found)));
        let (file, metadata) = match opened {
            Ok((file, metadata)) if metadata.is_file() => (file, metadata),
            Ok(_) => {
                self.report(
                    &path,
                    ProblemKind::Changed,
                    "was replaced by something else",
                );
                return false;
            }
            Err(error) => {
                self.report_error(&path, &error);
                return false;
            }
        };
        let mut header = header_of(&self.path_in_stream(&path), &metadata);
        let reader = match read_small(&file, &metadata) {
            Ok(SmallFile::Read { data, problem }) => {
                if let Some(text) = problem {
                    self.report(&path, ProblemKind::Changed, text);
                }
                FileReader::of_data(data, opened_ns)
            }
            Ok(SmallFile::TooLarge(text)) => {
                self.report(&path, ProblemKind::Unreadable, text);
                return false;
            }
            Ok(SmallFile::Large) => FileReader::of_file(file, path.clone(), &metadata, opened_ns),
            Err(error) => {
                self.report_error(&path, &error);
                return false;
            }
        };
        header.size_bytes = reader.remaining_bytes();
        self.add_header(header, &path);
        self.file = Some(reader);
        true
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
        let read = file.read(buffer);
        let end = file.end();
        self.offset = self.offset.saturating_add(read as u64);
        if let (Some(prefetcher), Some(since_ns)) = (&self.prefetcher, file.opened_ns.take()) {
            prefetcher.file_read(Some(since_ns));
        }
        if let Some(end) = end {
            let path = file.path.clone();
            self.file = None;
            if let Some((kind, text)) = end.problem {
                self.report(&path, kind, text);
            }
            self.make_ready(vec![0; end.padding_bytes]);
        }
        Ok(read)
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
        path: if path.is_empty() { ROOT_PATH.to_vec() } else { path.to_vec() },
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
