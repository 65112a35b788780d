//! Reads the content of a tree again, for the match stage.
//!
//! While content is written, a log records where its data came from. The files may have changed
//! since, so the caller must verify what it gets, as the match stage does with a checksum for each
//! page.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain_codec::rebase::Code;
use refrain_filesystem::{FileRoot, relative_path};
use refrain_pool::Lock;
use refrain_storage::{Source, read_full};

use crate::store::machine_code::{header_bytes, read_converted};
use crate::store::opened_code::OpenedCode;
use crate::write::log_memory::LogMemory;
use crate::write::text_pages::TextPages;
use crate::write::tree::noted_code::NotedCode;

/// The initial capacity for records.
const RECORDS_MIN: usize = 1024;

/// Where a range of the content came from.
pub(crate) struct DataLocation<'a> {
    /// Its offset in the content.
    pub start: u64,
    pub length_bytes: u64,
    /// The path of the entry whose file has it; empty in a tar stream.
    pub path: &'a [u8],
    /// Its offset in the file, or in the tar stream.
    pub offset_in_file: u64,
}

#[derive(Debug, Clone, Copy)]
struct Record {
    start: u64,
    length_bytes: u64,
    offset_in_file: u64,
    /// The offset of the path in the log's text.
    path_start: u64,
    path_bytes: u32,
    /// Whether the text is not a path, but the bytes of the content themselves.
    is_content: bool,
}

struct Log {
    /// By ascending start, without gaps, up to `end`.
    records: Vec<Record>,
    paths: TextPages,
    /// The files whose code is rebased, as ranges of the content, ascending.
    rebased: Vec<Range<u64>>,
    memory: LogMemory,
    /// The content offset at which recording stopped because the memory was exhausted.
    end: Option<u64>,
}

impl Log {
    fn try_add(&mut self, location: &DataLocation<'_>) -> Option<()> {
        if let Some(last) = self.records.last_mut()
            && last.path_bytes == 0
            && location.path.is_empty()
            && last.start + last.length_bytes == location.start
            && last.offset_in_file + last.length_bytes == location.offset_in_file
        {
            last.length_bytes += location.length_bytes;
            return Some(());
        }
        self.push(location, false)
    }

    /// Adds a record whose text is the location's path, or the bytes of the content themselves.
    fn push(&mut self, location: &DataLocation<'_>, is_content: bool) -> Option<()> {
        if self.records.len() == self.records.capacity() {
            let more = (self.records.len() / 2).max(RECORDS_MIN);
            let bytes = (more * size_of::<Record>()) as u64;
            self.memory.reserve(bytes).then_some(())?;
            self.records.try_reserve_exact(more).ok()?;
        }
        self.records.push(Record {
            start: location.start,
            length_bytes: location.length_bytes,
            offset_in_file: location.offset_in_file,
            path_start: self.paths.length_bytes(),
            path_bytes: u32::try_from(location.path.len()).ok()?,
            is_content,
        });
        self.paths.append(location.path)
    }

    /// The record of `offset`, and its path.
    fn find(&mut self, offset: u64) -> Option<(Record, Vec<u8>)> {
        if self.end.is_some_and(|end| offset >= end) {
            return None;
        }
        let after = self
            .records
            .partition_point(|record| record.start <= offset);
        let record = *self.records.get(after.checked_sub(1)?)?;
        if offset - record.start >= record.length_bytes {
            return None;
        }
        let path = self.paths.read(record.path_start, record.path_bytes)?;
        Some((record, path))
    }
}

/// Where the data is read again.
enum RereadFrom {
    /// In the files below a root; the entries' paths begin with the name.
    Files { root: FileRoot, name: PathBuf },
    /// In a tar file.
    Tar(Arc<dyn Source>),
}

/// The log of a member's content during writing.
#[derive(Clone)]
pub(crate) struct RereadLog(Arc<Lock<Log>>);

impl RereadLog {
    pub(crate) fn new(memory: LogMemory) -> RereadLog {
        RereadLog(Arc::new(Lock::new(Log {
            records: Vec::new(),
            paths: TextPages::new(memory.clone()),
            rebased: Vec::new(),
            memory,
            end: None,
        })))
    }

    /// A log that records nothing: the content cannot be read again.
    pub(crate) fn none() -> RereadLog {
        let log = RereadLog::new(LogMemory::new(0));
        log.0.lock().end = Some(0);
        log
    }

    /// Records the next range of the content.
    pub(crate) fn add(&self, location: &DataLocation<'_>) {
        self.record(location, Log::try_add);
    }

