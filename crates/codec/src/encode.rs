//! Encodes a block by a plan: takes a sample, chooses filters, runs the codec, and falls back when
//! that does not pay.

use crate::codec::{Codec, OnIncompressible, reserve};
use crate::description::{BlockDescription, FallbackReason};
use crate::error::{Error, Result};
use crate::filter::candidates::{record_bytes, select_candidates};
use crate::filter::chain::FilterChain;
use crate::filter::step::FilterStep;
use crate::host::Host;
use crate::id::CodecId;
use crate::params::Params;
use crate::plan::{BlockPlan, FilterPlan, TunedCodec};
use crate::raw_length::check_raw_length;
use crate::registry;
use crate::sample::{SAMPLED_FROM_BYTES, entropy_bits, histogram, take_part, take_sample};
use crate::settings::Settings;
use crate::trial::{COMPRESSIBLE_BELOW_BITS, quick_bytes, sample_is_incompressible};
use crate::workspace::Workspace;

/// The codec used when the planned one fails or needs too much memory: light, and dense for its
/// cost.
const LIGHTER_CODEC: CodecId = CodecId::ZSTD;
const LIGHTER_LEVEL: i32 = 12;

/// A filter is used if it saves at least this share (1/64) of the size of the sample's trial.
/// Filters cost time in both directions, and a sample is only an estimate.
const FILTER_SAVING_LOG: u32 = 6;
/// A rival is used if it saves at least one byte in this many on a part of the block. The level's
/// codec gains more from the whole block: on kernel trees LZMA saves 1 to 6 % of parts of 1 MiB and
/// loses 4 % of blocks of 16 MiB to bwt2. With 20, 128 MB of one are LZMA by 14.8 % and 0.2 %
/// smaller, and take 1.4 times the time; programs are the same.
///
/// Where a filter for branches won, any saving counts: 33 MB of a library's code take 6.14 MB
/// instead of 6.44 with bwt2, five times the time to encode and a sixth to decode.
const RIVAL_SAVING_ONE_IN: usize = 13;
/// A quick full pass that saves less than this share (1/256) confirms that a block is
/// incompressible.
const FULL_PASS_SAVING_LOG: u32 = 8;

