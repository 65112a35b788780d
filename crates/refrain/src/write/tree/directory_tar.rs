//! A directory as a tar stream, for archives without entries: the canonical view of what a walk
//! finds. Only here is a tree read by one thread, in path order.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Cursor, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use refrain_entries::tar::TarView;
use refrain_entries::{Entry, EntryKind};
use refrain_filesystem::{FileRoot, OpenedFile, Prefetcher, Problem, ProblemKind, Walker};

use crate::write::tree::batch_bytes::BatchBytes;
use crate::write::tree::feed::Problems;
use crate::write::tree::file_data::{self, Piece, WHOLE_BYTES_MAX, pieces, read_piece, read_whole};
use crate::write::tree::reread::{DataLocation, RereadLog};

/// How many entries are listed at once and their files prefetched.
const LISTED: usize = 1024;

/// A directory read as a tar stream.
pub(crate) struct DirectoryTar {
    pub walker: Walker,
    pub root: FileRoot,
    pub root_path: PathBuf,
    /// What is in the stream, for reading it again.
    pub log: RereadLog,
    /// Paths relative to the root, if only these are in the stream, without the directories above.
    pub paths: Option<Vec<Vec<u8>>>,
    /// Whether an unreadable file is an error.
    pub is_strict: bool,
    pub member: usize,
    pub problems: Problems,
}

/// The reader of a [`DirectoryTar`]. Memory: the entries listed at once, one file of at most
/// [`WHOLE_BYTES_MAX`], and the paths of unreadable files.
pub(crate) struct DirectoryTarReader {
    directory: DirectoryTar,
    view: TarView,
    /// The next entries, the first one last.
    listed: Vec<Entry>,
    prefetcher: Option<Prefetcher>,
    /// The bytes to return next.
    ready: Cursor<Vec<u8>>,
    large: Option<LargeFile>,
    /// The bytes of the stream before the next entry.
    offset: u64,
    /// The paths of files that are not in the stream, in case hard links to them follow.
    left_out: BTreeSet<Vec<u8>>,
    has_ended: bool,
}

/// A file read piece by piece.
struct LargeFile {
    entry: Entry,
    file: OpenedFile,
    /// The pieces to read, the first one last.
    pieces: Vec<Piece>,
    padding_bytes: u64,
    /// Why the rest is zeros.
    missing: Option<Problem>,
}

impl DirectoryTar {
    pub(crate) fn into_reader(self) -> DirectoryTarReader {
        DirectoryTarReader {
            directory: self,
            view: TarView::canonical(),
            listed: Vec::new(),
            prefetcher: None,
            ready: Cursor::default(),
            large: None,
            offset: 0,
            left_out: BTreeSet::new(),
            has_ended: false,
        }
    }

    fn report(&self, problem: Problem) {
        self.problems.lock().push((self.member, problem));
    }

    /// Whether the entry only leads to the listed paths.
    fn is_above(&self, entry: &Entry) -> bool {
        let relative = self.walker.relative_path(entry);
        let is_inside = |path: &Vec<u8>| {
            let rest = path.strip_prefix(relative);
            rest.is_some_and(|rest| relative.is_empty() || rest.first() == Some(&b'/'))
        };
        entry.kind == EntryKind::Directory
            && (self.paths.as_ref()).is_some_and(|paths| paths.iter().any(is_inside))
    }
}

impl DirectoryTarReader {
    /// Prepares the next bytes; none at the end of the stream.
    fn advance(&mut self) -> io::Result<()> {
        while self.ready.get_ref().is_empty() && !self.has_ended {
            if let Some(large) = self.large.take() {
                self.add_piece(large)?;
            } else if let Some(entry) = self.next_entry()? {
                self.add(entry)?;
            } else {
                self.has_ended = true;
                let end_mark = vec![0; self.view.end().padding_bytes as usize];
                self.directory.log.add_bytes(self.offset, &end_mark);
                self.ready = Cursor::new(end_mark);
            }
        }
        Ok(())
    }

    fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        if self.listed.is_empty() {
            self.listed = self.directory.walker.next_entries(LISTED)?;
            self.directory
                .walker
                .take_problems()
                .into_iter()
                .for_each(|problem| {
                    self.directory.report(problem);
                });
            let walker = &self.directory.walker;
            let files = self
                .listed
                .iter()
                .filter(|entry| entry.kind == EntryKind::File);
            let path = |entry| PathBuf::from(OsStr::from_bytes(walker.relative_path(entry)));
            self.prefetcher = Some(Prefetcher::new(&self.directory.root_path, files.map(path)));
            self.listed.reverse();
        }
        Ok(self.listed.pop())
    }

    fn add(&mut self, entry: Entry) -> io::Result<()> {
        match entry.kind {
            EntryKind::File => self.add_file(entry),
            EntryKind::Hardlink if self.is_left_out(&entry) => {
                self.directory.report(Problem {
                    kind: ProblemKind::Unreadable,
                    text: "is a hard link to a file that could not be read".into(),
                    path: entry.path,
                });
                Ok(())
            }
            _ if self.directory.is_above(&entry) => Ok(()),
            _ => {
                self.begin(&entry)?;
                Ok(())
            }
        }
    }

    fn is_left_out(&self, link: &Entry) -> bool {
        link.link_target
            .as_ref()
            .is_some_and(|target| self.left_out.contains(target))
    }

    /// Begins an entry with its header. Returns the length of the padding after its data.
    fn begin(&mut self, entry: &Entry) -> io::Result<u64> {
        let item = self.view.entry(entry).map_err(io::Error::other)?;
        self.directory.log.add_bytes(self.offset, &item.header);
        self.offset += item.header.len() as u64;
        let all = 0..entry.size_bytes;
        let ranges = match &entry.data_ranges {
            _ if entry.kind != EntryKind::File => &[],
            Some(ranges) => &ranges[..],
            None => std::slice::from_ref(&all),
        };
        for (index, data) in ranges.iter().enumerate() {
            // What follows the data in the file, its end or a hole, reads as zeros: the padding.
            let is_last = index + 1 == ranges.len();
            let padding_bytes = if is_last { item.padding_bytes } else { 0 };
            let location = DataLocation {
                start: self.offset,
                length_bytes: data.end - data.start + padding_bytes,
                path: &entry.path,
                offset_in_file: data.start,
            };
            self.directory.log.add(&location);
            self.offset += location.length_bytes;
        }
        self.ready = Cursor::new(item.header);
        Ok(item.padding_bytes)
    }

    fn add_file(&mut self, listed: Entry) -> io::Result<()> {
        let since_ns = self.prefetcher.as_ref().map(Prefetcher::now_ns);
        let relative = self.directory.walker.relative_path(&listed);
        let mut bytes = BatchBytes::default();
        let opened = self.directory.root.open_file(relative);
        let read = opened.and_then(|file| Ok((read_whole(&file, &listed, &mut bytes)?, file)));
        if let Some(prefetcher) = &self.prefetcher {
            prefetcher.file_read(since_ns.filter(|_| listed.size_bytes <= WHOLE_BYTES_MAX));
        }
        let (problem, large) = match read {
            Err(error) => return self.leave_out(listed, error),
            Ok((file_data::Read::Whole { entry, problem }, _)) => {
                let padding_bytes = self.begin(&entry)?;
                let ready = self.ready.get_mut();
                ready.extend_from_slice(bytes.get(0..bytes.len()));
                ready.resize(ready.len() + padding_bytes as usize, 0);
                (problem, None)
            }
            Ok((file_data::Read::TooLarge { entry, .. }, _))
                if entry.stored_bytes() <= WHOLE_BYTES_MAX =>
            {
                let text = format!(
                    "states {} bytes and has more than {WHOLE_BYTES_MAX}, which a tar stream \
                     cannot hold",
                    entry.size_bytes
                );
                return self.leave_out(listed, io::Error::other(text));
            }
            Ok((file_data::Read::TooLarge { entry, problem }, file)) => {
                let mut pieces = pieces(&entry);
                pieces.reverse();
                let large = LargeFile {
                    padding_bytes: self.begin(&entry)?,
                    entry,
                    file,
                    pieces,
                    missing: None,
                };
                (problem, Some(large))
            }
        };
        self.large = large;
        problem
            .into_iter()
            .for_each(|problem| self.directory.report(problem));
        Ok(())
    }

    fn leave_out(&mut self, entry: Entry, error: io::Error) -> io::Result<()> {
        let problem = Problem::from_error(&entry.path, &error);
        if self.directory.is_strict && problem.kind != ProblemKind::Vanished {
            return Err(problem.into_error());
        }
        self.directory.report(problem);
        self.left_out.insert(entry.path);
        Ok(())
    }

    /// Prepares the next piece of a large file, or the padding after it. The header has stated the
    /// size, so missing data becomes zeros, and additional data is cut off.
    fn add_piece(&mut self, mut large: LargeFile) -> io::Result<()> {
        let Some(piece) = large.pieces.pop() else {
            self.ready = Cursor::new(vec![0; large.padding_bytes as usize]);
            large
                .missing
                .into_iter()
                .for_each(|problem| self.directory.report(problem));
            return Ok(());
        };
        let mut bytes = BatchBytes::default();
        if large.missing.is_none() {
            let read = read_piece(&large.file, &piece, &large.entry, &mut bytes);
            large.missing = match read {
                Ok((file_data::Follows::More, _)) => {
                    let text = "grew while it was read; cut at its initial size";
                    Some(file_data::changed_problem(&large.entry, text))
                }
                Ok((_, None)) if (bytes.len() as u64) < piece.range.end - piece.range.start => {
                    let text = "has less content than it states; the rest is zeros";
                    Some(file_data::changed_problem(&large.entry, text))
                }
                Ok((_, problem)) => problem,
                Err(error) => Some(Problem::from_error(&large.entry.path, &error)),
            };
            if self.directory.is_strict
                && let Some(problem) = large.missing.take_if(|problem| problem.is_failure())
            {
                return Err(problem.into_error());
            }
        }
        let mut ready = bytes.get(0..bytes.len()).to_vec();
        ready.resize((piece.range.end - piece.range.start) as usize, 0);
        self.ready = Cursor::new(ready);
        self.large = Some(large);
        Ok(())
    }
}

