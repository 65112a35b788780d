//! Assembles an lrzip archive: chunks, their records, and blocks of both streams.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_format::lrzip::{Header, RecordWriter, Stream, chunk_header_bytes, width_bytes};
use refrain_lrzip_codec::LrzipPlan;
use refrain_pool::stages::stage;
use refrain_protect::DigestValue;
use refrain_protect::lrzip::ItemKind;
use refrain_storage::Sink;

use crate::archive_info::BlockInfo;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, Watch};
use crate::store::page::{PAGE_BYTES, Page};
use crate::write::lrzip::chunk_layout::{BlockSlot, CodedBlock, Layout, WrittenItem};
use crate::write::lrzip::encode::{
    BlockContent, ContentDigests, LrzipEncodeJob, LrzipEncoded, LrzipEncoding, UnencodedLiterals,
};
use crate::write::lrzip::encryption::ItemEncryption;
use crate::write::lrzip::records::{Insertion, Records};
use crate::write::lrzip::retained_blocks::RetainedBlocks;
use crate::write::pipeline::assembly::Assembly;
use crate::write::pipeline::commit::CommittedEpoch;
use crate::write::pipeline::history::{EncodedPages, FilledPage};
use crate::write::pipeline::reach::ReachFloors;
use crate::write::pipeline::segments::{EPOCH_BYTES, EpochData};

const RECORDS_BLOCK_BYTES: usize = 4 << 20;

/// How content is divided into chunks and blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CutPlan {
    pub plan: LrzipPlan,
    /// The maximum store bytes in a block of literals.
    pub block_bytes: u64,
    /// How many blocks of literals precede a block of records.
    pub blocks_per_group: usize,
    /// The maximum content of a chunk, a multiple of [`EPOCH_BYTES`]; `None`: one chunk holds
    /// everything.
    pub chunk_bytes: Option<u64>,
    /// The maximum memory for the first occurrences of store bytes.
    pub records_memory_bytes: usize,
    /// Whether blocks are stored if a sample of them is incompressible.
    pub tries_sample: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub content_bytes: u64,
    pub archive_bytes: u64,
    pub store_bytes: u64,
    pub matched_bytes: u64,
    pub chunks: u64,
    pub blocks: u64,
}

/// Blocks that can be decoded again, and how far back extents may refer to them.
pub(crate) struct BlockHistory {
    pub blocks: Arc<RetainedBlocks>,
    pub reach: ReachFloors,
}

struct OpenChunk {
    records: Records,
    raw_records: Vec<u8>,
    /// The position of its next block of records.
    records_slot: BlockSlot,
    blocks_in_group: usize,
    store_start: u64,
    is_last: bool,
}

#[derive(Default)]
struct OpenBlock {
    store_start: u64,
    first_page: u64,
    pages: Vec<Page>,
    insertions: Vec<Insertion>,
    bytes: u64,
    has_repeats: bool,
}

pub(crate) struct LrzipAssembler<'a> {
    sink: &'a mut dyn Sink,
    header: Header,
    cut: CutPlan,
    watch: &'a dyn Watch,
    content_bytes_total: Option<u64>,
    layout: Layout,
    /// The history of content that cannot be read again from its source.
    history: Option<BlockHistory>,
    /// `None` while an epoch is appended to them.
    hashes: Option<Box<ContentDigests>>,
    chunk: Option<OpenChunk>,
    block: OpenBlock,
    /// Literals outside of the store, not yet in a block.
    insertions: VecDeque<Insertion>,
    /// Whether the last two epochs had repeats.
    repeats: [bool; 2],
    encoded: Vec<EncodedPages>,
    buffer: Vec<u8>,
    content_read: u64,
    /// The last committed epoch.
    epoch: u64,
    literal_blocks: u64,
    /// The number of written blocks of literals, and their bytes.
    written_blocks: (u64, u64),
    last_chunk_is_written: bool,
    totals: Totals,
}

