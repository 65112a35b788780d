//! Pages of the store in a temporary file: the history of content that cannot be read again from
//! its source.
//!
//! Decoding a block to read one page of it takes a hundred times as long as reading the page from a
//! file: four kernel trees from a pipe took 384 s with 256 MiB of memory, where reading the sources
//! again took 15 s. The pages of encoded blocks wait in memory and are written only when that is
//! full, so short inputs never touch the disk. The file is a ring with a slot for each of the
//! latest pages.
//!
//! The spill may lose any page, when the file system is full or the page's slot was reused.
//! [`StoreHistory`](super::history::StoreHistory) compares what it reads with the page's checksum,
//! and otherwise decodes the block. So the archive's bytes do not depend on the spill.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_pool::Lock;
use refrain_storage::{ScratchFile, Source};

use crate::store::page::{PAGE_BYTES, Page, pages};

/// The spill ends when the file system has less free space than this, which its other users,
/// including the archive, need more.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// How often, in bytes of growth, the free space is measured again.
const GROWTH_BYTES: u64 = 64 << 20;

/// Where temporary pages may go, and how many.
#[derive(Debug, Clone)]
pub(crate) struct SpillSpace {
    pub directory: PathBuf,
    /// The maximum size of the file.
    pub bytes_max: u64,
    /// The maximum bytes of pages that wait in memory.
    pub waiting_bytes_max: u64,
}

/// Pages of encoded blocks, in memory or in the file.
pub(crate) struct PageSpill {
    space: SpillSpace,
    slots: u64,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    /// Blocks whose pages are not in the file, in page order.
    waiting: VecDeque<WaitingBlock>,
    waiting_bytes: u64,
    /// `None` until pages are written.
    file: Option<Arc<ScratchFile>>,
    /// The file length for which the free space was measured.
    measured_bytes: u64,
    /// The number after the latest written page, and after the latest page whose slot is or was
    /// being overwritten.
    written_end: u64,
    begun_end: u64,
    /// The first page not written because of the failure.
    lost_from: Option<u64>,
    /// Why nothing is written any longer.
    failure: Option<io::Error>,
}

impl State {
    /// Whether the slot of a page that does not wait has this page.
    fn has(&self, number: u64, slots: u64) -> bool {
        let is_lost = self.lost_from.is_some_and(|lost| number >= lost);
        number < self.written_end && number + slots >= self.begun_end && !is_lost
    }
}

struct WaitingBlock {
    first_page: u64,
    pages: Arc<Vec<Page>>,
    is_being_written: bool,
}

impl WaitingBlock {
    fn bytes(&self) -> u64 {
        self.pages.iter().map(|page| page.len() as u64).sum()
    }
}

impl PageSpill {
    pub(crate) fn new(space: SpillSpace) -> PageSpill {
        PageSpill {
            slots: pages(space.bytes_max).max(1) as u64,
            space,
            state: Lock::default(),
        }
    }

    /// Adds the pages of an encoded block; blocks come in any order. Writes others that do not fit
    /// into memory.
    pub(crate) fn add(&self, first_page: u64, pages: Vec<Page>) {
        let block = WaitingBlock {
            first_page,
            pages: Arc::new(pages),
            is_being_written: false,
        };
        {
            let mut state = self.state.lock();
            if state.failure.is_some() {
                return;
            }
            state.waiting_bytes += block.bytes();
            let at = (state.waiting).partition_point(|before| before.first_page < first_page);
            state.waiting.insert(at, block);
        }
        while let Some((first_page, pages)) = self.take_excess() {
            let written = self.write(first_page, &pages);
            self.written(first_page, written);
        }
    }

    /// The oldest block to write, if there are too many. It stays readable in memory until it is in
    /// the file.
    fn take_excess(&self) -> Option<(u64, Arc<Vec<Page>>)> {
        let mut state = self.state.lock();
        if state.waiting_bytes <= self.space.waiting_bytes_max {
            return None;
        }
        let block = (state.waiting.iter_mut()).find(|block| !block.is_being_written)?;
        block.is_being_written = true;
        let (first_page, pages) = (block.first_page, block.pages.clone());
        let end = first_page + pages.len() as u64;
        // What is being written no longer counts, or each thread would write all of the rest.
        let bytes = block.bytes();
        state.waiting_bytes -= bytes;
        state.begun_end = state.begun_end.max(end);
        Some((first_page, pages))
    }