impl Read for DirectoryTarReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ready.position() == self.ready.get_ref().len() as u64 {
            self.ready = Cursor::default();
            self.advance()?;
        }
        self.ready.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::path::Path;

    use refrain_entries::tar::{SplitStep, TarSplitter};
    use refrain_filesystem::WalkOptions;
    use refrain_storage::Source;

    use crate::write::log_memory::LogMemory;

    const LARGE_BYTES: usize = 9 << 20;

    fn reader_of(root: &Path, paths: Option<&[&str]>) -> (DirectoryTarReader, Problems) {
        let paths = paths.map(|paths| paths.iter().map(|path| path.as_bytes().to_vec()).collect());
        let options = WalkOptions::default();
        let name = Path::new("name");
        let walker = match &paths {
            None => Walker::open(root, name, options),
            Some(paths) => Walker::for_paths(root, name, Vec::clone(paths), options),
        };
        let problems = Problems::default();
        let tar = DirectoryTar {
            walker: walker.unwrap(),
            root: FileRoot::open(root).unwrap(),
            root_path: root.to_path_buf(),
            log: RereadLog::new(LogMemory::new(1 << 20)),
            paths,
            is_strict: false,
            member: 3,
            problems: problems.clone(),
        };
        (tar.into_reader(), problems)
    }

    /// Path, kind and data of the entries of a tar stream. Checks its end mark.
    fn entries_of(mut stream: &[u8]) -> Vec<(String, EntryKind, Vec<u8>)> {
        assert_eq!(stream.len() % 512, 0);
        let (mut found, mut splitter) = (Vec::new(), TarSplitter::new());
        loop {
            let step = splitter.next(stream, true);
            let SplitStep::Item(item) = step else {
                panic!("no end mark");
            };
            if item.entry.kind == EntryKind::Raw {
                assert_eq!(stream, [0; 1024]);
                return found;
            }
            let data = &stream[item.header_bytes..][..item.data_bytes as usize];
            let path = String::from_utf8(item.entry.path).unwrap();
            found.push((path, item.entry.kind, data.to_vec()));
            stream = &stream[item.header_bytes + data.len() + item.padding_bytes as usize..];
        }
    }

    fn read_all(mut reader: DirectoryTarReader) -> Vec<(String, EntryKind, Vec<u8>)> {
        let mut stream = Vec::new();
        reader.read_to_end(&mut stream).unwrap();
        entries_of(&stream)
    }

    fn paths(found: &[(String, EntryKind, Vec<u8>)]) -> Vec<&str> {
        found.iter().map(|(path, ..)| path.as_str()).collect()
    }

    fn texts(problems: &Problems) -> Vec<(usize, String)> {
        let problems = problems.lock();
        problems
            .iter()
            .map(|(member, problem)| (*member, problem.text.clone()))
            .collect()
    }

    #[test]
    fn files_of_any_size_and_links_are_in_the_stream_in_path_order() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("d")).unwrap();
        let large: Vec<u8> = (0..LARGE_BYTES as u32)
            .map(|number| (number / 99) as u8)
            .collect();
        fs::write(root.path().join("d/large"), &large).unwrap();
        fs::write(root.path().join("d!"), "small").unwrap();
        fs::hard_link(root.path().join("d!"), root.path().join("e")).unwrap();
        let (mut reader, problems) = reader_of(root.path(), None);
        let log = reader.directory.log.clone();
        let mut stream = Vec::new();
        reader.read_to_end(&mut stream).unwrap();
        let found = entries_of(&stream);
        let source = log.source_of_files(
            FileRoot::open(root.path()).unwrap(),
            Path::new("name"),
            LogMemory::new(0),
        );
        let mut again = vec![0x55; stream.len() + 9];
        assert_eq!(source.read_at(0, &mut again).unwrap(), stream.len());
        assert!(again[..stream.len()] == stream);
        assert_eq!(
            paths(&found),
            ["name", "name/d", "name/d/large", "name/d!", "name/e"]
        );
        assert_eq!((&found[2].2, &found[3].2[..]), (&large, &b"small"[..]));
        assert_eq!(found[4].1, EntryKind::Hardlink);
        assert_eq!(texts(&problems), []);
    }

    #[test]
    fn listed_paths_come_without_the_directories_above_them() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::write(root.path().join("a/b/c"), "content").unwrap();
        fs::write(root.path().join("d"), "other").unwrap();
        let listed = |listed: &[&str]| {
            let found = read_all(reader_of(root.path(), Some(listed)).0);
            paths(&found).join(" ")
        };
        assert_eq!(listed(&["d"]), "name/d");
        assert_eq!(listed(&["a/b/c"]), "name/a/b/c");
        assert_eq!(listed(&["d", "a/b"]), "name/a/b name/a/b/c name/d");
        assert_eq!(listed(&["missing"]), "");
    }

    #[test]
    fn a_large_file_that_shrinks_or_grows_keeps_the_size_in_its_header() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log");
        for new_length in [10, 2 * LARGE_BYTES as u64] {
            fs::write(&path, vec![1; LARGE_BYTES]).unwrap();
            let (mut reader, problems) = reader_of(root.path(), None);
            // The header of the root, and a part of the file's group.
            let mut stream = vec![0; 2048];
            reader.read_exact(&mut stream).unwrap();
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(new_length)
                .unwrap();
            reader.read_to_end(&mut stream).unwrap();
            assert_eq!(entries_of(&stream)[1].2.len(), LARGE_BYTES);
            assert_eq!(texts(&problems).len(), 1, "{:?}", texts(&problems));
        }
    }

    #[test]
    fn what_vanishes_is_named_with_its_links_and_the_rest_follows() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(root.path().join(name), name).unwrap();
        }
        fs::hard_link(root.path().join("b"), root.path().join("link")).unwrap();
        let (mut reader, problems) = reader_of(root.path(), None);
        let mut stream = vec![0; 512];
        reader.read_exact(&mut stream).unwrap();
        // Everything is listed by now.
        fs::remove_file(root.path().join("b")).unwrap();
        reader.read_to_end(&mut stream).unwrap();
        assert_eq!(paths(&entries_of(&stream)), ["name", "name/a", "name/c"]);
        let texts = texts(&problems);
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[1].1.contains("hard link"), "{texts:?}");
    }

    #[test]
    fn files_that_state_no_size_are_in_the_stream_with_their_content() {
        let version = fs::read("/proc/version").unwrap();
        let found = read_all(reader_of(Path::new("/proc"), Some(&["version"])).0);
        assert_eq!(found[0].2, version);
    }
}
