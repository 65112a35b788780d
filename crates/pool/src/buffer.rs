//! Large memory: tables whose pages are populated on first use, and byte buffers that are reused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memmap2::MmapMut;

use crate::error::Error;
use crate::lock::Lock;
use crate::prefault::prefault;
use crate::refusable::try_reserve_exact;

/// The pages that a table asks the system for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages, where the system has some.
    Huge,
    /// Only ordinary pages.
    Ordinary,
}

static ASKS_FOR_HUGE_PAGES: AtomicBool = AtomicBool::new(true);

/// Sets what [`HugeBuffer::zeroed`] asks for in the whole process. The default is huge pages.
/// Contents never depend on it.
pub fn set_default_pages(pages: Pages) {
    ASKS_FOR_HUGE_PAGES.store(pages == Pages::Huge, Ordering::Relaxed);
}

/// What [`HugeBuffer::zeroed`] asks for.
pub fn default_pages() -> Pages {
    if ASKS_FOR_HUGE_PAGES.load(Ordering::Relaxed) {
        Pages::Huge
    } else {
        Pages::Ordinary
    }
}

/// A zeroed table of 64-bit words, mapped from the operating system.
///
/// The system populates a page when it is first accessed, so unused parts of a table cost little.
/// On Linux huge pages are requested: otherwise most random accesses to a table of gigabytes miss
/// the TLB. The system may ignore the request; nothing depends on it.
///
/// A refusal is an error instead of an abort, if the operating system reports it. With memory
/// overcommit (the Linux default) the system may grant a table and kill the process when it
/// accesses more memory than there is. Memory budgets prevent that, not this type.
#[derive(Debug)]
pub struct HugeBuffer {
    // At least one word: a mapping of no bytes is an error on most systems.
    map: MmapMut,
    length_words: usize,
}

impl HugeBuffer {
    /// Maps `length_words` words of zero, on the [`default_pages`].
    ///
    /// # Errors
    /// [`Error::MemoryUnavailable`] if the system refuses.
    pub fn zeroed(length_words: usize) -> Result<Self, Error> {
        HugeBuffer::zeroed_on(default_pages(), length_words)
    }

    /// Maps `length_words` words of zero, on pages of this kind.
    ///
    /// # Errors
    /// As [`HugeBuffer::zeroed`].
    pub fn zeroed_on(pages: Pages, length_words: usize) -> Result<Self, Error> {
        let Some(length_bytes) = length_words.max(1).checked_mul(size_of::<u64>()) else {
            return Err(unavailable(u64::MAX, &"more than the address space"));
        };
        let map = MmapMut::map_anon(length_bytes)
            .map_err(|error| unavailable(length_bytes as u64, &error))?;
        advise(&map, pages);
        // Mappings begin at a page, so this succeeds. Checked once so that the views cannot panic.
        if let Err(error) = bytemuck::try_cast_slice::<u8, u64>(&map) {
            return Err(unavailable(length_bytes as u64, &error));
        }
        Ok(HugeBuffer { map, length_words })
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &bytemuck::cast_slice(&self.map)[..self.length_words]
    }

    /// The words, for writing.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut bytemuck::cast_slice_mut(&mut self.map)[..self.length_words]
    }

    /// The number of words.
    pub fn length_words(&self) -> usize {
        self.length_words
    }
}

fn unavailable(length_bytes: u64, reason: &dyn std::fmt::Display) -> Error {
    Error::MemoryUnavailable {
        length_bytes,
        reason: reason.to_string(),
    }
}

#[cfg(target_os = "linux")]
fn advise(map: &MmapMut, pages: Pages) {
    // Kernels without transparent huge pages return EINVAL.
    let _ = map.advise(match pages {
        Pages::Huge => memmap2::Advice::HugePage,
        Pages::Ordinary => memmap2::Advice::NoHugePage,
    });
}

#[cfg(not(target_os = "linux"))]
fn advise(_map: &MmapMut, _pages: Pages) {}

/// Caches byte buffers of one capacity for reuse.
///
/// The first access to fresh memory is expensive, above all on virtual machines (a page fault in
/// the guest and often another one in the host). The pages of a reused buffer are present.
///
/// The pool limits the number of idle buffers, not of buffers in use: the memory budget does that.
#[derive(Debug)]
pub struct BufferPool {
    capacity_bytes: usize,
    idle_max: usize,
    idle: Lock<Vec<Vec<u8>>>,
    refusals: AtomicU64,
}