    fn write(&self, first_page: u64, pages: &[Page]) -> io::Result<()> {
        let last_slot = (first_page + pages.len() as u64).min(self.slots);
        let file = self.file_of(last_slot * PAGE_BYTES as u64)?;
        for (number, page) in (first_page..).zip(pages) {
            file.write_at(number % self.slots * PAGE_BYTES as u64, page)?;
        }
        Ok(())
    }

    /// The file, with room for this many bytes.
    fn file_of(&self, length_bytes: u64) -> io::Result<Arc<ScratchFile>> {
        let mut state = self.state.lock();
        let file = match &state.file {
            Some(file) => file.clone(),
            None => Arc::new(ScratchFile::create(&self.space.directory)?),
        };
        state.file = Some(file.clone());
        if length_bytes > state.measured_bytes {
            let free_bytes = file.free_bytes()?;
            if free_bytes < FREE_BYTES_MIN {
                let text = format!(
                    "{} bytes are free in {}",
                    free_bytes,
                    self.space.directory.display()
                );
                return Err(io::Error::new(io::ErrorKind::StorageFull, text));
            }
            state.measured_bytes = length_bytes + GROWTH_BYTES;
        }
        Ok(file)
    }

    /// The block is in the file, or writing has ended.
    fn written(&self, first_page: u64, result: io::Result<()>) {
        let mut state = self.state.lock();
        match result {
            Ok(()) => {
                if let Ok(at) =
                    (state.waiting).binary_search_by_key(&first_page, |block| block.first_page)
                    && let Some(block) = state.waiting.remove(at)
                {
                    let end = block.first_page + block.pages.len() as u64;
                    state.written_end = state.written_end.max(end);
                }
            }
            Err(error) => {
                state.failure.get_or_insert(error);
                let oldest = state.waiting.front().map(|block| block.first_page);
                let lost = oldest.unwrap_or(first_page).min(first_page);
                state.lost_from = Some(state.lost_from.unwrap_or(lost).min(lost));
                // They would never be written. What the file has stays.
                state.waiting.clear();
                state.waiting_bytes = 0;
            }
        }
    }

    pub(crate) fn evict_below(&self, page: u64) {
        let mut state = self.state.lock();
        while let Some(first) = state.waiting.front()
            && first.first_page + first.pages.len() as u64 <= page
            && !first.is_being_written
        {
            let bytes = first.bytes();
            state.waiting_bytes -= bytes;
            state.waiting.pop_front();
        }
    }

    pub(crate) fn waiting(&self, number: u64) -> Option<Page> {
        let state = self.state.lock();
        let after = (state.waiting).partition_point(|block| block.first_page <= number);
        let block = state.waiting.get(after.checked_sub(1)?)?;
        let page = block.pages.get((number - block.first_page) as usize);
        page.cloned()
    }

    /// Fills `page` from the file, if its slot has this page and no later one. The caller compares
    /// the page with its checksum, like everything that a disk returns.
    pub(crate) fn read(&self, number: u64, page: &mut [u8]) -> Option<()> {
        let file = {
            let state = self.state.lock();
            (state.has(number, self.slots)).then(|| state.file.clone())??
        };
        let offset = number % self.slots * PAGE_BYTES as u64;
        let count = file.read_at(offset, page).ok()?;
        // A later page may have overwritten the slot during the read.
        let is_still_there = self.state.lock().has(number, self.slots);
        (is_still_there && count == page.len()).then_some(())
    }

    /// Why pages could not be written, if that happened.
    pub(crate) fn failure(&self) -> Option<String> {
        (self.state.lock().failure.as_ref()).map(ToString::to_string)
    }
}

#[cfg(test)]
mod tests {
    use refrain_pool::{BufferPool, PooledBuffer};

    use super::*;

    fn page(pool: &Arc<BufferPool>, number: u64) -> Page {
        let mut page = PooledBuffer::empty(pool).expect("memory");
        let bytes = (0..PAGE_BYTES as u64 / 8).flat_map(|at| (at * number).to_le_bytes());
        page.extend_from_slice(&bytes.collect::<Vec<_>>());
        Arc::new(page)
    }