    /// Records the next bytes of the content, which no file has.
    pub(crate) fn add_bytes(&self, start: u64, bytes: &[u8]) {
        let location = DataLocation {
            start,
            length_bytes: bytes.len() as u64,
            path: bytes,
            offset_in_file: 0,
        };
        self.record(&location, |log, location| log.push(location, true));
    }

    /// States that a range of the content is a file whose code is rebased. What is known is stated
    /// again for each further file with this content.
    pub(crate) fn add_rebased(&self, file: Range<u64>) {
        let mut log = self.0.lock();
        if log
            .rebased
            .last()
            .is_some_and(|last| file.start <= last.start)
        {
            return;
        }
        if log.memory.reserve(size_of::<Range<u64>>() as u64) {
            log.rebased.push(file);
        } else {
            log.end.get_or_insert(file.start);
        }
    }

    fn record(
        &self,
        location: &DataLocation<'_>,
        try_add: impl FnOnce(&mut Log, &DataLocation<'_>) -> Option<()>,
    ) {
        let mut log = self.0.lock();
        if log.end.is_none() && try_add(&mut log, location).is_none() {
            log.end = Some(location.start);
        }
    }

    /// A source that reads the content again from the files below `root`.
    pub(crate) fn source_of_files(
        &self,
        root: FileRoot,
        name: &Path,
        code_memory: LogMemory,
    ) -> TreeContentSource {
        let name = name.to_path_buf();
        self.source(RereadFrom::Files { root, name }, code_memory)
    }

    /// A source that reads the content again from a tar file.
    pub(crate) fn source_of_tar(
        &self,
        tar: Arc<dyn Source>,
        code_memory: LogMemory,
    ) -> TreeContentSource {
        self.source(RereadFrom::Tar(tar), code_memory)
    }

    fn source(&self, origin: RereadFrom, code_memory: LogMemory) -> TreeContentSource {
        TreeContentSource {
            log: self.clone(),
            origin,
            code: NotedCode::new(code_memory),
            opened_code: OpenedCode::default(),
        }
    }
}

/// The content of a tree, as far as it was written.
pub(crate) struct TreeContentSource {
    log: RereadLog,
    origin: RereadFrom,
    code: NotedCode,
    opened_code: OpenedCode,
}

impl TreeContentSource {
    fn read_record(&self, path: &[u8], offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.origin {
            RereadFrom::Files { root, name } => {
                let file = root.open_file(relative_path(name, path).unwrap_or(path))?;
                read_full(offset, buffer, |at, part| file.read_at(at, part))
            }
            RereadFrom::Tar(source) => {
                read_full(offset, buffer, |at, part| source.read_at(at, part))
            }
        }
    }

    /// The first rebased file that ends after `offset`.
    fn rebased_from(&self, offset: u64) -> Option<Range<u64>> {
        let log = self.log.0.lock();
        let first = log.rebased.partition_point(|file| file.end <= offset);
        log.rebased.get(first).cloned()
    }

    /// Reads a part of a file whose code is rebased in the content, at `file`.
    fn read_rebased(&self, file: &Range<u64>, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let file_bytes = file.end - file.start;
        let find = || {
            let mut header = vec![0; header_bytes(file_bytes)];
            self.read_original(file.start, &mut header)?;
            Code::find(&header).ok_or_else(|| io::Error::other("no program any more"))
        };
        // The bytes of a file that was replaced differ from what was stored in either case.
        let Ok(code) = self.opened_code.get(file, find) else {
            return self.read_original(offset, buffer);
        };
        let (mut count, length) = (buffer.len(), buffer.len());
        let at = offset - file.start;
        let rebase = |code: &Code, at, part: &mut [u8]| {
            self.code.rebase(code, file.start, at, part);
        };
        read_converted((&*code, file_bytes), at, buffer, rebase, |at, part| {
            let missing = part.len() - self.read_original(file.start + at, part)?;
            count = length.saturating_sub(missing);
            Ok::<(), io::Error>(())
        })?;
        Ok(count)
    }

    /// Reads content as the files have it.
    fn read_original(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let found = self.log.0.lock().find(at);
            let Some((record, path)) = found else {
                break;
            };
            let inside = at - record.start;
            let rest = buffer.len() - done;
            let count = usize::try_from(record.length_bytes - inside).unwrap_or(rest);
            let part = &mut buffer[done..done + count.min(rest)];
            let read = if record.is_content {
                let bytes = path.get(inside as usize..).unwrap_or_default();
                let count = bytes.len().min(part.len());
                part[..count].copy_from_slice(&bytes[..count]);
                count
            } else {
                self.read_record(&path, record.offset_in_file + inside, part)?
            };
            // A file that is shorter now differs from what was stored, and so do zeros.
            part[read..].fill(0);
            done += part.len();
        }
        Ok(done)
    }
}

