//! Reads any range of a directory's tar stream a second time, for the match stage.
//!
//! While the stream is read, a log records the offset, the header and the path of each entry. Data
//! is read from the files again. They may have changed meanwhile, so the caller must compare, as
//! the match stage does with a checksum for each page.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_entries::padding_bytes;
use refrain_pool::Lock;
use refrain_storage::{Source, read_full};

use refrain_filesystem::{StreamedHeader, TreeReader, open_regular_file};

use crate::write::log_memory::LogMemory;
use crate::write::text_pages::TextPages;

/// The initial capacity for records.
const RECORDS_MIN: usize = 1024;

/// The location of an entry in the stream and in the log.
#[derive(Debug, Clone, Copy)]
struct EntryRecord {
    /// The offset of its header in the stream.
    start: u64,
    /// The offset of its header in the log's text; the path follows.
    log_start: u64,
    /// The number of bytes of its data.
    size_bytes: u64,
    header_bytes: u32,
    path_bytes: u32,
}

/// The entries of the stream so far, in order.
///
/// Headers and paths form one text, which is compressed page by page: the 167,509 entries of two
/// kernel trees take 9.3 MB including the records, 55 bytes each.
pub(crate) struct Log {
    records: Vec<EntryRecord>,
    text: TextPages,
    memory: LogMemory,
    /// The offset from which on the log has no entries, because its memory was exhausted.
    end: Option<u64>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("records", &self.records.len())
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// The part of the stream at an offset.
enum StreamPart {
    Header(Vec<u8>),
    Data { path: PathBuf, offset_in_file: u64 },
    Padding,
}

impl Log {
    pub(crate) fn new(memory: LogMemory) -> Log {
        Log {
            records: Vec::new(),
            text: TextPages::new(memory.clone()),
            memory,
            end: None,
        }
    }

    /// Adds a header, with the path of its file if it has data.
    fn add(&mut self, header: &StreamedHeader<'_>) {
        if self.end.is_none() && self.try_add(header).is_none() {
            self.end = Some(header.offset);
        }
    }

    /// Returns `None` if no memory is left for it.
    fn try_add(&mut self, added: &StreamedHeader<'_>) -> Option<()> {
        if self.records.len() == self.records.capacity() {
            self.grow()?;
        }
        let (header, path) = (added.header, added.path.as_os_str().as_bytes());
        self.records.push(EntryRecord {
            start: added.offset,
            log_start: self.text.length_bytes(),
            size_bytes: added.size_bytes,
            header_bytes: u32::try_from(header.len()).ok()?,
            path_bytes: u32::try_from(path.len()).ok()?,
        });
        self.text.append(header)?;
        self.text.append(path)
    }

    /// Grows the capacity for records by half. The existing records are in memory twice for a
    /// moment.
    fn grow(&mut self) -> Option<()> {
        let more = (self.records.len() / 2).max(RECORDS_MIN);
        let bytes = (more * size_of::<EntryRecord>()) as u64;
        self.memory.reserve(bytes).then_some(())?;
        self.records.try_reserve_exact(more).ok()
    }

    /// The part of the stream at `offset`, and the number of bytes up to its end. `None` beyond the
    /// log.
    fn part_at(&mut self, offset: u64) -> Option<(StreamPart, u64)> {
        if self.end.is_some_and(|end| offset >= end) {
            return None;
        }
        let after = self
            .records
            .partition_point(|record| record.start <= offset);
        let record = *self.records.get(after.checked_sub(1)?)?;
        let inside = offset - record.start;
        let header_bytes = u64::from(record.header_bytes);
        if inside < header_bytes {
            let rest = header_bytes - inside;
            let header = self.text.read(record.log_start + inside, rest as u32)?;
            return Some((StreamPart::Header(header), rest));
        }
        let offset_in_file = inside - header_bytes;
        if offset_in_file < record.size_bytes {
            let path = self
                .text
                .read(record.log_start + header_bytes, record.path_bytes)?;
            let path = PathBuf::from(OsStr::from_bytes(&path));
            let rest = record.size_bytes - offset_in_file;
            return Some((
                StreamPart::Data {
                    path,
                    offset_in_file,
                },
                rest,
            ));
        }
        let padded_bytes = record.size_bytes + padding_bytes(record.size_bytes);
        let rest = padded_bytes.checked_sub(offset_in_file)?;
        (rest > 0).then_some((StreamPart::Padding, rest))
    }
}

/// The part of a directory's stream that has been read.
pub(crate) struct TreeSource {
    root: PathBuf,
    log: Arc<Lock<Log>>,
}

impl TreeSource {
    /// Logs the headers of `reader` from now on.
    pub(crate) fn observe(reader: &mut TreeReader, memory: LogMemory) -> TreeSource {
        let log = Arc::new(Lock::new(Log::new(memory)));
        let observed = log.clone();
        reader.observe_headers(Box::new(move |header| observed.lock().add(header)));
        TreeSource {
            root: reader.root().to_path_buf(),
            log,
        }
    }

