//! The store while it is written: its last pages in memory, older ones read again.
//!
//! The match stage verifies every repeat byte by byte, so it must be able to read any byte of the store that it may
//! refer to, in bounded memory and without temporary files. The store is kept in *pages*. The newest are in memory; a page
//! that was dropped comes back from where its bytes still are: the source files, read again at the places the page
//! was made of, or the archive's own block, opened again. Both are checked against the page's checksum: a source that
//! changed while it was read must not lead to references to bytes that the store does not hold.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_longmatch::{History, HistoryChunk};
use refrain_pool::{BufferPool, Lock, PooledBuffer};
use refrain_protect::checksum64;
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::store::packed::Packed;
use crate::store::page::{PAGE_BYTES, Page, pages};
use crate::store::workspaces::{EncodeSpace, Workspaces};
use crate::write::pipeline::packed_blocks::PackedBlocks;
use crate::write::pipeline::page_cache::PageCache;
use crate::write::pipeline::recipe::{Piece, Recipe, read_sources};

/// Opens the store's pages from the archive's blocks.
pub(crate) trait BlockReader: Send + Sync {
    /// The pages of the block that holds page `page`, as `(number of the first page, bytes of all)`; all but the last
    /// page of a block are [`PAGE_BYTES`] long.
    fn read_block_of(&self, page: u64) -> Option<(u64, Vec<u8>)>;

    /// Blocks that end at or before this offset in the store will not be asked for again.
    fn forget_below(&self, store_floor: u64);
}

/// A closed page.
struct ClosedPage {
    /// Where it begins in the store.
    start: u64,
    recipe: Recipe,
    /// Known once its block was encoded; until then the page stays in memory.
    checksum: Option<u64>,
}

impl ClosedPage {
    /// Memory taken by what is known of the page; its bytes are not counted.
    fn memory_bytes(&self) -> usize {
        size_of::<ClosedPage>() + PageCache::BYTES_PER_PAGE + self.recipe.heap_bytes()
    }
}

/// The store as the match stage sees it.
pub(crate) struct StoreHistory {
    /// The closed pages from number `first_kept` on. Older ones are forgotten: what is known of them took too much memory, or
    /// they are out of the decoder's reach.
    closed: VecDeque<ClosedPage>,
    first_kept: u64,
    /// Memory that `closed` takes.
    known_bytes: usize,
    known_bytes_max: usize,
    /// Where the page that is being filled begins.
    open_start: u64,
    /// The page that is being filled.
    open: Page,
    open_pieces: Vec<Piece>,
    cache: Lock<PageCache>,
    /// Memory for pages, in the cache or packed because they had to be opened again.
    pages_bytes: u64,
    /// Packed copies are handed over with encoded blocks, and take memory of their own.
    packs_when_encoded: bool,
    packed: Lock<PackedBlocks>,
    /// For packed copies alone: in those of the encoders every thread that looks something up would leave the memory of a dense codec in
    /// another one (1 GB at level 8 with 512 MiB and 7 threads: 1.04 GB in use).
    workspaces: Workspaces,
    sources: Vec<Option<Arc<dyn Source>>>,
    archive: Option<Arc<dyn BlockReader>>,
    /// Buffers of pages: memory that was touched before is cheap.
    pool: Arc<BufferPool>,
}

/// Pages of a block that was encoded.
pub(crate) struct EncodedPages {
    pub first_page: u64,
    pub checksums: Vec<u64>,
    /// Stored, because there is nothing to squeeze.
    pub is_noise: bool,
    /// Copies of all of them, where these were made.
    pub packed: Option<Packed>,
}

/// A page that was just filled.
pub(crate) struct FilledPage {
    pub bytes: Page,
}

