//! Jobs that turn literals and records into coded blocks.

use std::sync::Arc;

use refrain_codec::looks_incompressible;
use refrain_format::lrzip::BackEnd;
use refrain_lrzip_codec::LrzipCodec;
use refrain_lrzip_codec::{LrzipPlan, encode_lrzip_block};
use refrain_pool::stages::stage;
use refrain_protect::{DigestAlgorithm, DigestHasher, checksum64};

use crate::error::Result;
use crate::store::page::Page;
use crate::write::lrzip::layout::{CodedBlock, Place};
use crate::write::lrzip::records::Insertion;
use crate::write::lrzip::retained_blocks::RetainedBlock;
use crate::write::pipeline::assembly::Encoding;
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::history::EncodedPages;
use crate::write::pipeline::segments::EpochData;

/// lrzip does not squeeze blocks shorter than this, in bytes.
const SQUEEZED_BYTES_MIN: usize = 64;

/// What workers do for an archive of lrzip.
pub(crate) struct LrzipEncoding;

/// Pages of the store with what stands between them: the literals of a block.
pub(crate) struct UnencodedLiterals {
    /// Number of the block among those of literals.
    pub number: u64,
    pub store_start: u64,
    pub first_page: u64,
    pub pages: Vec<Page>,
    pub insertions: Vec<Insertion>,
    /// The match stage saw repeats around here that it may have left to the codec.
    pub has_repeats: bool,
    /// The block has to be opened again later, for its content cannot be read twice.
    pub is_kept: bool,
}

/// What a block is made of.
pub(crate) enum BlockContent {
    Literals(UnencodedLiterals),
    Records(Vec<u8>),
}

/// A block to be encoded.
pub(crate) struct LrzipEncodeJob {
    pub place: Place,
    pub content: BlockContent,
    pub plan: LrzipPlan,
    /// Look at a sample first, and store what looks like noise.
    pub tries_sample: bool,
}

/// What came of it.
pub(crate) struct LrzipEncoded {
    pub place: Place,
    pub block: CodedBlock,
    /// Of literals.
    pub pages: Option<EncodedPages>,
    /// With the block's number, if it may have to be opened again.
    pub kept: Option<(u64, RetainedBlock)>,
}

/// The digests that an archive states.
pub(crate) struct ContentDigests {
    pub md5: DigestHasher,
    /// Of the chunk so far.
    pub crc: crc32fast::Hasher,
}

/// The CRC-32 as lrzip has it begins with 0 and is not inverted at the end; the library's begins with all ones, inverted.
const CRC_START: u32 = u32::MAX;

impl ContentDigests {
    pub(crate) fn new() -> ContentDigests {
        ContentDigests {
            md5: DigestHasher::new(DigestAlgorithm::Md5),
            crc: crc32fast::Hasher::new_with_initial(CRC_START),
        }
    }

    /// The CRC-32 of the chunk so far, as the format has it; the next chunk begins.
    pub(crate) fn take_crc(&mut self) -> u32 {
        let fresh = crc32fast::Hasher::new_with_initial(CRC_START);
        !std::mem::replace(&mut self.crc, fresh).finalize()
    }
}

impl Encoding for LrzipEncoding {
    type EncodeJob = LrzipEncodeJob;
    type Encoded = LrzipEncoded;
    type Digests = Box<ContentDigests>;

    fn encode(shared: &PipelineContext, job: LrzipEncodeJob) -> Result<LrzipEncoded> {
        let LrzipEncodeJob {
            place,
            content,
            plan,
            tries_sample,
        } = job;
        let literals = match content {
            BlockContent::Records(raw) => {
                let _stage = stage("pack records", raw.len() as u64);
                return Ok(LrzipEncoded {
                    place,
                    block: squeeze(plan, &Arc::new(raw), None)?,
                    pages: None,
                    kept: None,
                });
            }
            BlockContent::Literals(literals) => literals,
        };
        let mut stage = stage("encode", 0);
        let is_incompressible = tries_sample && literals.is_incompressible(shared)?;
        let plan = if is_incompressible {
            LrzipPlan::Stored
        } else {
            plan
        };
        let raw = Arc::new(literals.joined());
        stage.add_bytes(raw.len() as u64);
        let block = squeeze(plan, &raw, Some(literals.first_page))?;
        let pages = EncodedPages {
            first_page: literals.first_page,
            checksums: literals.pages.iter().map(|page| checksum64(page)).collect(),
            is_incompressible,
            copy: None,
        };
        let kept = match literals.is_kept {
            true => Some((literals.number, literals.kept(plan, &block, &raw)?)),
            false => None,
        };
        Ok(LrzipEncoded {
            place,
            block,
            pages: Some(pages),
            kept,
        })
    }

    fn digest(digests: &mut Box<ContentDigests>, data: &EpochData) {
        for segment in &data.segments {
            digests.md5.update(&segment.bytes);
            digests.crc.update(&segment.bytes);
        }
    }
}

impl UnencodedLiterals {
    /// Whether no codec would find anything: see [`UnencodedBlock`](crate::store::block::UnencodedBlock).
    fn is_incompressible(&self, shared: &PipelineContext) -> Result<bool> {
        if self.has_repeats {
            return Ok(false);
        }
        let parts: Vec<&[u8]> = self.pages.iter().map(|page| &page[..]).collect();
        Ok((shared.workspaces)
            .with(|space| looks_incompressible(&mut space.codec, &parts, false))?)
    }

    /// The block as it can be opened again, in time that is worth it.
    fn kept(self, plan: LrzipPlan, block: &CodedBlock, raw: &[u8]) -> Result<RetainedBlock> {
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
            insertions: self.insertions,
            first_page: self.first_page,
            pages: self.pages.len() as u64,
        })
    }

    fn joined(&self) -> Vec<u8> {
        let added: usize = self.insertions.iter().map(|part| part.bytes().len()).sum();
        let pages: usize = self.pages.iter().map(|page| page.len()).sum();
        let mut raw = Vec::with_capacity(pages + added);
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
        raw
    }
}

/// Squeezes a block, or stores it if that is no gain.
fn squeeze(plan: LrzipPlan, raw: &Arc<Vec<u8>>, first_page: Option<u64>) -> Result<CodedBlock> {
    let block = |back_end, coded| CodedBlock {
        back_end,
        raw_bytes: raw.len() as u64,
        coded,
        first_page,
    };
    if plan == LrzipPlan::Stored || raw.len() < SQUEEZED_BYTES_MIN {
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
