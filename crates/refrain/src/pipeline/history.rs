//! The store while it is written: its last pages in memory, older ones read again.
//!
//! The match stage verifies every repeat byte by byte, so it must be able to read any byte of the store that it may
//! refer to, in bounded memory and without temporary files. The store is kept in *pages*. The newest are in memory; a page
//! that was dropped comes back from where its bytes still are: the source files, read again at the places the page
//! was made of, or the archive's own block, opened again. Both are checked against the page's checksum: a source that
//! changed while it was read must not lead to references to bytes that the store does not hold.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use refrain_longmatch::{Chunk, History};
use refrain_protect::checksum64;
use refrain_runtime::{BufferPool, Lock, PooledBuffer};
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};

/// Bytes of the store in a page. Blocks are whole pages; only the last page of a block may be shorter.
///
/// Small, because repeats of short passages are scattered over all that was ever stored, and each may cost a page to be
/// read again: the match stage of two kernel trees took 7.7 s with pages of 1 MiB and 2.6 s with these (caches of 96 and
/// 128 MiB).
pub(crate) const PAGE_BYTES: usize = 1 << 16;

/// The bytes of a page.
pub(crate) type Page = Arc<PooledBuffer>;

/// A piece of a page and where the same bytes are in a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub member: u32,
    pub offset_in_member: u64,
    pub length_bytes: u32,
}

/// Where a page's bytes can be had once more.
pub(crate) enum Recipe {
    /// Its pieces in the sources, packed by [`pack`].
    Sources(Box<[u8]>),
    /// The archive's blocks.
    Archive,
}

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

struct Cache {
    /// Page number → its bytes and when it was last used.
    pages: HashMap<u64, (Page, u64)>,
    /// Pages that may be dropped, by time of last use. A page that is still being encoded is not here.
    by_use: BTreeMap<u64, u64>,
    clock: u64,
}

/// The store as the match stage sees it.
pub(crate) struct StoreHistory {
    closed: Vec<ClosedPage>,
    /// Pages below this are forgotten: their recipes took too much memory, or they are out of the decoder's reach.
    first_kept: usize,
    recipe_bytes: usize,
    /// Where the page that is being filled begins.
    open_start: u64,
    /// The page that is being filled.
    open: Page,
    open_pieces: Vec<Piece>,
    cache: Lock<Cache>,
    cache_pages_max: usize,
    recipe_bytes_max: usize,
    sources: Vec<Option<Arc<dyn Source>>>,
    archive: Option<Arc<dyn BlockReader>>,
    /// Buffers of pages: memory that was touched before is cheap.
    pool: Arc<BufferPool>,
}

/// A page that was just filled.
pub(crate) struct FilledPage {
    pub bytes: Page,
}

