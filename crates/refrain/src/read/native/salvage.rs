//! Salvages damaged blocks: an intact head states the checksums of a block's pieces, so every
//! correctly decoded piece can be used, although others are wrong or cut off.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_format::limits::ADDRESS_BYTES_MAX;
use refrain_format::{
    BlockHeader, FRAME_HEADER_BYTES, FrameKind, IndexBlock, Limits, SplitPayload,
    UntrustedFrameHeader,
};
use refrain_pool::Lock;
use refrain_protect::CHECKSUM_CHUNK_BYTES;
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::read::native::block_frame::{check_location, check_memory};
use crate::read::store_reader::{BlockLocation, DecodeResources, DecodedBlock};
use crate::store::memory::zeroed;

/// The maximum length of a payload's head.
const HEAD_BYTES: usize = refrain_format::limits::HEAD_BYTES_MAX + 3;

/// A block with a damaged or truncated frame, but a readable head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DamagedBlock {
    pub row: IndexBlock,
    pub block_id: u64,
    /// A block of one piece has no checksum to salvage it by.
    pub has_pieces: bool,
}

/// The damaged Block frame at this offset. `None` if there is none of this archive, or its head is
/// impossible.
pub(crate) fn damaged_block_at(
    source: &dyn Source,
    frame_offset: u64,
    archive_id: Option<u32>,
    limits: &Limits,
) -> Result<Option<DamagedBlock>> {
    let mut start = vec![0; FRAME_HEADER_BYTES + HEAD_BYTES];
    let count = source.read_at(frame_offset, &mut start)?;
    let block = block_of(&start[..count], frame_offset, archive_id, limits);
    Ok(block)
}

fn block_of(
    start: &[u8],
    frame_offset: u64,
    archive_id: Option<u32>,
    limits: &Limits,
) -> Option<DamagedBlock> {
    let header = UntrustedFrameHeader::parse(start).ok()?;
    let header = header.check(limits, None).ok()?;
    let is_own = archive_id.is_none_or(|id| id == header.archive_id);
    if header.kind != FrameKind::Block || !is_own {
        return None;
    }
    let split = SplitPayload::new(start.get(FRAME_HEADER_BYTES..)?).ok()?;
    let (head, pieces) = BlockHeader::parse_head(&split).ok()?;
    let is_possible = (1..=limits.block_raw_bytes_max).contains(&head.raw_bytes)
        && head.store_start <= ADDRESS_BYTES_MAX - head.raw_bytes;
    is_possible.then_some(DamagedBlock {
        row: IndexBlock {
            frame_offset,
            frame_bytes: header.frame_bytes(),
            store_start: head.store_start,
            raw_bytes: head.raw_bytes,
            codec: head.coding.codec(),
            filter_ids: head.coding.filter_ids(),
            hash: None,
        },
        block_id: head.block_id,
        has_pieces: pieces.get(0).is_some(),
    })
}

/// Whether a damaged block fits between intact ones (in store order): otherwise its head is damaged
/// as well.
pub(crate) fn fits_between(block: &DamagedBlock, intact: &[(IndexBlock, u64)]) -> bool {
    let (row, id) = (&block.row, block.block_id);
    let store_end = |row: &IndexBlock| row.store_start + row.raw_bytes;
    let at = intact.partition_point(|(other, _)| other.store_start < row.store_start);
    let before = at.checked_sub(1).and_then(|before| intact.get(before));
    let follows = |gap_start: u64, blocks_between: u64| match blocks_between {
        0 => row.store_start == gap_start,
        // Every block has at least one byte.
        count => row.store_start >= gap_start.saturating_add(count),
    };
    let begins_right = match before {
        Some((before, before_id)) => {
            before.frame_offset < row.frame_offset
                && *before_id < id
                && follows(store_end(before), id - before_id - 1)
        }
        None => follows(0, id),
    };
    let ends_right = intact.get(at).is_none_or(|(next, next_id)| {
        let gap_bytes = next.store_start.checked_sub(store_end(row));
        next.frame_offset > row.frame_offset
            && *next_id > id
            && gap_bytes.is_some_and(|gap| match next_id - id - 1 {
                0 => gap == 0,
                count => gap >= count,
            })
    });
    begins_right && ends_right
}

