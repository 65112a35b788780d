//! Hashes what is read of a member: its content, in pieces, in any order and possibly repeated, and
//! its entries.

use refrain_entries::Entry;
use refrain_format::EntriesHasher;
use refrain_protect::{HASH_BYTES, ScatteredHash};

use crate::error::{Error, Result};
use crate::read::tree::content::TreeContent;

/// Pieces of content with unread neighbors may take 1/8 of the memory budget.
const MEMORY_SHARE: u64 = 8;

/// The hash of content that is read in any order.
pub(crate) struct ReadHash<'a> {
    /// `None` if it is not compared.
    hash: Option<(ScatteredHash, &'a [u8; HASH_BYTES])>,
    memory_bytes_max: u64,
}

impl<'a> ReadHash<'a> {
    /// For content of this length with this hash, if it has one and all of it will be read.
    pub(crate) fn new(
        content_bytes: u64,
        expected: Option<&'a [u8; HASH_BYTES]>,
        memory_bytes: u64,
    ) -> ReadHash<'a> {
        ReadHash {
            hash: expected.map(|expected| (ScatteredHash::new(content_bytes), expected)),
            memory_bytes_max: memory_bytes / MEMORY_SHARE,
        }
    }

    /// Adds content at offset `start`. Skips what was added before.
    pub(crate) fn add(&mut self, start: u64, bytes: &[u8]) {
        if let Some((hash, _)) = &mut self.hash {
            hash.add(start, bytes);
            if hash.memory_bytes() > self.memory_bytes_max {
                self.hash = None;
            }
        }
    }

    /// A part of the content is missing: it is not compared.
    pub(crate) fn end(&mut self) {
        self.hash = None;
    }

    /// Compares the hash, if all content was added. Returns whether it was.
    ///
    /// # Errors
    /// `Damaged` if the hash differs.
    pub(crate) fn compare(self) -> Result<bool> {
        match self.hash.map(|(hash, expected)| (hash.finish(), expected)) {
            None | Some((None, _)) => Ok(false),
            Some((Some(found), expected)) if found == *expected => Ok(true),
            Some(_) => Err(Error::damaged("the content does not match its BLAKE3 hash")),
        }
    }
}

/// The hash of the entries so far.
#[derive(Default)]
pub(crate) struct ReadEntries {
    hasher: EntriesHasher,
    count: u64,
}

impl ReadEntries {
    pub(crate) fn new() -> ReadEntries {
        ReadEntries::default()
    }

    /// Adds the entries of the next frame.
    pub(crate) fn add(&mut self, entries: &[Entry]) {
        self.hasher.update(entries);
        self.count += entries.len() as u64;
    }

    /// Compares the hash, if all entries were added: a scan may have found fewer.
    ///
    /// # Errors
    /// `Damaged` if the hash differs; otherwise from the index.
    pub(crate) fn compare(&self, content: &dyn TreeContent) -> Result<()> {
        match content.stated_entries()? {
            Some((count, hash)) if count == self.count && hash != self.hasher.value() => {
                Err(Error::damaged("the entries do not match their hash"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_protect::content_hash;

    #[test]
    fn pieces_count_in_any_order_and_a_gap_or_too_little_memory_ends_the_comparison() {
        let bytes: Vec<u8> = (0..10_000_u64).map(|byte| (byte % 251) as u8).collect();
        let expected = content_hash(&bytes);
        let compared = |pieces: &[std::ops::Range<usize>], expected, memory_bytes| {
            let mut hash = ReadHash::new(bytes.len() as u64, Some(expected), memory_bytes);
            for piece in pieces {
                hash.add(piece.start as u64, &bytes[piece.clone()]);
            }
            hash.compare()
        };
        let pieces = [200..10_000, 0..100, 50..90, 40..200];
        assert!(compared(&pieces, &expected, 1 << 20).unwrap());
        assert!(!compared(&pieces[..3], &expected, 1 << 20).unwrap());
        assert!(!compared(&pieces, &expected, 1 << 10).unwrap());
        compared(&pieces, &[0; HASH_BYTES], 1 << 20).unwrap_err();
    }
}
