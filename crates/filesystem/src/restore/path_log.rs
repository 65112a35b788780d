//! Notes about paths, sorted by path, in bounded memory.
//!
//! What a restore notes about a directory is needed at the end, and an archive of a few kilobytes
//! may have a million directories with long paths. Notes are collected in memory; when there are
//! too many, they are sorted and written to a temporary file as a run, and the runs are merged at
//! the end.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;

use refrain_storage::{ScratchFile, Source, read_full};

use refrain_entries::compare_paths;

/// Notes in memory, in bytes: beyond this they are written to the file.
const BUFFER_BYTES_MAX: usize = 4 << 20;

/// How much of a run is written or read at once.
const WINDOW_BYTES: usize = 64 << 10;

/// The lengths of path and note, in front of both.
const HEAD_BYTES: usize = 8;

/// The memory of a note besides its bytes: its place in the order.
const PLACE_BYTES: usize = size_of::<usize>();

#[derive(Debug, Default)]
pub(super) struct PathLog {
    /// Notes one after the other, each with its head.
    buffer: Vec<u8>,
    /// Where they begin.
    starts: Vec<usize>,
    file: Option<ScratchFile>,
    /// The runs in the file, in the order they were written.
    runs: Vec<Range<u64>>,
    /// Set if the file cannot be written: then all notes stay in memory, because none may be lost.
    is_unwritable: bool,
}

impl PathLog {
    /// Adds a note. `create_file` creates the temporary file when it is needed.
    pub(super) fn add(
        &mut self,
        path: &[u8],
        note: &[u8],
        create_file: impl FnOnce() -> io::Result<ScratchFile>,
    ) {
        let added = HEAD_BYTES + path.len() + note.len();
        let present = self.buffer.len() + self.starts.len() * PLACE_BYTES;
        if present + added + PLACE_BYTES > BUFFER_BYTES_MAX && !self.starts.is_empty() {
            self.spill(create_file);
        }
        self.starts.push(self.buffer.len());
        // Paths and attributes are shorter than 4 GiB by the format's limits.
        for length in [path.len(), note.len()] {
            self.buffer.extend((length as u32).to_le_bytes());
        }
        self.buffer.extend_from_slice(path);
        self.buffer.extend_from_slice(note);
    }

    /// Passes on all notes in descending order of paths, so that the contents of a directory
    /// precede it; notes of one path in the order they were added.
    ///
    /// # Errors
    ///
    /// If the temporary file cannot be read.
    pub(super) fn drain(mut self, each: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<()> {
        self.sort();
        let window_bytes = (BUFFER_BYTES_MAX / self.runs.len().max(1)).min(WINDOW_BYTES);
        let mut sources: Vec<Cursor<'_>> = Vec::with_capacity(self.runs.len() + 1);
        for run in &self.runs {
            sources.push(Cursor::Run(RunReader {
                file: self.file.as_ref(),
                left: run.clone(),
                window: Vec::new(),
                position: 0,
                window_bytes,
            }));
        }
        sources.push(Cursor::Memory(&self.buffer, self.starts.iter()));
        let mut heads = BinaryHeap::with_capacity(sources.len());
        for (source, cursor) in sources.iter_mut().enumerate() {
            heads.extend(cursor.next(source)?);
        }
        while let Some(head) = heads.pop() {
            each(&head.path, &head.note);
            if let Some(cursor) = sources.get_mut(head.source) {
                heads.extend(cursor.next(head.source)?);
            }
        }
        Ok(())
    }

    fn sort(&mut self) {
        let buffer = &self.buffer;
        let path = |start: &usize| note_at(buffer, *start).map_or(&b""[..], |(path, _)| path);
        self.starts.sort_by(|a, b| compare_paths(path(b), path(a)));
    }

    /// Writes the notes in memory as a run.
    fn spill(&mut self, create_file: impl FnOnce() -> io::Result<ScratchFile>) {
        if self.is_unwritable {
            return;
        }
        self.sort();
        if self.write_run(create_file).is_err() {
            self.is_unwritable = true;
            return;
        }
        self.buffer.clear();
        self.starts.clear();
    }

    fn write_run(
        &mut self,
        create_file: impl FnOnce() -> io::Result<ScratchFile>,
    ) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => create_file()?,
        };
        let file = self.file.insert(file);
        let start = self.runs.last().map_or(0, |run| run.end);
        let (mut end, mut window) = (start, Vec::with_capacity(WINDOW_BYTES));
        for place in &self.starts {
            let Some((path, note)) = note_at(&self.buffer, *place) else {
                continue;
            };
            let length = HEAD_BYTES + path.len() + note.len();
            let whole = self.buffer.get(*place..*place + length);
            window.extend_from_slice(whole.unwrap_or_default());
            if window.len() >= WINDOW_BYTES {
                file.write_at(end, &window)?;
                end += window.len() as u64;
                window.clear();
            }
        }
        file.write_at(end, &window)?;
        end += window.len() as u64;
        self.runs.push(start..end);
        Ok(())
    }
}

