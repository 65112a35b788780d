//! A tar stream restored as a directory.

use std::io;
use std::path::Path;
use std::sync::Arc;

use refrain_storage::Sink;

use crate::restore::{RestoreOptions, RestoredFile, TreeRestore};
use refrain_entries::{Entry, EntryKind, Owner, TarHandler, TarHeader, TarParser};

/// Small pieces of data are gathered up to this length.
const BUFFER_BYTES: usize = 64 << 10;

/// Fewer zeros are written as data, which costs less than a hole.
const HOLE_BYTES_MIN: u64 = 4096;

/// Restores a tar stream below a root, by the rules of [`TreeRestore`]: no symbolic link below the
/// root is followed, no entry is created outside the root, and a root that did not exist appears
/// complete.
///
/// An entry that cannot be restored is skipped. [`publish`](Sink::publish) keeps the others, and
/// then fails with the number of entries that were not restored and the reason of the first. A full
/// file system ends the restore with an error, and so do the end of the stream inside an entry and
/// data behind its end mark; what was complete by then is kept. Dropping the sink
/// before `publish`, as after an error of the kind [`InvalidData`](io::ErrorKind::InvalidData)
/// (the stream is malformed), removes everything that was created where nothing was before.
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
        let options = RestoreOptions {
            overwrite,
            ..RestoreOptions::default()
        };
        Ok(TreeSink::of(TreeRestore::create(root, options)?))
    }

    /// Restores the stream by a restore that was prepared.
    #[must_use]
    pub fn of(restore: TreeRestore) -> TreeSink {
        TreeSink {
            parser: TarParser::default(),
            extractor: Extractor {
                restore: Some(restore),
                current: None,
            },
        }
    }
}

impl Sink for TreeSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.parser.push(bytes, &mut self.extractor)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.parser.push_zeros(length_bytes, &mut self.extractor)
    }

    fn is_stored(&self) -> bool {
        true
    }

    fn publish(&mut self) -> io::Result<()> {
        let ended = self.parser.finish().map_err(io::Error::from);
        // What came before a cut is whole and stays.
        let published = self.extractor.publish();
        ended.and(published)?;
        match self.parser.ignored_bytes() {
            0 => Ok(()),
            bytes => {
                let text =
                    format!("{bytes} bytes follow the end of the tar stream and were not restored");
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
        }
    }
}

/// Creates the entries of the stream.
#[derive(Debug)]
struct Extractor {
    /// `None` after publishing.
    restore: Option<TreeRestore>,
    current: Option<Arriving>,
}

/// A file whose data is arriving in order.
#[derive(Debug)]
struct Arriving {
    file: RestoredFile,
    /// The offset of the buffered bytes.
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

impl TarHandler for Extractor {
    type Error = io::Error;

    fn entry(&mut self, header: TarHeader) -> io::Result<()> {
        let entry = entry_of(header);
        if let Some(restore) = &self.restore {
            match entry.kind {
                EntryKind::Directory => restore.directory(&entry),
                EntryKind::File | EntryKind::Other => {
                    self.current = restore.file(&entry).map(|file| Arriving {
                        file,
                        offset: 0,
                        buffer: Vec::new(),
                    });
                }
                _ => restore.other(&entry),
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

    fn entry_end(&mut self) -> io::Result<()> {
        // An error is a problem of this entry, which the restore has recorded.
        let _ = self.current.take().map(Arriving::finish);
        self.check_end()
    }
}

impl Extractor {
    /// A file that fails is given up; the restore has recorded why.
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

fn entry_of(header: TarHeader) -> Entry {
    Entry {
        path: header.path,
        kind: header.kind,
        mode: header.mode,
        owner: Arc::new(Owner {
            uid: header.uid,
            gid: header.gid,
            ..Owner::default()
        }),
        modified: header.modified,
        size_bytes: header.size_bytes,
        link_target: header.kind.is_link().then_some(header.link),
        device: header.device,
        ..Entry::default()
    }
}
