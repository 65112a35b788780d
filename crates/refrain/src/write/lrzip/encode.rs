//! Encode jobs: turn literals and records into coded blocks.

use std::sync::Arc;

use refrain_codec::{FilterPlan, looks_incompressible};
use refrain_format::lrzip::BackEnd;
use refrain_lrzip_codec::LrzipCodec;
use refrain_lrzip_codec::{LrzipPlan, encode_lrzip_block};
use refrain_pool::pool::checkpoint;
use refrain_pool::stages::stage;
use refrain_protect::{DigestAlgorithm, DigestHasher, checksum64};

use crate::error::Result;
use crate::store::memory::with_capacity;
use crate::store::page::Page;
use crate::write::lrzip::chunk_layout::{BlockSlot, CodedBlock};
use crate::write::lrzip::records::Insertion;
use crate::write::lrzip::retained_blocks::RetainedBlock;
use crate::write::pipeline::assembly::Encoding;
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::history::EncodedPages;
use crate::write::pipeline::segments::EpochData;

/// lrzip does not compress blocks shorter than this, in bytes.
const COMPRESSED_BYTES_MIN: usize = 64;

/// The work of encoders for lrzip archives.
pub(crate) struct LrzipEncoding;

/// The literals of a block: pages of the store, and bytes inserted between them.
pub(crate) struct UnencodedLiterals {
    /// Its number among the blocks of literals.
    pub number: u64,
    pub store_start: u64,
    pub first_page: u64,
    pub pages: Vec<Page>,
    pub insertions: Vec<Insertion>,
    /// Whether the match stage found repeats in the block's epochs, some of which may be left to
    /// the codec.
    pub has_repeats: bool,
    /// Whether the block must be decoded again later, because its content cannot be read again.
    pub is_retained: bool,
}

pub(crate) enum BlockContent {
    Literals(UnencodedLiterals),
    Records(Arc<Vec<u8>>),
}

pub(crate) struct LrzipEncodeJob {
    pub slot: BlockSlot,
    pub content: BlockContent,
    pub plan: LrzipPlan,
    /// Whether the block is stored if a sample of it is incompressible.
    pub tries_sample: bool,
}

/// An encoded block.
pub(crate) struct LrzipEncoded {
    pub slot: BlockSlot,
    pub block: CodedBlock,
    /// The pages, for a block of literals.
    pub pages: Option<EncodedPages>,
    /// If the block is retained: its number, and a form that can be decoded again.
    pub retained: Option<(u64, RetainedBlock)>,
}

/// The digests stored in an archive.
pub(crate) struct ContentDigests {
    pub md5: DigestHasher,
    /// The CRC-32 of the chunk so far.
    pub crc: crc32fast::Hasher,
}

/// lrzip's CRC-32 starts with 0 and is not inverted at the end; the library's starts with all ones
/// and is inverted.
const CRC_START: u32 = u32::MAX;

impl ContentDigests {
    pub(crate) fn new() -> ContentDigests {
        ContentDigests {
            md5: DigestHasher::new(DigestAlgorithm::Md5),
            crc: crc32fast::Hasher::new_with_initial(CRC_START),
        }
    }

    /// The CRC-32 of the chunk in the format's form. Begins the next chunk.
    pub(crate) fn take_crc(&mut self) -> u32 {
        let fresh = crc32fast::Hasher::new_with_initial(CRC_START);
        !std::mem::replace(&mut self.crc, fresh).finalize()
    }
}

impl Encoding for LrzipEncoding {
    type EncodeJob = LrzipEncodeJob;
    type Encoded = LrzipEncoded;
    type Digests = Box<ContentDigests>;

    fn encode(context: &PipelineContext, job: &LrzipEncodeJob) -> Result<LrzipEncoded> {
        let &LrzipEncodeJob {
            slot,
            ref content,
            plan,
            tries_sample,
        } = job;
        let literals = match content {
            BlockContent::Records(raw) => {
                let _stage = stage("encode records", raw.len() as u64);
                return Ok(LrzipEncoded {
                    slot,
                    block: encode_block(plan, raw, None)?,
                    pages: None,
                    retained: None,
                });
            }
            BlockContent::Literals(literals) => literals,
        };
        let mut stage = stage("encode", 0);
        let is_incompressible = tries_sample && literals.is_incompressible(context)?;
        let plan = if is_incompressible { LrzipPlan::Stored } else { plan };
        let raw = Arc::new(literals.joined()?);
        stage.add_bytes(raw.len() as u64);
        let block = encode_block(plan, &raw, Some(literals.first_page))?;
        let pages = EncodedPages {
            first_page: literals.first_page,
            checksums: literals.pages.iter().map(|page| checksum64(page)).collect(),
            is_incompressible,
            copy: None,
        };
        let retained = if literals.is_retained {
            Some((literals.number, literals.retained(plan, &block, &raw)?))
        } else {
            None
        };
        Ok(LrzipEncoded {
            slot,
            block,
            pages: Some(pages),
            retained,
        })
    }