impl StoreHistory {
    /// `cache_bytes` is memory for pages, `packed_bytes` more of it for packed blocks; if that is 0, those that had to be opened again from
    /// `archive` share the former.
    pub(crate) fn new(
        cache_bytes: u64,
        packed_bytes: u64,
        known_bytes_max: usize,
        sources: Vec<Option<Arc<dyn Source>>>,
        archive: Option<Arc<dyn BlockReader>>,
        pool: Arc<BufferPool>,
    ) -> Result<StoreHistory> {
        let packed_bytes_max = match (&archive, packed_bytes) {
            (None, _) => 0,
            (Some(_), 0) => cache_bytes / 4 * 3,
            // How many stay is the assembly's business: it forgets what does not fit.
            (Some(_), _) => u64::MAX,
        };
        Ok(StoreHistory {
            closed: VecDeque::new(),
            first_kept: 0,
            known_bytes: 0,
            known_bytes_max,
            open_start: 0,
            open: Arc::new(PooledBuffer::empty(&pool)?),
            open_pieces: Vec::new(),
            cache: Lock::new(PageCache::new(pages(cache_bytes))),
            pages_bytes: cache_bytes,
            packs_when_encoded: packed_bytes > 0,
            packed: Lock::new(PackedBlocks::new(packed_bytes_max)),
            workspaces: Workspaces::default(),
            sources,
            archive,
            pool,
        })
    }

    /// Bytes in the store.
    pub(crate) fn store_bytes(&self) -> u64 {
        self.open_start + self.open.len() as u64
    }

    /// Appends bytes that are at `offset_in_member` of `member`; `filled` gets every page that becomes full.
    pub(crate) fn append(
        &mut self,
        mut bytes: &[u8],
        member: u32,
        mut offset_in_member: u64,
        filled: &mut Vec<FilledPage>,
    ) -> Result<()> {
        while !bytes.is_empty() {
            let count = bytes.len().min(PAGE_BYTES - self.open.len());
            let (now, later) = bytes.split_at(count);
            self.open_for_writing()?.extend_from_slice(now);
            self.add_piece(Piece {
                member,
                offset_in_member,
                length_bytes: count as u32,
            });
            bytes = later;
            offset_in_member += count as u64;
            if self.open.len() == PAGE_BYTES {
                filled.push(self.close_page()?);
            }
        }
        Ok(())
    }

    /// The open page, ours alone: nobody reads it while the store grows, else a copy is made.
    fn open_for_writing(&mut self) -> Result<&mut PooledBuffer> {
        if Arc::get_mut(&mut self.open).is_none() {
            let mut copy = PooledBuffer::empty(&self.pool)?;
            copy.extend_from_slice(&self.open);
            self.open = Arc::new(copy);
        }
        let shared = || Error::new(ErrorKind::Internal, "the open page is shared");
        Arc::get_mut(&mut self.open).ok_or_else(shared)
    }

    fn add_piece(&mut self, piece: Piece) {
        match self.open_pieces.last_mut() {
            Some(last)
                if last.member == piece.member
                    && last.offset_in_member + u64::from(last.length_bytes)
                        == piece.offset_in_member =>
            {
                last.length_bytes += piece.length_bytes;
            }
            _ => self.open_pieces.push(piece),
        }
    }

    /// Closes the open page as it is: at the end of the store, or because its block must not wait any longer.
    pub(crate) fn take_last_page(&mut self) -> Result<Option<FilledPage>> {
        if self.open.is_empty() {
            return Ok(None);
        }
        self.close_page().map(Some)
    }

    fn close_page(&mut self) -> Result<FilledPage> {
        let next = Arc::new(PooledBuffer::empty(&self.pool)?);
        let bytes = std::mem::replace(&mut self.open, next);
        let recipe = Recipe::new(&self.open_pieces, &self.sources);
        self.open_pieces.clear();
        let page = ClosedPage {
            start: self.open_start,
            recipe,
            checksum: None,
        };
        self.known_bytes += page.memory_bytes();
        self.closed.push_back(page);
        self.open_start += bytes.len() as u64;
        self.cache.lock().push(bytes.clone());
        Ok(FilledPage { bytes })
    }

    /// Forgets old pages while what is known of all takes more memory than allowed, and all below `floor`. Returns the
    /// store offset from which on everything can be read.
    pub(crate) fn forget(&mut self, floor: u64) -> u64 {
        while let Some(oldest) = self.closed.front()
            && (self.known_bytes > self.known_bytes_max || oldest.start < floor)
        {
            self.known_bytes -= oldest.memory_bytes();
            self.closed.pop_front();
            self.first_kept += 1;
        }
        self.cache.lock().forget_below(self.first_kept);
        self.packed.lock().forget_below(self.first_kept);
        let kept_from = self.start_of(0);
        if let Some(archive) = &self.archive {
            archive.forget_below(kept_from);
        }
        kept_from
    }

