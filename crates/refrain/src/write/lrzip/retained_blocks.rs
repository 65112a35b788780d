//! Blocks of literals that can be decoded again: the history of content that cannot be read again
//! from its source.
//!
//! They stay in memory as encoded, or are read back from the output if that is possible and the
//! output is not encrypted. Decoding ZPAQ takes as long as encoding it, so its blocks are kept as
//! an LZO copy.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_lrzip_codec::{LrzipCodec, LrzipDecoder};
use refrain_pool::Lock;
use refrain_storage::Source;

use crate::error::Result;
use crate::write::lrzip::records::Insertion;
use crate::write::pipeline::history::BlockReader;
use crate::write::pipeline::refusals::Refusals;

/// A block of literals in a form that can be decoded again.
pub(crate) struct RetainedBlock {
    pub codec: LrzipCodec,
    pub coded: Arc<Vec<u8>>,
    pub raw_bytes: u64,
    pub store_start: u64,
    pub insertions: Vec<Insertion>,
    /// Its first page of the store, and the number of pages.
    pub first_page: u64,
    pub pages: u64,
}

enum CodedLocation {
    Memory(Arc<Vec<u8>>),
    Archive { offset: u64, coded_bytes: usize },
}

struct PlacedBlock {
    block: RetainedBlock,
    location: CodedLocation,
}

/// The blocks to which extents may still refer.
pub(crate) struct RetainedBlocks {
    archive: Option<Arc<dyn Source>>,
    blocks: Lock<VecDeque<PlacedBlock>>,
    refusals: Refusals,
}

impl RetainedBlocks {
    /// `archive` reads the output back, if that is possible and the output is not encrypted.
    pub(crate) fn new(archive: Option<Arc<dyn Source>>) -> RetainedBlocks {
        RetainedBlocks {
            archive,
            blocks: Lock::default(),
            refusals: Refusals::default(),
        }
    }

    /// Adds an encoded block, in any order.
    pub(crate) fn add(&self, mut block: RetainedBlock) {
        let location = CodedLocation::Memory(std::mem::take(&mut block.coded));
        let mut blocks = self.blocks.lock();
        let at = blocks.partition_point(|entry| entry.block.first_page < block.first_page);
        blocks.insert(at, PlacedBlock { block, location });
    }

    /// A block was written: its coded bytes are at `offset` of the archive. If it has a copy in
    /// another form, it keeps that.
    pub(crate) fn written(&self, first_page: u64, offset: u64, coded: &Arc<Vec<u8>>) {
        if self.archive.is_none() {
            return;
        }
        let mut blocks = self.blocks.lock();
        let found = blocks.binary_search_by_key(&first_page, |entry| entry.block.first_page);
        if let Some(entry) = found.ok().and_then(|index| blocks.get_mut(index))
            && matches!(&entry.location, CodedLocation::Memory(retained) if Arc::ptr_eq(retained, coded))
        {
            entry.location = CodedLocation::Archive {
                offset,
                coded_bytes: coded.len(),
            };
        }
    }

    /// Decodes the block with this page. Returns its first page and its store bytes.
    fn decode(&self, page: u64) -> Option<(u64, Vec<u8>)> {
        let blocks = self.blocks.lock();
        let after = blocks.partition_point(|entry| entry.block.first_page <= page);
        let PlacedBlock { block, location } = blocks.get(after.checked_sub(1)?)?;
        if page >= block.first_page + block.pages {
            return None;
        }
        let (codec, raw_bytes, first_page) = (block.codec, block.raw_bytes, block.first_page);
        let (store_start, insertions) = (block.store_start, block.insertions.clone());
        let location = match location {
            CodedLocation::Memory(coded) => Ok(coded.clone()),
            CodedLocation::Archive {
                offset,
                coded_bytes,
            } => Err((*offset, *coded_bytes)),
        };
        drop(blocks);
        let coded = match location {
            Ok(coded) => coded,
            Err((offset, coded_bytes)) => {
                let mut coded = self.refusals.zeroed(coded_bytes)?;
                let count = self.archive.as_ref()?.read_at(offset, &mut coded).ok()?;
                (count == coded.len()).then(|| Arc::new(coded))?
            }
        };
        let raw = self.refusals.zeroed(usize::try_from(raw_bytes).ok()?)?;
        let raw = self.refusals.count_in(decoded(codec, &coded, raw)).ok()?;
        Some((
            first_page,
            without_insertions(&insertions, store_start, raw)?,
        ))
    }
}

fn decoded(codec: LrzipCodec, coded: &[u8], mut raw: Vec<u8>) -> Result<Vec<u8>> {
    let mut decoder = LrzipDecoder::new(codec, raw.len() as u64, u64::MAX)?;
    let (mut taken, mut made) = (0, 0);
    while made < raw.len() {
        let progress = decoder.step(&coded[taken..], true, &mut raw[made..])?;
        (taken, made) = (
            taken + progress.consumed_bytes,
            made + progress.produced_bytes,
        );
    }
    Ok(raw)
}

fn without_insertions(insertions: &[Insertion], store_start: u64, raw: Vec<u8>) -> Option<Vec<u8>> {
    if insertions.is_empty() {
        return Some(raw);
    }
    let mut store = Vec::with_capacity(raw.len());
    let mut from = 0;
    for insertion in insertions {
        let wanted = usize::try_from(insertion.store_offset - store_start).ok()?;
        let to = from + (wanted - store.len());
        store.extend_from_slice(raw.get(from..to)?);
        from = to + insertion.bytes().len();
    }
    store.extend_from_slice(raw.get(from..)?);
    Some(store)
}

impl BlockReader for RetainedBlocks {
    fn refusals(&self) -> u64 {
        self.refusals.count()
    }

    fn read_block_of(&self, page: u64) -> Option<(u64, Vec<u8>)> {
        self.decode(page)
    }

    fn evict_below(&self, store_floor: u64) {
        let mut blocks = self.blocks.lock();
        while blocks.len() > 1
            && (blocks.get(1)).is_some_and(|next| next.block.store_start <= store_floor)
        {
            blocks.pop_front();
        }
    }
}