/// What is known about a damaged block.
#[derive(Clone)]
enum Remains {
    /// It was not decoded yet.
    Unknown,
    /// Which of its pieces are right.
    Pieces(Arc<Vec<bool>>),
    /// Nothing of it can be decoded.
    Nothing,
}

/// The damaged blocks of an archive, by the offset of their frame.
#[derive(Default)]
pub(crate) struct DamagedBlocks {
    /// Whether there are any, so that reads of intact archives take no lock.
    has_any: AtomicBool,
    blocks: Lock<BTreeMap<u64, Remains>>,
}

impl DamagedBlocks {
    pub(crate) fn new(offsets: BTreeSet<u64>) -> DamagedBlocks {
        let blocks = offsets.into_iter().map(|offset| (offset, Remains::Unknown));
        let blocks: BTreeMap<_, _> = blocks.collect();
        DamagedBlocks {
            has_any: AtomicBool::new(!blocks.is_empty()),
            blocks: Lock::new(blocks),
        }
    }

    /// Records that nothing of a block can be decoded.
    pub(crate) fn lose(&self, frame_offset: u64) {
        self.record(frame_offset, Remains::Nothing);
    }

    fn record(&self, frame_offset: u64, remains: Remains) {
        self.blocks.lock().insert(frame_offset, remains);
        self.has_any.store(true, Ordering::Release);
    }

    /// Drops a block that turned out to be intact.
    pub(crate) fn remove(&self, frame_offset: u64) {
        if self.has_any.load(Ordering::Acquire) {
            self.blocks.lock().remove(&frame_offset);
        }
    }

    pub(crate) fn contains(&self, frame_offset: u64) -> bool {
        self.remains_at(frame_offset).is_some()
    }

    fn remains_at(&self, frame_offset: u64) -> Option<Remains> {
        if self.has_any.load(Ordering::Acquire) {
            self.blocks.lock().get(&frame_offset).cloned()
        } else {
            None
        }
    }

    /// Decodes what remains of a block. Only what [`DamagedBlocks::check`] accepts is right.
    pub(crate) fn decode(
        &self,
        source: &dyn Source,
        location: &BlockLocation,
        resources: &DecodeResources,
    ) -> Result<DecodedBlock> {
        let decoded = decode_remains(source, location, resources);
        let remains = match &decoded {
            Ok((_, right)) => Remains::Pieces(Arc::clone(right)),
            Err(error) if error.kind == ErrorKind::Damaged => Remains::Nothing,
            Err(_) => Remains::Unknown,
        };
        self.record(location.frame_offset, remains);
        let (bytes, _) = decoded?;
        Ok(DecodedBlock {
            bytes,
            is_slow_to_repeat: false,
        })
    }

    /// Checks that these decoded bytes of a block are right.
    ///
    /// # Errors
    /// `Damaged`.
    pub(crate) fn check(&self, location: &BlockLocation, range: Range<u64>) -> Result<()> {
        let remains = match self.remains_at(location.frame_offset) {
            Some(remains) if !range.is_empty() => remains,
            _ => return Ok(()),
        };
        let piece_of = |offset: u64| offset as usize / CHECKSUM_CHUNK_BYTES;
        let (first, last) = (piece_of(range.start), piece_of(range.end - 1));
        let are_right = match &remains {
            Remains::Pieces(pieces) => {
                let wanted = pieces.get(first..=last);
                wanted.is_some_and(|wanted| wanted.iter().all(|&is_right| is_right))
            }
            Remains::Unknown | Remains::Nothing => false,
        };
        if are_right {
            Ok(())
        } else {
            Err(
                Error::new(ErrorKind::Damaged, "this part of the block is damaged")
                    .at_offset(location.frame_offset)
                    .in_block(location.block),
            )
        }
    }
}

