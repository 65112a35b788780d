//! Encodes blocks of the native dialect from pages into frames.

use std::sync::Arc;

use refrain_codec::{
    BlockDescription, BlockPlan, CodecId, FallbackReason, encode_block, is_slow_to_decode,
    looks_incompressible,
};
use refrain_format::{
    BlockHash, BlockHeader, Coding, FRAME_HEADER_BYTES, SplitPayload, contains_sync,
};
use refrain_protect::{CHECKSUM_CHUNK_BYTES, checksum64, join_chunk_checksums};

use refrain_pool::pool::checkpoint;
use refrain_pool::prefault;
use refrain_pool::stages::stage;

use crate::error::Result;
use crate::store::coding::coding;
use crate::store::compressed_copy::CompressedCopy;
use crate::store::memory::reserve;
use crate::store::page::{PAGE_BYTES, Page};
use crate::store::workspaces::{CodecScratch, Workspaces};

// The checksum of a block is joined from the checksums of its pages.
const _: () = assert!(PAGE_BYTES == CHECKSUM_CHUNK_BYTES);

/// A block with complete pages, before encoding.
pub(crate) struct UnencodedBlock {
    pub block_id: u64,
    pub store_start: u64,
    pub pages: Vec<Page>,
    /// Whether the match stage found repeats in the block's epochs, some of which may be left to
    /// the codec.
    pub has_repeats: bool,
    /// Whether many repeats are left to the codec because their source is within its window.
    pub has_near_repeats: bool,
}

/// The frame of a block: in one piece, or, for a block stored uncompressed, its headers and its
/// pages.
pub(crate) struct BlockFrame {
    pub bytes: Vec<u8>,
    /// The pages of a stored block, which follow `bytes`.
    pub stored: Vec<Page>,
    /// The checksums of the pages of the raw block.
    pub page_checksums: Vec<u64>,
    /// Whether the data contains the frames' sync word.
    pub has_sync: bool,
}

impl BlockFrame {
    /// The hash of the block without its place.
    ///
    /// # Errors
    /// None for a frame that an encoder made.
    pub(crate) fn hash(&self) -> Result<BlockHash> {
        let pages = self.stored.iter().map(|page| &page[..]);
        Ok(BlockHash::of_frame(&self.bytes, pages)?)
    }

    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored.iter().map(|page| page.len() as u64).sum()
    }

    pub(crate) fn frame_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.stored_bytes()
    }

    /// The parts of the frame's data, in order.
    pub(crate) fn data_parts(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let payload = self.bytes.get(FRAME_HEADER_BYTES..).unwrap_or_default();
        let data = SplitPayload::new(payload).map_or(&[][..], |split| split.data);
        let pages = self.stored.iter().map(|page| &page[..]);
        std::iter::once(data).chain(pages)
    }

    /// The frame in one piece.
    pub(crate) fn joined(&self) -> Arc<[u8]> {
        if self.stored.is_empty() {
            return Arc::from(&self.bytes[..]);
        }
        let mut joined = Vec::with_capacity(self.frame_bytes() as usize);
        joined.extend_from_slice(&self.bytes);
        self.stored
            .iter()
            .for_each(|page| joined.extend_from_slice(page));
        joined.into()
    }
}

pub(crate) struct EncodedBlock {
    pub frame: BlockFrame,
    pub header: BlockHeader,
    /// A compressed copy that decodes quickly, if requested and the block itself decodes slowly.
    pub copy: Option<CompressedCopy>,
}

/// The stage of a codec's encoder.
fn stage_of(codec: CodecId) -> &'static str {
    match codec {
        CodecId::LZ4 => "codec lz4",
        CodecId::ZSTD => "codec zstd",
        CodecId::LZMA => "codec lzma",
        CodecId::BZIP2 => "codec bzip2",
        CodecId::DEFLATE => "codec deflate",
        CodecId::PPMD => "codec ppmd",
        CodecId::BWT => "codec bwt",
        CodecId::BWT2 => "codec bwt2",
        CodecId::CM => "codec cm",
        CodecId::LZ => "codec lz",
        _ => "codec",
    }
}

