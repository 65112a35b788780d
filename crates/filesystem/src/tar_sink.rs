//! A tar stream restored as a directory.

use std::io;
use std::path::Path;

use refrain_entries::tar::{SplitItem, SplitStep, TarSplitter, is_global_header};
use refrain_entries::{Entry, EntryKind};
use refrain_storage::{ReadBack, Sink};

use crate::restore::{RestoreOptions, RestoredFile, TreeRestore};

/// Small pieces of data are collected up to this length.
const BUFFER_BYTES: usize = 64 << 10;

/// Fewer zeros are written as data, which costs less than a hole.
const HOLE_BYTES_MIN: u64 = 4096;

/// Restores a tar stream below a root, by the rules of [`TreeRestore`]: symbolic links below the
/// root are not followed, no entry is created outside the root, and a new root appears complete.
///
/// An entry that cannot be restored is skipped. [`publish`](Sink::publish) keeps the others, then
/// fails with the number of entries not restored and the reason of the first. A full file system
/// ends the restore with an error. If a stream ends inside an entry or without its end mark, or has
/// bytes that belong to no entry, publishing keeps what is whole and fails with
/// [`InvalidData`](io::ErrorKind::InvalidData). Dropping the sink before `publish` removes
/// everything created where nothing was.
#[derive(Debug)]
pub struct TarSink {
    splitter: TarSplitter,
    /// The beginning of a header group, from which the headers are read.
    front: Vec<u8>,
    /// The bytes of `front` already used.
    used: usize,
    unread: Unread,
    /// The bytes of the stream already used.
    offset: u64,
    /// The bytes that belong to no entry, except zeros.
    lost_bytes: u64,
    has_end_mark: bool,
    extractor: Extractor,
}

/// What is still missing of the present entry.
#[derive(Debug, Default)]
struct Unread {
    data_bytes: u64,
    padding_bytes: u64,
    kind: DataKind,
}

/// What the data belongs to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum DataKind {
    /// Nothing, or a header that applies to all entries.
    #[default]
    Nothing,
    Entry,
    /// The end mark, or bytes that are not tar.
    Raw,
}

impl TarSink {
    /// Prepares to restore into `root` and creates its parents.
    ///
    /// # Errors
    ///
    /// If the root exists and is not a directory, or the directory beside it cannot be created.
    pub fn create(root: &Path, overwrite: bool) -> io::Result<TarSink> {
        let options = RestoreOptions {
            overwrite,
            ..RestoreOptions::default()
        };
        Ok(TarSink::new(TreeRestore::create(root, options)?))
    }

    /// Restores the stream by a restore that was prepared.
    #[must_use]
    pub fn new(restore: TreeRestore) -> TarSink {
        TarSink {
            splitter: TarSplitter::new(),
            front: Vec::new(),
            used: 0,
            unread: Unread::default(),
            offset: 0,
            lost_bytes: 0,
            has_end_mark: false,
            extractor: Extractor {
                restore: Some(restore),
                read_back: None,
                current: None,
            },
        }
    }

    /// Takes the next bytes of the stream; `is_end` if they are the last.
    fn push(&mut self, mut bytes: &[u8], is_end: bool) -> io::Result<()> {
        loop {
            let waits = self.used < self.front.len();
            if !waits {
                self.front.clear();
                self.used = 0;
            }
            if self.unread.data_bytes + self.unread.padding_bytes > 0 {
                if waits {
                    let front = std::mem::take(&mut self.front);
                    self.used += self.pass(&front[self.used..])?;
                    self.front = front;
                } else if bytes.is_empty() {
                    return Ok(());
                } else {
                    bytes = &bytes[self.pass(bytes)?..];
                }
                continue;
            }
            self.end_entry()?;
            // Recipes, which reproduce the headers, are not needed here.
            self.splitter.restart();
            let window = if waits { &self.front[self.used..] } else { bytes };
            match self.splitter.next(window, is_end) {
                SplitStep::End => return Ok(()),
                SplitStep::NeedBytes(count) => {
                    self.front.drain(..self.used);
                    self.used = 0;
                    let missing = count.saturating_sub(self.front.len()).min(bytes.len());
                    self.front.extend_from_slice(&bytes[..missing]);
                    bytes = &bytes[missing..];
                    if self.front.len() < count {
                        return Ok(());
                    }
                }
                SplitStep::Item(item) => {
                    let is_global = is_global_header(window);
                    if waits {
                        self.used += item.header_bytes;
                    } else {
                        bytes = &bytes[item.header_bytes..];
                    }
                    self.begin(item, is_global)?;
                }
            }
        }
    }

    fn begin(&mut self, item: SplitItem, is_global: bool) -> io::Result<()> {
        self.offset += item.header_bytes as u64;
        let kind = match item.entry.kind {
            EntryKind::Raw if is_global => DataKind::Nothing,
            EntryKind::Raw => DataKind::Raw,
            _ => DataKind::Entry,
        };
        self.unread = Unread {
            data_bytes: item.data_bytes,
            padding_bytes: item.padding_bytes,
            kind,
        };
        if kind == DataKind::Entry { self.extractor.begin(&item.entry) } else { Ok(()) }
    }

