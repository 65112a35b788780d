//! Reads a range of the content, for which everything before it has to be decoded.

use std::ops::Range;

use refrain_storage::Sink;

use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, Watch, is_cancelled};
use crate::read::foreign::content::Content;

/// How much is decoded at once.
const READ_BYTES: usize = 256 << 10;

/// Writes `range` of the content; see
/// [`ForeignFile::write_range`](crate::foreign::ForeignFile::write_range).
pub(crate) fn write_range(
    mut content: Content,
    range: Range<u64>,
    sink: &mut dyn Sink,
    watch: &dyn Watch,
) -> Result<u64> {
    let written = copy(&mut content, &range, watch, &mut |bytes| {
        Ok(sink.write_all(bytes)?)
    })?;
    let end = content.content_bytes();
    let is_open = range.end == u64::MAX;
    if end < range.start || (!is_open && end < range.end) {
        let message = format!("the range ends past the end of {end} bytes");
        return Err(Error::new(ErrorKind::Usage, message));
    }
    content.check_read(watch)?;
    content.report_ignored(watch);
    Ok(written)
}

/// Passes the existing part of `range` of the content to `each`. Returns the number of bytes.
fn copy(
    content: &mut Content,
    range: &Range<u64>,
    watch: &dyn Watch,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let mut buffer = vec![0; READ_BYTES];
    let (mut offset, mut written) = (content.content_bytes(), 0);
    while offset < range.end {
        let left = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        let count = content.read(&mut buffer[..wanted])?;
        if count == 0 {
            break;
        }
        let end = offset.saturating_add(count as u64);
        let skipped = range.start.clamp(offset, end) - offset;
        let bytes = &buffer[skipped as usize..count];
        if !bytes.is_empty() {
            each(bytes)?;
            written += bytes.len() as u64;
        }
        offset = end;
        watch.progress(&Progress {
            content_bytes_done: offset,
            content_bytes_total: None,
            archive_bytes: content.archive_bytes(),
        });
        if is_cancelled(watch) {
            return Err(Error::cancelled());
        }
    }
    Ok(written)
}
