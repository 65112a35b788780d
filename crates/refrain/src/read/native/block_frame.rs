//! Decodes a block from its frame's payload.

use refrain_format::BlockHeader;
use refrain_pool::compute;

use crate::error::{Error, Result, mebibytes};
use crate::read::store_reader::{BlockLocation, DecodeResources, DecodedBlock};
use crate::read::work_meter::WorkMeter;

/// Decodes at least the first `wanted` bytes of the block in `payload`, for the read of `meter`.
///
/// # Errors
/// `Damaged`; `Limit`; as [`WorkMeter::go_on`] if the read need not be answered any more when its
/// turn comes.
pub(crate) fn decode_block_frame(
    payload: &[u8],
    location: &BlockLocation,
    wanted: u64,
    resources: &DecodeResources,
    meter: Option<&WorkMeter>,
) -> Result<DecodedBlock> {
    let (head, data) = BlockHeader::parse(payload, &resources.limits)?;
    check_location(&head, location)?;
    let data = &head.coding.unmasked(data);
    let coded = resources.decoders.coded(&head.coding, head.raw_bytes)?;
    let codec_bytes = coded.memory_bytes(head.raw_bytes)?;
    check_memory(codec_bytes, head.raw_bytes, resources)?;
    let is_slow = coded.is_slow();
    let is_wanted_whole = wanted >= head.raw_bytes;
    // Whatever an index says of it: only this checksum tells what a plug-in or module got wrong.
    let is_whole = is_wanted_whole || !coded.is_engines();
    resources.note_decoding(codec_bytes, is_slow);
    let mut raw = resources.take_spare_buffer(location.block);
    compute(|| {
        meter.map_or(Ok(()), WorkMeter::go_on)?;
        // Acquired by the job, not by the thread that waits for it: other jobs wait for permits.
        let _permits = resources.decoding().codec_memory.acquire(codec_bytes);
        resources.decoding().workspaces.with(|space| {
            let workspace = &mut space.codec;
            if is_whole {
                coded.decode(workspace, data, head.raw_bytes, &mut raw)?;
                head.check_raw(&raw)?;
                raw.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
                return Ok(());
            }
            coded.decode_prefix(workspace, data, (head.raw_bytes, wanted), &mut raw)
        })
    })?;
    Ok(DecodedBlock {
        bytes: raw,
        is_slow_to_repeat: is_slow && is_wanted_whole,
    })
}

/// Checks that decoding a block fits into memory.
pub(super) fn check_memory(
    codec_bytes: u64,
    raw_bytes: u64,
    resources: &DecodeResources,
) -> Result<()> {
    let needed = codec_bytes.saturating_add(raw_bytes);
    let allowed = resources.decoding().codec_memory.total();
    if needed <= allowed {
        return Ok(());
    }
    Err(Error::limit(format!(
        "decoding the block needs {} of memory, the limit is {}: raise the memory limit",
        mebibytes(needed),
        mebibytes(allowed)
    )))
}

/// Checks that the frame has the expected block.
pub(super) fn check_location(head: &BlockHeader, location: &BlockLocation) -> Result<()> {
    if (head.block_id, head.store_start, head.raw_bytes)
        == (location.block, location.store_start, location.raw_bytes)
    {
        return Ok(());
    }
    Err(Error::damaged(format!(
        "expected block {} with {} bytes at store offset {}, found block {} with {} bytes at store offset {}",
        location.block,
        location.raw_bytes,
        location.store_start,
        head.block_id,
        head.raw_bytes,
        head.store_start
    )))
}
