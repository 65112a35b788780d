//! A block decoded from the payload of its frame.

use refrain_codec::{decode, decode_memory_bytes, decode_prefix, is_slow_to_decode};
use refrain_format::BlockHeader;

use crate::error::{Error, Result, mebibytes};
use crate::read::store_reader::{BlockPlace, DecodeResources, DecodedBlock};
use crate::store::coding::description;

/// Decodes the first `wanted` bytes of the block in `payload`, or more.
pub(crate) fn decode_block_frame(
    payload: &[u8],
    place: &BlockPlace,
    wanted: u64,
    resources: &DecodeResources,
) -> Result<DecodedBlock> {
    let (head, data) = BlockHeader::parse(payload, &resources.limits)?;
    check_place(&head, place)?;
    let description = description(&head.coding, head.raw_bytes)?;
    let codec_bytes = decode_memory_bytes(&description, head.raw_bytes)?;
    let needed = codec_bytes.saturating_add(head.raw_bytes);
    let allowed = resources.codec_memory.total();
    if needed > allowed {
        return Err(Error::limit(format!(
            "decoding the block needs {} of memory, the limit is {}: raise the memory limit",
            mebibytes(needed),
            mebibytes(allowed)
        )));
    }
    let is_slow = is_slow_to_decode(description.codec);
    let is_whole = wanted >= head.raw_bytes;
    let _permits = resources.codec_memory.acquire(codec_bytes);
    resources.note_decoding(codec_bytes, is_slow);
    let mut raw = resources.spare();
    resources.workspaces.with(|space| {
        let workspace = &mut space.codec;
        if is_whole {
            decode(workspace, &description, data, head.raw_bytes, &mut raw)?;
            return Ok(head.check_raw(&raw)?);
        }
        let raw_bytes = head.raw_bytes;
        Ok::<_, Error>(decode_prefix(
            workspace,
            &description,
            data,
            raw_bytes,
            wanted,
            &mut raw,
        )?)
    })?;
    Ok(DecodedBlock {
        bytes: raw,
        is_worth_packing: is_slow && is_whole,
    })
}

/// Whether the frame holds the block that was expected in it.
fn check_place(head: &BlockHeader, place: &BlockPlace) -> Result<()> {
    if (head.block_id, head.store_start, head.raw_bytes)
        == (place.block, place.store_start, place.raw_bytes)
    {
        return Ok(());
    }
    Err(Error::damaged(format!(
        "block {} with {} bytes of the store from {} on was expected; block {} with {} bytes from {} on is there",
        place.block,
        place.raw_bytes,
        place.store_start,
        head.block_id,
        head.raw_bytes,
        head.store_start
    )))
}
