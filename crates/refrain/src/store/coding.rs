//! Translates between the codec's and the archive's description of a section's coding, and decodes
//! sections.

use refrain_codec::{BlockDescription, UntrustedBlockDescription, Workspace, decode};
use refrain_format::{Coding, EntriesHeader, Entry, Limits, unpack_entries_within};

use crate::error::Result;

/// The zstd level of extents and entries. They are small, and every random read decodes some.
pub(crate) const METADATA_LEVEL: i32 = 9;

/// The archive's form of a codec's description of a block.
pub(crate) fn coding(description: &BlockDescription) -> Result<Coding> {
    let filters: Vec<_> = description
        .filters
        .steps()
        .map(|step| (step.id(), step.param()))
        .collect();
    let fallback = description.fallback.map_or(0, |reason| reason.number());
    Ok(Coding::new(
        description.codec.0,
        &filters,
        description.params.as_bytes(),
        fallback,
    )?)
}

/// The codec's form of the archive's description of a block, checked.
pub(crate) fn description(
    coding: &Coding,
    raw_bytes: u64,
) -> std::result::Result<BlockDescription, refrain_codec::Error> {
    UntrustedBlockDescription {
        codec: coding.codec(),
        filters: coding.filters(),
        params: coding.params(),
        fallback: coding.fallback(),
    }
    .check(raw_bytes)
}

/// Decodes a coded section. It has no checksum here: the caller checks the result.
pub(crate) fn decode_section(
    workspace: &mut Workspace,
    coding: &Coding,
    raw_bytes: u64,
    data: &[u8],
) -> Result<Vec<u8>> {
    let mut raw = Vec::new();
    decode(
        workspace,
        &description(coding, raw_bytes)?,
        &coding.unmasked(data),
        raw_bytes,
        &mut raw,
    )?;
    Ok(raw)
}

/// Decodes and unpacks the entries of a frame with this head and data, within the reader's limits.
pub(crate) fn decode_entries(
    workspace: &mut Workspace,
    head: &EntriesHeader,
    data: &[u8],
    limits: &Limits,
) -> Result<Vec<Entry>> {
    let raw = decode_section(workspace, &head.coding, head.packed_raw_bytes, data)?;
    Ok(unpack_entries_within(head, &raw, limits)?)
}
