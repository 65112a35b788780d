//! BLAKE3 of content whose pieces arrive in any order and may overlap.
//!
//! A complete subtree of BLAKE3's tree can be hashed as soon as its bytes are there, and two
//! neighbors become their parent. What remains are the 1 KiB chunks that are partly missing.
//!
//! Most pieces continue the piece before. They are gathered into aligned windows, because BLAKE3
//! hashes many chunks at once, and one large subtree has fewer parents than many small ones.

use std::collections::BTreeMap;

use blake3::CHUNK_LEN;
use blake3::hazmat::{
    HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};

use super::blake3::HASH_BYTES;

const CHUNK_BYTES: u64 = CHUNK_LEN as u64;

/// The size and alignment of the subtrees that pieces in order are gathered into: enough for
/// BLAKE3's widest vectors (16 chunks) several times, and small enough for the first-level caches.
const WINDOW_BYTES: u64 = 32 << 10;

type ChainingValue = [u8; HASH_BYTES];

/// Hashes content whose pieces arrive in any order.
#[derive(Debug)]
pub struct ScatteredHash {
    content_bytes: u64,
    /// The subtrees whose bytes were all added, by offset: their lengths and values. They never
    /// overlap, and two halves of a subtree are always merged.
    subtrees: BTreeMap<u64, (u64, ChainingValue)>,
    /// The partly added chunks, by offset.
    parts: BTreeMap<u64, Box<PartOfChunk>>,
    /// The latest bytes, which are not hashed yet because they end inside a window.
    pending: Vec<u8>,
    pending_offset: u64,
    /// The hash, once all bytes were added.
    root: Option<[u8; HASH_BYTES]>,
}

#[derive(Debug)]
struct PartOfChunk {
    bytes: [u8; CHUNK_LEN],
    /// One bit per byte: whether it was added.
    is_added: [u64; CHUNK_LEN / 64],
}

impl ScatteredHash {
    /// The memory of a partly added chunk in bytes.
    const PART_BYTES: u64 = size_of::<PartOfChunk>() as u64;

    /// Creates a hasher of `content_bytes` bytes.
    #[must_use]
    pub fn new(content_bytes: u64) -> ScatteredHash {
        let empty = *blake3::hash(b"").as_bytes();
        ScatteredHash {
            content_bytes,
            subtrees: BTreeMap::new(),
            parts: BTreeMap::new(),
            pending: Vec::new(),
            pending_offset: 0,
            root: (content_bytes == 0).then_some(empty),
        }
    }

