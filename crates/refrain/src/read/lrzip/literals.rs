//! The store of an lrzip archive: the literals of all chunks, in pages decoded on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_pool::Lock;

use super::block_stream::{BlockKnowledge, BlockStream, Opener};
use super::coded_bytes::Block;
use super::reader_memory::ReaderMemory;
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::read::store_reader::{
    BlockDecoder, BlockLocation, DecodeResources, DecodedBlock, StoreReader,
};
use crate::read::work_meter::WorkMeter;
use crate::store::decoders::{Coders, Decoders};
use crate::store::frames::limits_for;
use crate::store::memory::reserve;

/// The length of a page: small compared with the cache, large compared with the overhead of a page.
pub(super) const PAGE_BYTES: u64 = 1 << 20;

pub(super) struct LiteralBlock {
    block: Block,
    /// Its offset in the store.
    store_start: u64,
    first_page: u64,
    /// Its number among all blocks of literals.
    number: u64,
    /// Locked while pages are decoded: a stream produces them only in order.
    turn: Lock<BlockKnowledge>,
}

/// A decoder that has reached some page of a block.
struct OpenStream {
    first_page: u64,
    stream: BlockStream,
}

/// All literals so far.
pub(super) struct Literals {
    opener: Opener,
    blocks: Lock<Vec<Arc<LiteralBlock>>>,
    /// Idle decoders, the least recently used first.
    streams: Lock<Vec<OpenStream>>,
    streams_max: usize,
    /// Whether every literal is used only once.
    is_forward: AtomicBool,
}

impl Literals {
    /// Starts without literals. Keeps at most `streams_max` decoders.
    pub(super) fn new(opener: Opener, streams_max: usize) -> Literals {
        Literals {
            opener,
            blocks: Lock::default(),
            streams: Lock::default(),
            streams_max,
            is_forward: AtomicBool::new(false),
        }
    }

    /// Sets whether every literal is used only once, in order.
    pub(super) fn set_forward(&self, is_forward: bool) {
        self.is_forward.store(is_forward, Ordering::Relaxed);
    }

    /// Adds the next block of literals.
    pub(super) fn add(&self, block: Block) {
        let mut blocks = self.blocks.lock();
        let (store_start, first_page) = blocks.last().map_or((0, 0), |last| {
            let raw_bytes = last.block.found.raw_bytes;
            (
                last.store_start + raw_bytes,
                last.first_page + raw_bytes.div_ceil(PAGE_BYTES),
            )
        });
        let number = blocks.len() as u64;
        blocks.push(Arc::new(LiteralBlock {
            block,
            store_start,
            first_page,
            number,
            turn: Lock::new(BlockKnowledge::NOTHING),
        }));
    }

    /// The memory for decoding block `index`, in bytes; 0 if unknown.
    pub(super) fn decoder_bytes(&self, index: usize) -> u64 {
        let Some(block) = self.blocks.lock().get(index).cloned() else {
            return 0;
        };
        self.opener.memory_bytes(&block.block).unwrap_or(0)
    }

    /// The start and the end of block `index` in the store.
    pub(super) fn range_of(&self, index: usize) -> Option<(u64, u64)> {
        let blocks = self.blocks.lock();
        let block = blocks.get(index)?;
        Some((
            block.store_start,
            block.store_start + block.block.found.raw_bytes,
        ))
    }

    fn block_at(&self, offset_in_store: u64) -> Option<Arc<LiteralBlock>> {
        let blocks = self.blocks.lock();
        let after = blocks.partition_point(|block| block.store_start <= offset_in_store);
        blocks.get(after.checked_sub(1)?).cloned()
    }

    /// Decodes a page into the buffer of an evicted one.
    fn page(&self, place: &BlockLocation, mut page: Vec<u8>) -> Result<Vec<u8>> {
        let block = self
            .block_at(place.store_start)
            .ok_or_else(|| Error::new(ErrorKind::Internal, "a page without a block"))?;
        page.clear();
        reserve(&mut page, place.raw_bytes)?;
        page.resize(place.raw_bytes as usize, 0);
        let opened = self.open_page(&block, place.store_start - block.store_start, &mut page);
        // Page numbers are internal and would not help in an error.
        opened.map_err(|error| error.in_block(block.number))?;
        Ok(page)
    }