impl StoreHistory {
    pub(crate) fn new(
        cache_bytes: u64,
        recipe_bytes_max: usize,
        sources: Vec<Option<Arc<dyn Source>>>,
        archive: Option<Arc<dyn BlockReader>>,
        pool: Arc<BufferPool>,
    ) -> Result<StoreHistory> {
        Ok(StoreHistory {
            closed: Vec::new(),
            first_kept: 0,
            recipe_bytes: 0,
            open_start: 0,
            open: Arc::new(PooledBuffer::empty(&pool)?),
            open_pieces: Vec::new(),
            cache: Lock::new(Cache {
                pages: HashMap::new(),
                by_use: BTreeMap::new(),
                clock: 0,
            }),
            cache_pages_max: (cache_bytes / PAGE_BYTES as u64) as usize,
            recipe_bytes_max,
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
        let pieces = std::mem::take(&mut self.open_pieces);
        let rereadable = |piece: &Piece| {
            self.sources
                .get(piece.member as usize)
                .is_some_and(Option::is_some)
        };
        let recipe = if pieces.iter().all(rereadable) {
            Recipe::Sources(pack(&pieces))
        } else {
            Recipe::Archive
        };
        if let Recipe::Sources(packed) = &recipe {
            self.recipe_bytes += packed.len();
        }
        let number = self.closed.len() as u64;
        self.closed.push(ClosedPage {
            start: self.open_start,
            recipe,
            checksum: None,
        });
        self.open_start += bytes.len() as u64;
        self.cache.lock().pages.insert(number, (bytes.clone(), 0));
        Ok(FilledPage { bytes })
    }

    /// Forgets old pages while their recipes take more memory than allowed, and all below `floor`. Returns the store
    /// offset from which on everything can be read.
    pub(crate) fn forget(&mut self, floor: u64) -> u64 {
        let floor_page = self.closed.partition_point(|page| page.start < floor);
        while self.first_kept < self.closed.len()
            && (self.recipe_bytes > self.recipe_bytes_max || self.first_kept < floor_page)
        {
            let page = &mut self.closed[self.first_kept];
            if let Recipe::Sources(packed) = std::mem::replace(&mut page.recipe, Recipe::Archive) {
                self.recipe_bytes -= packed.len();
            }
            self.first_kept += 1;
        }
        let kept_from = self
            .closed
            .get(self.first_kept)
            .map_or(self.open_start, |page| page.start);
        if let Some(archive) = &self.archive {
            archive.forget_below(kept_from);
        }
        kept_from
    }

    /// The block with these pages was encoded: they may leave memory.
    pub(crate) fn encoded(&mut self, first_page: u64, checksums: &[u64]) {
        let mut cache = self.cache.lock();
        for (page, &checksum) in (first_page..).zip(checksums) {
            if let Some(closed) = self.closed.get_mut(page as usize) {
                closed.checksum = Some(checksum);
            }
            cache.release(page);
        }
        cache.shrink(self.cache_pages_max);
    }

    /// Reads a page that is no longer in memory, from the sources or from the archive.
    fn fetch(&self, page: u64) -> Option<Page> {
        let closed = self.closed.get(page as usize)?;
        let expected = closed.checksum?;
        let bytes = match &closed.recipe {
            Recipe::Sources(packed) => self.read_sources(packed)?,
            Recipe::Archive => return self.fetch_block(page),
        };
        if checksum64(&bytes) != expected {
            return None;
        }
        let bytes = Arc::new(bytes);
        self.cache
            .lock()
            .put(page, bytes.clone(), self.cache_pages_max);
        Some(bytes)
    }

    /// Opens the page's block; its other pages are likely to be asked for next.
    fn fetch_block(&self, page: u64) -> Option<Page> {
        let (first, bytes) = self.archive.as_ref()?.read_block_of(page)?;
        let mut wanted = None;
        for (number, page_bytes) in (first..).zip(bytes.chunks(PAGE_BYTES)) {
            let mut copy = PooledBuffer::empty(&self.pool).ok()?;
            copy.extend_from_slice(page_bytes);
            let page_bytes = Arc::new(copy);
            if number == page {
                wanted = Some(page_bytes.clone());
            }
            self.cache
                .lock()
                .put(number, page_bytes, self.cache_pages_max);
        }
        wanted
    }

    fn read_sources(&self, packed: &[u8]) -> Option<PooledBuffer> {
        let pieces = unpack(packed);
        let mut page = PooledBuffer::empty(&self.pool).ok()?;
        let mut scratch = Vec::new();
        let mut at = 0;
        while at < pieces.len() {
            let run = neighbours(&pieces[at..]);
            self.read_run(&pieces[at..at + run], &mut scratch, &mut page)?;
            at += run;
        }
        Some(page)
    }

    /// Reads pieces that lie close together with one call.
    fn read_run(&self, pieces: &[Piece], scratch: &mut Vec<u8>, page: &mut Vec<u8>) -> Option<()> {
        let (first, last) = (pieces.first()?, pieces.last()?);
        let source = self.sources.get(first.member as usize)?.as_ref()?;
        if let [only] = pieces {
            let start = page.len();
            page.resize(start + only.length_bytes as usize, 0);
            let count = source
                .read_at(only.offset_in_member, &mut page[start..])
                .ok()?;
            return (count == only.length_bytes as usize).then_some(());
        }
        let span = last.offset_in_member + u64::from(last.length_bytes) - first.offset_in_member;
        scratch.resize(span as usize, 0);
        let count = source.read_at(first.offset_in_member, scratch).ok()?;
        for piece in pieces {
            let start = (piece.offset_in_member - first.offset_in_member) as usize;
            page.extend_from_slice(
                scratch[..count].get(start..start + piece.length_bytes as usize)?,
            );
        }
        Some(())
    }
}

/// How many pieces from the first on are worth one read: reading a gap of a few KiB costs less than another call.
fn neighbours(pieces: &[Piece]) -> usize {
    const GAP_BYTES_MAX: u64 = 16 << 10;
    let close = pieces.windows(2).take_while(|pair| {
        let end = pair[0].offset_in_member + u64::from(pair[0].length_bytes);
        pair[0].member == pair[1].member
            && pair[1].offset_in_member >= end
            && pair[1].offset_in_member - end <= GAP_BYTES_MAX
    });
    1 + close.count()
}

impl History for StoreHistory {
    fn chunk(&self, offset_in_store: u64) -> Option<Chunk> {
        if offset_in_store >= self.open_start {
            return Some(Chunk {
                offset_in_store: self.open_start,
                bytes: self.open.clone(),
            });
        }
        let page = self
            .closed
            .partition_point(|page| page.start <= offset_in_store)
            .checked_sub(1)?;
        if page < self.first_kept {
            return None;
        }
        let found = self.cache.lock().get(page as u64);
        let bytes: Page = found.or_else(|| self.fetch(page as u64))?;
        Some(Chunk {
            offset_in_store: self.closed[page].start,
            bytes,
        })
    }
}

impl Cache {
    fn get(&mut self, page: u64) -> Option<Page> {
        let (bytes, used) = self.pages.get_mut(&page)?;
        if *used != 0 {
            self.by_use.remove(used);
            self.clock += 1;
            *used = self.clock;
            self.by_use.insert(self.clock, page);
        }
        Some(bytes.clone())
    }

    fn put(&mut self, page: u64, bytes: Page, pages_max: usize) {
        self.clock += 1;
        if let Some((_, used)) = self.pages.insert(page, (bytes, self.clock)) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.clock, page);
        self.shrink(pages_max);
    }

    /// From now on the page may be dropped.
    fn release(&mut self, page: u64) {
        self.clock += 1;
        let now = self.clock;
        if let Some((_, used)) = self.pages.get_mut(&page) {
            *used = now;
            self.by_use.insert(now, page);
        }
    }

    fn shrink(&mut self, pages_max: usize) {
        while self.pages.len() > pages_max {
            let Some((_, page)) = self.by_use.pop_first() else {
                return;
            };
            self.pages.remove(&page);
        }
    }
}

/// Pieces as variable-length numbers, 4 to 6 bytes each: a terabyte of them must not fill the memory.
fn pack(pieces: &[Piece]) -> Box<[u8]> {
    let mut packed = Vec::with_capacity(pieces.len() * 6);
    let (mut member, mut at) = (0u32, 0u64);
    for piece in pieces {
        put_number(&mut packed, u64::from(piece.member.wrapping_sub(member)));
        put_number(&mut packed, piece.offset_in_member.wrapping_sub(at));
        put_number(&mut packed, u64::from(piece.length_bytes));
        member = piece.member;
        at = piece.offset_in_member + u64::from(piece.length_bytes);
    }
    packed.into_boxed_slice()
}

fn unpack(packed: &[u8]) -> Vec<Piece> {
    let mut numbers = Numbers(packed.iter());
    let (mut member, mut at) = (0u32, 0u64);
    let next = || {
        member = member.wrapping_add(numbers.next()? as u32);
        let offset_in_member = at.wrapping_add(numbers.next()?);
        let length_bytes = numbers.next()? as u32;
        at = offset_in_member + u64::from(length_bytes);
        Some(Piece {
            member,
            offset_in_member,
            length_bytes,
        })
    };
    std::iter::from_fn(next).collect()
}

fn put_number(packed: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        packed.push(number as u8 | 0x80);
        number >>= 7;
    }
    packed.push(number as u8);
}

