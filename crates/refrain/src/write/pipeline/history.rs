//! The store during writing: its latest pages in memory, older ones read again.
//!
//! The match stage verifies every repeat byte by byte, so it must be able to read any byte of the
//! store that it may refer to, in bounded memory. The store consists of *pages*. The latest are in
//! memory. An evicted page is read again from the sources, at the offsets in its recipe, from a
//! temporary file, or from the archive's own block, which is decoded again; the [`HistoryPolicy`]
//! says which. All are checked against the page's checksum: a source that changed while it was read
//! must not lead to references to bytes that the store does not hold.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_longmatch::{History, HistoryChunk};
use refrain_pool::{BufferPool, Lock, PooledBuffer, return_free_memory};
use refrain_protect::checksum64;
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::store::compressed_copy::CompressedCopy;
use crate::store::memory::with_capacity;
use crate::store::page::{PAGE_BYTES, Page, pages};
use crate::store::workspaces::{CodecScratch, Workspaces};
use crate::write::pipeline::copy_cache::CopyCache;
use crate::write::pipeline::earlier_store::EarlierStore;
use crate::write::pipeline::history_policy::HistoryPolicy;
use crate::write::pipeline::page_cache::PageCache;
use crate::write::pipeline::page_spill::PageSpill;
use crate::write::pipeline::recipe::{Recipe, SourcePiece, read_sources};

/// Reads pages of the store by decoding the archive's blocks.
pub(crate) trait BlockReader: Send + Sync {
    /// Decodes the block with page `page`. Returns its first page and the bytes of all its pages,
    /// each [`PAGE_BYTES`] long except the last.
    fn read_block_of(&self, page: u64) -> Option<(u64, Vec<u8>)>;

    /// Fills `bytes` with page `page`, if its block is stored uncompressed.
    fn read_stored_page(&self, _page: u64, _bytes: &mut [u8]) -> Option<()> {
        None
    }

    /// How often the system refused memory for decoding a block.
    fn refusals(&self) -> u64;

    /// Releases blocks that end at or before `store_floor`: they are not read again.
    fn evict_below(&self, store_floor: u64);
}

/// Where evicted pages are read again.
#[derive(Default)]
pub(crate) struct ReadAgain {
    /// The sources of the members.
    pub sources: Vec<Option<Arc<dyn Source>>>,
    pub blocks: Option<Arc<dyn BlockReader>>,
    pub spill: Option<Arc<PageSpill>>,
    /// The store of earlier generations, which precedes the pages.
    pub earlier: Option<EarlierStore>,
}

struct ClosedPage {
    /// The offset of the page in the store.
    start: u64,
    recipe: Recipe,
    /// Known once the page's block was encoded; the page stays in memory until that.
    checksum: Option<u64>,
}

impl ClosedPage {
    /// The memory of this description, without the page's bytes.
    fn memory_bytes(&self) -> usize {
        size_of::<ClosedPage>() + PageCache::BYTES_PER_PAGE + self.recipe.heap_bytes()
    }
}

/// The store as the match stage reads it.
pub(crate) struct StoreHistory {
    /// The closed pages starting at number `first_closed`. Older descriptions were evicted, because
    /// they took too much memory or their pages are out of reach.
    closed: VecDeque<ClosedPage>,
    first_closed: u64,
    /// The memory of `closed`.
    known_bytes: usize,
    known_bytes_max: usize,
    /// The store offset of the open page.
    open_start: u64,
    /// The page being filled.
    open: Page,
    /// Whether a page was not read again because the system refused memory.
    is_missing_memory: AtomicBool,
    open_pieces: Vec<SourcePiece>,
    cache: Lock<PageCache>,
    policy: HistoryPolicy,
    /// Memory for pages: those in the cache, and compressed copies of blocks that were decoded
    /// again.
    pages_bytes: u64,
    copies: Lock<CopyCache>,
    /// Workspaces for compressed copies only. With the encoders' workspaces, every thread that
    /// reads a copy would leave the memory of a dense codec in one more workspace (1 GB at level 8
    /// with 512 MiB and 7 threads: 1.04 GB in use).
    workspaces: Workspaces,
    sources: Vec<Option<Arc<dyn Source>>>,
    blocks: Option<Arc<dyn BlockReader>>,
    spill: Option<Arc<PageSpill>>,
    earlier: Option<EarlierStore>,
    /// The length of the store of earlier generations.
    earlier_bytes: u64,
    /// Buffers for pages: memory touched before is cheap.
    pool: Arc<BufferPool>,
}

