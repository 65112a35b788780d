//! Large memory: lazily touched tables, and byte buffers that are used again.

use std::sync::Arc;

use memmap2::MmapMut;

use crate::error::Error;
use crate::lock::Lock;
use crate::prefault::prefault;

/// A zeroed table of 64-bit words, straight from the operating system.
///
/// Pages are made when they are first touched, so a table larger than what is used costs little.
/// On Linux huge pages are asked for: a random look-up in a table of gigabytes is otherwise mostly
/// a miss in the translation buffer. The advice may be ignored; nothing depends on it.
///
/// Refusal is an error here and no abort, as far as the operating system tells: with memory
/// overcommit (the Linux default) a table may be granted and the process killed when it touches
/// more than there is. Budgets, not this type, guard against that.
#[derive(Debug)]
pub struct HugeBuffer {
    // At least one word: a mapping of no bytes is an error on most systems.
    map: MmapMut,
    length_words: usize,
}

impl HugeBuffer {
    /// `length_words` words of zero, untouched.
    ///
    /// # Errors
    /// [`Error::MemoryUnavailable`] when the system refuses.
    pub fn zeroed(length_words: usize) -> Result<Self, Error> {
        let Some(length_bytes) = length_words.max(1).checked_mul(size_of::<u64>()) else {
            return Err(unavailable(u64::MAX, &"more than the address space"));
        };
        let map = MmapMut::map_anon(length_bytes)
            .map_err(|error| unavailable(length_bytes as u64, &error))?;
        advise_huge_pages(&map);
        // Mappings start at a page, so this holds; checked once so that the views cannot panic.
        if let Err(error) = bytemuck::try_cast_slice::<u8, u64>(&map) {
            return Err(unavailable(length_bytes as u64, &error));
        }
        Ok(HugeBuffer { map, length_words })
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &bytemuck::cast_slice(&self.map)[..self.length_words]
    }

    /// The words, to be written.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut bytemuck::cast_slice_mut(&mut self.map)[..self.length_words]
    }

    /// How many words it holds.
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
fn advise_huge_pages(map: &MmapMut) {
    // Kernels without transparent huge pages answer EINVAL: nothing is lost.
    let _ = map.advise(memmap2::Advice::HugePage);
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_map: &MmapMut) {}

/// Keeps byte buffers of one capacity for use again.
///
/// First touch of fresh memory is expensive, most of all on virtual machines (a page fault in the
/// guest and often one more in the host); a buffer that was used before is warm.
///
/// The pool bounds what it *keeps*, not what is out: budgets are the coordinator's business.
#[derive(Debug)]
pub struct BufferPool {
    capacity_bytes: usize,
    kept_max: usize,
    kept: Lock<Vec<Vec<u8>>>,
}

impl BufferPool {
    /// A pool of buffers of `capacity_bytes` that keeps at most `kept_max` idle ones.
    pub fn new(capacity_bytes: usize, kept_max: usize) -> Self {
        BufferPool {
            capacity_bytes,
            kept_max,
            kept: Lock::new(Vec::new()),
        }
    }

    /// The capacity of every buffer handed out.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    /// Idle buffers kept now.
    pub fn kept(&self) -> usize {
        self.kept.lock().len()
    }

    /// An empty buffer that holds [`BufferPool::capacity_bytes`] without growing.
    ///
    /// # Errors
    /// [`Error::MemoryUnavailable`] when a fresh one is needed and the allocator refuses.
    pub fn get(&self) -> Result<Vec<u8>, Error> {
        let mut buffer = self.take()?;
        buffer.clear();
        Ok(buffer)
    }

    /// A buffer of exactly [`BufferPool::capacity_bytes`] bytes of *unspecified content* (zeros or
    /// what an earlier user left), for those who overwrite it anyway: saves clearing megabytes.
    ///
    /// # Errors
    /// [`Error::MemoryUnavailable`] when a fresh one is needed and the allocator refuses.
    pub fn get_full(&self) -> Result<Vec<u8>, Error> {
        let mut buffer = self.take()?;
        buffer.resize(self.capacity_bytes, 0);
        Ok(buffer)
    }

