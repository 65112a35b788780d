//! Continuations: what followed a range of the store in earlier content.
//!
//! Where two versions of a file differ, the later one has short passages of its own between copies
//! of the earlier one. A third version that equals the second cannot find them by anchors: they are
//! too short to have any. But the second version showed what follows: after the bytes that end at
//! one store address came the bytes at another. With that, a repeat continues through all passages
//! of the previous version, and gets the same extents.
#![forbid(unsafe_code)]

use crate::check_in::{STEPS_PER_CHECK_IN, cleared};
use crate::prefetch::prefetch;

/// The number of content bytes in the key of a continuation. Many passages may follow the same one;
/// the bytes decide which.
pub(crate) const CONTINUATION_KEY_BYTES: usize = 8;

const BUCKETS_MIN: usize = 1 << 8;

/// The passage that followed, or came before, a range of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Continuation {
    /// Where it begins in the store; where it ends, if it came before.
    pub offset_in_store: u64,
    /// Its length in bytes, at least 1.
    pub length: u32,
}

/// The direction in which content is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct ContinuationSlot {
    /// Part of the key's hash, which also selects the bucket; 0 in an empty slot.
    tag: u32,
    length: u32,
    offset_in_store: u64,
}

/// The slots of one cache line, the latest continuation first.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket([ContinuationSlot; 4]);

/// A table of continuations. In a full bucket the latest replaces the oldest, so what the table
/// holds depends only on earlier extents. It doubles while it is small, so that small inputs touch
/// little memory.
pub struct Continuations {
    buckets: Vec<Bucket>,
    used: usize,
    buckets_max: usize,
    was_refused: bool,
}

impl Continuations {
    /// Creates a table of at most `memory_bytes` bytes; an absent one if that is less than a small
    /// table.
    pub fn new(memory_bytes: usize) -> Continuations {
        let buckets_max = memory_bytes / size_of::<Bucket>();
        let buckets_max = match buckets_max.checked_ilog2() {
            Some(log) if buckets_max >= BUCKETS_MIN => 1 << log.min(u32::BITS - 1),
            _ => 0,
        };
        Continuations {
            buckets: vec![Bucket::default(); buckets_max.min(BUCKETS_MIN)],
            used: 0,
            buckets_max,
            was_refused: false,
        }
    }