impl UnencodedBlock {
    /// The number of bytes in the pages.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.pages.iter().map(|page| page.len() as u64).sum()
    }

    /// Encodes the block and builds its frame, except for the sequence number. With `makes_copy`,
    /// also makes a compressed copy if the block decodes slowly.
    pub(crate) fn encode(
        &self,
        workspaces: &Workspaces,
        plan: &BlockPlan,
        makes_copy: bool,
    ) -> Result<EncodedBlock> {
        let checksum = |page: &Page| {
            checkpoint();
            checksum64(page)
        };
        let page_checksums: Vec<_> = self.pages.iter().map(checksum).collect();
        let mut header = BlockHeader {
            block_id: self.block_id,
            store_start: self.store_start,
            raw_bytes: self.raw_bytes(),
            raw_checksum: None,
            coding: Coding::none(),
        };
        let plan = &self.plan(plan);
        let is_stored = plan.codec == CodecId::NONE || self.is_incompressible(workspaces, plan)?;
        let mut copy = None;
        let mut frame = if is_stored {
            let is_fallback = plan.codec != CodecId::NONE;
            let reason = is_fallback.then_some(FallbackReason::Incompressible);
            header.coding = coding(&BlockDescription::stored(reason))?;
            BlockFrame {
                bytes: header.finish_detached(&page_checksums)?,
                stored: self.pages.clone(),
                page_checksums,
                has_sync: false,
            }
        } else {
            let buffer = workspaces.frame_buffer();
            let mut builder = BlockHeader::builder(buffer, header.raw_bytes);
            let description =
                workspaces.with(|scratch| self.encode_raw(scratch, plan, builder.payload()))?;
            header.coding = coding(&description)?;
            let checksum = join_chunk_checksums(&page_checksums);
            header.raw_checksum = (!header.coding.is_uncoded()).then_some(checksum);
            if makes_copy && is_slow_to_decode(description.codec) {
                copy = Some(workspaces.with(|scratch| self.compressed_copy(scratch))?);
            }
            BlockFrame {
                bytes: header.finish(builder, &page_checksums)?,
                stored: vec![],
                page_checksums,
                has_sync: false,
            }
        };
        frame.has_sync = contains_sync(frame.data_parts());
        Ok(EncodedBlock {
            frame,
            header,
            copy,
        })
    }

    /// The plan for this block. Only blocks with many near repeats get the codec's long-distance
    /// matching, if it is planned at all.
    fn plan(&self, plan: &BlockPlan) -> BlockPlan {
        let mut plan = *plan;
        plan.settings.long_distance &= self.has_near_repeats;
        plan
    }

    /// Whether no codec would shrink the block. The match stage has examined all of it, so a sample
    /// is enough here. Pages of a stored block are neither joined nor copied.
    fn is_incompressible(&self, workspaces: &Workspaces, plan: &BlockPlan) -> Result<bool> {
        if self.has_repeats {
            return Ok(false);
        }
        let parts: Vec<&[u8]> = self.pages.iter().map(|page| &page[..]).collect();
        let analyze = |scratch: &mut CodecScratch| {
            looks_incompressible(&mut scratch.codec, &parts, plan.filters)
        };
        Ok(workspaces.with(analyze)?)
    }

    fn encode_raw(
        &self,
        scratch: &mut CodecScratch,
        plan: &BlockPlan,
        out: &mut Vec<u8>,
    ) -> Result<BlockDescription> {
        let _stage = stage(stage_of(plan.codec), self.raw_bytes());
        if let [page] = &self.pages[..] {
            return Ok(encode_block(&mut scratch.codec, page, plan, out)?);
        }
        scratch.joined.clear();
        // Growing step by step would copy all of it at once, without a checkpoint.
        let capacity_before = scratch.joined.capacity();
        reserve(&mut scratch.joined, self.raw_bytes())?;
        if scratch.joined.capacity() > capacity_before {
            prefault(&mut scratch.joined);
        }
        for page in &self.pages {
            scratch.joined.extend_from_slice(page);
            checkpoint();
        }
        Ok(encode_block(
            &mut scratch.codec,
            &scratch.joined,
            plan,
            out,
        )?)
    }

    fn compressed_copy(&self, scratch: &mut CodecScratch) -> Result<CompressedCopy> {
        let pages = self.pages.iter().map(|page| &page[..]);
        Ok(CompressedCopy::from_pages(
            &mut scratch.codec,
            pages,
            &mut scratch.copy,
        )?)
    }
}