    /// Uses data or padding of the present entry. Returns the number of bytes.
    fn pass(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_padding = self.unread.data_bytes == 0;
        let unread = if is_padding {
            &mut self.unread.padding_bytes
        } else {
            &mut self.unread.data_bytes
        };
        let count = usize::try_from(*unread)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        *unread -= count as u64;
        self.offset += count as u64;
        let bytes = &bytes[..count];
        match self.unread.kind {
            DataKind::Entry if !is_padding => self.extractor.data(bytes)?,
            DataKind::Raw if bytes.iter().any(|byte| *byte != 0) => self.lost_bytes += count as u64,
            DataKind::Raw => self.has_end_mark = true,
            _ => {}
        }
        Ok(count)
    }

    fn end_entry(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.unread).kind {
            DataKind::Entry => self.extractor.end(),
            _ => Ok(()),
        }
    }

    /// Fails unless the stream may end here.
    fn check_end(&self) -> io::Result<()> {
        let refused = |text: String| Err(io::Error::new(io::ErrorKind::InvalidData, text));
        if self.unread.data_bytes > 0 || !self.has_end_mark {
            return refused(format!(
                "the tar stream ends early, at offset {}",
                self.offset
            ));
        }
        if self.lost_bytes > 0 {
            return refused(format!(
                "{} bytes of the tar stream belong to no entry and were not restored",
                self.lost_bytes
            ));
        }
        Ok(())
    }
}

impl Sink for TarSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.push(bytes, false)
    }

    fn write_zeros(&mut self, mut length_bytes: u64) -> io::Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        while length_bytes > 0 {
            let data_bytes = self.unread.data_bytes.min(length_bytes);
            let is_data = self.used == self.front.len() && self.unread.kind == DataKind::Entry;
            length_bytes -= if is_data && data_bytes > 0 {
                self.extractor.zeros(data_bytes)?;
                self.unread.data_bytes -= data_bytes;
                self.offset += data_bytes;
                data_bytes
            } else {
                let count = length_bytes.min(ZEROS.len() as u64);
                self.push(&ZEROS[..count as usize], false)?;
                count
            };
        }
        Ok(())
    }

    fn is_stored(&self) -> bool {
        true
    }

    fn read_back_result(&self) -> Option<ReadBack> {
        self.extractor.read_back
    }

    fn publish(&mut self) -> io::Result<()> {
        let pushed = self.push(&[], true);
        let ended = pushed.and_then(|()| self.check_end());
        // Entries before the cut are whole and stay.
        let published = self.extractor.publish();
        ended.and(published)
    }
}

#[derive(Debug)]
struct Extractor {
    /// `None` after publishing.
    restore: Option<TreeRestore>,
    read_back: Option<ReadBack>,
    current: Option<Arriving>,
}

/// A file whose data is arriving in order.
#[derive(Debug)]
struct Arriving {
    file: RestoredFile,
    offset: u64,
    buffer: Vec<u8>,
}

impl Arriving {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.is_empty() && bytes.len() >= BUFFER_BYTES {
            self.file.write_at(self.offset, bytes)?;
            self.offset = self.offset.saturating_add(bytes.len() as u64);
            return Ok(());
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn append_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        if length_bytes < HOLE_BYTES_MIN {
            let length = self.buffer.len().saturating_add(length_bytes as usize);
            self.buffer.resize(length, 0);
            return Ok(());
        }
        self.flush()?;
        self.file.write_zeros_at(self.offset, length_bytes)?;
        self.offset = self.offset.saturating_add(length_bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_at(self.offset, &self.buffer)?;
        self.offset = self.offset.saturating_add(self.buffer.len() as u64);
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.file.finish()
    }
}

impl Extractor {
    fn begin(&mut self, entry: &Entry) -> io::Result<()> {
        if let Some(restore) = &self.restore {
            match entry.kind {
                EntryKind::Directory => restore.directory(entry),
                EntryKind::File | EntryKind::Other => {
                    self.current = restore.file(entry).map(|file| Arriving {
                        file,
                        offset: 0,
                        buffer: Vec::new(),
                    });
                }
                _ => restore.other(entry),
            }
        }
        self.check_end()
    }

    fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.with_current(|file| file.append(bytes))
    }

    fn zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.with_current(|file| file.append_zeros(length_bytes))
    }

    fn end(&mut self) -> io::Result<()> {
        // The restore has already recorded an error as a problem of the entry.
        let _ = self.current.take().map(Arriving::finish);
        self.check_end()
    }

    /// Drops the file if it fails; the restore has recorded why.
    fn with_current(
        &mut self,
        step: impl FnOnce(&mut Arriving) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(file) = &mut self.current
            && step(file).is_err()
        {
            self.current = None;
        }
        self.check_end()
    }

    /// Fails if nothing more can be restored.
    fn check_end(&mut self) -> io::Result<()> {
        match &self.restore {
            Some(restore) if restore.has_ended() => self.publish(),
            _ => Ok(()),
        }
    }

    fn publish(&mut self) -> io::Result<()> {
        self.current = None;
        let Some(restore) = self.restore.take() else {
            return Ok(());
        };
        let mut summary = restore.finish()?;
        self.read_back = summary.read_back;
        if let Some(stopped) = summary.stopped.take() {
            return Err(stopped);
        }
        let Some(first) = summary.problems.first() else {
            return Ok(());
        };
        let kind = first.error.kind();
        let text = match summary.problem_count {
            1 => first.to_string(),
            count => format!("{count} entries were not restored; the first: {first}"),
        };
        Err(io::Error::new(kind, text))
    }
}

#[cfg(test)]
mod tests;