    fn open_page(&self, block: &LiteralBlock, inside: u64, page: &mut [u8]) -> Result<()> {
        if self.opener.read_stored(&block.block, inside, page)? {
            return Ok(());
        }
        let mut knowledge = block.turn.lock();
        self.open_to(block, &mut knowledge, inside, page)
    }

    /// Fills `page` with the bytes of a block at `inside`, using an idle decoder before it or a new
    /// one.
    fn open_to(
        &self,
        block: &LiteralBlock,
        knowledge: &mut BlockKnowledge,
        inside: u64,
        page: &mut [u8],
    ) -> Result<()> {
        let mut stream = match self.take_idle_stream(block.first_page, inside) {
            Some(stream) => stream,
            None => self.opener.open(&block.block, knowledge)?,
        };
        let input = &self.opener.input;
        let read = |stream: &mut BlockStream, page: &mut [u8]| {
            // The skipped pages were decoded before and evicted.
            stream.skip(input, inside - stream.position())?;
            stream.read(input, page)
        };
        if let Err(error) = read(&mut stream, page) {
            (stream, _) = stream.again_with_larger_dictionary(&self.opener, knowledge, error)?;
            read(&mut stream, page)?;
        }
        if stream.position() < block.block.found.raw_bytes {
            let mut streams = self.streams.lock();
            streams.push(OpenStream {
                first_page: block.first_page,
                stream,
            });
            let bytes_max = self.opener.decoder_bytes_max;
            let is_too_much = |streams: &[OpenStream]| {
                let used: u64 = streams.iter().map(|open| open.stream.memory_bytes()).sum();
                streams.len() > 1 && (streams.len() > self.streams_max || used > bytes_max)
            };
            while is_too_much(&streams) {
                streams.remove(0);
            }
        }
        Ok(())
    }

    /// Takes an idle decoder of the block that is at or before `inside`.
    fn take_idle_stream(&self, first_page: u64, inside: u64) -> Option<BlockStream> {
        let mut streams = self.streams.lock();
        let fits =
            |open: &OpenStream| open.first_page == first_page && open.stream.position() <= inside;
        let place = streams.iter().position(fits)?;
        Some(streams.remove(place).stream)
    }

    /// The page with the byte at this store offset.
    pub(super) fn page_at(&self, offset_in_store: u64) -> Option<BlockLocation> {
        let block = self.block_at(offset_in_store)?;
        let raw_bytes = block.block.found.raw_bytes;
        let inside = offset_in_store - block.store_start;
        let page = inside / PAGE_BYTES;
        (inside < raw_bytes).then(|| BlockLocation {
            block: block.first_page + page,
            store_start: block.store_start + page * PAGE_BYTES,
            raw_bytes: (raw_bytes - page * PAGE_BYTES).min(PAGE_BYTES),
            frame_offset: block.block.offset,
            frame_bytes: block.block.found.stored_bytes,
            coders: Coders::default(),
        })
    }
}

impl BlockDecoder for Literals {
    fn locate(&self, offset_in_store: u64) -> Result<Option<BlockLocation>> {
        Ok(self.page_at(offset_in_store))
    }

    fn decode(
        &self,
        place: &BlockLocation,
        _wanted: u64,
        resources: &DecodeResources,
        _meter: Option<&WorkMeter>,
    ) -> Result<DecodedBlock> {
        let bytes = self.page(place, resources.take_spare_buffer(place.block))?;
        // Decoding starts at the beginning of a block, so decoding a page again is slow.
        let comes_again = !self.is_forward.load(Ordering::Relaxed);
        if comes_again {
            resources.note_decoding(0, true);
        }
        Ok(DecodedBlock {
            bytes,
            is_slow_to_repeat: comes_again,
        })
    }
}

/// The store of an archive.
pub(super) fn store_reader(
    literals: Arc<Literals>,
    share: &ReaderMemory,
    options: &ReadOptions,
) -> StoreReader {
    StoreReader::new(
        (literals, Arc::new(Decoders::own())),
        limits_for(options.memory_bytes),
        options.own_memory_bytes(),
        // One shard: blocks may have any size.
        (share.cache_bytes, u64::MAX),
        options.threads.max(1),
    )
}
