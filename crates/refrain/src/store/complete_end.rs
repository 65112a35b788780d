//! Where an archive ends that a generation is being added to, or was not added to completely.

use std::io;
use std::sync::Arc;

use refrain_format::{FRAME_HEADER_BYTES, FrameKind, MAGIC, SYNC, TAIL_BYTES};
use refrain_storage::{CachedRanges, Source};

use crate::error::{ErrorKind, Result};
use crate::store::appendix::{OwnEnd, appendices_end, header_at, own_end, tail_before};

/// The bytes of a file, up to the end of its last complete generation: what follows that is being
/// written, or remains of a writer that was killed. A file that ends as it should, or is no archive
/// with generations, is returned as it is, and so is one whose envelope is damaged: whoever reads
/// it says where.
///
/// # Errors
/// `Io`.
pub(crate) fn complete_part(source: Arc<dyn Source>) -> Result<Arc<dyn Source>> {
    match complete_end(&*source) {
        Ok(Some(length_bytes)) => Ok(beginning(source, length_bytes)),
        Err(error) if error.kind == ErrorKind::Io => Err(error),
        Ok(None) | Err(_) => Ok(source),
    }
}

/// The first bytes of a source that may grow.
pub(crate) fn beginning(source: Arc<dyn Source>, length_bytes: u64) -> Arc<dyn Source> {
    Arc::new(Beginning {
        source,
        length_bytes,
    })
}

/// The end of the last complete generation, if an incomplete one follows it. Reads the headers of
/// all frames before it, unless the file ends with a tail.
///
/// # Errors
/// `Io`.
pub(crate) fn complete_end(source: &dyn Source) -> Result<Option<u64>> {
    let size_bytes = source.size_bytes()?;
    let mut magic = [0; MAGIC.len()];
    let count = source.read_at(0, &mut magic)?;
    // What is cut off may end like a tail: a frame's first bytes do.
    if magic[..count] != MAGIC || own_end(source, size_bytes)?.is_some() {
        return Ok(None);
    }
    let mut complete = None;
    let mut at = MAGIC.len() as u64;
    while let Some(header) = header_at(source, at)? {
        let end = at.saturating_add(header.frame_bytes());
        if end > size_bytes {
            break;
        }
        at = end;
        if header.kind == FrameKind::End {
            at = end.saturating_add(TAIL_BYTES as u64);
            if at > size_bytes {
                break;
            }
            if tail_before(source, at)?.is_none() {
                return Ok(None);
            }
            let own = own_end(source, at)?;
            if let Some(own) = &own {
                at = appendices_end(source, own)?;
            }
            if !may_be_unfinished(source, at, own.as_ref())? {
                return Ok(None);
            }
            complete = Some(at);
        }
    }
    Ok(complete)
}

/// Whether what follows a tail is a generation, or recovery data of one, or as much of it as was
/// written.
fn may_be_unfinished(source: &dyn Source, at: u64, own: Option<&OwnEnd>) -> Result<bool> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let count = source.read_at(at, &mut header)?;
    if count == FRAME_HEADER_BYTES {
        // What was not added to was written whole or not at all: then it was cut off since.
        let id = own.filter(|own| own.last.generation > 0);
        let id = id.map(|own| own.last.archive_id);
        let header = header_at(source, at)?;
        return Ok(header.is_some_and(|header| match header.kind {
            FrameKind::Generation => true,
            FrameKind::Recovery => Some(header.archive_id) == id,
            _ => false,
        }));
    }
    let begins = count.min(SYNC.len());
    Ok(header[..begins] == SYNC[..begins])
}

/// The first bytes of a source.
struct Beginning {
    source: Arc<dyn Source>,
    length_bytes: u64,
}

impl Source for Beginning {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.length_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.length_bytes.saturating_sub(offset);
        let count = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        self.source.read_at(offset, &mut buffer[..count])
    }

    fn cache(&self) -> Option<&dyn CachedRanges> {
        // Frames are inside.
        self.source.cache()
    }
}
