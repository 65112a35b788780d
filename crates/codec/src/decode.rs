//! From a payload and its description back to the block, or to its first bytes.

use crate::codec::reserve;
use crate::description::BlockDescription;
use crate::error::{Error, Result};
use crate::raw_length::check_raw_length;
use crate::registry;
use crate::workspace::Workspace;

/// Opens a block of `raw_length_bytes` into `out`, whose former content is overwritten. Reuse `out`
/// from block to block: then nothing is allocated or cleared.
///
/// # Errors
/// `RawLength` and `OutOfMemory` before any work; `UnsupportedCodec`, `Description`, `Damaged` and
/// `Length` when `data` does not open to exactly the stated length. `out` is then empty. It never
/// grows beyond `raw_length_bytes`.
pub fn decode(
    workspace: &mut Workspace,
    description: &BlockDescription,
    data: &[u8],
    raw_length_bytes: u64,
    out: &mut Vec<u8>,
) -> Result<()> {
    let length = check_raw_length(raw_length_bytes)?;
    resize(description, out, length)?;
    let result = decode_into(workspace, description, data, out);
    if result.is_err() {
        out.clear();
    }
    result
}

/// As `decode`, into a slice whose length is the stated raw length. On an error it holds anything.
///
/// # Errors
/// As `decode`.
pub fn decode_into(
    workspace: &mut Workspace,
    description: &BlockDescription,
    data: &[u8],
    out: &mut [u8],
) -> Result<()> {
    check_raw_length(out.len() as u64)?;
    let codec = registry::by_id(description.codec)?;
    codec.check_params(&description.params, out.len() as u64)?;
    codec.decode(workspace, &description.params, data, out)?;
    description.filters.decode(out);
    Ok(())
}

/// Opens the first `want_bytes` of a block (all of it when it is shorter) into `out`, whose former
/// content is overwritten, without the work for the rest, beyond the codec's granularity: a few
/// bytes for lz4, deflate, lzma, ppmd, cm; 128 KiB for zstd; up to 900 kB for bzip2. bwt decodes
/// the whole block, and is spared only a part of the way back from the transform (a sixth of the time).
///
/// Damage behind the prefix may go unnoticed; the frame's checksum is there for that.
///
/// # Errors
/// As `decode`.
pub fn decode_prefix(
    workspace: &mut Workspace,
    description: &BlockDescription,
    data: &[u8],
    raw_length_bytes: u64,
    want_bytes: u64,
    out: &mut Vec<u8>,
) -> Result<()> {
    let length = check_raw_length(raw_length_bytes)?;
    let wanted = usize::try_from(want_bytes).unwrap_or(length).min(length);
    let opened = wanted
        .saturating_add(description.filters.lookahead_bytes())
        .min(length);
    if opened == length {
        decode(workspace, description, data, raw_length_bytes, out)?;
        out.truncate(wanted);
        return Ok(());
    }
    resize(description, out, opened)?;
    let codec = registry::by_id(description.codec)?;
    let result = codec
        .check_params(&description.params, raw_length_bytes)
        .and_then(|()| {
            codec.decode_prefix(workspace, &description.params, data, raw_length_bytes, out)
        });
    if result.is_err() {
        out.clear();
        return result;
    }
    description.filters.decode(out);
    out.truncate(wanted);
    Ok(())
}

/// Working memory that opening this block needs, bytes; without the raw and the compressed bytes.
///
/// # Errors
/// `RawLength`, `UnsupportedCodec`, `Description`.
pub fn decode_memory_bytes(description: &BlockDescription, raw_length_bytes: u64) -> Result<u64> {
    check_raw_length(raw_length_bytes)?;
    let codec = registry::by_id(description.codec)?;
    codec.check_params(&description.params, raw_length_bytes)?;
    Ok(codec.decode_memory_bytes(raw_length_bytes, &description.params))
}

/// Makes `out` that long, keeping what it holds: bytes that will be overwritten need no clearing.
fn resize(description: &BlockDescription, out: &mut Vec<u8>, length: usize) -> Result<()> {
    if length > out.capacity() {
        out.clear();
    }
    reserve(description.codec, out, length.saturating_sub(out.len())).map_err(|_| {
        Error::OutOfMemory {
            codec: description.codec,
            wanted_bytes: length as u64,
        }
    })?;
    out.resize(length, 0);
    Ok(())
}