    /// The block with these pages was encoded: they may leave memory.
    pub(crate) fn encoded(&mut self, pages: EncodedPages) {
        let count = pages.checksums.len() as u64;
        if let Some(packed) = pages.packed
            && pages.first_page >= self.first_kept
        {
            self.packed.lock().add(pages.first_page, count, packed);
        }
        let mut cache = self.cache.lock();
        for (number, &checksum) in (pages.first_page..).zip(&pages.checksums) {
            let index = number.checked_sub(self.first_kept);
            if let Some(closed) = index.and_then(|index| self.closed.get_mut(index as usize)) {
                closed.checksum = Some(checksum);
                cache.release(number, pages.is_noise);
            }
        }
    }

    /// Where a kept page begins, by its place among them; the open page follows the last.
    fn start_of(&self, index: usize) -> u64 {
        let closed = self.closed.get(index);
        closed.map_or(self.open_start, |page| page.start)
    }

    /// The closed page that holds this byte of the store, with its number.
    fn page_at(&self, offset_in_store: u64) -> Option<(u64, &ClosedPage)> {
        let first = self.closed.front()?.start;
        // Nearly all pages are full.
        let guess = (offset_in_store.checked_sub(first)? / PAGE_BYTES as u64) as usize;
        let is_right = guess < self.closed.len()
            && (self.start_of(guess)..self.start_of(guess + 1)).contains(&offset_in_store);
        let index = match is_right {
            true => guess,
            false => (self.closed).partition_point(|page| page.start <= offset_in_store) - 1,
        };
        Some((self.first_kept + index as u64, &self.closed[index]))
    }

    /// Reads a page that is no longer in memory, from the sources or from the archive.
    fn fetch(&self, number: u64, closed: &ClosedPage) -> Option<Page> {
        let expected = closed.checksum?;
        let bytes = match &closed.recipe {
            Recipe::Sources(packed) => read_sources(packed, &self.sources, &self.pool)?,
            Recipe::Archive => {
                let packed = self.packed.lock().get(number);
                match packed {
                    Some((block, offset)) => self.unpack(&block, offset, number)?,
                    None => self.open_block(number)?,
                }
            }
        };
        if checksum64(&bytes) != expected {
            return None;
        }
        let bytes = Arc::new(bytes);
        self.cache.lock().put(number, bytes.clone());
        Some(bytes)
    }

    /// The page at `offset` of a packed block.
    fn unpack(&self, block: &Packed, offset: usize, number: u64) -> Option<PooledBuffer> {
        let index = (number - self.first_kept) as usize;
        let length_bytes = self.start_of(index + 1) - self.start_of(index);
        let mut page = PooledBuffer::full(&self.pool).ok()?;
        page.truncate(length_bytes as usize);
        (self.workspaces).with(|space| block.read(&mut space.codec, offset, &mut page))?;
        Some(page)
    }

    /// Opens the block of a page, and keeps it packed: its other pages are likely to be asked for, too. Where there is no room for it they go
    /// into the cache as they are.
    fn open_block(&self, page: u64) -> Option<PooledBuffer> {
        let (first, bytes) = self.archive.as_ref()?.read_block_of(page)?;
        let copy = |bytes: &[u8]| -> Option<PooledBuffer> {
            let mut copy = PooledBuffer::empty(&self.pool).ok()?;
            copy.extend_from_slice(bytes);
            Some(copy)
        };
        let mut wanted = None;
        let is_packed = self.pack(first, &bytes);
        for (number, page_bytes) in (first..).zip(bytes.chunks(PAGE_BYTES)) {
            if number == page {
                wanted = copy(page_bytes);
            } else if !is_packed {
                self.cache.lock().put(number, Arc::new(copy(page_bytes)?));
            }
        }
        wanted
    }

    /// Packs a block, which shares the memory for pages with those that are open. Whether there was room for it.
    fn pack(&self, first_page: u64, bytes: &[u8]) -> bool {
        if self.packs_when_encoded || !self.packed.lock().has_room_for(first_page) {
            return false;
        }
        let pack = |space: &mut EncodeSpace| Packed::new(&mut space.codec, bytes);
        let Ok(block) = self.workspaces.with(pack) else {
            return false;
        };
        let mut packed = self.packed.lock();
        let is_kept = packed.add(first_page, bytes.len().div_ceil(PAGE_BYTES) as u64, block);
        let left_bytes = self.pages_bytes - packed.bytes().min(self.pages_bytes);
        drop(packed);
        self.cache.lock().keep_recent_only(pages(left_bytes));
        is_kept
    }
}

