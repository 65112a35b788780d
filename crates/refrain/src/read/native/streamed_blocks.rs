//! The blocks of a forward pass, decoded again when later extents refer to them.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_format::{BlockHeader, FrameKind, Limits};
use refrain_pool::Lock;
use refrain_protect::checksum64;
use refrain_storage::{ScratchFile, Source};

use crate::error::{Error, ErrorKind, Result};
use crate::read::native::block_frame::decode_block_frame;
use crate::read::store_reader::{BlockDecoder, BlockLocation, DecodeResources, DecodedBlock};
use crate::read::work_meter::WorkMeter;
use crate::store::decoders::Coders;
use crate::store::frames::{CheckedFrame, read_frame_at};
use crate::store::memory::zeroed;

/// A block whose frame was read.
struct StreamedBlock {
    location: BlockLocation,
    /// Kept until the block was decoded or, for a pipe, while it is within reach and fits.
    payload: Option<Arc<Vec<u8>>>,
    is_given_back: bool,
    /// The length and checksum of a payload in the temporary file.
    spilled: Option<(usize, u64)>,
}

/// The blocks whose frames were read so far.
pub(crate) struct StreamedBlocks {
    /// Reads a block again; `None` for a pipe.
    source: Option<Arc<dyn Source>>,
    limits: Limits,
    streamed: Lock<VecDeque<StreamedBlock>>,
    /// Where a pipe's payloads go that do not fit into memory.
    spill: Option<FrameSpill>,
}

/// A temporary file for the frames of a pipe, each at its offset in the archive.
struct FrameSpill {
    directory: PathBuf,
    /// `None` until something is written.
    file: Lock<Option<Arc<ScratchFile>>>,
}

impl FrameSpill {
    fn file(&self) -> Result<Arc<ScratchFile>> {
        let mut file = self.file.lock();
        if let Some(file) = &*file {
            return Ok(file.clone());
        }
        let created = Arc::new(ScratchFile::create(&self.directory)?);
        *file = Some(created.clone());
        Ok(created)
    }

    fn read(&self, offset: u64, (length_bytes, checksum): (usize, u64)) -> Result<Arc<Vec<u8>>> {
        let mut payload = zeroed(length_bytes)?;
        let count = self.file()?.read_at(offset, &mut payload)?;
        if count == length_bytes && checksum64(&payload) == checksum {
            Ok(Arc::new(payload))
        } else {
            Err(Error::new(
                ErrorKind::Io,
                format!(
                    "the temporary file in {} has changed",
                    self.directory.display()
                ),
            ))
        }
    }
}

impl StreamedBlocks {
    /// The file; `None` for a pipe.
    pub(crate) fn source(&self) -> Option<Arc<dyn Source>> {
        self.source.clone()
    }

    /// `temporary` is a directory for what does not fit into memory.
    pub(super) fn new(
        source: Option<Arc<dyn Source>>,
        limits: Limits,
        temporary: Option<PathBuf>,
    ) -> StreamedBlocks {
        let spill = temporary.filter(|_| source.is_none());
        StreamedBlocks {
            source,
            limits,
            streamed: Lock::default(),
            spill: spill.map(|directory| FrameSpill {
                directory,
                file: Lock::default(),
            }),
        }
    }

    /// Whether frames that do not fit into memory go to a temporary file.
    pub(super) fn spills(&self) -> bool {
        self.spill.is_some()
    }

    /// Writes the payloads of the oldest blocks to the temporary file, until at most `bytes_max` of
    /// them are in memory.
    pub(super) fn spill_all_but(&self, bytes_max: u64) -> Result<()> {
        let Some(spill) = &self.spill else {
            return Ok(());
        };
        let mut streamed = self.streamed.lock();
        let payload_bytes = |block: &StreamedBlock| {
            (block.payload.as_ref()).map_or(0, |payload| payload.len() as u64)
        };
        let mut bytes: u64 = streamed.iter().map(payload_bytes).sum();
        for block in streamed.iter_mut() {
            if bytes <= bytes_max {
                break;
            }
            let Some(payload) = block.payload.take() else {
                continue;
            };
            bytes -= payload.len() as u64;
            (spill.file()?).write_at(block.location.frame_offset, &payload)?;
            block.spilled = Some((payload.len(), checksum64(&payload)));
        }
        Ok(())
    }

    pub(super) fn add(&self, head: &BlockHeader, frame: &CheckedFrame) -> BlockLocation {
        let location = BlockLocation {
            block: head.block_id,
            store_start: head.store_start,
            raw_bytes: head.raw_bytes,
            frame_offset: frame.offset,
            frame_bytes: frame.header.frame_bytes(),
            coders: Coders::of(&head.coding),
        };
        let payload = (!frame.is_given_back).then(|| frame.payload.clone());
        let block = StreamedBlock {
            location,
            payload,
            is_given_back: frame.is_given_back,
            spilled: None,
        };
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

    /// Evicts blocks that start before `archive_offset`, for a pipe.
    pub(super) fn evict_before(&self, archive_offset: u64) {
        let mut streamed = self.streamed.lock();
        while self.source.is_none()
            && streamed
                .front()
                .is_some_and(|block| block.location.frame_offset < archive_offset)
        {
            let block = streamed.pop_front();
            if let (Some(spill), Some(block)) = (&self.spill, block)
                && block.spilled.is_some()
                && let Ok(file) = spill.file()
            {
                let start = block.location.frame_offset;
                file.discard(start..start + block.location.frame_bytes);
            }
        }
    }

    /// The archive offset of the first block kept, for a pipe.
    pub(super) fn first_retained_offset(&self) -> Option<u64> {
        let streamed = self.streamed.lock();
        let first = streamed.front().filter(|_| self.source.is_none());
        first.map(|block| block.location.frame_offset)
    }

    /// The payload of a block's frame, with its checksum verified.
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
        if block.is_given_back {
            return Err(Error::given_back());
        }
        if let Some(payload) = &block.payload {
            return Ok(payload.clone());
        }
        let spilled = block.spilled;
        drop(streamed);
        if let (Some(spill), Some(spilled)) = (&self.spill, spilled) {
            return spill.read(location.frame_offset, spilled);
        }
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

    fn is_given_back(&self, location: &BlockLocation) -> bool {
        let streamed = self.streamed.lock();
        let first = streamed.front().map_or(0, |first| first.location.block);
        let at = location.block.checked_sub(first);
        let block = at.and_then(|at| streamed.get(at as usize));
        block.is_some_and(|block| block.is_given_back)
    }

    fn decode(
        &self,
        location: &BlockLocation,
        wanted: u64,
        resources: &DecodeResources,
        meter: Option<&WorkMeter>,
    ) -> Result<DecodedBlock> {
        decode_block_frame(&self.payload(location)?, location, wanted, resources, meter)
    }
}