impl Source for TreeContentSource {
    /// The length of the content so far.
    fn size_bytes(&self) -> io::Result<u64> {
        let log = self.log.0.lock();
        let last = log.records.last();
        Ok(last.map_or(0, |last| last.start + last.length_bytes))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let rest = &mut buffer[done..];
            let file = self.rebased_from(at).unwrap_or(u64::MAX..u64::MAX);
            let border = if file.contains(&at) { file.end } else { file.start };
            let count =
                usize::try_from(border - at).map_or(rest.len(), |left| left.min(rest.len()));
            let part = &mut rest[..count];
            let read = if file.contains(&at) {
                self.read_rebased(&file, at, part)?
            } else {
                self.read_original(at, part)?
            };
            done += read;
            if read < count {
                break;
            }
        }
        Ok(done)
    }

    fn can_reread(&self, offset: u64) -> bool {
        self.log.0.lock().end.is_none_or(|end| offset < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A root with files, and a log of their contents in descending order of their names.
    fn logged(memory_bytes: u64) -> (tempfile::TempDir, Vec<u8>, TreeContentSource) {
        let root = tempfile::tempdir().unwrap();
        let log = RereadLog::new(LogMemory::new(memory_bytes));
        let mut content = vec![];
        for number in (0..600_usize).rev() {
            let name = format!("{number}-{}", "f".repeat(number % 180));
            let bytes = format!("{number},").repeat(number * 3 + 1).into_bytes();
            fs::write(root.path().join(&name), &bytes).unwrap();
            log.add(&DataLocation {
                start: content.len() as u64,
                length_bytes: bytes.len() as u64,
                path: format!("prefix/{name}").as_bytes(),
                offset_in_file: 0,
            });
            content.extend(bytes);
        }
        let source = log.source_of_files(
            FileRoot::open(root.path()).unwrap(),
            Path::new("prefix"),
            LogMemory::new(1 << 20),
        );
        (root, content, source)
    }

    fn read(source: &TreeContentSource, start: usize, length: usize) -> Vec<u8> {
        let mut buffer = vec![0x55; length];
        let count = source.read_at(start as u64, &mut buffer).unwrap();
        buffer.truncate(count);
        buffer
    }

    #[test]
    fn any_range_is_read_again() {
        let (_root, content, source) = logged(1 << 20);
        assert_eq!(source.size_bytes().unwrap(), content.len() as u64);
        assert!(read(&source, 0, content.len() + 9) == content);
        for start in (0..content.len()).step_by(7919) {
            let end = (start + start % 5000 + 1).min(content.len());
            assert!(read(&source, start, end - start) == content[start..end]);
        }
    }

    #[test]
    fn a_full_log_states_its_end() {
        // The first records fit, more do not.
        let memory = LogMemory::new((RECORDS_MIN * size_of::<Record>()) as u64);
        let log = RereadLog::new(memory);
        let tar: Vec<u8> = (0..=255).cycle().take(40_000).collect();
        for number in 0..2000 {
            log.add(&DataLocation {
                start: number * 5,
                length_bytes: 5,
                path: b"",
                offset_in_file: number * 20,
            });
        }
        let source = log.source_of_tar(
            Arc::new(refrain_storage::MemorySource::new(tar)),
            LogMemory::new(1 << 20),
        );
        let end = source.log.0.lock().end.expect("full");
        assert_eq!(end, RECORDS_MIN as u64 * 5);
        assert_eq!(read(&source, 0, 10_000).len() as u64, end);
        assert!(source.can_reread(end - 1) && !source.can_reread(end));
    }

    #[test]
    fn pieces_of_a_tar_are_read_by_their_offsets() {
        let tar: Vec<u8> = (0..=255).cycle().take(5000).collect();
        let log = RereadLog::new(LogMemory::new(1 << 20));
        for (start, length_bytes, offset_in_file) in [(0, 100, 512), (100, 50, 612), (150, 30, 9)] {
            log.add(&DataLocation {
                start,
                length_bytes,
                path: b"",
                offset_in_file,
            });
        }
        let source = log.source_of_tar(
            Arc::new(refrain_storage::MemorySource::new(tar.clone())),
            LogMemory::new(1 << 20),
        );
        assert!(read(&source, 0, 200) == [&tar[512..662], &tar[9..39]].concat());
        assert_eq!(log.0.lock().records.len(), 2);
    }
}
