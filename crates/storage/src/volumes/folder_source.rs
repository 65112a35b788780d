//! Files of a folder, one behind the other.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_pool::Lock;

use super::layout::{Layout, Place};
use crate::failure::refuse;
use crate::file::FileSource;
use crate::source::Source;

/// How many files stay open: an archive may have more than a process may open.
const OPEN_MAX: usize = 32;

/// Files of a folder, one behind the other. They are opened when they are read.
pub(super) struct FolderSource {
    folder: PathBuf,
    layout: Layout,
    /// By their numbers; the last one was used last.
    open: Lock<Vec<(usize, Arc<FileSource>)>>,
}

impl FolderSource {
    pub(super) fn new(folder: PathBuf, layout: Layout) -> FolderSource {
        FolderSource {
            folder,
            layout,
            open: Lock::default(),
        }
    }

    fn file(&self, number: usize) -> io::Result<Arc<FileSource>> {
        let mut open = self.open.lock();
        if let Some(at) = open.iter().rposition(|(found, _)| *found == number) {
            let found = open.remove(at);
            let file = Arc::clone(&found.1);
            open.push(found);
            return Ok(file);
        }
        drop(open);
        let file = Arc::new(self.opened(number)?);
        let mut open = self.open.lock();
        if open.len() >= OPEN_MAX {
            open.remove(0);
        }
        open.push((number, Arc::clone(&file)));
        Ok(file)
    }

    fn opened(&self, number: usize) -> io::Result<FileSource> {
        let (name, length_bytes) = self.layout.volume(number).unwrap_or_default();
        let file = FileSource::open(self.folder.join(name)).map_err(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                return error;
            }
            refuse(
                "read",
                &self.folder,
                error.kind(),
                &missing(name, length_bytes),
            )
        })?;
        let found_bytes = file.size_bytes()?;
        if found_bytes != length_bytes {
            let text = other_length(name, length_bytes, found_bytes);
            let kind = io::ErrorKind::UnexpectedEof;
            return Err(refuse("read", &self.folder, kind, &text));
        }
        Ok(file)
    }
}

/// What to say about a volume that is not there.
pub(crate) fn missing(name: &str, length_bytes: u64) -> String {
    format!("the volume {name} of {length_bytes} bytes is missing")
}

/// What to say about a volume with another length.
pub(crate) fn other_length(name: &str, length_bytes: u64, found_bytes: u64) -> String {
    format!("the volume {name} has {found_bytes} bytes instead of {length_bytes}")
}

impl Source for FolderSource {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.layout.length_bytes())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len()
            && let Some(place) = self.layout.at(offset.saturating_add(done as u64))
        {
            let left = buffer.len() - done;
            let count =
                usize::try_from(place.length_bytes()).map_or(left, |length| length.min(left));
            let part = &mut buffer[done..done + count];
            match place {
                Place::Zeros(_) => part.fill(0),
                Place::Data { volume, offset, .. } => {
                    if self.file(volume)?.read_at(offset, part)? < count {
                        let (name, length_bytes) = self.layout.volume(volume).unwrap_or_default();
                        let text = format!(
                            "the volume {name} of {length_bytes} bytes became shorter while it was \
                             read"
                        );
                        let kind = io::ErrorKind::UnexpectedEof;
                        return Err(refuse("read", &self.folder, kind, &text));
                    }
                }
            }
            done += count;
        }
        Ok(done)
    }
}
