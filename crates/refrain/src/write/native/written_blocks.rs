//! Decodes blocks of the archive being written: the history of content that cannot be read again
//! from its source.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_codec::decode;
use refrain_format::{BlockHeader, FRAME_HEADER_BYTES, SplitPayload};
use refrain_pool::{Lock, Permits};
use refrain_storage::Source;

use crate::error::Error;
use crate::store::block::BlockFrame;
use crate::store::coding::description;
use crate::store::page::PAGE_BYTES;
use crate::store::workspaces::Workspaces;
use crate::write::pipeline::history::BlockReader;
use crate::write::pipeline::refusals::Refusals;

/// Blocks being decoded at once may take 1/16 of the memory budget; a single larger block is
/// decoded alone.
const DECODE_SHARE: u64 = 16;

#[derive(Clone)]
enum FrameLocation {
    Memory(Arc<[u8]>),
    Archive { offset: u64, frame_bytes: u64 },
}

struct LocatedBlock {
    first_page: u64,
    pages: u64,
    header: BlockHeader,
    location: FrameLocation,
}

/// The written blocks to which extents may still refer.
pub(crate) struct WrittenBlocks {
    archive: Option<Arc<dyn Source>>,
    blocks: Lock<VecDeque<LocatedBlock>>,
    workspaces: Workspaces,
    refusals: Refusals,
    /// Limits the raw bytes of blocks decoded at the same time.
    decoding: Permits,
}

impl WrittenBlocks {
    /// `archive` reads back what was written. Without it, frames stay in memory.
    pub(crate) fn new(archive: Option<Arc<dyn Source>>, memory_bytes: u64) -> WrittenBlocks {
        WrittenBlocks {
            archive,
            blocks: Lock::default(),
            workspaces: Workspaces::default(),
            refusals: Refusals::default(),
            decoding: Permits::new(memory_bytes / DECODE_SHARE),
        }
    }

    /// Adds a block whose frame was written at `offset`; `None` if the archive is still in memory.
    pub(crate) fn add(
        &self,
        first_page: u64,
        pages: u64,
        header: BlockHeader,
        offset: Option<u64>,
        frame: &BlockFrame,
    ) {
        let location = match offset.filter(|_| self.archive.is_some()) {
            Some(offset) => FrameLocation::Archive {
                offset,
                frame_bytes: frame.frame_bytes(),
            },
            // A copy of exact length: the encoder's buffer has room for a raw block.
            None => FrameLocation::Memory(frame.joined()),
        };
        self.blocks.lock().push_back(LocatedBlock {
            first_page,
            pages,
            header,
            location,
        });
    }

    /// The block with this page: its first page, header, and the location of its frame.
    fn find(&self, page: u64) -> Option<(u64, BlockHeader, FrameLocation)> {
        let blocks = self.blocks.lock();
        let after = blocks.partition_point(|block| block.first_page <= page);
        let block = blocks.get(after.checked_sub(1)?)?;
        if page >= block.first_page + block.pages {
            return None;
        }
        Some((block.first_page, block.header, block.location.clone()))
    }

    fn frame(&self, location: FrameLocation) -> Option<Arc<[u8]>> {
        let (offset, frame_bytes) = match location {
            FrameLocation::Memory(frame) => return Some(frame),
            FrameLocation::Archive {
                offset,
                frame_bytes,
            } => (offset, frame_bytes),
        };
        let mut frame = self.refusals.zeroed(usize::try_from(frame_bytes).ok()?)?;
        let count = self.archive.as_ref()?.read_at(offset, &mut frame).ok()?;
        (count == frame.len()).then(|| frame.into())
    }
}

impl BlockReader for WrittenBlocks {
    fn refusals(&self) -> u64 {
        self.refusals.count()
    }

    fn evict_below(&self, store_floor: u64) {
        let mut blocks = self.blocks.lock();
        while blocks
            .front()
            .is_some_and(|block| block.header.store_end() <= store_floor)
        {
            blocks.pop_front();
        }
    }

    fn read_stored_page(&self, page: u64, bytes: &mut [u8]) -> Option<()> {
        let (first_page, header, location) = self.find(page)?;
        if !header.coding.is_uncoded() || header.coding.mask() != 0 {
            return None;
        }
        // The data ends the frame.
        let offset_in_block = (page - first_page) * PAGE_BYTES as u64;
        match location {
            FrameLocation::Memory(frame) => {
                let start = (frame.len() as u64).checked_sub(header.raw_bytes)? + offset_in_block;
                let found = frame.get(start as usize..)?.get(..bytes.len())?;
                bytes.copy_from_slice(found);
                Some(())
            }
            FrameLocation::Archive {
                offset,
                frame_bytes,
            } => {
                let start = offset + frame_bytes.checked_sub(header.raw_bytes)? + offset_in_block;
                let count = self.archive.as_ref()?.read_at(start, bytes).ok()?;
                (count == bytes.len()).then_some(())
            }
        }
    }

    fn read_block_of(&self, page: u64) -> Option<(u64, Vec<u8>)> {
        let (first_page, header, location) = self.find(page)?;
        let _room = self.decoding.acquire(header.raw_bytes);
        let frame = self.frame(location)?;
        let data = SplitPayload::new(frame.get(FRAME_HEADER_BYTES..)?)
            .ok()?
            .data;
        let description = description(&header.coding, header.raw_bytes).ok()?;
        let mut raw = Vec::new();
        let decoded = self.workspaces.with(|space| {
            decode(
                &mut space.codec,
                &description,
                &header.coding.unmasked(data),
                header.raw_bytes,
                &mut raw,
            )
        });
        self.refusals.count_in(decoded.map_err(Error::from)).ok()?;
        header.check_raw(&raw).ok()?;
        Some((first_page, raw))
    }
}
