//! Translates between the codec's and the archive's description of a section's coding.
use refrain_codec::{
    BlockDescription, CodecId, FilterStep, UntrustedBlockDescription, filter_name,
};
use refrain_format::{Coding, DecoderRole};

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

/// As [`description`], without the filters.
pub(crate) fn unfiltered_description(
    coding: &Coding,
    raw_bytes: u64,
) -> std::result::Result<BlockDescription, refrain_codec::Error> {
    UntrustedBlockDescription {
        codec: coding.codec(),
        filters: &[],
        params: coding.params(),
        fallback: coding.fallback(),
    }
    .check(raw_bytes)
}

/// The codec and filters of a coding that plug-ins of this process have, with the plug-ins' names.
pub(crate) fn plugins_of(coding: &Coding) -> impl Iterator<Item = (DecoderRole, &'static str)> {
    let codec = Some(CodecId(coding.codec())).filter(|codec| codec.is_plugin());
    let codec = codec.and_then(|codec| Some((DecoderRole::Codec(codec.0), codec.name()?)));
    let filters = coding.filters().iter().map(|&(id, _)| id);
    let filters = filters.filter(|id| FilterStep::PLUGINS.contains(id));
    let filters = filters.filter_map(|id| Some((DecoderRole::Filter(id), filter_name(id)?)));
    codec.into_iter().chain(filters)
}

/// Checks the raw length of a block whose codec is not of this build.
pub(crate) fn check_raw_bytes(raw_bytes: u64) -> std::result::Result<(), refrain_codec::Error> {
    let stored = UntrustedBlockDescription {
        codec: CodecId::NONE.0,
        filters: &[],
        params: &[],
        fallback: 0,
    };
    stored.check(raw_bytes).map(|_| ())
}