/// Encodes `raw` as planned and appends the payload to `out`, which may already contain bytes. The
/// payload is never larger than `raw`.
///
/// Blocks of 64 KiB and more are sampled first: filters are tried on the sample, and when the
/// sample is incompressible, the codec runs only as far as `OnIncompressible` says. This needs up
/// to about 3 MiB of memory, regardless of the limit in the plan.
///
/// # Errors
/// `RawLength`, `UnsupportedCodec`, `Setting`, and `OutOfMemory` if the system refuses memory: a
/// caller may try again. `out` is then unchanged. A codec or filter that fails, or needs more
/// memory than the plan allows, is not an error: see `FallbackReason`.
pub fn encode_block(
    workspace: &mut Workspace,
    raw: &[u8],
    plan: &BlockPlan,
    out: &mut Vec<u8>,
) -> Result<BlockDescription> {
    check_raw_length(raw.len() as u64)?;
    let start = out.len();
    let result = encode_checked(workspace, raw, plan, out);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Whether a sample of a block, given in `parts`, is incompressible, by filters and codecs. A
/// caller that knows that the block has no repeats between the pieces of the sample can then store
/// it without compression.
///
/// Returns false for blocks below 64 KiB: for them the codec costs less than a sample.
///
/// # Errors
/// `OutOfMemory`.
pub fn looks_incompressible(
    workspace: &mut Workspace,
    parts: &[&[u8]],
    filters: FilterPlan,
) -> Result<bool> {
    let raw_bytes: usize = parts.iter().map(|part| part.len()).sum();
    if raw_bytes < SAMPLED_FROM_BYTES || matches!(filters, FilterPlan::Fixed(_)) {
        return Ok(false);
    }
    take_sample(parts, &mut workspace.sample);
    let is_trial = filters == FilterPlan::Trial;
    let may_filter = is_trial && select_candidates(&workspace.sample).next().is_some();
    Ok(!may_filter && sample_is_incompressible(workspace)?)
}

/// The working memory in bytes that `encode_block` needs for this plan, within its limit; without
/// the raw and the compressed bytes.
///
/// # Errors
/// `UnsupportedCodec`.
pub fn encode_memory_bytes(raw_length_bytes: u64, plan: &BlockPlan) -> Result<u64> {
    let mut codec_bytes = 0;
    for choice in plan.compared() {
        registry::by_id(choice.codec)?;
        let needed = fitting_bytes(&choice, raw_length_bytes, plan)
            .or_else(|| fitting_bytes(&lighter(), raw_length_bytes, plan));
        codec_bytes = codec_bytes.max(needed.unwrap_or(0));
    }
    let (filtered_bytes, filter_bytes) = match plan.filters {
        FilterPlan::None => (0, 0),
        FilterPlan::Trial => (raw_length_bytes, 0),
        FilterPlan::Fixed(filters) => {
            let own_bytes = filter_bytes(&filters, raw_length_bytes);
            let is_used = own_bytes <= plan.memory_limit_bytes;
            (raw_length_bytes, if is_used { own_bytes } else { 0 })
        }
    };
    // The filters have done their work before the codec begins.
    Ok(filtered_bytes.saturating_add(codec_bytes.max(filter_bytes)))
}

/// The memory to apply filters, without the filtered bytes: that of a plug-in, and the bytes that
/// come back from it.
fn filter_bytes(filters: &FilterChain, raw_length_bytes: u64) -> u64 {
    let undone_bytes = if filters.has_plugin() { raw_length_bytes } else { 0 };
    filters.memory_bytes().saturating_add(undone_bytes)
}

/// Whether the planned codec itself, perhaps with smaller settings, fits in the memory limit of the
/// plan.
///
/// # Errors
/// `UnsupportedCodec`.
pub fn fits_memory(raw_length_bytes: u64, plan: &BlockPlan) -> Result<bool> {
    registry::by_id(plan.codec)?;
    Ok(fitting_bytes(&plan.planned(), raw_length_bytes, plan).is_some())
}

fn encode_checked(
    workspace: &mut Workspace,
    raw: &[u8],
    plan: &BlockPlan,
    out: &mut Vec<u8>,
) -> Result<BlockDescription> {
    let planned = registry::by_id(plan.codec)?;
    if plan.codec == CodecId::NONE {
        return store(workspace, raw, &plan.settings, None, out);
    }
    let mut filters = match plan.filters {
        FilterPlan::Fixed(filters) => filters,
        FilterPlan::None | FilterPlan::Trial => FilterChain::EMPTY,
    };
    if raw.len() >= SAMPLED_FROM_BYTES {
        take_sample(&[raw], &mut workspace.sample);
        if plan.filters == FilterPlan::Trial {
            filters = choose_filters(workspace)?;
            if filters.is_empty() {
                filters = choose_transposition(workspace, raw, plan)?;
            }
        }
        // Filters that are wanted may help where a sample looks incompressible; one that won its
        // trial has shown that the block is compressible.
        if filters.is_empty() && is_incompressible(workspace, raw, planned, &plan.settings)? {
            let reason = Some(FallbackReason::Incompressible);
            return store(workspace, raw, &Settings::default(), reason, out);
        }
    }
    if filters.is_empty() {
        return run_codecs(workspace, raw, raw, filters, plan, out);
    }
    let mut filtered = std::mem::take(&mut workspace.filtered);
    let result = match apply_filters(workspace.host, raw, filters, plan, &mut filtered)? {
        None => run_codecs(workspace, raw, &filtered, filters, plan, out),
        Some(reason) => {
            let plain = run_codecs(workspace, raw, raw, FilterChain::EMPTY, plan, out);
            plain.map(|block| BlockDescription {
                fallback: Some(reason),
                ..block
            })
        }
    };
    workspace.filtered = filtered;
    result
}

/// Filters a copy of the block, and undoes what a plug-in did: whatever it has wrong must not cost
/// anybody the data. Returns why the block has to do without filters, if it has to.
fn apply_filters(
    host: Host,
    raw: &[u8],
    filters: FilterChain,
    plan: &BlockPlan,
    filtered: &mut Vec<u8>,
) -> Result<Option<FallbackReason>> {
    if filter_bytes(&filters, raw.len() as u64) > plan.memory_limit_bytes {
        return Ok(Some(FallbackReason::MemoryLimit));
    }
    filtered.clear();
    reserve(plan.codec, filtered, raw.len())?;
    host.append(filtered, raw);
    let encoded = filters.encode(host, filtered);
    if !filters.has_plugin() {
        return encoded.map(|()| None);
    }
    let mut undone = Vec::new();
    reserve(plan.codec, &mut undone, raw.len())?;
    host.append(&mut undone, filtered);
    let decoded = encoded.and_then(|()| filters.decode(host, &mut undone));
    let is_right = decoded.is_ok() && undone == raw;
    Ok((!is_right).then_some(FallbackReason::FilterFailed))
}

/// Whether the sample is incompressible and, for slow codecs, the whole block in a quick full pass.
fn is_incompressible(
    workspace: &mut Workspace,
    raw: &[u8],
    planned: &dyn Codec,
    settings: &Settings,
) -> Result<bool> {
    let on_incompressible = planned.on_incompressible(settings);
    if on_incompressible == OnIncompressible::Run || !sample_is_incompressible(workspace)? {
        return Ok(false);
    }
    if on_incompressible == OnIncompressible::Store {
        return Ok(true);
    }
    let quick_bytes = quick_bytes(workspace, raw)?;
    Ok(quick_bytes >= raw.len() - (raw.len() >> FULL_PASS_SAVING_LOG))
}

/// Tries the candidate filters on the sample. The best one is used if it saves enough.
fn choose_filters(workspace: &mut Workspace) -> Result<FilterChain> {
    let sample = std::mem::take(&mut workspace.sample);
    let result = choose_filters_for(workspace, &sample);
    workspace.sample = sample;
    result
}

fn choose_filters_for(workspace: &mut Workspace, sample: &[u8]) -> Result<FilterChain> {
    let mut steps = select_candidates(sample).peekable();
    if steps.peek().is_none() {
        return Ok(FilterChain::EMPTY);
    }
    let plain_bytes = quick_bytes(workspace, sample)?;
    let mut best_bytes = plain_bytes - (plain_bytes >> FILTER_SAVING_LOG);
    let mut best = FilterChain::EMPTY;
    for step in steps {
        let mut filtered = std::mem::take(&mut workspace.sample_filtered);
        filtered.clear();
        filtered.extend_from_slice(sample);
        step.encode(workspace.host, &mut filtered)?;
        let bytes = quick_bytes(workspace, &filtered);
        workspace.sample_filtered = filtered;
        let bytes = bytes?;
        if bytes < best_bytes {
            best_bytes = bytes;
            best = FilterChain::single(step);
        }
    }
    Ok(best)
}

/// Transposition, if the block seems to consist of records and codecs make a part of it smaller
/// transposed. The quick codec of other trials cannot tell: it gains from transposed code and
/// loses on tables of symbols, where those that the plan compares do the opposite.
fn choose_transposition(
    workspace: &mut Workspace,
    raw: &[u8],
    plan: &BlockPlan,
) -> Result<FilterChain> {
    if !plan.has_rivals() {
        return Ok(FilterChain::EMPTY);
    }
    let Some(record_bytes) = record_bytes(&workspace.sample) else {
        return Ok(FilterChain::EMPTY);
    };
    let mut part = std::mem::take(&mut workspace.sample_filtered);
    take_part(raw, &mut part);
    let plain = smallest_part(workspace, &part, plan.compared(), plan);
    let step = FilterStep::Transpose { record_bytes };
    let encoded = step.encode(workspace.host, &mut part);
    let transposed = smallest_part(workspace, &part, plan.compared(), plan);
    workspace.sample_filtered = part;
    encoded?;
    let bytes_of = |smallest: Option<(usize, TunedCodec)>| smallest.map_or(0, |(bytes, _)| bytes);
    let (plain, transposed) = (bytes_of(plain?), bytes_of(transposed?));
    let saves = transposed < plain - (plain >> FILTER_SAVING_LOG);
    Ok(if saves { FilterChain::single(step) } else { FilterChain::EMPTY })
}

/// Runs the planned codec on the filtered bytes, or the next lighter one, or stores the block.
fn run_codecs(
    workspace: &mut Workspace,
    raw: &[u8],
    filtered: &[u8],
    filters: FilterChain,
    plan: &BlockPlan,
    out: &mut Vec<u8>,
) -> Result<BlockDescription> {
    let start = out.len();
    let mut fallback = None;
    let choice = choose_codec(workspace, filtered, filters, plan)?;
    for attempt in attempts(choice) {
        let Some((settings, reduced)) = fitting(&attempt, raw.len() as u64, plan) else {
            fallback = fallback.or(Some(FallbackReason::MemoryLimit));
            continue;
        };
        let codec = registry::by_id(attempt.codec)?;
        workspace.release_large_states_except(attempt.codec);
        match codec.encode(workspace, filtered, &settings, out) {
            Ok(params) if out.len() - start < raw.len() => {
                let reduction = reduced.then_some(FallbackReason::SettingsReduced);
                return Ok(BlockDescription {
                    codec: attempt.codec,
                    filters,
                    params,
                    fallback: fallback.or(reduction),
                });
            }
            Ok(_) => {
                out.truncate(start);
                fallback = fallback.or(Some(FallbackReason::NotSmaller));
                break;
            }
            // Whether there is memory must not decide the bytes: the caller may wait for some.
            Err(error @ (Error::Setting { .. } | Error::OutOfMemory { .. })) => return Err(error),
            Err(error) => {
                out.truncate(start);
                let reason = match error {
                    Error::NoRoom { .. } => FallbackReason::NotSmaller,
                    _ => FallbackReason::CodecFailed,
                };
                fallback = fallback.or(Some(reason));
            }
        }
    }
    store(workspace, raw, &Settings::default(), fallback, out)
}

/// The planned codec, a rival or the lighter one, whichever makes a part of the block smallest.
fn choose_codec(
    workspace: &mut Workspace,
    filtered: &[u8],
    filters: FilterChain,
    plan: &BlockPlan,
) -> Result<TunedCodec> {
    let planned = plan.planned();
    if !plan.has_rivals() {
        return Ok(planned);
    }
    let mut part = std::mem::take(&mut workspace.sample);
    take_part(filtered, &mut part);
    let planned_bytes = part_bytes(workspace, &part, &planned, plan);
    let is_other = planned != lighter();
    let others = plan
        .rivals
        .into_iter()
        .flatten()
        .chain(is_other.then(lighter));
    let smallest = smallest_part(workspace, &part, others, plan);
    // Only bytes with order-0 redundancy, and more of them than the part, gain from the whole; code
    // gains with all codecs.
    let gains = part.len() < filtered.len()
        && !filters.steps().any(FilterStep::is_for_branches)
        && entropy_bits(&histogram(&part)) < COMPRESSIBLE_BELOW_BITS;
    workspace.sample = part;
    let planned_bytes = planned_bytes?;
    let wanted = if gains {
        planned_bytes - planned_bytes / RIVAL_SAVING_ONE_IN
    } else {
        planned_bytes
    };
    Ok(smallest?
        .filter(|&(bytes, _)| bytes < wanted)
        .map_or(planned, |(_, choice)| choice))
}

/// The first of the choices that make the part smallest, and its size in bytes.
fn smallest_part(
    workspace: &mut Workspace,
    part: &[u8],
    choices: impl Iterator<Item = TunedCodec>,
    plan: &BlockPlan,
) -> Result<Option<(usize, TunedCodec)>> {
    let mut smallest = None;
    for choice in choices {
        let bytes = part_bytes(workspace, part, &choice, plan)?;
        if smallest.is_none_or(|(least, _)| bytes < least) {
            smallest = Some((bytes, choice));
        }
    }
    Ok(smallest)
}

/// The size of a part of a block after a codec; `usize::MAX` if the plan allows too little memory.
fn part_bytes(
    workspace: &mut Workspace,
    part: &[u8],
    choice: &TunedCodec,
    plan: &BlockPlan,
) -> Result<usize> {
    let Some((settings, _)) = fitting(choice, part.len() as u64, plan) else {
        return Ok(usize::MAX);
    };
    let codec = registry::by_id(choice.codec)?;
    workspace.release_large_states_except(choice.codec);
    workspace.trial_bytes(|workspace, out| codec.encode(workspace, part, &settings, out).map(drop))
}

/// The codecs to try, in order: the chosen one, then the lighter one.
fn attempts(choice: TunedCodec) -> impl Iterator<Item = TunedCodec> {
    let is_other = choice.codec != LIGHTER_CODEC;
    std::iter::once(choice).chain(is_other.then(lighter))
}

fn lighter() -> TunedCodec {
    TunedCodec {
        codec: LIGHTER_CODEC,
        settings: Settings::level(LIGHTER_LEVEL),
    }
}

/// The memory that the attempt needs with the settings that fit, in bytes.
fn fitting_bytes(attempt: &TunedCodec, raw_length_bytes: u64, plan: &BlockPlan) -> Option<u64> {
    let (settings, _) = fitting(attempt, raw_length_bytes, plan)?;
    let codec = registry::by_id(attempt.codec).ok()?;
    Some(codec.encode_memory_bytes(raw_length_bytes, &settings))
}

/// The settings of the attempt, or the nearest smaller ones, that fit in the plan's memory limit;
/// and whether they are smaller.
fn fitting(
    attempt: &TunedCodec,
    raw_length_bytes: u64,
    plan: &BlockPlan,
) -> Option<(Settings, bool)> {
    let codec = registry::by_id(attempt.codec).ok()?;
    let mut settings = attempt.settings;
    let mut reduced = false;
    while codec.encode_memory_bytes(raw_length_bytes, &settings) > plan.memory_limit_bytes {
        settings = codec.with_less_memory(raw_length_bytes, &settings)?;
        reduced = true;
    }
    Some((settings, reduced))
}

fn store(
    workspace: &mut Workspace,
    raw: &[u8],
    settings: &Settings,
    fallback: Option<FallbackReason>,
    out: &mut Vec<u8>,
) -> Result<BlockDescription> {
    let params = registry::by_id(CodecId::NONE)?.encode(workspace, raw, settings, out)?;
    debug_assert_eq!(params, Params::EMPTY);
    Ok(BlockDescription::stored(fallback))
}
