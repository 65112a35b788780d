//! Decodes the sections of extents and entries.

use refrain_codec::Workspace;
use refrain_format::{Coding, EntriesHeader, Entry, Limits, unpack_entries_within};

use crate::error::Result;
use crate::store::decoders::Decoders;

/// Decodes a coded section. It has no checksum here: the caller checks the result.
pub(crate) fn decode_section(
    workspace: &mut Workspace,
    decoders: &Decoders,
    coding: &Coding,
    raw_bytes: u64,
    data: &[u8],
) -> Result<Vec<u8>> {
    let mut raw = Vec::new();
    let coded = decoders.coded(coding, raw_bytes)?;
    coded.decode(workspace, &coding.unmasked(data), raw_bytes, &mut raw)?;
    Ok(raw)
}

/// Decodes and unpacks the entries of a frame with this head and data, within the reader's limits.
pub(crate) fn decode_entries(
    workspace: &mut Workspace,
    decoders: &Decoders,
    head: &EntriesHeader,
    data: &[u8],
    limits: &Limits,
) -> Result<Vec<Entry>> {
    let raw = decode_section(
        workspace,
        decoders,
        &head.coding,
        head.packed_raw_bytes,
        data,
    )?;
    Ok(unpack_entries_within(head, &raw, limits)?)
}