    fn spill(slots: u64, waiting: u64, directory: &std::path::Path) -> PageSpill {
        PageSpill::new(SpillSpace {
            directory: directory.to_owned(),
            bytes_max: slots * PAGE_BYTES as u64,
            waiting_bytes_max: waiting * PAGE_BYTES as u64,
        })
    }

    /// The page from wherever it is.
    fn get(spill: &PageSpill, number: u64) -> Option<Vec<u8>> {
        if let Some(page) = spill.waiting(number) {
            return Some(page.to_vec());
        }
        let mut page = vec![0; PAGE_BYTES];
        spill.read(number, &mut page).map(|()| page)
    }

    #[test]
    fn finds_the_latest_pages_and_no_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let pool = Arc::new(BufferPool::new(PAGE_BYTES, 8));
        let spill = spill(20, 8, directory.path());
        for first_page in (0..60).step_by(4) {
            let pages = (first_page..first_page + 4).map(|number| page(&pool, number));
            spill.add(first_page, pages.collect());
        }
        // Eight pages wait, twenty are in the file.
        for number in 0..70 {
            let expected = (32..60)
                .contains(&number)
                .then(|| page(&pool, number).to_vec());
            assert!(get(&spill, number) == expected, "{number}");
            assert_eq!(
                spill.waiting(number).is_some(),
                (52..60).contains(&number),
                "{number}"
            );
        }
        spill.evict_below(56);
        assert!(spill.waiting(55).is_none() && spill.waiting(56).is_some());
        assert_eq!(spill.failure(), None);
    }

    #[test]
    fn blocks_come_in_any_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let pool = Arc::new(BufferPool::new(PAGE_BYTES, 8));
        let spill = spill(100, 2, directory.path());
        for number in [3, 0, 4, 1, 2] {
            spill.add(number, vec![page(&pool, number)]);
        }
        assert!((0..5).all(|number| get(&spill, number).is_some()));
    }

    #[test]
    fn nothing_is_written_while_memory_suffices() {
        let missing = std::path::Path::new("/a directory that does not exist");
        let pool = Arc::new(BufferPool::new(PAGE_BYTES, 8));
        let spill = spill(100, 3, missing);
        (0..3).for_each(|number| spill.add(number, vec![page(&pool, number)]));
        assert!((0..3).all(|number| get(&spill, number).is_some()));
        assert_eq!(spill.failure(), None);
        // Without a file, the pages are lost; later ones take no memory.
        (3..9).for_each(|number| spill.add(number, vec![page(&pool, number)]));
        let failure = spill.failure().expect("a directory is missing");
        assert!(failure.contains("does not exist"), "{failure}");
        assert!((0..9).all(|number| get(&spill, number).is_none()));
        assert_eq!(spill.state.lock().waiting.len(), 0);
    }

    #[test]
    fn a_slot_that_is_being_overwritten_or_was_lost_is_not_read() {
        let mut state = State {
            written_end: 30,
            begun_end: 30,
            ..State::default()
        };
        let readable = |state: &State| (0..40).filter(|&page| state.has(page, 20)).collect();
        let pages: Vec<u64> = readable(&state);
        assert_eq!(pages, (10..30).collect::<Vec<_>>());
        state.begun_end = 34;
        state.lost_from = Some(28);
        let pages: Vec<u64> = readable(&state);
        assert_eq!(pages, (14..28).collect::<Vec<_>>());
    }

    #[test]
    fn threads_may_add_and_read_at_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let pool = Arc::new(BufferPool::new(PAGE_BYTES, 8));
        let spill = spill(1000, 4, directory.path());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (spill, pool) = (&spill, &pool);
                scope.spawn(move || {
                    for number in (thread..200).step_by(4) {
                        spill.add(number, vec![page(pool, number)]);
                        let found = get(spill, number).expect("was added");
                        assert!(found == page(pool, number).to_vec(), "{number}");
                    }
                });
            }
        });
        assert!((0..200).all(|number| get(&spill, number).is_some()));
        assert!(spill.state.lock().waiting.len() <= 4);
    }
}