struct Numbers<'a>(std::slice::Iter<'a, u8>);

impl Numbers<'_> {
    fn next(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.0.next()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_storage::MemorySource;

    #[test]
    fn pieces_pack_and_unpack() {
        let piece = |member, offset_in_member, length_bytes| Piece {
            member,
            offset_in_member,
            length_bytes,
        };
        let pieces = [
            piece(0, 5, 100),
            piece(0, 300, 1),
            piece(7, 0, 1 << 20),
            piece(2, u64::MAX >> 8, 9),
        ];
        assert_eq!(unpack(&pack(&pieces)), pieces);
        assert_eq!(unpack(&pack(&[])), []);
    }

    fn content() -> Vec<u8> {
        (0..5 * PAGE_BYTES as u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect()
    }

    /// A history of every second KiB of the content; pages 0..n are encoded.
    fn history(source: Vec<u8>, cached_pages: usize) -> (StoreHistory, Vec<u8>) {
        let content = content();
        let source: Arc<dyn Source> = Arc::new(MemorySource::new(source));
        let mut history = StoreHistory::new(
            (cached_pages * PAGE_BYTES) as u64,
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
        let sums: Vec<_> = filled.iter().map(|page| checksum64(&page.bytes)).collect();
        history.encoded(0, &sums);
        (history, store)
    }

    fn read(history: &StoreHistory, at: usize) -> Option<Vec<u8>> {
        history
            .chunk(at as u64)
            .map(|chunk| (*chunk.bytes).as_ref()[at % PAGE_BYTES..].to_vec())
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
        history.recipe_bytes_max = 0;
        assert_eq!(history.forget(0), 2 * PAGE_BYTES as u64);
    }
}