    /// The approximate memory in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let subtree_bytes = size_of::<(u64, u64, ChainingValue)>() as u64;
        self.subtrees.len() as u64 * subtree_bytes + self.parts.len() as u64 * Self::PART_BYTES
    }

    /// The hash; `None` if bytes are missing.
    #[must_use]
    pub fn finish(mut self) -> Option<[u8; HASH_BYTES]> {
        self.hash_pending();
        self.root
    }

    /// Adds bytes at `offset`. Ignores those that are already there or past the end.
    pub fn add(&mut self, offset: u64, bytes: &[u8]) {
        let Some(available) = self.content_bytes.checked_sub(offset) else {
            return;
        };
        let bytes = &bytes[..bytes
            .len()
            .min(usize::try_from(available).unwrap_or(usize::MAX))];
        if self.pending_offset + self.pending.len() as u64 != offset {
            self.hash_pending();
            self.pending_offset = offset;
        }
        let to_window_bytes = (offset.wrapping_neg() % WINDOW_BYTES) as usize;
        let (head, rest) = bytes.split_at(bytes.len().min(to_window_bytes));
        self.pending.extend_from_slice(head);
        if head.len() < to_window_bytes {
            return;
        }
        self.hash_pending();
        let start = offset + head.len() as u64;
        let (windows, tail) = rest.split_at(rest.len() - rest.len() % WINDOW_BYTES as usize);
        self.hash(start, windows);
        self.pending_offset = start + windows.len() as u64;
        self.pending.extend_from_slice(tail);
    }

    /// Hashes the gathered bytes.
    fn hash_pending(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        self.hash(self.pending_offset, &pending);
        pending.clear();
        self.pending = pending;
    }

    fn hash(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        let mut at = offset;
        while at < end && self.root.is_none() {
            if let Some((start, (length_bytes, _))) = self.subtrees.range(..=at).next_back()
                && at < start + length_bytes
            {
                at = start + length_bytes;
                continue;
            }
            let next = self.subtrees.range(at..end).next();
            let stop = next.map_or(end, |(start, _)| *start);
            let length_bytes = self.subtree_bytes(at, stop);
            let inside = (at - offset) as usize;
            if length_bytes > 0 {
                let bytes = &bytes[inside..inside + length_bytes as usize];
                let whole = at..at + length_bytes;
                while let Some(part) = self.parts.range(whole.clone()).next().map(|part| *part.0) {
                    self.parts.remove(&part);
                }
                self.complete(at, bytes);
                at = whole.end;
            } else {
                let chunk_end = (at - at % CHUNK_BYTES).saturating_add(CHUNK_BYTES);
                let stop = stop.min(chunk_end);
                self.add_part(at, &bytes[inside..inside + (stop - at) as usize]);
                at = stop;
            }
        }
    }

    /// The length of the largest subtree that begins at `at` and ends before `stop`; 0 if there is
    /// none. The last chunk of the content may be short.
    fn subtree_bytes(&self, at: u64, stop: u64) -> u64 {
        if !at.is_multiple_of(CHUNK_BYTES) {
            return 0;
        }
        let available = stop - at;
        if available < CHUNK_BYTES {
            return if stop == self.content_bytes { available } else { 0 };
        }
        let aligned = if at == 0 { u64::MAX } else { at & at.wrapping_neg() };
        aligned.min(1 << available.ilog2())
    }

    fn add_part(&mut self, at: u64, bytes: &[u8]) {
        let chunk = at - at % CHUNK_BYTES;
        let chunk_bytes = (self.content_bytes - chunk).min(CHUNK_BYTES) as usize;
        let part = self.parts.entry(chunk).or_insert_with(|| {
            Box::new(PartOfChunk {
                bytes: [0; CHUNK_LEN],
                is_added: [0; CHUNK_LEN / 64],
            })
        });
        let inside = (at - chunk) as usize;
        let range = inside..inside + bytes.len();
        part.bytes[range.clone()].copy_from_slice(bytes);
        for (word, bits) in part.is_added.iter_mut().enumerate() {
            let start = range.start.max(64 * word);
            let end = range.end.min(64 * (word + 1));
            if start < end {
                *bits |= (u64::MAX >> (64 - (end - start))) << (start % 64);
            }
        }
        let added = part.is_added.iter().map(|bits| bits.count_ones());
        if added.sum::<u32>() as usize == chunk_bytes
            && let Some(part) = self.parts.remove(&chunk)
        {
            self.complete(chunk, &part.bytes[..chunk_bytes]);
        }
    }

    /// Hashes a subtree, and those that it completes.
    fn complete(&mut self, offset: u64, bytes: &[u8]) {
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(offset).update(bytes);
        if bytes.len() as u64 == self.content_bytes {
            self.root = Some(*hasher.finalize().as_bytes());
            return;
        }
        let (mut start, mut length_bytes) = (offset, bytes.len() as u64);
        let mut value = hasher.finalize_non_root();
        // The halves of a node may have different lengths only at the end of the content.
        while let Some((left, middle, end)) = self.parent(start, length_bytes) {
            let other = if start == left { middle } else { left };
            let other_end = if start == left { end } else { middle };
            let Some((found_bytes, found)) = self.subtrees.get(&other).copied() else {
                break;
            };
            if other + found_bytes != other_end {
                break;
            }
            self.subtrees.remove(&other);
            let (one, two) = if start == left { (&value, &found) } else { (&found, &value) };
            if end - left == self.content_bytes {
                self.root = Some(*merge_subtrees_root(one, two, Mode::Hash).as_bytes());
                return;
            }
            value = merge_subtrees_non_root(one, two, Mode::Hash);
            (start, length_bytes) = (left, end - left);
        }
        self.subtrees.insert(start, (length_bytes, value));
    }

    /// The parent of a node: its start, the start of its right half, and its end. `None` for the
    /// root, and for ranges that are not nodes.
    fn parent(&self, start: u64, length_bytes: u64) -> Option<(u64, u64, u64)> {
        let (mut left, mut end) = (0, self.content_bytes);
        while end - left > length_bytes.max(CHUNK_BYTES) {
            let middle = left + left_subtree_len(end - left);
            let is_left = start < middle;
            let half = if is_left { (left, middle) } else { (middle, end) };
            if half == (start, start + length_bytes) {
                return Some((left, middle, end));
            }
            (left, end) = half;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property::patterned_bytes;

    #[test]
    fn pieces_in_any_order_hash_like_the_whole() {
        let mut state = 1_u64;
        let mut random = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        for length in [
            0,
            1,
            1000,
            1024,
            1025,
            2048,
            3 << 10,
            5000,
            40_000,
            65_536,
            65_537,
            200_001,
        ] {
            let content = patterned_bytes(length, 5);
            let expected = blake3::hash(&content);
            let mut hash = ScatteredHash::new(length as u64);
            let mut unread = length;
            for size_max in [length / 3 + 1, 3000, 90] {
                for _ in 0..length / size_max {
                    let start = random(length);
                    let end = length.min(start + random(size_max) + 1);
                    hash.add(start as u64, &content[start..end]);
                }
            }
            // The missing bytes from the end, in pieces that overlap.
            while unread > 0 {
                let start = unread - random(unread.min(1500)) - 1;
                let end = length.min(unread + random(9));
                hash.add(start as u64, &content[start..end]);
                unread = start;
            }
            hash.hash_pending();
            assert_eq!(hash.memory_bytes(), 0, "{length} bytes");
            assert_eq!(hash.finish(), Some(*expected.as_bytes()), "{length} bytes");
        }
    }

    #[test]
    fn a_missing_or_wrong_byte_is_noticed() {
        let mut content = patterned_bytes(10_000, 6);
        let expected = *blake3::hash(&content).as_bytes();
        let hash_without_one = |content: &[u8]| {
            let mut hash = ScatteredHash::new(10_000);
            hash.add(5001, &content[5001..]);
            hash.add(0, &content[..5000]);
            hash.add(u64::MAX, content);
            hash
        };
        assert_eq!(hash_without_one(&content).finish(), None);
        content[5000] ^= 1;
        let mut hash = hash_without_one(&content);
        hash.add(4000, &content[4000..6000]);
        assert!(hash.finish().is_some_and(|value| value != expected));
    }
}