impl<'a> LrzipAssembler<'a> {
    pub(crate) fn new(
        sink: &'a mut dyn Sink,
        header: Header,
        cut: CutPlan,
        encryption: ItemEncryption,
        history: Option<BlockHistory>,
        content_bytes_total: Option<u64>,
        watch: &'a dyn Watch,
    ) -> LrzipAssembler<'a> {
        LrzipAssembler {
            sink,
            header,
            cut,
            watch,
            content_bytes_total,
            layout: Layout::new(encryption),
            history,
            hashes: Some(Box::new(ContentDigests::new())),
            chunk: None,
            block: OpenBlock::default(),
            insertions: VecDeque::new(),
            repeats: [false; 2],
            encoded: Vec::new(),
            buffer: Vec::new(),
            content_read: 0,
            epoch: 0,
            literal_blocks: 0,
            written_blocks: (0, 0),
            last_chunk_is_written: false,
            totals: Totals::default(),
        }
    }

    /// The chunk being filled; begins one if needed.
    fn open_chunk(&mut self) -> Result<&mut OpenChunk> {
        let chunk = match self.chunk.take() {
            Some(chunk) => chunk,
            None => self.begin_chunk()?,
        };
        Ok(self.chunk.insert(chunk))
    }

    fn begin_chunk(&mut self) -> Result<OpenChunk> {
        let left =
            (self.content_bytes_total).map(|total| total.saturating_sub(self.totals.content_bytes));
        let length = match (left, self.cut.chunk_bytes) {
            (Some(left), Some(chunk)) => Some(left.min(chunk)),
            (left, chunk) => left.or(chunk),
        };
        let is_last = match (left, self.cut.chunk_bytes) {
            (Some(left), Some(chunk)) => left <= chunk,
            (None, Some(_)) => false,
            (_, None) => true,
        };
        let width = length.map_or(UNKNOWN_WIDTH_BYTES, chunk_width_bytes);
        let mut bytes = match self.totals.chunks {
            0 => self.header_bytes()?,
            _ => Vec::new(),
        };
        let is_encrypted = self.header.cipher.is_some();
        let version = self.header.version;
        let known = left.and(length);
        bytes.extend(chunk_header_bytes(
            version,
            width,
            is_last,
            is_encrypted,
            known,
        ));
        self.layout.begin_chunk(bytes, width);
        self.totals.chunks += 1;
        self.last_chunk_is_written = is_last;
        Ok(OpenChunk {
            records: Records::new(RecordWriter::new(version, width), self.totals.store_bytes),
            raw_records: Vec::new(),
            records_slot: self.layout.reserve(Stream::Records),
            blocks_in_group: 0,
            store_start: self.totals.store_bytes,
            is_last,
        })
    }

    fn header_bytes(&mut self) -> Result<Vec<u8>> {
        if self.header.cipher.is_none() {
            self.header.content_bytes = self.content_bytes_total;
        }
        Ok(self.header.to_bytes()?)
    }

    fn add_page(&mut self, page: FilledPage, start: &mut dyn FnMut(LrzipEncodeJob)) -> Result<()> {
        self.block.has_repeats |= self.repeats.contains(&true);
        self.block.bytes += page.bytes.len() as u64;
        self.block.pages.push(page.bytes);
        let end = self.block.store_start + self.block.bytes;
        while let Some(insertion) = self.insertions.pop_front_if(|next| next.store_offset < end) {
            self.block.insertions.push(insertion);
        }
        if self.block.bytes + PAGE_BYTES as u64 > self.cut.block_bytes {
            self.close_block(start)?;
        }
        Ok(())
    }

    fn close_block(&mut self, start: &mut dyn FnMut(LrzipEncodeJob)) -> Result<()> {
        let next = OpenBlock {
            store_start: self.block.store_start + self.block.bytes,
            first_page: self.block.first_page + self.block.pages.len() as u64,
            has_repeats: self.repeats.contains(&true),
            ..OpenBlock::default()
        };
        let block = std::mem::replace(&mut self.block, next);
        if block.pages.is_empty() && block.insertions.is_empty() {
            return Ok(());
        }
        let slot = self.layout.reserve(Stream::Literals);
        let added: usize = (block.insertions.iter())
            .map(|insertion| insertion.bytes().len())
            .sum();
        if let Some(history) = &mut self.history {
            let raw_bytes = block.bytes + added as u64;
            history
                .reach
                .block_filled(self.epoch, block.store_start, raw_bytes);
        }
        let job = UnencodedLiterals {
            number: self.literal_blocks,
            is_retained: self.history.is_some(),
            store_start: block.store_start,
            first_page: block.first_page,
            pages: block.pages,
            insertions: block.insertions,
            has_repeats: block.has_repeats,
        };
        self.literal_blocks += 1;
        self.submit(slot, BlockContent::Literals(job), start);
        let blocks_per_group = self.cut.blocks_per_group;
        let chunk = self.open_chunk()?;
        chunk.blocks_in_group += 1;
        if chunk.blocks_in_group >= blocks_per_group {
            self.close_records(start)?;
        }
        Ok(())
    }

    /// Ends a block of records; the next one follows all blocks so far. Does nothing without
    /// records, because readers treat an empty block as damage.
    fn close_records(&mut self, start: &mut dyn FnMut(LrzipEncodeJob)) -> Result<()> {
        let chunk = self.open_chunk()?;
        if chunk.raw_records.is_empty() {
            // Content without repeats is a single record of any length.
            chunk.records.flush(&mut chunk.raw_records)?;
        }
        if chunk.raw_records.is_empty() {
            return Ok(());
        }
        let raw = std::mem::take(&mut chunk.raw_records);
        chunk.blocks_in_group = 0;
        let slot = self.layout.reserve(Stream::Records);
        let chunk = self.open_chunk()?;
        let before = std::mem::replace(&mut chunk.records_slot, slot);
        self.submit(before, BlockContent::Records(Arc::new(raw)), start);
        Ok(())
    }

    /// Reports a written block of literals, in the form that its reader will report.
    fn report_block(&mut self, block: &CodedBlock) {
        let (number, raw_bytes) = self.written_blocks;
        let stored_bytes = (self.layout.encryption()).stored_bytes(block.coded.len() as u64);
        self.watch.block(&BlockInfo {
            block: number,
            archive_offset: self.totals.archive_bytes - stored_bytes,
            offset_in_store: raw_bytes,
            raw_bytes: block.raw_bytes,
            stored_bytes,
            codec: block.back_end.name().to_owned(),
            filters: String::new(),
            fallback: None,
        });
        self.written_blocks = (number + 1, raw_bytes + block.raw_bytes);
    }

    fn submit(
        &mut self,
        slot: BlockSlot,
        content: BlockContent,
        start: &mut dyn FnMut(LrzipEncodeJob),
    ) {
        self.layout.start(slot);
        self.totals.blocks += 1;
        start(LrzipEncodeJob {
            slot,
            content,
            plan: self.cut.plan,
            tries_sample: self.cut.tries_sample,
        });
    }

    /// Ends the chunk; `last` is the unfinished page of the store.
    fn close_chunk(
        &mut self,
        last: Option<FilledPage>,
        start: &mut dyn FnMut(LrzipEncodeJob),
    ) -> Result<()> {
        if let Some(page) = last {
            self.add_page(page, start)?;
        }
        self.block.insertions.extend(self.insertions.drain(..));
        self.close_block(start)?;
        let hashes = self.hashes.as_mut();
        let crc = hashes
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the content is not hashed"))?
            .take_crc();
        self.open_chunk()?;
        let Some(mut chunk) = self.chunk.take() else {
            return Ok(());
        };
        self.totals.matched_bytes += chunk.records.matched_bytes();
        chunk.records.end(crc, &mut chunk.raw_records)?;
        self.submit(
            chunk.records_slot,
            BlockContent::Records(Arc::new(chunk.raw_records)),
            start,
        );
        self.layout.end_chunk();
        Ok(())
    }

    /// Writes the digest and publishes. Everything else must be written before.
    pub(crate) fn finish(mut self) -> Result<(Totals, DigestValue)> {
        let lost = || Error::new(ErrorKind::Internal, "the content is not hashed");
        let md5 = self.hashes.take().ok_or_else(lost)?.md5.finish();
        self.buffer.clear();
        let encryption = self.layout.encryption();
        encryption.encrypt(ItemKind::Digest, md5.as_bytes(), &mut self.buffer)?;
        self.write_buffer()?;
        self.sink.publish()?;
        Ok((self.totals, md5))
    }

    fn write_buffer(&mut self) -> Result<()> {
        let _stage = stage("write", self.buffer.len() as u64);
        let offset = self.totals.archive_bytes;
        self.sink
            .write_all(&self.buffer)
            .map_err(|error| Error::from(error).at_offset(offset))?;
        self.totals.archive_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// The width of numbers in a chunk of unknown length: enough for every address.
const UNKNOWN_WIDTH_BYTES: u8 = 6;

/// The width of numbers in a chunk with this much content. Incompressible blocks are longer than
/// their content by headers and records.
fn chunk_width_bytes(content_bytes: u64) -> u8 {
    const HEADS_BYTES: u64 = 4096;
    match content_bytes {
        0 => 1,
        _ => width_bytes(content_bytes + content_bytes / 4 + HEADS_BYTES),
    }
}

impl Assembly for LrzipAssembler<'_> {
    type Encoding = LrzipEncoding;

    fn epoch_read(&mut self, data: &EpochData) -> Result<()> {
        // The length of a short stream is known before anything is written.
        let is_first = self.content_read == 0;
        self.content_read += data.length_bytes();
        if is_first && self.content_bytes_total.is_none() && self.content_read < EPOCH_BYTES {
            self.content_bytes_total = Some(self.content_read);
        }
        Ok(())
    }

    fn take_digests(&mut self) -> Option<Box<ContentDigests>> {
        self.hashes.take()
    }

    fn digested(&mut self, hashes: Box<ContentDigests>) {
        self.hashes = Some(hashes);
    }

    fn epoch_committed(
        &mut self,
        epoch: u64,
        committed: &mut CommittedEpoch,
        start: &mut dyn FnMut(LrzipEncodeJob),
    ) -> Result<()> {
        self.epoch = epoch;
        self.repeats = [committed.has_repeats, self.repeats[0]];
        let mut insertions = std::mem::take(&mut self.insertions);
        let chunk = self.open_chunk()?;
        for extent in &std::mem::take(&mut committed.extents) {
            (chunk.records).push(extent, &mut chunk.raw_records, &mut insertions)?;
        }
        let (chunk_content, is_last) = (chunk.records.content_bytes(), chunk.is_last);
        self.insertions = insertions;
        self.totals.content_bytes += committed.content_bytes;
        self.totals.store_bytes += committed.fresh_bytes;
        for page in std::mem::take(&mut committed.filled) {
            self.add_page(page, start)?;
        }
        if self.open_chunk()?.raw_records.len() >= RECORDS_BLOCK_BYTES {
            self.close_records(start)?;
        }
        let is_full = (self.cut.chunk_bytes).is_some_and(|chunk| chunk_content >= chunk);
        if is_full && !is_last {
            self.close_chunk(committed.state.history.take_last_page()?, start)?;
        }
        Ok(())
    }

    fn finish_content(
        &mut self,
        last: Option<FilledPage>,
        start: &mut dyn FnMut(LrzipEncodeJob),
    ) -> Result<()> {
        if self.totals.content_bytes == 0 {
            self.content_bytes_total = Some(0);
        }
        if let Some(total) = self.content_bytes_total
            && total != self.totals.content_bytes
        {
            let found = self.totals.content_bytes;
            let cause = format!("{total} bytes long when it was opened, {found} when it was read");
            return Err(Error::new(ErrorKind::Io, cause));
        }
        if self.chunk.is_some() {
            self.close_chunk(last, start)?;
        }
        // If a stream ends together with a chunk, that was not known when the chunk began.
        if !self.last_chunk_is_written {
            self.content_bytes_total = Some(self.totals.content_bytes);
            self.close_chunk(None, start)?;
        }
        Ok(())
    }

    fn encoded(&mut self, encoded: LrzipEncoded) {
        if let (Some(history), Some((number, block))) = (&mut self.history, encoded.retained) {
            let coded_bytes = block.coded.len() as u64;
            history.reach.block_encoded(number, coded_bytes, 0);
            history.blocks.add(block);
        }
        self.layout.fill(encoded.slot, encoded.block);
        self.encoded.extend(encoded.pages);
    }

    fn write_ready(&mut self) -> Result<Vec<EncodedPages>> {
        loop {
            let block = match self.layout.next(&mut self.buffer)? {
                WrittenItem::Nothing => break,
                WrittenItem::Other => None,
                WrittenItem::Block(block) => Some(block),
            };
            self.write_buffer()?;
            let Some((block, first_page)) =
                block.and_then(|block| block.first_page.map(|first_page| (block, first_page)))
            else {
                continue;
            };
            self.report_block(&block);
            if let Some(history) = &self.history {
                let offset = self.totals.archive_bytes - block.coded.len() as u64;
                history.blocks.written(first_page, offset, &block.coded);
            }
        }
        self.watch.progress(&Progress {
            content_bytes_done: self.totals.content_bytes,
            content_bytes_total: self.content_bytes_total,
            archive_bytes: self.totals.archive_bytes,
        });
        Ok(std::mem::take(&mut self.encoded))
    }

    fn is_all_written(&self) -> bool {
        self.layout.is_empty()
    }

    fn blocks_in_flight(&self) -> usize {
        self.layout.blocks_in_flight()
    }

    fn block_start(&self) -> u64 {
        self.block.store_start
    }

    fn floor_for(&mut self, epoch: u64, _content_bytes: u64) -> Option<u64> {
        let memory_bytes = self.cut.records_memory_bytes;
        let of_chunk = match &mut self.chunk {
            Some(chunk) => chunk.store_start.max(chunk.records.shrink_to(memory_bytes)),
            None => self.totals.store_bytes,
        };
        match &mut self.history {
            None => Some(of_chunk),
            Some(history) => (history.reach.floor_for(epoch, 0)).map(|floor| of_chunk.max(floor)),
        }
    }
}
