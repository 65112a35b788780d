//! Reads a range of the content, for which everything before it has to be decoded.

use std::ops::Range;

use refrain_storage::Sink;

use crate::error::{Error, Result};
use crate::progress::{Progress, Watch, is_cancelled};
use crate::read::foreign::content::Content;
use crate::read::range_read::within;

/// How much is decoded at once.
const READ_BYTES: usize = 256 << 10;

/// Writes `range` of the content to `sink`, which is not published; an end of `u64::MAX` is the end
/// of the content. Decodes from the beginning to the end of the range, and further until the
/// checksum that covers it was compared: to the end of its gzip member, zstd or lz4 frame, xz
/// stream or bzip2 block. Returns the number of bytes written.
///
/// # Errors
/// `Damaged`, `Unsupported`, `Limit` and `Io` for the file; `Usage` if the content ends before the
/// range starts or ends; errors of the sink; `Cancelled`.
pub(crate) fn write_range(
    mut content: Content,
    range: Range<u64>,
    sink: &mut dyn Sink,
    watch: &dyn Watch,
) -> Result<u64> {
    let written = copy(&mut content, &range, watch, &mut |bytes| {
        Ok(sink.write_all(bytes)?)
    })?;
    within(range, content.content_bytes(), None)?;
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
