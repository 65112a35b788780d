//! Blocks of the archive that is being written, opened again: history for what cannot be read twice.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_codec::decode;
use refrain_format::{BLOCK_HEADER_BYTES, BlockHeader, FRAME_HEADER_BYTES};
use refrain_pool::{Lock, Permits};
use refrain_storage::Source;

use crate::store::block::BlockFrame;
use crate::store::coding::description;
use crate::store::workspaces::Workspaces;
use crate::write::pipeline::history::BlockReader;

/// The part of the memory in which blocks may be open at once, or a single one.
const OPEN_SHARE: u64 = 16;

/// Where a block's frame is.
#[derive(Clone)]
enum Place {
    /// In memory.
    Memory(Arc<Vec<u8>>),
    /// In the archive, at this offset.
    Archive { offset: u64, frame_bytes: u64 },
}

struct KeptBlock {
    first_page: u64,
    pages: u64,
    head: BlockHeader,
    place: Place,
}

/// The blocks written so far that may still be referred to.
pub(crate) struct WrittenBlocks {
    archive: Option<Arc<dyn Source>>,
    blocks: Lock<VecDeque<KeptBlock>>,
    workspaces: Workspaces,
    /// Bytes of blocks that may be open at once.
    opening: Permits,
}

impl WrittenBlocks {
    /// `archive` reads back what was written, if the sink can; else frames are kept in memory.
    pub(crate) fn new(archive: Option<Arc<dyn Source>>, memory_bytes: u64) -> WrittenBlocks {
        WrittenBlocks {
            archive,
            blocks: Lock::default(),
            workspaces: Workspaces::default(),
            opening: Permits::new(memory_bytes / OPEN_SHARE),
        }
    }

    /// A block's frame was written.
    pub(crate) fn add(
        &self,
        first_page: u64,
        pages: u64,
        head: BlockHeader,
        offset: u64,
        frame: BlockFrame,
    ) {
        let place = match self.archive {
            Some(_) => Place::Archive {
                offset,
                frame_bytes: frame.frame_bytes(),
            },
            None => Place::Memory(Arc::new(frame.joined())),
        };
        self.blocks.lock().push_back(KeptBlock {
            first_page,
            pages,
            head,
            place,
        });
    }

    /// The first page and the head of the block with this page, and where its frame is.
    fn find(&self, page: u64) -> Option<(u64, BlockHeader, Place)> {
        let blocks = self.blocks.lock();
        let after = blocks.partition_point(|block| block.first_page <= page);
        let block = blocks.get(after.checked_sub(1)?)?;
        if page >= block.first_page + block.pages {
            return None;
        }
        Some((block.first_page, block.head, block.place.clone()))
    }

    fn frame(&self, place: Place) -> Option<Arc<Vec<u8>>> {
        let (offset, frame_bytes) = match place {
            Place::Memory(frame) => return Some(frame),
            Place::Archive {
                offset,
                frame_bytes,
            } => (offset, frame_bytes),
        };
        let mut frame = vec![0; usize::try_from(frame_bytes).ok()?];
        let count = self.archive.as_ref()?.read_at(offset, &mut frame).ok()?;
        (count == frame.len()).then(|| Arc::new(frame))
    }
}

impl BlockReader for WrittenBlocks {
    fn evict_below(&self, store_floor: u64) {
        let mut blocks = self.blocks.lock();
        while blocks
            .front()
            .is_some_and(|block| block.head.store_end() <= store_floor)
        {
            blocks.pop_front();
        }
    }

    fn read_block_of(&self, page: u64) -> Option<(u64, Vec<u8>)> {
        let (first_page, head, place) = self.find(page)?;
        let _room = self.opening.acquire(head.raw_bytes);
        let frame = self.frame(place)?;
        let data = frame.get(FRAME_HEADER_BYTES + BLOCK_HEADER_BYTES..)?;
        let description = description(&head.coding, head.raw_bytes).ok()?;
        let mut raw = Vec::new();
        let opened = self.workspaces.with(|space| {
            decode(
                &mut space.codec,
                &description,
                data,
                head.raw_bytes,
                &mut raw,
            )
        });
        opened.ok()?;
        head.check_raw(&raw).ok()?;
        Some((first_page, raw))
    }
}