    fn read_part(&self, part: StreamPart, buffer: &mut [u8]) -> io::Result<()> {
        match part {
            StreamPart::Padding => buffer.fill(0),
            StreamPart::Header(bytes) => buffer.copy_from_slice(&bytes[..buffer.len()]),
            StreamPart::Data {
                path,
                offset_in_file,
            } => {
                let file = open_regular_file(&self.root.join(path))?;
                let read = read_full(offset_in_file, buffer, |at, part| file.read_at(part, at))?;
                // The stream pads a file that ends early with zeros as well.
                buffer[read..].fill(0);
            }
        }
        Ok(())
    }
}

impl Source for TreeSource {
    /// The size of the stream so far.
    fn size_bytes(&self) -> io::Result<u64> {
        let log = self.log.lock();
        let Some(last) = log.records.last() else {
            return Ok(0);
        };
        let data = last.size_bytes + padding_bytes(last.size_bytes);
        Ok(last.start + u64::from(last.header_bytes) + data)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let found = self.log.lock().part_at(offset + done as u64);
            let Some((part, length_bytes)) = found else {
                break;
            };
            let rest = buffer.len() - done;
            let count = usize::try_from(length_bytes).unwrap_or(rest).min(rest);
            self.read_part(part, &mut buffer[done..done + count])?;
            done += count;
        }
        Ok(done)
    }

    fn can_reread(&self, offset: u64) -> bool {
        self.log.lock().end.is_none_or(|end| offset < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    /// A root with files whose headers and paths fill several pages of the log.
    fn create_tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for directory in 0..20 {
            let directory = root.path().join(format!("{directory}{}", "d".repeat(90)));
            fs::create_dir(&directory).unwrap();
            for file in 0..20_usize {
                let path = directory.join(format!("{file}{}", "f".repeat(file * 9)));
                fs::write(path, format!("{file},").repeat(file * file * 7)).unwrap();
            }
        }
        fs::write(root.path().join(OsStr::from_bytes(b"no \xff UTF-8")), "x").unwrap();
        symlink("t".repeat(200), root.path().join("soft")).unwrap();
        fs::hard_link(root.path().join("soft"), root.path().join("hard")).unwrap();
        root
    }

    fn streamed(root: &Path, memory_bytes: u64) -> (Vec<u8>, TreeSource) {
        let mut reader = TreeReader::open_named(root, Path::new("name")).unwrap();
        let source = TreeSource::observe(&mut reader, LogMemory::new(memory_bytes));
        let mut stream = vec![];
        reader.read_to_end(&mut stream).unwrap();
        (stream, source)
    }

    /// The stream without its end mark.
    fn entries(stream: &[u8]) -> &[u8] {
        &stream[..stream.len() - 1024]
    }

    fn read(source: &TreeSource, start: usize, length: usize) -> Vec<u8> {
        let mut buffer = vec![0x55; length];
        let count = source.read_at(start as u64, &mut buffer).unwrap();
        buffer.truncate(count);
        buffer
    }

    #[test]
    fn any_range_is_read_again() {
        let root = create_tree();
        let (stream, source) = streamed(root.path(), 1 << 20);
        let entries = entries(&stream);
        assert_eq!(source.size_bytes().unwrap(), entries.len() as u64);
        assert!(source.log.lock().text.packed_pages() > 2);
        assert!(read(&source, 0, entries.len() + 5) == entries);
        let mut start = 0;
        for step in (1..4000).cycle().step_by(577) {
            let end = (start + step * 3).min(entries.len());
            assert!(read(&source, start, end - start) == entries[start..end]);
            start += step;
            if start >= entries.len() {
                break;
            }
        }
        assert!(read(&source, entries.len(), 10).is_empty());
    }

    #[test]
    fn a_full_log_reports_its_end() {
        let root = create_tree();
        let (stream, source) = streamed(root.path(), 36_000);
        let entries = entries(&stream);
        let end = source.log.lock().end.expect("full") as usize;
        assert!(end > 10_000 && end < entries.len());
        assert!(read(&source, 0, entries.len()) == entries[..end]);
        assert!(source.can_reread(end as u64 - 1) && !source.can_reread(end as u64));
        let (_, none) = streamed(root.path(), 0);
        assert!(!none.can_reread(0) && read(&none, 0, 1).is_empty());
    }

    #[test]
    fn changed_files_are_read_with_their_present_content() {
        let root = tempfile::tempdir().unwrap();
        let (short, gone) = (root.path().join("a"), root.path().join("b"));
        fs::write(&short, [7; 700]).unwrap();
        fs::write(&gone, [8; 700]).unwrap();
        let (stream, source) = streamed(root.path(), 1 << 20);
        let data = |byte| stream.iter().position(|&found| found == byte).unwrap();
        fs::write(&short, [9; 100]).unwrap();
        fs::remove_file(&gone).unwrap();
        let mut expected = vec![9; 100];
        expected.resize(700, 0);
        assert!(read(&source, data(7), 700) == expected);
        let mut buffer = [0; 10];
        let error = source.read_at(data(8) as u64, &mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