/// The path and note at an offset.
fn note_at(bytes: &[u8], start: usize) -> Option<(&[u8], &[u8])> {
    let (path_bytes, note_bytes) = lengths(bytes.get(start..)?)?;
    let rest = bytes.get(start + HEAD_BYTES..)?;
    let (path, rest) = rest.split_at_checked(path_bytes)?;
    Some((path, rest.get(..note_bytes)?))
}

fn lengths(head: &[u8]) -> Option<(usize, usize)> {
    let (path, rest) = head.split_first_chunk::<4>()?;
    let note = rest.first_chunk::<4>()?;
    let length = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
    Some((length(path), length(note)))
}

/// The next note of a run.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    path: Vec<u8>,
    note: Vec<u8>,
    source: usize,
}

impl Ord for Head {
    /// The greatest comes first: the last path, and for equal paths the earliest run.
    fn cmp(&self, other: &Head) -> Ordering {
        let by_path = compare_paths(&self.path, &other.path);
        by_path.then_with(|| other.source.cmp(&self.source))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

enum Cursor<'a> {
    Memory(&'a [u8], std::slice::Iter<'a, usize>),
    Run(RunReader<'a>),
}

impl Cursor<'_> {
    fn next(&mut self, source: usize) -> io::Result<Option<Head>> {
        let found = match self {
            Cursor::Memory(buffer, starts) => starts
                .next()
                .and_then(|start| note_at(buffer, *start))
                .map(|(path, note)| (path.to_vec(), note.to_vec())),
            Cursor::Run(run) => run.next()?,
        };
        Ok(found.map(|(path, note)| Head { path, note, source }))
    }
}

/// A run in the file.
struct RunReader<'a> {
    file: Option<&'a ScratchFile>,
    /// What is not in the window yet.
    left: Range<u64>,
    window: Vec<u8>,
    position: usize,
    window_bytes: usize,
}

impl RunReader<'_> {
    fn next(&mut self) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
        if self.position == self.window.len() && self.left.is_empty() {
            return Ok(None);
        }
        self.fill(HEAD_BYTES)?;
        let ahead = self.window.get(self.position..).unwrap_or_default();
        let (path_bytes, note_bytes) = lengths(ahead).ok_or_else(cut_short)?;
        self.fill(HEAD_BYTES + path_bytes + note_bytes)?;
        let (path, note) = note_at(&self.window, self.position).ok_or_else(cut_short)?;
        let found = (path.to_vec(), note.to_vec());
        self.position += HEAD_BYTES + path_bytes + note_bytes;
        Ok(Some(found))
    }

    /// Reads until the window has this many bytes ahead, or the run ends.
    fn fill(&mut self, ahead_bytes: usize) -> io::Result<()> {
        let present = self.window.len() - self.position;
        if present >= ahead_bytes {
            return Ok(());
        }
        let Some(file) = self.file else {
            return Err(cut_short());
        };
        self.window.drain(..self.position);
        self.position = 0;
        let left = usize::try_from(self.left.end - self.left.start).unwrap_or(usize::MAX);
        let count = (ahead_bytes - present).max(self.window_bytes).min(left);
        self.window.resize(present + count, 0);
        let (start, part) = (self.left.start, self.window.get_mut(present..));
        let read = read_full(start, part.unwrap_or_default(), |at, part| {
            file.read_at(at, part)
        })?;
        if read != count {
            return Err(cut_short());
        }
        self.left.start += count as u64;
        Ok(())
    }
}

fn cut_short() -> io::Error {
    let text = "the temporary file with the directories of the restore is cut short";
    io::Error::new(io::ErrorKind::UnexpectedEof, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(log: PathLog) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        log.drain(&mut |path, note| found.push((path.to_vec(), note.to_vec())))
            .unwrap();
        found
    }

    #[test]
    fn many_notes_come_back_in_order_and_memory_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let (mut log, mut expected) = (PathLog::default(), Vec::new());
        let mut state = 1_u64;
        for number in 0..30_000_u32 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let path = format!("{}/{}", "d".repeat(600), (state >> 40) % 9000);
            log.add(path.as_bytes(), &number.to_le_bytes(), || {
                ScratchFile::create(directory.path())
            });
            assert!(log.buffer.capacity() <= 2 * BUFFER_BYTES_MAX);
            expected.push((path.into_bytes(), number.to_le_bytes().to_vec()));
        }
        assert!(log.runs.len() > 2, "{:?}", log.runs);
        expected.sort_by(|a, b| compare_paths(&b.0, &a.0));
        assert!(drained(log) == expected);
    }

    #[test]
    fn without_a_file_all_remains_in_memory() {
        let mut log = PathLog::default();
        for number in 0..10_u8 {
            log.add(&[b'a' + number], &vec![number; 1 << 20], || {
                Err(io::ErrorKind::PermissionDenied.into())
            });
        }
        let found = drained(log);
        assert_eq!(found.len(), 10);
        assert_eq!(found[0], (b"j".to_vec(), vec![9; 1 << 20]));
    }
}