pub(crate) struct EncodedPages {
    pub first_page: u64,
    pub checksums: Vec<u64>,
    /// Whether the block is stored because it is incompressible.
    pub is_incompressible: bool,
    /// A compressed copy of the block, if one was made.
    pub copy: Option<CompressedCopy>,
}

pub(crate) struct FilledPage {
    pub bytes: Page,
}

impl StoreHistory {
    /// `cache_bytes` is the memory for pages. Copies made when blocks are encoded have their own
    /// memory; copies of blocks decoded again from `blocks` share the memory for pages.
    pub(crate) fn new(
        policy: HistoryPolicy,
        cache_bytes: u64,
        known_bytes_max: usize,
        from: ReadAgain,
        pool: Arc<BufferPool>,
    ) -> Result<StoreHistory> {
        let ReadAgain {
            sources,
            blocks,
            spill,
            earlier,
        } = from;
        let earlier_bytes = earlier.as_ref().map_or(0, EarlierStore::length_bytes);
        let copies_bytes_max = match policy {
            HistoryPolicy::Sources => 0,
            HistoryPolicy::SourcesAndBlocks | HistoryPolicy::Blocks(_) => cache_bytes / 4 * 3,
            // The reach of the copies, tracked by the assembly, evicts what does not fit.
            HistoryPolicy::Copies(_) => u64::MAX,
        };
        Ok(StoreHistory {
            closed: VecDeque::new(),
            first_closed: 0,
            known_bytes: 0,
            known_bytes_max,
            open_start: earlier_bytes,
            open: Arc::new(PooledBuffer::empty(&pool)?),
            is_missing_memory: AtomicBool::new(false),
            open_pieces: Vec::new(),
            cache: Lock::new(PageCache::new(pages(cache_bytes))),
            pages_bytes: cache_bytes,
            policy,
            copies: Lock::new(CopyCache::new(copies_bytes_max)),
            workspaces: Workspaces::default(),
            sources,
            blocks,
            spill,
            earlier,
            earlier_bytes,
            pool,
        })
    }

    pub(crate) fn store_bytes(&self) -> u64 {
        self.open_start + self.open.len() as u64
    }