/// Decodes a block, and finds out which of its pieces are right.
fn decode_remains(
    source: &dyn Source,
    location: &BlockLocation,
    resources: &DecodeResources,
) -> Result<(Vec<u8>, Arc<Vec<bool>>)> {
    let payload = payload_at(source, location.frame_offset, &resources.limits)?;
    let split = SplitPayload::new(&payload)?;
    let (head, pieces) = BlockHeader::parse_head(&split)?;
    check_location(&head, location)?;
    if pieces.get(0).is_none() {
        return Err(nothing_remains(location));
    }
    let coded = resources.decoders.coded(&head.coding, head.raw_bytes)?;
    let codec_bytes = coded.memory_bytes(head.raw_bytes)?;
    check_memory(codec_bytes, head.raw_bytes, resources)?;
    let _permits = resources.decoding().codec_memory.acquire(codec_bytes);
    resources.note_decoding(codec_bytes, false);
    let mut raw = resources.take_spare_buffer(location.block);
    let data = head.coding.unmasked(split.data);
    resources
        .decoding()
        .workspaces
        .with(|space| coded.decode_damaged(&mut space.codec, &data, head.raw_bytes, &mut raw))?;
    let checked = raw.chunks(CHECKSUM_CHUNK_BYTES).enumerate();
    let right = checked.map(|(piece, bytes)| pieces.check(piece, bytes) == Some(true));
    let right = Arc::new(right.collect::<Vec<_>>());
    Ok((raw, right))
}

fn nothing_remains(location: &BlockLocation) -> Error {
    Error::damaged("the block is damaged")
        .at_offset(location.frame_offset)
        .in_block(location.block)
}

/// The payload of the frame at this offset, as far as available.
fn payload_at(source: &dyn Source, frame_offset: u64, limits: &Limits) -> Result<Vec<u8>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let count = source.read_at(frame_offset, &mut header)?;
    let header = UntrustedFrameHeader::parse(&header[..count])?.check(limits, None)?;
    let start = frame_offset + FRAME_HEADER_BYTES as u64;
    let available_bytes = source.size_bytes()?.saturating_sub(start);
    let mut payload = zeroed(header.payload_bytes.min(available_bytes) as usize)?;
    let count = source.read_at(start, &mut payload)?;
    payload.truncate(count);
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Block `id` with this store range, in the frame at `frame_offset`.
    fn block(id: u64, store: Range<u64>, frame_offset: u64) -> DamagedBlock {
        DamagedBlock {
            row: IndexBlock {
                frame_offset,
                frame_bytes: 50,
                store_start: store.start,
                raw_bytes: store.end - store.start,
                codec: 0,
                filter_ids: [0; 2],
                hash: None,
            },
            block_id: id,
            has_pieces: true,
        }
    }

    #[test]
    fn a_head_that_contradicts_intact_blocks_is_damaged() {
        let intact = [block(1, 100..200, 1000), block(4, 450..500, 4000)];
        let intact = intact.map(|block| (block.row, block.block_id));
        for (candidate, fits) in [
            (block(0, 0..100, 500), true),
            (block(0, 1..100, 500), false),
            (block(0, 0..99, 500), false),
            (block(2, 200..300, 2000), true),
            (block(2, 201..300, 2000), false),
            (block(2, 200..450, 2000), false),
            (block(2, 200..300, 5000), false),
            (block(3, 300..450, 3000), true),
            (block(3, 300..449, 3000), false),
            (block(3, 200..450, 3000), false),
            (block(5, 500..700, 6000), true),
            (block(5, 510..700, 6000), false),
            (block(7, 510..700, 6000), true),
            (block(7, 501..700, 6000), false),
            (block(1, 100..200, 2000), false),
        ] {
            assert_eq!(fits_between(&candidate, &intact), fits, "{candidate:?}");
        }
        assert!(fits_between(&block(3, 10..20, 9), &[]));
        assert!(!fits_between(&block(3, 2..20, 9), &[]));
    }
}