impl BufferPool {
    /// A pool of buffers of `capacity_bytes` that caches at most `idle_max` of them.
    pub fn new(capacity_bytes: usize, idle_max: usize) -> Self {
        BufferPool {
            capacity_bytes,
            idle_max,
            idle: Lock::new(Vec::new()),
            refusals: AtomicU64::new(0),
        }
    }

    /// The capacity of every buffer.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    /// The number of cached buffers.
    pub fn idle(&self) -> usize {
        self.idle.lock().len()
    }

    /// An empty buffer with room for [`BufferPool::capacity_bytes`].
    ///
    /// # Errors
    /// [`Error::MemoryUnavailable`] if a new buffer is needed and the allocator refuses it.
    pub fn get(&self) -> Result<Vec<u8>, Error> {
        let mut buffer = self.take()?;
        buffer.clear();
        Ok(buffer)
    }

    /// As [`get`](BufferPool::get), for a caller that cannot wait for memory: with the program's
    /// reserve, if it has one. A refusal without it counts.
    ///
    /// # Errors
    /// As [`get`](BufferPool::get).
    pub fn get_from_reserve(&self) -> Result<Vec<u8>, Error> {
        self.get().or_else(|error| {
            let mut buffer = Vec::new();
            let reserved = buffer.try_reserve_exact(self.capacity_bytes);
            reserved.map_err(|_| error).map(|()| buffer)
        })
    }

    /// A buffer of exactly [`BufferPool::capacity_bytes`] bytes of *unspecified content* (zeros or
    /// the content of an earlier use), for callers that overwrite it: saves clearing megabytes.
    ///
    /// # Errors
    /// [`Error::MemoryUnavailable`] if a new buffer is needed and the allocator refuses it.
    pub fn get_full(&self) -> Result<Vec<u8>, Error> {
        let mut buffer = self.take()?;
        buffer.resize(self.capacity_bytes, 0);
        Ok(buffer)
    }

    /// Returns a buffer to the pool. Frees it if it is too small, too large by more than half (no
    /// budget counts its memory), or if the pool is full.
    pub fn put(&self, buffer: Vec<u8>) {
        let largest = self.capacity_bytes.saturating_add(self.capacity_bytes / 2);
        if buffer.capacity() < self.capacity_bytes || buffer.capacity() > largest {
            return;
        }
        let mut idle = self.idle.lock();
        if idle.len() < self.idle_max {
            idle.push(buffer);
        }
    }

    /// How often the allocator refused a buffer.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Frees the cached buffers, for when the system refuses memory.
    pub fn release(&self) {
        // Freed outside the lock.
        let idle = std::mem::take(&mut *self.idle.lock());
        drop(idle);
    }

    fn take(&self) -> Result<Vec<u8>, Error> {
        // Last in, first out: its content is most likely in a processor cache.
        if let Some(buffer) = self.idle.lock().pop() {
            return Ok(buffer);
        }
        let mut buffer = Vec::new();
        if let Err(error) = try_reserve_exact(&mut buffer, self.capacity_bytes) {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return Err(unavailable(self.capacity_bytes as u64, &error));
        }
        prefault(&mut buffer);
        Ok(buffer)
    }
}

/// A buffer that returns to its pool when it is dropped.
#[derive(Debug)]
pub struct PooledBuffer {
    bytes: Vec<u8>,
    pool: Arc<BufferPool>,
}

impl PooledBuffer {
    /// Makes `bytes`, from the pool or elsewhere, return to `pool` if its capacity fits.
    pub fn new(pool: &Arc<BufferPool>, bytes: Vec<u8>) -> Self {
        PooledBuffer {
            bytes,
            pool: pool.clone(),
        }
    }

    /// An empty buffer of the pool's capacity.
    ///
    /// # Errors
    /// As [`BufferPool::get`].
    pub fn empty(pool: &Arc<BufferPool>) -> Result<Self, Error> {
        Ok(PooledBuffer::new(pool, pool.get()?))
    }

