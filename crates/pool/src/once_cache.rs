//! Values that are computed once, as long as they fit into memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lock::Lock;
use crate::once::OnceValue;

/// A cache of values by key, within a memory limit. Threads that need the same value wait for the
/// one that computes it ([`OnceValue`]). The latest is always kept.
#[derive(Debug)]
pub struct OnceCache<K, V> {
    bytes_max: usize,
    held: Lock<Held<K, V>>,
}

#[derive(Debug)]
struct Held<K, V> {
    slots: BTreeMap<K, Slot<V>>,
    /// The keys of computed values by their latest use.
    by_use: BTreeMap<u64, K>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Slot<V> {
    value: Arc<OnceValue<Arc<V>>>,
    /// The memory of the value; `None` while it is being computed.
    bytes: Option<usize>,
    used: u64,
}

impl<K: Copy + Ord, V> OnceCache<K, V> {
    /// An empty cache whose values take at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> OnceCache<K, V> {
        OnceCache {
            bytes_max,
            held: Lock::new(Held {
                slots: BTreeMap::new(),
                by_use: BTreeMap::new(),
                bytes: 0,
                clock: 0,
            }),
        }
    }

    /// The value of `key`. If it is missing, `compute` returns it with its memory in bytes.
    ///
    /// # Errors
    /// The error of `compute`. The value is then missing still.
    pub fn get_or_try_init<E>(
        &self,
        key: K,
        compute: impl FnOnce() -> Result<(V, usize), E>,
    ) -> Result<Arc<V>, E> {
        let cell = self.held.lock().cell(key);
        if let Some(found) = cell.get() {
            return Ok(Arc::clone(found));
        }
        let mut bytes = 0;
        let value = cell.get_or_try_init(|| {
            let (value, value_bytes) = compute()?;
            bytes = value_bytes;
            Ok(Arc::new(value))
        });
        let mut held = self.held.lock();
        match value {
            Ok(value) => {
                held.computed(key, &cell, bytes);
                held.evict(key, self.bytes_max);
                Ok(Arc::clone(value))
            }
            Err(error) => {
                held.forget(key, &cell);
                Err(error)
            }
        }
    }

    /// The memory of the values, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.held.lock().bytes
    }

    /// Whether a value can be had without computing it.
    pub fn has(&self, key: K) -> bool {
        let held = self.held.lock();
        let slot = held.slots.get(&key);
        slot.is_some_and(|slot| slot.value.get().is_some())
    }
}

impl<K: Copy + Ord, V> Held<K, V> {
    fn cell(&mut self, key: K) -> Arc<OnceValue<Arc<V>>> {
        self.clock += 1;
        let slot = self.slots.entry(key).or_insert_with(|| Slot {
            value: Arc::default(),
            bytes: None,
            used: 0,
        });
        if slot.bytes.is_some() {
            self.by_use.remove(&slot.used);
            self.by_use.insert(self.clock, key);
        }
        slot.used = self.clock;
        Arc::clone(&slot.value)
    }

    /// The slot of a key, if it still has this cell.
    fn slot(&mut self, key: K, cell: &Arc<OnceValue<Arc<V>>>) -> Option<&mut Slot<V>> {
        let slot = self.slots.get_mut(&key);
        slot.filter(|slot| Arc::ptr_eq(&slot.value, cell))
    }

    fn computed(&mut self, key: K, cell: &Arc<OnceValue<Arc<V>>>, bytes: usize) {
        // Of several threads that waited, the one that computed it states its memory.
        if let Some(slot) = self.slot(key, cell).filter(|slot| slot.bytes.is_none()) {
            slot.bytes = Some(bytes);
            let used = slot.used;
            self.by_use.insert(used, key);
            self.bytes += bytes;
        }
    }

    /// Removes the slot of a value that could not be computed, unless a thread that waited did.
    fn forget(&mut self, key: K, cell: &Arc<OnceValue<Arc<V>>>) {
        let slot = self.slot(key, cell);
        if slot.is_some_and(|slot| slot.value.get().is_none()) {
            self.slots.remove(&key);
        }
    }

    /// Removes the least recently used values, except `keep`.
    fn evict(&mut self, keep: K, bytes_max: usize) {
        while self.bytes > bytes_max {
            let mut others = self.by_use.iter().filter(|(_, key)| **key != keep);
            let Some((&used, &key)) = others.next() else {
                return;
            };
            self.by_use.remove(&used);
            let slot = self.slots.remove(&key);
            self.bytes -= slot.and_then(|slot| slot.bytes).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gets values of 10 bytes, each its key. Returns the keys that were computed.
    fn get(cache: &OnceCache<u32, u32>, keys: &[u32]) -> Vec<u32> {
        let mut computed = vec![];
        for &key in keys {
            let value = cache.get_or_try_init(key, || {
                computed.push(key);
                Ok::<_, ()>((key, 10))
            });
            assert_eq!(value, Ok(Arc::new(key)));
        }
        computed
    }

    #[test]
    fn the_values_used_last_remain() {
        let cache = OnceCache::new(20);
        assert_eq!(get(&cache, &[1, 2, 1, 3, 1, 2]), [1, 2, 3, 2]);
        assert!(cache.has(1) && cache.has(2) && !cache.has(3));
        let large = cache.get_or_try_init(4, || Ok::<_, ()>((4, 100)));
        assert_eq!(large, Ok(Arc::new(4)));
        assert!(cache.has(4) && !cache.has(1), "the latest is always kept");
    }

    #[test]
    fn a_value_that_cannot_be_computed_is_tried_again() {
        let cache = OnceCache::new(20);
        assert_eq!(
            cache.get_or_try_init(1, || Err::<(u32, usize), _>("no")),
            Err("no")
        );
        assert!(!cache.has(1));
        assert_eq!(get(&cache, &[1, 1]), [1]);
    }

    #[test]
    fn threads_share_a_value_and_its_memory_counts_once() {
        let cache = OnceCache::<u32, u32>::new(30);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| get(&cache, &[1, 2, 3]));
            }
        });
        assert_eq!(cache.memory_bytes(), 30);
        assert_eq!(get(&cache, &[1, 2, 3]), []);
    }
}
