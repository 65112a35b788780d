//! The file contents that the member already has, by their hash.

use std::collections::HashMap;

use refrain_protect::HASH_BYTES;

/// The memory of one table entry, with its share of empty slots.
const ENTRY_BYTES: u64 = 64;

/// Where in the member's content a file's data is, by its BLAKE3 hash.
///
/// Two generations bound the memory: when the younger table is full, it replaces the older one.
/// Content found in the older table moves to the younger one. The order of contents decides what is
/// forgotten, so the archive does not depend on the machine.
pub(crate) struct KnownContents {
    young: HashMap<[u8; HASH_BYTES], u64>,
    old: HashMap<[u8; HASH_BYTES], u64>,
    young_max: usize,
}

impl KnownContents {
    pub(crate) fn new(memory_bytes: u64) -> KnownContents {
        KnownContents {
            young: HashMap::new(),
            old: HashMap::new(),
            young_max: (memory_bytes / 2 / ENTRY_BYTES).max(1) as usize,
        }
    }

    /// The offset of equal content, if known.
    pub(crate) fn find(&mut self, hash: &[u8; HASH_BYTES]) -> Option<u64> {
        if let Some(&offset) = self.young.get(hash) {
            return Some(offset);
        }
        let offset = self.old.remove(hash)?;
        self.insert(*hash, offset);
        Some(offset)
    }

    /// Records content added at `offset`.
    pub(crate) fn insert(&mut self, hash: [u8; HASH_BYTES], offset: u64) {
        if self.young.len() >= self.young_max {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash, offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> [u8; HASH_BYTES] {
        let mut hash = [0; HASH_BYTES];
        hash[..8].copy_from_slice(&number.to_le_bytes());
        hash
    }

    #[test]
    fn contents_are_found_until_their_generation_is_replaced() {
        let mut known = KnownContents::new(8 * ENTRY_BYTES);
        (0..4).for_each(|number| known.insert(hash(number), number));
        assert!((0..4).all(|number| known.find(&hash(number)) == Some(number)));
        (4..8).for_each(|number| known.insert(hash(number), number));
        // Found in the older generation, it moves to the younger one.
        assert_eq!(known.find(&hash(1)), Some(1));
        (8..11).for_each(|number| known.insert(hash(number), number));
        assert_eq!(known.find(&hash(1)), Some(1));
        assert_eq!(known.find(&hash(0)), None);
    }
}
