//! Reads the data of an entry, including holes.

use refrain_entries::Entry;

use crate::error::{Error, ErrorKind, Result};
use crate::read::store_reader::Depth;
use crate::read::tree::content::TreeContent;
use crate::read::tree::rebased::RebasedFile;

/// Reads an entry's data at `offset`, holes as zeros. Returns the number of bytes read.
pub(crate) fn read_entry(
    content: &dyn TreeContent,
    entry: &Entry,
    offset: u64,
    buffer: &mut [u8],
) -> Result<usize> {
    if entry.content_range().end > content.content_bytes() {
        let message = "the entry is not one of this member";
        return Err(Error::new(ErrorKind::Usage, message));
    }
    let left = entry.size_bytes.saturating_sub(offset);
    let count = usize::try_from(left)
        .unwrap_or(usize::MAX)
        .min(buffer.len());
    let buffer = &mut buffer[..count];
    let depth = Depth::for_read(count);
    if entry.is_rebased && count > 0 {
        let file = RebasedFile::open(content, entry.content_range())?;
        file.read(offset, buffer, depth)?;
        return Ok(count);
    }
    let Some(ranges) = &entry.data_ranges else {
        content.read(entry.content_offset + offset, buffer, depth)?;
        return Ok(count);
    };
    buffer.fill(0);
    let end = offset + count as u64;
    let mut stored_at = entry.content_offset;
    for range in ranges {
        let (from, to) = (range.start.max(offset), range.end.min(end));
        if from < to {
            let part = &mut buffer[(from - offset) as usize..(to - offset) as usize];
            content.read(stored_at + (from - range.start), part, depth)?;
        }
        stored_at += range.end - range.start;
    }
    Ok(count)
}