    /// A buffer of the pool's capacity, of unspecified content.
    ///
    /// # Errors
    /// As [`BufferPool::get_full`].
    pub fn full(pool: &Arc<BufferPool>) -> Result<Self, Error> {
        Ok(PooledBuffer::new(pool, pool.get_full()?))
    }
}

impl std::ops::Deref for PooledBuffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl std::ops::DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_returns_to_its_pool() {
        let pool = Arc::new(BufferPool::new(100, 1));
        let mut buffer = PooledBuffer::empty(&pool).unwrap();
        buffer.extend_from_slice(b"abc");
        assert_eq!(pool.idle(), 0);
        drop(buffer);
        assert_eq!(pool.idle(), 1);
        assert!(PooledBuffer::empty(&pool).unwrap().is_empty());
    }

    #[test]
    fn a_huge_buffer_is_zeroed_and_writable() {
        let mut table = HugeBuffer::zeroed(3 << 18).unwrap();
        assert_eq!(table.length_words(), 3 << 18);
        assert_eq!(table.words().len(), 3 << 18);
        assert!(table.words().iter().all(|word| *word == 0));
        table.words_mut()[(3 << 18) - 1] = u64::MAX;
        assert_eq!(table.words()[(3 << 18) - 1], u64::MAX);
    }

    #[test]
    fn tables_on_both_kinds_of_pages_are_zeroed_and_writable() {
        for pages in [Pages::Huge, Pages::Ordinary] {
            let mut table = HugeBuffer::zeroed_on(pages, 1 << 19).unwrap();
            assert!(table.words().iter().all(|word| *word == 0));
            table.words_mut()[5] = 9;
            assert_eq!(table.words()[5], 9);
        }
    }

    #[test]
    fn a_huge_buffer_may_be_empty() {
        assert!(HugeBuffer::zeroed(0).unwrap().words().is_empty());
    }

    #[test]
    fn refused_memory_is_an_error() {
        for length_words in [usize::MAX, usize::MAX / 8, usize::MAX / 16] {
            let error = HugeBuffer::zeroed(length_words).unwrap_err();
            assert!(error.to_string().contains("cannot allocate"), "{error}");
        }
        let pool = BufferPool::new(usize::MAX, 1);
        assert!(pool.get().is_err());
        assert!(pool.get_from_reserve().is_err());
        assert_eq!(pool.refusals(), 2);
    }

    #[test]
    fn unused_pages_take_no_memory() {
        // Larger than the memory of many machines; only two pages are accessed.
        if let Ok(mut table) = HugeBuffer::zeroed(1 << 30) {
            table.words_mut()[0] = 1;
            table.words_mut()[(1 << 30) - 1] = 2;
            assert_eq!(table.words()[(1 << 30) - 1] + table.words()[0], 3);
        }
    }

    #[test]
    fn a_pool_reuses_memory() {
        let pool = BufferPool::new(4096, 2);
        let mut buffer = pool.get().unwrap();
        assert!(buffer.is_empty() && buffer.capacity() >= 4096);
        buffer.extend_from_slice(&[7; 100]);
        let address = buffer.as_ptr();
        pool.put(buffer);
        assert_eq!(pool.idle(), 1);
        let again = pool.get().unwrap();
        assert_eq!(again.as_ptr(), address);
        assert!(again.is_empty());
        assert_eq!(pool.idle(), 0);
    }

    #[test]
    fn released_buffers_are_not_cached() {
        let pool = BufferPool::new(4096, 2);
        pool.put(pool.get().unwrap());
        pool.release();
        assert_eq!(pool.idle(), 0);
    }

    #[test]
    fn a_full_buffer_has_the_length_of_its_capacity() {
        let pool = BufferPool::new(1000, 2);
        let full = pool.get_full().unwrap();
        assert_eq!(full, vec![0; 1000]);
        pool.put(full);
        assert_eq!(pool.get_full().unwrap().len(), 1000);
    }

    #[test]
    fn a_pool_caches_only_buffers_of_its_capacity() {
        let pool = BufferPool::new(1000, 2);
        pool.put(Vec::with_capacity(999));
        pool.put(Vec::with_capacity(1600));
        assert_eq!(pool.idle(), 0);
        for _ in 0..5 {
            pool.put(Vec::with_capacity(1000));
        }
        assert_eq!(pool.idle(), 2);
    }
}