impl History for StoreHistory {
    fn chunk(&self, offset_in_store: u64) -> Option<HistoryChunk> {
        if offset_in_store >= self.open_start {
            return Some(HistoryChunk {
                offset_in_store: self.open_start,
                bytes: self.open.clone(),
            });
        }
        let (number, closed) = self.page_at(offset_in_store)?;
        // Whether it is still in memory depends on threads, and must not show.
        if matches!(closed.recipe, Recipe::Archive) && self.archive.is_none() {
            return None;
        }
        let found = self.cache.lock().get(number);
        let bytes: Page = found.or_else(|| self.fetch(number, closed))?;
        Some(HistoryChunk {
            offset_in_store: closed.start,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_storage::MemorySource;

    fn content() -> Vec<u8> {
        (0..5 * PAGE_BYTES as u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect()
    }

    /// A history of every second KiB of the content; pages 0..n are encoded.
    fn history(source: Vec<u8>, cached_pages: usize) -> (StoreHistory, Vec<u8>) {
        history_of(Arc::new(MemorySource::new(source)), cached_pages)
    }

    fn history_of(source: Arc<dyn Source>, cached_pages: usize) -> (StoreHistory, Vec<u8>) {
        let content = content();
        let mut history = StoreHistory::new(
            (cached_pages * PAGE_BYTES) as u64,
            0,
            1 << 20,
            vec![Some(source)],
            None,
            Arc::new(BufferPool::new(PAGE_BYTES, 8)),
        )
        .expect("memory");
        let (mut filled, mut store) = (vec![], vec![]);
        for start in (0..content.len()).step_by(2048) {
            let bytes = &content[start..start + 1024];
            history
                .append(bytes, 0, start as u64, &mut filled)
                .expect("memory");
            store.extend_from_slice(bytes);
        }
        history.encoded(EncodedPages {
            first_page: 0,
            checksums: filled.iter().map(|page| checksum64(&page.bytes)).collect(),
            is_noise: false,
            packed: None,
        });
        (history, store)
    }

    fn read(history: &StoreHistory, at: usize) -> Option<Vec<u8>> {
        history
            .chunk(at as u64)
            .map(|chunk| (*chunk.bytes).as_ref()[at % PAGE_BYTES..].to_vec())
    }

    #[test]
    fn a_page_that_cannot_be_read_again_is_not_there_while_it_is_in_memory() {
        /// Keeps its first two pages only.
        struct Forgetful(MemorySource<Vec<u8>>);
        impl Source for Forgetful {
            fn size_bytes(&self) -> std::io::Result<u64> {
                self.0.size_bytes()
            }
            fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
                self.0.read_at(offset, buffer)
            }
            fn is_kept(&self, offset: u64) -> bool {
                offset < 2 * PAGE_BYTES as u64
            }
        }
        let (history, _) = history_of(Arc::new(Forgetful(MemorySource::new(content()))), 100);
        let is_there = |page: u64| history.chunk(page * PAGE_BYTES as u64).is_some();
        assert!(is_there(0));
        assert!(!is_there(1));
    }

    #[test]
    fn dropped_pages_come_back_from_the_source() {
        let (history, store) = history(content(), 0);
        assert_eq!(history.store_bytes(), store.len() as u64);
        for at in [0, 12_345, PAGE_BYTES, 2 * PAGE_BYTES + 7] {
            let end = store.len().min(at / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES);
            assert_eq!(read(&history, at).as_deref(), Some(&store[at..end]));
        }
    }

    #[test]
    fn a_changed_source_is_noticed() {
        let mut changed = content();
        changed[2048 * 3 + 5] ^= 1;
        let (history, store) = history(changed, 0);
        assert_eq!(read(&history, 0), None);
        assert_eq!(
            read(&history, PAGE_BYTES).as_deref(),
            Some(&store[PAGE_BYTES..2 * PAGE_BYTES])
        );
    }

    #[test]
    fn forgotten_pages_stay_forgotten() {
        let (mut history, _) = history(content(), 8);
        assert_eq!(history.forget(1), PAGE_BYTES as u64);
        assert_eq!(read(&history, 0), None);
        assert!(read(&history, PAGE_BYTES).is_some());
        history.known_bytes_max = 0;
        assert_eq!(history.forget(0), 2 * PAGE_BYTES as u64);
    }
}
