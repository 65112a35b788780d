//! Finds the ends of the archives in a file, and reads the index of each.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::limits::{HEAD_BYTES_MAX, INDEX_BYTES_MAX};
use refrain_format::{
    ARCHIVES_MAX, ArchiveEnd, FRAME_HEADER_BYTES, FrameHeader, FrameKind, IndexNode, IndexTree,
    Limits, MAGIC, TAIL_BYTES, Tail, UntrustedFrameHeader, check_magic, whole,
    whole::WHOLE_ARCHIVE_BYTES_MAX,
};
use refrain_storage::{MemorySource, Source};

use crate::error::{Error, ErrorKind, Result};
use crate::read::native::frame_index::FrameIndex;
use crate::read::native::index_nodes::IndexNodes;

const END_FRAME_BYTES_MAX: u64 =
    FRAME_HEADER_BYTES as u64 + HEAD_BYTES_MAX as u64 + 3 + INDEX_BYTES_MAX;

/// One of the concatenated archives in a file.
#[derive(Debug, Clone)]
pub(crate) struct FoundArchive {
    /// Its bytes in the file, starting with its magic.
    pub bytes: Range<u64>,
    /// Its End frame; for a whole archive, its ordinary form's.
    pub end: ArchiveEnd,
    /// Whether it is a single Whole frame.
    pub is_whole: bool,
}

impl FoundArchive {
    /// The ordinary form of a whole archive.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Limit`; `Io`.
    pub(crate) fn expanded(&self, source: &dyn Source) -> Result<(Arc<dyn Source>, FoundArchive)> {
        expanded(source, self.bytes.clone())
    }
}

/// The ordinary form of the whole archive in this range of a file.
fn expanded(source: &dyn Source, bytes: Range<u64>) -> Result<(Arc<dyn Source>, FoundArchive)> {
    let expand = || {
        let length = bytes.end - bytes.start;
        let mut archive = vec![0; length.min(WHOLE_ARCHIVE_BYTES_MAX as u64) as usize];
        let count = source.read_at(bytes.start, &mut archive)?;
        archive.truncate(count);
        let archive = whole::expand(&archive)?;
        let archive_bytes = archive.len() as u64;
        let source: Arc<dyn Source> = Arc::new(MemorySource::new(archive));
        let found = archive_before(&*source, archive_bytes)?;
        Ok((source, found))
    };
    expand().map_err(|error: Error| error.at_offset(bytes.start))
}

/// The tail that ends at `end`, or why there is none, and its offset.
fn read_tail(source: &dyn Source, end: u64) -> Result<(u64, refrain_format::Result<Tail>)> {
    let mut tail = [0; TAIL_BYTES];
    let tail_offset = end.saturating_sub(TAIL_BYTES as u64);
    let count = source.read_at(tail_offset, &mut tail)?;
    Ok((tail_offset, Tail::parse(&tail[..count])))
}

/// Where the whole archive with this tail starts; `None` if there is no such archive.
fn whole_start_before(source: &dyn Source, tail_offset: u64, tail: Tail) -> Result<Option<u64>> {
    let Some(start) = tail_offset
        .checked_sub(tail.back_bytes)
        .and_then(|frame| frame.checked_sub(MAGIC.len() as u64))
    else {
        return Ok(None);
    };
    let header = header_at(source, start + MAGIC.len() as u64)?;
    Ok(header
        .is_some_and(|header| header.kind == FrameKind::Whole)
        .then_some(start))
}

/// Finds the archives of a file by their ends, from last to first. Returns them in file order.
///
/// # Errors
/// `Damaged` if the file does not end with an archive, or something else precedes one; `Limit` for
/// more than [`ARCHIVES_MAX`] archives; `Unsupported`; `Io`.
pub(crate) fn find_archives(source: &dyn Source) -> Result<Vec<FoundArchive>> {
    let mut found = Vec::new();
    let mut end = source.size_bytes()?;
    loop {
        let archive = archive_before(source, end).map_err(|error| {
            if found.is_empty() { error } else { before_archive(error, end) }
        })?;
        end = archive.bytes.start;
        found.push(archive);
        if end == 0 {
            found.reverse();
            return Ok(found);
        }
        if found.len() == ARCHIVES_MAX {
            return Err(too_many_archives());
        }
    }
}

pub(crate) fn too_many_archives() -> Error {
    Error::limit(format!(
        "more than {ARCHIVES_MAX} archives are concatenated"
    ))
}

