//! xz: the index of every stream, from the end of the file to its beginning.

use super::bytes::{Bytes, exact, fill};
use super::description::Description;
use crate::error::{Error, Result};
use crate::xz::{HEADER_BYTES, check_name};

const FOOTER_BYTES: u64 = 12;
const IN_INDEX: &str = "the index of an xz stream";
/// Larger indexes, of about ten million blocks, are not read.
const INDEX_BYTES_MAX: u64 = 256 << 20;

pub(super) fn describe(file: &dyn Bytes, mut description: Description) -> Result<Description> {
    let mut end = description.file_bytes;
    description.content_bytes = Some(0);
    description.blocks = Some(0);
    while end > 0 {
        end = stream_start(file, pass_padding(file, end)?, &mut description)?;
    }
    Ok(description)
}

/// The end of the stream before the padding that ends at `end`.
fn pass_padding(file: &dyn Bytes, mut end: u64) -> Result<u64> {
    while let Some(before) = end.checked_sub(4) {
        match exact::<4>(file, before, IN_INDEX)? {
            [0, 0, 0, 0] => end = before,
            _ => break,
        }
    }
    Ok(end)
}

/// The start of the stream that ends at `end`. Adds its index to the description.
fn stream_start(file: &dyn Bytes, end: u64, description: &mut Description) -> Result<u64> {
    let footer_at = end
        .checked_sub(FOOTER_BYTES)
        .ok_or_else(|| Error::damaged(end, "the file is too short for an xz stream"))?;
    let footer: [u8; 12] = exact(file, footer_at, IN_INDEX)?;
    let [c0, c1, c2, c3, s0, s1, s2, s3, flags @ .., _, _] = footer;
    if footer.last_chunk::<2>() != Some(b"YZ") {
        return Err(Error::damaged(
            footer_at,
            "expected the end of an xz stream",
        ));
    }
    let hashed = footer.get(4..10).unwrap_or_default();
    if crc32fast::hash(hashed) != u32::from_le_bytes([c0, c1, c2, c3]) {
        return Err(Error::damaged(
            footer_at,
            "the checksum of the xz footer differs",
        ));
    }
    let index_bytes = (u64::from(u32::from_le_bytes([s0, s1, s2, s3])) + 1) * 4;
    if index_bytes > INDEX_BYTES_MAX {
        let what = format!("an xz index of {index_bytes} bytes is not supported");
        return Err(Error::unsupported(footer_at, what));
    }
    let index_at = footer_at
        .checked_sub(index_bytes)
        .ok_or_else(|| Error::damaged(footer_at, "the xz index begins before the file"))?;
    let mut index = vec![0; usize::try_from(index_bytes).unwrap_or(0)];
    fill(file, index_at, &mut index, IN_INDEX)?;
    let [_, check] = flags;
    match check_name(check) {
        Some("none") => {}
        Some(name) => description.add_check(name),
        None => description.add_check("unknown"),
    }
    let blocks_bytes = add_index(&index, index_at, description)?;
    let start = index_at
        .checked_sub(blocks_bytes)
        .and_then(|blocks_at| blocks_at.checked_sub(HEADER_BYTES as u64));
    start.ok_or_else(|| Error::damaged(index_at, "the xz blocks begin before the file"))
}

/// Adds the blocks of an index. Returns their length in the file.
fn add_index(index: &[u8], offset: u64, description: &mut Description) -> Result<u64> {
    let damaged = || Error::damaged(offset, "the xz index is damaged");
    let (hashed, checksum) = index.split_last_chunk::<4>().ok_or_else(damaged)?;
    if crc32fast::hash(hashed) != u32::from_le_bytes(*checksum) {
        return Err(Error::damaged(
            offset,
            "the checksum of the xz index differs",
        ));
    }
    let (&indicator, mut rest) = hashed.split_first().ok_or_else(damaged)?;
    let count = number(&mut rest)
        .filter(|_| indicator == 0)
        .ok_or_else(damaged)?;
    let (mut blocks_bytes, mut content_bytes) = (0_u64, 0_u64);
    for _ in 0..count {
        let unpadded = number(&mut rest).ok_or_else(damaged)?;
        let content = number(&mut rest).ok_or_else(damaged)?;
        let padded = unpadded.checked_next_multiple_of(4).ok_or_else(damaged)?;
        blocks_bytes = blocks_bytes.checked_add(padded).ok_or_else(damaged)?;
        content_bytes = content_bytes.checked_add(content).ok_or_else(damaged)?;
        description.block_bytes_max = description.block_bytes_max.max(Some(content));
    }
    description.add_part(Some(content_bytes));
    description.blocks = description
        .blocks
        .map(|before| before.saturating_add(count));
    Ok(blocks_bytes)
}

/// A number of seven bits per byte, the lowest first.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..63).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
