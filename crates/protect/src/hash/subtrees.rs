//! A BLAKE3 hash whose input is known in part: the chaining values of its subtrees stand for the
//! rest.
//!
//! The chunks of BLAKE3's input are the leaves of a binary tree (O'Connor, Aumasson, Neves,
//! Wilcox-O'Hearn, section 2.1). An aligned run of a power of two of them is a subtree; the values
//! of all subtrees of one size give the hash, and prove each of their inputs alone, as in Bao.

use blake3::CHUNK_LEN;
use blake3::hazmat::{
    ContextKey, HasherExt, Mode, hash_derive_key_context, merge_subtrees_non_root,
    merge_subtrees_root,
};

use super::blake3::HASH_BYTES;

/// The hash of an input in BLAKE3's mode for deriving keys, divided into subtrees.
#[derive(Debug, Clone)]
pub struct Subtrees {
    key: ContextKey,
    subtree_bytes: u64,
}

impl Subtrees {
    /// Divides an input of this size into at most `count_max` subtrees, as small as possible.
    #[must_use]
    pub fn new(context: &str, input_bytes: u64, count_max: u64) -> Subtrees {
        let mut subtree_bytes = CHUNK_LEN as u64;
        while input_bytes.div_ceil(subtree_bytes) > count_max.max(1) {
            subtree_bytes *= 2;
        }
        Subtrees {
            key: hash_derive_key_context(context),
            subtree_bytes,
        }
    }

    /// The size of the input of each subtree but the last, in bytes.
    #[must_use]
    pub fn subtree_bytes(&self) -> u64 {
        self.subtree_bytes
    }

    /// The value of the subtree with this number, whose input is not empty. Input beyond its size
    /// is ignored.
    #[must_use]
    pub fn value(&self, number: u64, input: &[u8]) -> [u8; HASH_BYTES] {
        let size = usize::try_from(self.subtree_bytes).unwrap_or(usize::MAX);
        let input = input.get(..size).unwrap_or(input);
        let mut hasher = blake3::Hasher::new_from_context_key(&self.key);
        hasher.set_input_offset(number.saturating_mul(self.subtree_bytes));
        hasher.update(input).finalize_non_root()
    }

    /// The hash of the whole input by the values of all subtrees; `None` for fewer than two.
    #[must_use]
    pub fn root(&self, values: &[[u8; HASH_BYTES]]) -> Option<[u8; HASH_BYTES]> {
        let mode = Mode::DeriveKeyMaterial(&self.key);
        let (left, right) = values.split_at(left_count(values.len())?);
        let root = merge_subtrees_root(&merged(left, mode)?, &merged(right, mode)?, mode);
        Some(*root.as_bytes())
    }
}

/// The value of the tree above these.
fn merged(values: &[[u8; HASH_BYTES]], mode: Mode<'_>) -> Option<[u8; HASH_BYTES]> {
    match left_count(values.len()) {
        None => values.first().copied(),
        Some(count) => {
            let (left, right) = values.split_at(count);
            let (left, right) = (merged(left, mode)?, merged(right, mode)?);
            Some(merge_subtrees_non_root(&left, &right, mode))
        }
    }
}

/// The left half has the largest power of two that leaves something for the right one.
fn left_count(count: usize) -> Option<usize> {
    let last = count.checked_sub(1)?;
    last.checked_ilog2().map(|log| 1 << log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::blake3::ContentHash;

    #[test]
    fn values_of_subtrees_give_the_hash_of_the_whole() {
        let input: Vec<u8> = (0..40_000_u32).map(|i| ((i * i) >> 5) as u8).collect();
        for bytes in [1025, 2048, 2049, 5000, 12_288, 12_289, 40_000] {
            for count_max in [2, 3, 8, 100] {
                let input = &input[..bytes];
                let subtrees = Subtrees::new("a test", bytes as u64, count_max);
                let pieces = input.chunks(subtrees.subtree_bytes() as usize);
                let pieces = (0_u64..).zip(pieces);
                let values: Vec<_> = pieces
                    .map(|(at, piece)| subtrees.value(at, piece))
                    .collect();
                assert!((2..=count_max).contains(&(values.len() as u64)));
                let mut hash = ContentHash::with_context("a test");
                hash.update(input);
                assert_eq!(
                    subtrees.root(&values),
                    Some(hash.value()),
                    "{bytes} {count_max}"
                );
            }
        }
    }

    #[test]
    fn one_value_is_no_root() {
        let subtrees = Subtrees::new("a test", 10, 8);
        assert_eq!(subtrees.root(&[]), None);
        assert_eq!(subtrees.root(&[[7; 32]]), None);
    }
}
