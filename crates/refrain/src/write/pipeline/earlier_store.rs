//! The store of earlier generations, as the match stage reads it: page by page, from a reader that
//! decodes whole blocks.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use refrain_longmatch::HistoryChunk;
use refrain_pool::{BufferPool, Lock, PooledBuffer};
use refrain_storage::Source;

use crate::error::Result;
use crate::store::page::{PAGE_BYTES, Page, pages};

/// The store of earlier generations, with the pages that are used again and again in memory:
/// passages that occur everywhere are in blocks that nothing else needs.
pub(crate) struct EarlierStore {
    source: Arc<dyn Source>,
    length_bytes: u64,
    kept: Lock<SecondChance>,
}

impl EarlierStore {
    /// # Errors
    /// `Io`.
    pub(crate) fn new(source: Arc<dyn Source>, cache_bytes: u64) -> Result<EarlierStore> {
        Ok(EarlierStore {
            length_bytes: source.size_bytes()?,
            source,
            kept: Lock::new(SecondChance::new(pages(cache_bytes))),
        })
    }

    pub(crate) fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// The page with this byte, which is within the store. `None` if it cannot be read because it
    /// is damaged: then nothing refers to it.
    ///
    /// # Errors
    /// The system refuses memory.
    pub(crate) fn page(
        &self,
        offset_in_store: u64,
        pool: &Arc<BufferPool>,
    ) -> Result<Option<HistoryChunk>> {
        let start = offset_in_store - offset_in_store % PAGE_BYTES as u64;
        let chunk = |bytes: Page| HistoryChunk {
            offset_in_store: start,
            bytes,
        };
        let number = start / PAGE_BYTES as u64;
        if let Some(page) = self.kept.lock().get(number) {
            return Ok(Some(chunk(page)));
        }
        let mut page = PooledBuffer::full(pool)?;
        page.truncate((self.length_bytes - start).min(PAGE_BYTES as u64) as usize);
        if self.source.read_at(start, &mut page).ok() != Some(page.len()) {
            return Ok(None);
        }
        let page: Page = Arc::new(page);
        self.kept.lock().add(number, page.clone());
        Ok(Some(chunk(page)))
    }
}

/// Pages in memory; the oldest one that was not used since it was last passed over makes room
/// (Corbato, A paging experiment with the Multics system, 1968).
struct SecondChance {
    pages: HashMap<u64, (Page, bool)>,
    order: VecDeque<u64>,
    pages_max: usize,
}

impl SecondChance {
    fn new(pages_max: usize) -> SecondChance {
        SecondChance {
            pages: HashMap::new(),
            order: VecDeque::new(),
            pages_max,
        }
    }

    fn get(&mut self, number: u64) -> Option<Page> {
        let (page, is_used) = self.pages.get_mut(&number)?;
        *is_used = true;
        Some(page.clone())
    }

    fn add(&mut self, number: u64, page: Page) {
        if self.pages_max == 0 || self.pages.insert(number, (page, false)).is_some() {
            return;
        }
        self.order.push_back(number);
        while self.pages.len() > self.pages_max
            && let Some(oldest) = self.order.pop_front()
        {
            match self.pages.get_mut(&oldest) {
                Some((_, is_used)) if *is_used => {
                    *is_used = false;
                    self.order.push_back(oldest);
                }
                _ => {
                    self.pages.remove(&oldest);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use refrain_storage::MemorySource;

    use super::*;

    #[test]
    fn pages_are_read_once_while_they_are_used() {
        let bytes: Vec<u8> = (0..5 * PAGE_BYTES as u32 / 2)
            .map(|at| (at >> 8) as u8)
            .collect();
        let source: Arc<dyn Source> = Arc::new(MemorySource::new(bytes.clone()));
        let pool = Arc::new(BufferPool::new(PAGE_BYTES, 8));
        let store = EarlierStore::new(source, 2 * PAGE_BYTES as u64).unwrap();
        let read = |at: usize| {
            let chunk = store.page(at as u64, &pool).ok().flatten().unwrap();
            let (start, page) = (chunk.offset_in_store as usize, chunk.bytes);
            assert_eq!(
                (*page).as_ref(),
                &bytes[start..bytes.len().min(start + PAGE_BYTES)]
            );
        };
        let is_kept = |page: u64| store.kept.lock().pages.contains_key(&page);
        for at in [0, 1, PAGE_BYTES, 0, bytes.len() - 1] {
            read(at);
        }
        // The first page was used again, the second was not.
        assert!(is_kept(0) && !is_kept(1) && is_kept(2));
    }
}