    /// Returns what followed the store bytes that end at `address` (or came before the bytes that
    /// begin there), if the content bytes `key` follow (or come before) here too. The caller must
    /// compare the result with the content: tags may collide.
    pub(crate) fn get(
        &self,
        direction: Direction,
        address: u64,
        key: [u8; CONTINUATION_KEY_BYTES],
    ) -> Option<Continuation> {
        let tag = tag(direction, address, key);
        let bucket = self.buckets.get(self.bucket_of(tag)?)?;
        let slot = bucket.0.iter().find(|slot| slot.tag == tag)?;
        Some(Continuation {
            offset_in_store: slot.offset_in_store,
            length: slot.length,
        })
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Whether the allocator refused to let the table grow. Then it holds less than it should, and
    /// what is found no longer depends on the content alone.
    pub fn was_refused(&self) -> bool {
        self.was_refused
    }

    /// The memory that the table will ask for when it grows next, in bytes; 0 if it does not grow.
    pub fn growth_bytes(&self) -> usize {
        if self.buckets.len() < self.buckets_max {
            2 * self.buckets.len() * size_of::<Bucket>()
        } else {
            0
        }
    }

    fn bucket_of(&self, tag: u32) -> Option<usize> {
        Some(tag as usize & self.buckets.len().checked_sub(1)?)
    }

    #[cfg(any(test, feature = "property"))]
    pub(crate) fn insert(
        &mut self,
        direction: Direction,
        address: u64,
        key: [u8; CONTINUATION_KEY_BYTES],
        continuation: Continuation,
    ) {
        let slot = self.slot(direction, address, key, continuation);
        self.insert_slot(slot, || ());
    }

    pub(crate) fn slot(
        &self,
        direction: Direction,
        address: u64,
        key: [u8; CONTINUATION_KEY_BYTES],
        continuation: Continuation,
    ) -> ContinuationSlot {
        let tag = tag(direction, address, key);
        let number = self.bucket_of(tag);
        if let Some(bucket) = number.and_then(|number| self.buckets.get(number)) {
            prefetch(bucket);
        }
        ContinuationSlot {
            tag,
            length: continuation.length,
            offset_in_store: continuation.offset_in_store,
        }
    }

    pub(crate) fn insert_slot(&mut self, slot: ContinuationSlot, check_in: fn()) {
        // Two of four slots on average, so that few buckets are full.
        if self.used > self.buckets.len() * 2 && self.buckets.len() < self.buckets_max {
            self.double(check_in);
        }
        self.put(slot);
    }

    fn put(&mut self, slot: ContinuationSlot) {
        let number = self.bucket_of(slot.tag);
        if let Some(Bucket(bucket)) = number.and_then(|number| self.buckets.get_mut(number)) {
            let is_place = |place: &ContinuationSlot| place.tag == slot.tag || place.tag == 0;
            let place = bucket.iter().position(is_place);
            self.used += usize::from(place.is_some_and(|place| bucket[place].tag == 0));
            let place = place.unwrap_or(bucket.len() - 1);
            bucket.copy_within(..place, 1);
            bucket[0] = slot;
        }
    }

    fn double(&mut self, check_in: fn()) {
        let Some(buckets) = cleared(self.buckets.len() * 2, check_in) else {
            self.was_refused = true;
            return;
        };
        self.used = 0;
        let old = std::mem::replace(&mut self.buckets, buckets);
        for (number, bucket) in old.into_iter().enumerate() {
            if number.is_multiple_of(STEPS_PER_CHECK_IN) {
                check_in();
            }
            for slot in bucket.0.into_iter().rev().filter(|slot| slot.tag != 0) {
                self.put(slot);
            }
        }
    }
}

fn tag(direction: Direction, address: u64, key: [u8; CONTINUATION_KEY_BYTES]) -> u32 {
    const A: u64 = 0x9E37_79B9_7F4A_7C15;
    const B: u64 = 0xD6E8_FEB8_6659_FD93;
    let salt = match direction {
        Direction::Forward => 0,
        Direction::Backward => B,
    };
    let mixed = (u64::from_le_bytes(key) ^ salt).wrapping_mul(B) ^ address.wrapping_mul(A);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(A);
    ((mixed >> 32) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_returns_the_latest_continuation_of_a_key() {
        let mut continuations = Continuations::new(1 << 20);
        let continuation = |offset_in_store| Continuation {
            offset_in_store,
            length: 9,
        };
        continuations.insert(Direction::Forward, 5, *b"abcdefgh", continuation(100));
        continuations.insert(Direction::Forward, 5, *b"abcdefgx", continuation(200));
        continuations.insert(Direction::Backward, 5, *b"abcdefgh", continuation(300));
        continuations.insert(Direction::Forward, 5, *b"abcdefgh", continuation(400));
        let get = |direction, address, key| {
            let found: Option<Continuation> = continuations.get(direction, address, key);
            found.map(|continuation| continuation.offset_in_store)
        };
        assert_eq!(get(Direction::Forward, 5, *b"abcdefgh"), Some(400));
        assert_eq!(get(Direction::Forward, 5, *b"abcdefgx"), Some(200));
        assert_eq!(get(Direction::Backward, 5, *b"abcdefgh"), Some(300));
        assert_eq!(get(Direction::Forward, 6, *b"abcdefgh"), None);
    }

    #[test]
    fn growing_keeps_most_continuations_and_the_limit_holds() {
        let mut continuations = Continuations::new(16 << 14);
        let insert = |continuations: &mut Continuations, address| {
            let continuation = Continuation {
                offset_in_store: address,
                length: 1,
            };
            continuations.insert(Direction::Forward, address, [1; 8], continuation);
        };
        let found = |continuations: &Continuations, addresses: std::ops::Range<u64>| {
            let get = |&address: &u64| {
                let found = continuations.get(Direction::Forward, address, [1; 8]);
                found.is_some_and(|continuation| continuation.offset_in_store == address)
            };
            addresses.filter(get).count()
        };
        (0..7000).for_each(|address| insert(&mut continuations, address));
        assert_eq!(continuations.buckets.len(), 1 << 12);
        assert!(found(&continuations, 0..7000) > 6500);
        (0..100_000).for_each(|address| insert(&mut continuations, address));
        assert_eq!(continuations.buckets.len(), 1 << 12);
        assert!(found(&continuations, 0..90_000) < 10_000);
        assert!(found(&continuations, 99_000..100_000) > 990);
        assert!(
            Continuations::new(0)
                .get(Direction::Forward, 0, [0; 8])
                .is_none()
        );
    }
}