    /// Appends bytes from `offset_in_member` of `member`. Pushes every page that becomes full to
    /// `filled`.
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
            self.add_piece(SourcePiece {
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

    /// The open page with exclusive access. It is copied if a reader still holds it.
    fn open_for_writing(&mut self) -> Result<&mut PooledBuffer> {
        if Arc::get_mut(&mut self.open).is_none() {
            let mut copy = self.fresh_page()?;
            copy.extend_from_slice(&self.open);
            self.open = Arc::new(copy);
        }
        let shared = || Error::new(ErrorKind::Internal, "the open page is shared");
        Arc::get_mut(&mut self.open).ok_or_else(shared)
    }

    /// An empty buffer for a page. If the system refuses one, cached pages give way.
    fn fresh_page(&self) -> Result<PooledBuffer> {
        loop {
            match PooledBuffer::empty(&self.pool) {
                Err(_) if self.give_way() => {}
                page => return Ok(page?),
            }
        }
    }

    /// Frees cached pages until this much memory can be allocated, or none are cached.
    pub(crate) fn make_room(&self, length_bytes: usize) {
        while with_capacity(length_bytes).is_err() && self.give_way() {}
    }

    /// Frees half of the cached pages for good. Returns false if none is cached. Pages are read
    /// again where they were cached, so the result of matching does not change.
    fn give_way(&self) -> bool {
        let had_pages = self.cache.lock().halve();
        self.pool.release();
        return_free_memory();
        had_pages
    }

    fn refusals(&self) -> u64 {
        let of_blocks = self.blocks.as_ref().map_or(0, |blocks| blocks.refusals());
        self.pool.refusals() + of_blocks
    }

    /// Fails if a page could not be read again for lack of memory: the matches that were found, and
    /// so the bytes of the archive, would depend on it.
    ///
    /// # Errors
    /// `Limit`.
    pub(crate) fn check_memory(&self) -> Result<()> {
        if self.is_missing_memory.load(Ordering::Relaxed) {
            return Err(Error::limit(
                "the system refuses memory for comparing repeats",
            ));
        }
        Ok(())
    }

    fn add_piece(&mut self, piece: SourcePiece) {
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

    /// Closes the open page early: at the end of the store, or because its block must not wait
    /// longer.
    pub(crate) fn take_last_page(&mut self) -> Result<Option<FilledPage>> {
        if self.open.is_empty() {
            return Ok(None);
        }
        self.close_page().map(Some)
    }

    fn close_page(&mut self) -> Result<FilledPage> {
        let next = Arc::new(self.fresh_page()?);
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

    /// Evicts the oldest descriptions while all of them take too much memory, and those of pages
    /// below `floor`. Returns the store offset above which the index may refer to.
    pub(crate) fn evict_below(&mut self, floor: u64) -> u64 {
        while let Some(oldest) = self.closed.front()
            && (self.known_bytes > self.known_bytes_max || oldest.start < floor)
        {
            self.known_bytes -= oldest.memory_bytes();
            self.closed.pop_front();
            self.first_closed += 1;
        }
        self.cache.lock().evict_below(self.first_closed);
        self.copies.lock().evict_below(self.first_closed);
        let readable_from = self.start_of(0);
        // Earlier generations stay readable, whatever was evicted of this one.
        let index_floor = if self.earlier.is_some() { 0 } else { readable_from };
        if let Some(blocks) = &self.blocks {
            blocks.evict_below(readable_from);
        }
        if let Some(spill) = &self.spill {
            spill.evict_below(self.first_closed);
        }
        index_floor
    }

    /// The length of the store of earlier generations, in bytes.
    pub(crate) fn earlier_bytes(&self) -> u64 {
        self.earlier_bytes
    }

    fn earlier_page(&self, offset_in_store: u64) -> Option<HistoryChunk> {
        match self.earlier.as_ref()?.page(offset_in_store, &self.pool) {
            Ok(page) => page,
            Err(_) => {
                self.is_missing_memory.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// The block of these pages was encoded: the pages may be evicted from now on.
    pub(crate) fn encoded(&mut self, pages: EncodedPages) {
        let count = pages.checksums.len() as u64;
        if let Some(copy) = pages.copy
            && pages.first_page >= self.first_closed
        {
            self.copies.lock().add(pages.first_page, count, copy);
        }
        let mut cache = self.cache.lock();
        for (number, &checksum) in (pages.first_page..).zip(&pages.checksums) {
            let index = number.checked_sub(self.first_closed);
            if let Some(closed) = index.and_then(|index| self.closed.get_mut(index as usize)) {
                closed.checksum = Some(checksum);
                cache.release(number, pages.is_incompressible);
            }
        }
    }

    /// The store offset of a closed page, by its index; the open page follows the last.
    fn start_of(&self, index: usize) -> u64 {
        let closed = self.closed.get(index);
        closed.map_or(self.open_start, |page| page.start)
    }

    /// The closed page with this store byte, and its number.
    fn page_at(&self, offset_in_store: u64) -> Option<(u64, &ClosedPage)> {
        let first = self.closed.front()?.start;
        // Nearly all pages are full.
        let guess = (offset_in_store.checked_sub(first)? / PAGE_BYTES as u64) as usize;
        let is_exact = guess < self.closed.len()
            && (self.start_of(guess)..self.start_of(guess + 1)).contains(&offset_in_store);
        let index = if is_exact {
            guess
        } else {
            (self.closed).partition_point(|page| page.start <= offset_in_store) - 1
        };
        Some((self.first_closed + index as u64, &self.closed[index]))
    }

    /// Reads an evicted page again. If the system refuses memory for that, cached pages give way.
    fn reread(&self, number: u64, closed: &ClosedPage) -> Option<Page> {
        loop {
            let refusals_before = self.refusals();
            let page = self.read_evicted(number, closed);
            if page.is_some() || self.refusals() == refusals_before {
                return page;
            }
            if !self.give_way() {
                self.is_missing_memory.store(true, Ordering::Relaxed);
                return None;
            }
        }
    }

    /// Reads an evicted page again, from the sources, a temporary file or a block.
    fn read_evicted(&self, number: u64, closed: &ClosedPage) -> Option<Page> {
        let expected = closed.checksum?;
        let is_expected = |bytes: &PooledBuffer| checksum64(bytes) == expected;
        let bytes = match &closed.recipe {
            Recipe::Sources(pieces) => read_sources(pieces, &self.sources, &self.pool)?,
            Recipe::Archive => {
                if let Some(page) = self.spill.as_ref().and_then(|spill| spill.waiting(number)) {
                    return Some(page);
                }
                match self.read_spilled(number).filter(is_expected) {
                    Some(bytes) => bytes,
                    None => self.read_archive(number)?,
                }
            }
        };
        if !is_expected(&bytes) {
            return None;
        }
        let bytes = Arc::new(bytes);
        self.cache.lock().put(number, bytes.clone());
        Some(bytes)
    }

    fn buffer_for(&self, number: u64) -> Option<PooledBuffer> {
        let index = (number - self.first_closed) as usize;
        let length_bytes = self.start_of(index + 1) - self.start_of(index);
        let mut page = PooledBuffer::full(&self.pool).ok()?;
        page.truncate(length_bytes as usize);
        Some(page)
    }

    /// Reads a page from the temporary file, if there is one, without checking it.
    fn read_spilled(&self, number: u64) -> Option<PooledBuffer> {
        let spill = self.spill.as_ref()?;
        let mut page = self.buffer_for(number)?;
        spill.read(number, &mut page)?;
        Some(page)
    }

    /// Reads a page from a compressed copy or a block.
    fn read_archive(&self, number: u64) -> Option<PooledBuffer> {
        let copy = self.copies.lock().get(number);
        if let Some((copy, offset)) = copy {
            return self.read_copy(&copy, offset, number);
        }
        let mut page = self.buffer_for(number)?;
        match (self.blocks.as_ref()?).read_stored_page(number, &mut page) {
            Some(()) => Some(page),
            None => self.decode_block(number),
        }
    }

    fn read_copy(&self, copy: &CompressedCopy, offset: usize, number: u64) -> Option<PooledBuffer> {
        let mut page = self.buffer_for(number)?;
        (self.workspaces).with(|space| copy.read(&mut space.codec, offset, &mut page))?;
        Some(page)
    }

    /// Decodes the block of a page and keeps a compressed copy of it, because its other pages are
    /// likely to be read too. If a copy does not fit, the other pages go into the cache.
    fn decode_block(&self, page: u64) -> Option<PooledBuffer> {
        let (first, bytes) = self.blocks.as_ref()?.read_block_of(page)?;
        let copy = |bytes: &[u8]| -> Option<PooledBuffer> {
            let mut copy = PooledBuffer::empty(&self.pool).ok()?;
            copy.extend_from_slice(bytes);
            Some(copy)
        };
        let mut wanted = None;
        let is_copied = self.add_copy(first, &bytes);
        for (number, page_bytes) in (first..).zip(bytes.chunks(PAGE_BYTES)) {
            if number == page {
                wanted = copy(page_bytes);
            } else if !is_copied {
                self.cache.lock().put(number, Arc::new(copy(page_bytes)?));
            }
        }
        wanted
    }

    /// Adds a compressed copy of a block, which shares the memory for pages with the cache. Returns
    /// whether it fit.
    fn add_copy(&self, first_page: u64, bytes: &[u8]) -> bool {
        if self.policy.makes_copies() || !self.copies.lock().has_room_for(first_page) {
            return false;
        }
        let compress = |scratch: &mut CodecScratch| CompressedCopy::new(&mut scratch.codec, bytes);
        let Ok(copy) = self.workspaces.with(compress) else {
            return false;
        };
        let mut copies = self.copies.lock();
        let is_retained = copies.add(first_page, bytes.len().div_ceil(PAGE_BYTES) as u64, copy);
        let left_bytes = self.pages_bytes - copies.bytes().min(self.pages_bytes);
        drop(copies);
        self.cache.lock().retain_recent_only(pages(left_bytes));
        is_retained
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
        if offset_in_store < self.earlier_bytes {
            return self.earlier_page(offset_in_store);
        }
        let (number, closed) = self.page_at(offset_in_store)?;
        // Whether the page is still in memory depends on the threads, so the result must not.
        if matches!(closed.recipe, Recipe::Archive) && self.policy == HistoryPolicy::Sources {
            return None;
        }
        let found = self.cache.lock().get(number);
        let bytes: Page = found.or_else(|| self.reread(number, closed))?;
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

    /// A history of every second KiB of the content, whose full pages were encoded.
    fn history(source: Vec<u8>, cached_pages: usize) -> (StoreHistory, Vec<u8>) {
        history_of(Arc::new(MemorySource::new(source)), cached_pages)
    }

    fn history_of(source: Arc<dyn Source>, cached_pages: usize) -> (StoreHistory, Vec<u8>) {
        let content = content();
        let mut history = StoreHistory::new(
            HistoryPolicy::Sources,
            (cached_pages * PAGE_BYTES) as u64,
            1 << 20,
            ReadAgain {
                sources: vec![Some(source)],
                ..ReadAgain::default()
            },
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
            is_incompressible: false,
            copy: None,
        });
        (history, store)
    }

    fn read(history: &StoreHistory, at: usize) -> Option<Vec<u8>> {
        history
            .chunk(at as u64)
            .map(|chunk| (*chunk.bytes).as_ref()[at % PAGE_BYTES..].to_vec())
    }

    #[test]
    fn hides_pages_that_cannot_be_read_again_even_while_they_are_in_memory() {
        /// Can read only its first two pages again.
        struct FirstPages(MemorySource<Vec<u8>>);
        impl Source for FirstPages {
            fn size_bytes(&self) -> std::io::Result<u64> {
                self.0.size_bytes()
            }
            fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
                self.0.read_at(offset, buffer)
            }
            fn can_reread(&self, offset: u64) -> bool {
                offset < 2 * PAGE_BYTES as u64
            }
        }
        let (history, _) = history_of(Arc::new(FirstPages(MemorySource::new(content()))), 100);
        let is_readable = |page: u64| history.chunk(page * PAGE_BYTES as u64).is_some();
        assert!(is_readable(0));
        assert!(!is_readable(1));
    }

    #[test]
    fn reads_evicted_pages_again_from_the_source() {
        let (history, store) = history(content(), 0);
        assert_eq!(history.store_bytes(), store.len() as u64);
        for at in [0, 12_345, PAGE_BYTES, 2 * PAGE_BYTES + 7] {
            let end = store.len().min(at / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES);
            assert_eq!(read(&history, at).as_deref(), Some(&store[at..end]));
        }
    }

    #[test]
    fn rejects_pages_of_a_source_that_changed() {
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
    fn does_not_read_pages_below_the_floor() {
        let (mut history, _) = history(content(), 8);
        assert_eq!(history.evict_below(1), PAGE_BYTES as u64);
        assert_eq!(read(&history, 0), None);
        assert!(read(&history, PAGE_BYTES).is_some());
        history.known_bytes_max = 0;
        assert_eq!(history.evict_below(0), 2 * PAGE_BYTES as u64);
    }
}