    fn with_less_memory(job: LrzipEncodeJob) -> Option<LrzipEncodeJob> {
        let plan = job.plan.with_less_memory()?;
        Some(LrzipEncodeJob { plan, ..job })
    }

    fn digest(digests: &mut Box<ContentDigests>, data: &EpochData) {
        for segment in &data.segments {
            checkpoint();
            digests.md5.update(&segment.bytes);
            digests.crc.update(&segment.bytes);
        }
    }
}

impl UnencodedLiterals {
    /// Whether no codec would shrink the block: see
    /// [`UnencodedBlock`](crate::store::block::UnencodedBlock).
    fn is_incompressible(&self, context: &PipelineContext) -> Result<bool> {
        if self.has_repeats {
            return Ok(false);
        }
        let parts: Vec<&[u8]> = self.pages.iter().map(|page| &page[..]).collect();
        Ok((context.workspaces)
            .with(|space| looks_incompressible(&mut space.codec, &parts, FilterPlan::None))?)
    }

    /// The block in a form that decodes quickly enough to be read again.
    fn retained(&self, plan: LrzipPlan, block: &CodedBlock, raw: &[u8]) -> Result<RetainedBlock> {
        let (codec, coded) = match (block.back_end, plan) {
            (BackEnd::None, _) => (LrzipCodec::Stored, block.coded.clone()),
            (BackEnd::Zpaq, _) => {
                let mut coded = Vec::new();
                encode_lrzip_block(LrzipPlan::Lzo, raw, &mut coded)?;
                coded.shrink_to_fit();
                (LrzipCodec::Lzo, Arc::new(coded))
            }
            (_, plan) => (plan.codec(), block.coded.clone()),
        };
        Ok(RetainedBlock {
            codec,
            coded,
            raw_bytes: block.raw_bytes,
            store_start: self.store_start,
            insertions: self.insertions.clone(),
            first_page: self.first_page,
            pages: self.pages.len() as u64,
        })
    }

    fn joined(&self) -> Result<Vec<u8>> {
        let added: usize = self.insertions.iter().map(|part| part.bytes().len()).sum();
        let pages: usize = self.pages.iter().map(|page| page.len()).sum();
        let mut raw = with_capacity(pages + added)?;
        let mut insertions = self.insertions.iter().peekable();
        let mut offset = self.store_start;
        for page in &self.pages {
            let (end, mut from) = (offset + page.len() as u64, 0);
            while let Some(insertion) = insertions.next_if(|part| part.store_offset < end) {
                let to = (insertion.store_offset - offset) as usize;
                raw.extend_from_slice(&page[from..to]);
                raw.extend_from_slice(insertion.bytes());
                from = to;
            }
            raw.extend_from_slice(&page[from..]);
            offset = end;
        }
        insertions.for_each(|insertion| raw.extend_from_slice(insertion.bytes()));
        Ok(raw)
    }
}

/// Compresses a block, or stores it if that does not shrink it.
fn encode_block(
    plan: LrzipPlan,
    raw: &Arc<Vec<u8>>,
    first_page: Option<u64>,
) -> Result<CodedBlock> {
    let block = |back_end, coded| CodedBlock {
        back_end,
        raw_bytes: raw.len() as u64,
        coded,
        first_page,
    };
    if plan == LrzipPlan::Stored || raw.len() < COMPRESSED_BYTES_MIN {
        return Ok(block(BackEnd::None, raw.clone()));
    }
    let mut coded = Vec::new();
    encode_lrzip_block(plan, raw, &mut coded)?;
    if coded.len() >= raw.len() {
        return Ok(block(BackEnd::None, raw.clone()));
    }
    coded.shrink_to_fit();
    Ok(block(back_end(plan), Arc::new(coded)))
}

fn back_end(plan: LrzipPlan) -> BackEnd {
    match plan {
        LrzipPlan::Stored => BackEnd::None,
        LrzipPlan::Bzip2 { .. } => BackEnd::Bzip2,
        LrzipPlan::Zlib { .. } => BackEnd::Gzip,
        LrzipPlan::Lzma { .. } => BackEnd::Lzma,
        LrzipPlan::Lzo => BackEnd::Lzo,
        LrzipPlan::Zpaq { .. } => BackEnd::Zpaq,
    }
}
