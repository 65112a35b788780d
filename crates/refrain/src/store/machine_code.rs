//! Files whose machine code is rebased in the content, as the codec crate's `rebase` does it: which
//! they are, and ranges of them.

use std::ops::Range;

use refrain_codec::rebase::{Code, HEADER_BYTES, PAGE_BYTES};
use refrain_entries::{Entry, EntryKind};
use refrain_pool::pool::checkpoint;

/// How much is converted between two offers to other jobs, in bytes: 0.2 ms.
const STEP_BYTES: usize = 8 * PAGE_BYTES as usize;

/// The code of a file to rebase, at least `code_bytes_min`. The file begins with `beginning`. All
/// of its code is within the stated size, so that bytes by which the file grows while it is read
/// change nothing.
pub(crate) fn code_to_rebase(entry: &Entry, beginning: &[u8], code_bytes_min: u64) -> Option<Code> {
    let is_suitable = entry.kind == EntryKind::File
        && entry.data_ranges.is_none()
        && entry.size_bytes >= code_bytes_min;
    let code = is_suitable.then(|| Code::find(beginning)).flatten()?;
    (code.code_bytes() >= code_bytes_min && code.end() <= entry.size_bytes).then_some(code)
}

/// Rebases whole pages of a file, or up to its end.
pub(crate) fn rebase(code: &Code, offset_in_file: u64, bytes: &mut [u8]) {
    let mut at = offset_in_file;
    for step in bytes.chunks_mut(STEP_BYTES) {
        code.rebase(at, step);
        at += step.len() as u64;
        checkpoint();
    }
}

/// The pages around `range` of a file with `file_bytes`, as far as they have code.
pub(crate) fn around(code: &Code, file_bytes: u64, range: Range<u64>) -> Range<u64> {
    let around = code.around(range);
    around.start..around.end.min(file_bytes)
}

/// Fills `buffer` with a converted range of a file, at `offset_in_file`; `read` reads the file
/// unconverted.
///
/// # Errors
/// From `read`.
pub(crate) fn read_converted<E>(
    (code, file_bytes): (&Code, u64),
    offset_in_file: u64,
    buffer: &mut [u8],
    convert: impl FnOnce(&Code, u64, &mut [u8]),
    read: impl FnOnce(u64, &mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let range = offset_in_file..offset_in_file + buffer.len() as u64;
    let around = around(code, file_bytes, range.clone());
    if around == range {
        read(offset_in_file, buffer)?;
        convert(code, offset_in_file, buffer);
        return Ok(());
    }
    let mut pages = vec![0; (around.end - around.start) as usize];
    read(around.start, &mut pages)?;
    convert(code, around.start, &mut pages);
    let from = (range.start - around.start) as usize;
    buffer.copy_from_slice(&pages[from..from + buffer.len()]);
    Ok(())
}

/// The length of what a file's code is found by, in a file with `file_bytes`.
pub(crate) fn header_bytes(file_bytes: u64) -> usize {
    HEADER_BYTES.min(usize::try_from(file_bytes).unwrap_or(HEADER_BYTES))
}