/// The end of the tail after the last frame of the archive that ends at `end`, without an appendix
/// (skippable frames and another tail), whose frames are not read.
fn without_appendix(source: &dyn Source, end: u64) -> Result<u64> {
    let (tail_offset, Ok(tail)) = read_tail(source, end)? else {
        return Ok(end);
    };
    let Some(start) = tail_offset.checked_sub(tail.back_bytes) else {
        return Ok(end);
    };
    let Some(last) = header_at(source, start)? else {
        return Ok(end);
    };
    let own_tail_offset = start.saturating_add(last.frame_bytes());
    let appendix = own_tail_offset.saturating_add(TAIL_BYTES as u64);
    if appendix >= tail_offset {
        return Ok(end);
    }
    let (_, own_tail) = read_tail(source, appendix)?;
    let back_bytes = last.frame_bytes();
    let first = header_at(source, appendix)?;
    let is_appended = own_tail == Ok(Tail { back_bytes })
        && first.is_some_and(|frame| frame.skippable && frame.archive_id == last.archive_id);
    Ok(if is_appended { appendix } else { end })
}

/// The header of the frame at `offset`, if there is one.
fn header_at(source: &dyn Source, offset: u64) -> Result<Option<FrameHeader>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let count = source.read_at(offset, &mut header)?;
    let header = UntrustedFrameHeader::parse(&header[..count]);
    Ok(header
        .and_then(|header| header.check(&Limits::default(), None))
        .ok())
}

/// The archive, or an appendix of it, whose last byte is before `end`.
fn archive_before(source: &dyn Source, end: u64) -> Result<FoundArchive> {
    let end = without_appendix(source, end)?;
    let (offset, tail) = read_tail(source, end)?;
    if let Ok(tail) = tail
        && let Some(start) = whole_start_before(source, offset, tail)?
    {
        let (_, ordinary) = expanded(source, start..end)?;
        return Ok(FoundArchive {
            bytes: start..end,
            is_whole: true,
            ..ordinary
        });
    }
    let archive_end = end_before(source, end).map_err(|error| {
        let error = match error.kind {
            ErrorKind::Damaged => Error::new(ErrorKind::Damaged, no_end(&error)),
            _ => error,
        };
        error.at_offset(offset)
    })?;
    let start = end.checked_sub(archive_end.archive_bytes).ok_or_else(|| {
        let message = format!(
            "the archive states a length of {} bytes, the file has {end} to its end",
            archive_end.archive_bytes
        );
        Error::damaged(message).at_offset(offset)
    })?;
    let mut magic = [0; MAGIC.len()];
    let count = source.read_at(start, &mut magic)?;
    check_magic(&magic[..count]).map_err(|error| Error::from(error).at_offset(start))?;
    Ok(FoundArchive {
        bytes: start..end,
        end: archive_end,
        is_whole: false,
    })
}

/// The End frame before the tail that ends at `end`.
///
/// # Errors
/// `Damaged` if there is none; `Io`.
pub(crate) fn end_before(source: &dyn Source, end: u64) -> Result<ArchiveEnd> {
    let (offset, tail) = read_tail(source, end)?;
    let found = tail.map_err(Error::from);
    let found = found.and_then(|tail| read_end(source, offset, tail));
    Ok(found.map_err(|error| error.at_offset(offset))?.0)
}

/// The error for what precedes the archive that starts at `start`.
fn before_archive(error: Error, start: u64) -> Error {
    match error.kind {
        ErrorKind::Damaged => {
            let message = format!(
                "an archive begins here, but the data before it does not end with one ({error})"
            );
            Error::new(ErrorKind::Damaged, message).at_offset(start)
        }
        _ => error,
    }
}

/// The index of an archive. Reads only its roots, which are in the End frame.
pub(crate) fn read_index(
    source: &Arc<dyn Source>,
    archive: &FoundArchive,
    limits: &Limits,
    memory_bytes: u64,
) -> Result<FrameIndex> {
    let (start, end) = (archive.bytes.start, archive.bytes.end);
    let (offset, tail) = read_tail(&**source, end)?;
    let roots = tail.map_err(Error::from);
    let roots = roots.and_then(|tail| read_end(&**source, offset, tail));
    let (_, roots) = roots.map_err(|error| error.at_offset(offset))?;
    let nodes = IndexNodes::new(source.clone(), start, *limits, memory_bytes);
    Ok(FrameIndex::from_tree(IndexTree::new(roots, nodes), start))
}

/// The End frame before this tail at `tail_offset`.
fn read_end(
    source: &dyn Source,
    tail_offset: u64,
    tail: Tail,
) -> Result<(ArchiveEnd, Vec<IndexNode>)> {
    let length = tail.back_bytes.min(END_FRAME_BYTES_MAX).min(tail_offset);
    let mut last = vec![0; length as usize + TAIL_BYTES];
    let count = source.read_at(tail_offset - length, &mut last)?;
    last.truncate(count);
    Ok(ArchiveEnd::from_last_bytes(&last)?)
}

/// The message for the most common damage.
fn no_end(error: &Error) -> String {
    format!("the archive is truncated, or other data follows it ({error})")
}
