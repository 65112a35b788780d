//! Decodes a payload with its description into the block, or into the first bytes of it.

use crate::codec::reserve;
use crate::description::BlockDescription;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::raw_length::check_raw_length;
use crate::registry;
use crate::workspace::Workspace;

/// Decodes a block of `raw_length_bytes` into `out`, whose former content is overwritten. Reuse
/// `out` for the next block: then nothing is allocated or cleared.
///
/// # Errors
/// `RawLength` and `OutOfMemory` before any work; `UnsupportedCodec`, `Description`, `Damaged`,
/// `Length` and `FilterFailed` when `data` does not decode to exactly the stated length. `out` is
/// then empty. It never grows beyond `raw_length_bytes`.
pub fn decode(
    workspace: &mut Workspace,
    description: &BlockDescription,
    data: &[u8],
    raw_length_bytes: u64,
    out: &mut Vec<u8>,
) -> Result<()> {
    let length = check_raw_length(raw_length_bytes)?;
    resize(workspace.host, description, out, length)?;
    let result = decode_into(workspace, description, data, out);
    if result.is_err() {
        out.clear();
    }
    result
}

/// Decodes into a slice whose length is the stated raw length. After an error its content is
/// undefined.
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
    description.filters.decode(workspace.host, out)
}

/// Decodes the first `prefix_bytes` of a block (all of it when it is shorter) into `out`, whose
/// former content is overwritten. Does no more work than the codec's granularity requires: a few
/// bytes for lz4, deflate, lzma, ppmd and cm; 128 KiB for zstd; up to 900 kB for bzip2. bwt and
/// bwt2 decode the whole block and save only a part of the inverse transform. Filters of plug-ins
/// need the whole block.
///
/// May miss damage after the prefix; the checksum of the frame does not.
///
/// # Errors
/// As `decode`.
pub fn decode_prefix(
    workspace: &mut Workspace,
    description: &BlockDescription,
    data: &[u8],
    raw_length_bytes: u64,
    prefix_bytes: u64,
    out: &mut Vec<u8>,
) -> Result<()> {
    let length = check_raw_length(raw_length_bytes)?;
    let prefix = usize::try_from(prefix_bytes).unwrap_or(length).min(length);
    let decoded = prefix
        .saturating_add(description.filters.lookahead_bytes())
        .min(length);
    if decoded == length {
        decode(workspace, description, data, raw_length_bytes, out)?;
        out.truncate(prefix);
        return Ok(());
    }
    resize(workspace.host, description, out, decoded)?;
    let codec = registry::by_id(description.codec)?;
    let result = codec
        .check_params(&description.params, raw_length_bytes)
        .and_then(|()| {
            codec.decode_prefix(workspace, &description.params, data, raw_length_bytes, out)
        })
        .and_then(|()| description.filters.decode(workspace.host, out));
    out.truncate(if result.is_ok() { prefix } else { 0 });
    result
}

/// Decodes as much as possible of a damaged block, whose `data` may be cut off or wrong, into
/// `out`, whose former content is overwritten. `out` then has `raw_length_bytes`; the caller tells
/// by checksums which of them are right.
///
/// Codecs recover the bytes before the damage: lz4, zstd, lzma, deflate, ppmd and cm nearly all of
/// them, bzip2 only whole bzip2 blocks, bwt and bwt2 none. Without a codec all available bytes are
/// recovered.
///
/// # Errors
/// As `decode`, for the stated length and the description only.
pub fn decode_damaged(
    workspace: &mut Workspace,
    description: &BlockDescription,
    data: &[u8],
    raw_length_bytes: u64,
    out: &mut Vec<u8>,
) -> Result<()> {
    let length = check_raw_length(raw_length_bytes)?;
    let codec = registry::by_id(description.codec)?;
    codec.check_params(&description.params, raw_length_bytes)?;
    resize(workspace.host, description, out, length)?;
    codec.decode_damaged(workspace, &description.params, data, out);
    // As codecs, one that fails may have restored a part.
    let _ = description.filters.decode(workspace.host, out);
    Ok(())
}

/// The working memory for decoding this block, bytes; without the raw and the compressed bytes.
///
/// # Errors
/// `RawLength`, `UnsupportedCodec`, `Description`.
pub fn decode_memory_bytes(description: &BlockDescription, raw_length_bytes: u64) -> Result<u64> {
    check_raw_length(raw_length_bytes)?;
    let codec = registry::by_id(description.codec)?;
    codec.check_params(&description.params, raw_length_bytes)?;
    let codec_bytes = codec.decode_memory_bytes(raw_length_bytes, &description.params);
    Ok(codec_bytes.max(description.filters.memory_bytes()))
}

/// Sets the length of `out` without clearing bytes that will be overwritten.
fn resize(
    host: Host,
    description: &BlockDescription,
    out: &mut Vec<u8>,
    length: usize,
) -> Result<()> {
    if length > out.capacity() {
        // To grow it would copy what it holds, without checking in.
        *out = Vec::new();
    }
    reserve(description.codec, out, length.saturating_sub(out.len())).map_err(|_| {
        Error::OutOfMemory {
            codec: description.codec,
            wanted_bytes: length as u64,
        }
    })?;
    host.resize(out, length);
    Ok(())
}