    /// Gives a buffer back. One that is too small, or too large by more than a half (it would hold
    /// memory that no budget knows of), or one too many, is freed.
    pub fn put(&self, buffer: Vec<u8>) {
        let largest = self.capacity_bytes.saturating_add(self.capacity_bytes / 2);
        if buffer.capacity() < self.capacity_bytes || buffer.capacity() > largest {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.len() < self.kept_max {
            kept.push(buffer);
        }
    }

    fn take(&self) -> Result<Vec<u8>, Error> {
        // Last in, first out: the warmest one.
        if let Some(buffer) = self.kept.lock().pop() {
            return Ok(buffer);
        }
        let mut buffer = Vec::new();
        buffer
            .try_reserve_exact(self.capacity_bytes)
            .map_err(|error| unavailable(self.capacity_bytes as u64, &error))?;
        prefault(&mut buffer);
        Ok(buffer)
    }
}

/// A buffer that goes back to its pool when it is dropped.
#[derive(Debug)]
pub struct PooledBuffer {
    bytes: Vec<u8>,
    pool: Arc<BufferPool>,
}

impl PooledBuffer {
    /// A buffer that was taken out of the pool before, or one of any other origin, which goes there if it fits.
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
    fn a_pooled_buffer_goes_back() {
        let pool = Arc::new(BufferPool::new(100, 1));
        let mut buffer = PooledBuffer::empty(&pool).unwrap();
        buffer.extend_from_slice(b"abc");
        assert_eq!(pool.kept(), 0);
        drop(buffer);
        assert_eq!(pool.kept(), 1);
        assert!(PooledBuffer::empty(&pool).unwrap().is_empty());
    }

    #[test]
    fn huge_buffer_is_zeroed_and_writable() {
        let mut table = HugeBuffer::zeroed(3 << 18).unwrap();
        assert_eq!(table.length_words(), 3 << 18);
        assert_eq!(table.words().len(), 3 << 18);
        assert!(table.words().iter().all(|word| *word == 0));
        table.words_mut()[(3 << 18) - 1] = u64::MAX;
        assert_eq!(table.words()[(3 << 18) - 1], u64::MAX);
    }

    #[test]
    fn huge_buffer_of_nothing() {
        assert!(HugeBuffer::zeroed(0).unwrap().words().is_empty());
    }

    #[test]
    fn memory_that_is_not_to_be_had_is_an_error() {
        for length_words in [usize::MAX, usize::MAX / 8, usize::MAX / 16] {
            let error = HugeBuffer::zeroed(length_words).unwrap_err();
            assert!(error.to_string().contains("no memory for"), "{error}");
        }
        assert!(BufferPool::new(usize::MAX, 1).get().is_err());
    }

    #[test]
    fn untouched_pages_cost_nothing() {
        // Larger than the memory of many machines; only two pages are touched.
        if let Ok(mut table) = HugeBuffer::zeroed(1 << 30) {
            table.words_mut()[0] = 1;
            table.words_mut()[(1 << 30) - 1] = 2;
            assert_eq!(table.words()[(1 << 30) - 1] + table.words()[0], 3);
        }
    }

    #[test]
    fn pool_hands_the_same_memory_out_again() {
        let pool = BufferPool::new(4096, 2);
        let mut buffer = pool.get().unwrap();
        assert!(buffer.is_empty() && buffer.capacity() >= 4096);
        buffer.extend_from_slice(&[7; 100]);
        let place = buffer.as_ptr();
        pool.put(buffer);
        assert_eq!(pool.kept(), 1);
        let again = pool.get().unwrap();
        assert_eq!(again.as_ptr(), place);
        assert!(again.is_empty());
        assert_eq!(pool.kept(), 0);
    }

    #[test]
    fn full_buffers_have_full_length() {
        let pool = BufferPool::new(1000, 2);
        let full = pool.get_full().unwrap();
        assert_eq!(full, vec![0; 1000]);
        pool.put(full);
        assert_eq!(pool.get_full().unwrap().len(), 1000);
    }

    #[test]
    fn pool_keeps_only_what_fits() {
        let pool = BufferPool::new(1000, 2);
        pool.put(Vec::with_capacity(999));
        pool.put(Vec::with_capacity(1600));
        assert_eq!(pool.kept(), 0);
        for _ in 0..5 {
            pool.put(Vec::with_capacity(1000));
        }
        assert_eq!(pool.kept(), 2);
    }
}
