//! The blocks of a pass from front to back, decoded again where later extents refer to them.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_format::{BlockHeader, FrameKind, Limits};
use refrain_pool::Lock;
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::read::native::block_frame::decode_block_frame;
use crate::read::store_reader::{BlockDecoder, BlockLocation, DecodeResources, DecodedBlock};
use crate::store::frames::{CheckedFrame, read_frame_at};

/// A block whose frame has been read.
struct StreamedBlock {
    location: BlockLocation,
    /// Retained until the block was decoded, or, for a pipe, while it is within reach.
    payload: Option<Arc<Vec<u8>>>,
}

/// The blocks whose frames have been read so far.
pub(crate) struct StreamedBlocks {
    /// Reads a block again; `None` for a pipe.
    source: Option<Arc<dyn Source>>,
    limits: Limits,
    streamed: Lock<VecDeque<StreamedBlock>>,
}

impl StreamedBlocks {
    pub(super) fn new(source: Option<Arc<dyn Source>>, limits: Limits) -> StreamedBlocks {
        StreamedBlocks {
            source,
            limits,
            streamed: Lock::default(),
        }
    }

    pub(super) fn add(&self, head: &BlockHeader, frame: &CheckedFrame) -> BlockLocation {
        let location = BlockLocation {
            block: head.block_id,
            store_start: head.store_start,
            raw_bytes: head.raw_bytes,
            frame_offset: frame.offset,
            frame_bytes: frame.header.frame_bytes(),
        };
        let payload = Some(frame.payload.clone());
        let block = StreamedBlock { location, payload };
        self.streamed.lock().push_back(block);
        location
    }

    /// Whether frames can be read again.
    pub(super) fn can_reread(&self) -> bool {
        self.source.is_some()
    }

    /// Releases the payload of a decoded block if it can be read again.
    pub(super) fn release_payload(&self, block: u64) {
        let mut streamed = self.streamed.lock();
        let first = streamed.front().map_or(0, |first| first.location.block);
        if self.source.is_some()
            && let Some(streamed) = block
                .checked_sub(first)
                .and_then(|index| streamed.get_mut(index as usize))
        {
            streamed.payload = None;
        }
    }

    /// Evicts the blocks that begin before `archive_offset`, for a pipe.
    pub(super) fn evict_before(&self, archive_offset: u64) {
        let mut streamed = self.streamed.lock();
        while self.source.is_none()
            && streamed
                .front()
                .is_some_and(|block| block.location.frame_offset < archive_offset)
        {
            streamed.pop_front();
        }
    }

    /// The archive offset of the first retained block, for a pipe.
    pub(super) fn first_retained_offset(&self) -> Option<u64> {
        let streamed = self.streamed.lock();
        let first = streamed.front().filter(|_| self.source.is_none());
        first.map(|block| block.location.frame_offset)
    }

    /// The payload of a block's frame; its checksum is verified.
    fn payload(&self, location: &BlockLocation) -> Result<Arc<Vec<u8>>> {
        let streamed = self.streamed.lock();
        let first = streamed.front().map_or(0, |first| first.location.block);
        let block = location
            .block
            .checked_sub(first)
            .and_then(|index| streamed.get(index as usize));
        let block = block.ok_or_else(|| {
            Error::damaged("the block is outside the reach that the archive states")
        })?;
        if let Some(payload) = &block.payload {
            return Ok(payload.clone());
        }
        drop(streamed);
        let source = self.source.as_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                "the payload of a block was not retained",
            )
        })?;
        let frame = read_frame_at(
            &**source,
            location.frame_offset,
            FrameKind::Block,
            Some(location.frame_bytes),
            &self.limits,
        )?;
        Ok(frame.payload)
    }
}

impl BlockDecoder for StreamedBlocks {
    fn locate(&self, offset_in_store: u64) -> Result<Option<BlockLocation>> {
        let streamed = self.streamed.lock();
        let after = streamed.partition_point(|block| block.location.store_start <= offset_in_store);
        let found = after.checked_sub(1).and_then(|last| streamed.get(last));
        let found = found.map(|block| block.location);
        Ok(found.filter(|found| offset_in_store - found.store_start < found.raw_bytes))
    }

    fn decode(
        &self,
        location: &BlockLocation,
        wanted: u64,
        resources: &DecodeResources,
    ) -> Result<DecodedBlock> {
        decode_block_frame(&self.payload(location)?, location, wanted, resources)
    }
}
