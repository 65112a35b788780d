//! Blocks of literals that were encoded, opened again: history for what cannot be read twice.
//!
//! They stay in memory as they were encoded, or, where the output can be read back and is not encrypted, are read from there. Opening ZPAQ
//! takes as long as making it, so of its blocks a copy in LZO stays instead.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_lrzip_codec::{LrzipCodec, LrzipDecoder};
use refrain_pool::Lock;
use refrain_storage::Source;

use crate::write::lrzip::records::Insertion;
use crate::write::pipeline::history::BlockReader;

/// A block of literals as it can be opened again.
pub(crate) struct RetainedBlock {
    pub codec: LrzipCodec,
    pub coded: Arc<Vec<u8>>,
    pub raw_bytes: u64,
    pub store_start: u64,
    pub insertions: Vec<Insertion>,
    /// Its pages of the store: number of the first, and how many.
    pub first_page: u64,
    pub pages: u64,
}

/// Where a block's coded bytes are.
enum Place {
    Memory(Arc<Vec<u8>>),
    /// In the archive, at this offset.
    Archive {
        offset: u64,
        coded_bytes: usize,
    },
}

struct Entry {
    block: RetainedBlock,
    place: Place,
}

/// The blocks that may still be referred to.
pub(crate) struct RetainedBlocks {
    archive: Option<Arc<dyn Source>>,
    blocks: Lock<VecDeque<Entry>>,
}

impl RetainedBlocks {
    /// `archive` reads back what was written as it was encoded, if that is possible.
    pub(crate) fn new(archive: Option<Arc<dyn Source>>) -> RetainedBlocks {
        RetainedBlocks {
            archive,
            blocks: Lock::default(),
        }
    }

    /// A block was encoded. Blocks come in any order.
    pub(crate) fn add(&self, mut block: RetainedBlock) {
        let place = Place::Memory(std::mem::take(&mut block.coded));
        let mut blocks = self.blocks.lock();
        let at = blocks.partition_point(|entry| entry.block.first_page < block.first_page);
        blocks.insert(at, Entry { block, place });
    }

    /// A block was written: its coded bytes are at `offset` of the archive. Those of one that is kept in another form are not.
    pub(crate) fn written(&self, first_page: u64, offset: u64, coded: &Arc<Vec<u8>>) {
        if self.archive.is_none() {
            return;
        }
        let mut blocks = self.blocks.lock();
        let found = blocks.binary_search_by_key(&first_page, |entry| entry.block.first_page);
        if let Some(entry) = found.ok().and_then(|index| blocks.get_mut(index))
            && matches!(&entry.place, Place::Memory(kept) if Arc::ptr_eq(kept, coded))
        {
            entry.place = Place::Archive {
                offset,
                coded_bytes: coded.len(),
            };
        }
    }

    /// Opens the block with this page: number of its first page, and all of its raw bytes in the store.
    fn open(&self, page: u64) -> Option<(u64, Vec<u8>)> {
        let blocks = self.blocks.lock();
        let after = blocks.partition_point(|entry| entry.block.first_page <= page);
        let Entry { block, place } = blocks.get(after.checked_sub(1)?)?;
        if page >= block.first_page + block.pages {
            return None;
        }
        let (codec, raw_bytes, first_page) = (block.codec, block.raw_bytes, block.first_page);
        let (store_start, insertions) = (block.store_start, block.insertions.clone());
        let place = match place {
            Place::Memory(coded) => Ok(coded.clone()),
            Place::Archive {
                offset,
                coded_bytes,
            } => Err((*offset, *coded_bytes)),
        };
        drop(blocks);
        let coded = match place {
            Ok(coded) => coded,
            Err((offset, coded_bytes)) => {
                let mut coded = vec![0; coded_bytes];
                let count = self.archive.as_ref()?.read_at(offset, &mut coded).ok()?;
                (count == coded.len()).then(|| Arc::new(coded))?
            }
        };
        let raw = decoded(codec, &coded, raw_bytes)?;
        Some((first_page, without(&insertions, store_start, raw)?))
    }
}

fn decoded(codec: LrzipCodec, coded: &[u8], raw_bytes: u64) -> Option<Vec<u8>> {
    let mut raw = vec![0; usize::try_from(raw_bytes).ok()?];
    let mut decoder = LrzipDecoder::new(codec, raw_bytes, u64::MAX).ok()?;
    let (mut taken, mut made) = (0, 0);
    while made < raw.len() {
        let progress = decoder.step(&coded[taken..], true, &mut raw[made..]).ok()?;
        (taken, made) = (
            taken + progress.consumed_bytes,
            made + progress.produced_bytes,
        );
    }
    Some(raw)
}

/// The bytes of the store in a block: those that were inserted between them go.
fn without(insertions: &[Insertion], store_start: u64, raw: Vec<u8>) -> Option<Vec<u8>> {
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
    fn read_block_of(&self, page: u64) -> Option<(u64, Vec<u8>)> {
        self.open(page)
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
