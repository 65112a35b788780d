//! Reads an archive at offsets, from a file or from a pipe whose history is kept as needed.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_pool::Lock;
use refrain_storage::Source;

use super::spool::Spool;
use crate::error::{Error, Result};
use crate::store::memory::zeroed;

/// The origin of the archive's bytes.
enum Origin {
    File(Arc<dyn Source>, u64),
    Pipe(Box<Lock<Spool>>),
}

/// An archive's bytes.
pub(crate) struct ArchiveInput {
    origin: Origin,
}

impl ArchiveInput {
    /// Reads from a file.
    pub(crate) fn from_source(source: Arc<dyn Source>) -> Result<ArchiveInput> {
        let size_bytes = source.size_bytes()?;
        Ok(ArchiveInput {
            origin: Origin::File(source, size_bytes),
        })
    }

    /// Reads from a pipe, keeping at most `bytes_max` bytes in memory, and the rest in `temporary`
    /// space.
    pub(crate) fn from_stream(
        stream: Box<dyn Read + Send>,
        bytes_max: u64,
        temporary: Option<PathBuf>,
    ) -> ArchiveInput {
        ArchiveInput {
            origin: Origin::Pipe(Box::new(Lock::new(Spool::new(
                stream, bytes_max, temporary,
            )))),
        }
    }

    /// Reads at `offset` until `buffer` is full or the archive ends.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match &self.origin {
            Origin::File(source, _) => Ok(source.read_at(offset, buffer)?),
            Origin::Pipe(spool) => spool.lock().read_at(offset, buffer),
        }
    }

    /// Reads exactly `length` bytes at `offset`; errors name them `what`.
    pub(crate) fn exact(&self, what: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        let bytes = self.up_to(offset, length)?;
        if bytes.len() < length {
            let message = format!("the archive ends inside {what}");
            return Err(Error::damaged(message).at_offset(offset));
        }
        Ok(bytes)
    }

    /// Reads up to `length` bytes at `offset`; fewer only at the end of the archive.
    pub(crate) fn up_to(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = zeroed(length)?;
        let count = self.read_at(offset, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Refuses a range past the end of a file, before allocating memory for it. The end of a pipe
    /// is unknown.
    pub(crate) fn check_range(&self, what: &str, offset: u64, length: u64) -> Result<()> {
        match self.origin {
            Origin::File(_, size) if offset.checked_add(length).is_none_or(|end| end > size) => {
                let message = format!(
                    "the archive ends inside {what}: it needs {length} bytes, the file has {}",
                    size.saturating_sub(offset)
                );
                Err(Error::damaged(message).at_offset(offset))
            }
            _ => Ok(()),
        }
    }

    /// Permits releasing bytes before `offset` when memory is needed.
    pub(crate) fn release_before(&self, offset: u64) {
        if let Origin::Pipe(spool) = &self.origin {
            spool.lock().release_before(offset);
        }
    }

    /// Whether the whole archive can be read at any time.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.origin, Origin::File(..))
    }

    /// The memory of a pipe's history, in bytes.
    pub(crate) fn spooled_bytes(&self) -> u64 {
        match &self.origin {
            Origin::File(..) => 0,
            Origin::Pipe(spool) => spool.lock().memory_bytes(),
        }
    }

    /// The number of bytes after `offset`. Reads the rest of a pipe.
    pub(crate) fn bytes_after(&self, offset: u64) -> Result<u64> {
        match &self.origin {
            Origin::File(_, size) => Ok(size.saturating_sub(offset)),
            Origin::Pipe(spool) => {
                let end = spool.lock().read_to_end()?;
                Ok(end.saturating_sub(offset))
            }
        }
    }
}
