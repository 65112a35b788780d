//! The hashes of what is read of a member: of its content, which is read in pieces, some of them
//! more than once, and of its entries.

use refrain_entries::Entry;
use refrain_format::EntriesHasher;
use refrain_protect::{ContentHash, HASH_BYTES};

use crate::error::{Error, Result};
use crate::read::tree::content::TreeContent;

/// The hash of the content so far, as long as it is read without a gap.
pub(crate) struct ReadHash {
    hash: ContentHash,
    end: u64,
    is_ended: bool,
}

impl ReadHash {
    pub(crate) fn new() -> ReadHash {
        ReadHash {
            hash: ContentHash::new(),
            end: 0,
            is_ended: false,
        }
    }

    /// Adds content from offset `start`. What was added before is skipped.
    pub(crate) fn add(&mut self, start: u64, bytes: &[u8]) {
        let known = self.end.checked_sub(start).filter(|_| !self.is_ended);
        if let Some(rest) = known.and_then(|known| bytes.get(known as usize..)) {
            self.hash.update(rest);
            self.end += rest.len() as u64;
        }
    }

    /// A part of the content is missing: nothing more counts.
    pub(crate) fn end(&mut self) {
        self.is_ended = true;
    }

    /// Compares the hash, if all of the content was added. Returns whether it was.
    ///
    /// # Errors
    /// `Damaged` if the hash differs.
    pub(crate) fn compare(self, content_bytes: u64, expected: &[u8; HASH_BYTES]) -> Result<bool> {
        if self.end < content_bytes || self.is_ended {
            return Ok(false);
        }
        if self.hash.value() == *expected {
            Ok(true)
        } else {
            Err(Error::damaged("the content does not match its BLAKE3 hash"))
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
    /// `Damaged` if the hash differs; those of the index.
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
    fn repeated_pieces_count_once_and_a_gap_ends_the_comparison() {
        let bytes: Vec<u8> = (0..=255).collect();
        let expected = content_hash(&bytes);
        let mut hash = ReadHash::new();
        for range in [0..100, 50..90, 40..200, 200..256, 0..10] {
            hash.add(range.start as u64, &bytes[range]);
        }
        assert!(hash.compare(256, &expected).unwrap());
        let mut hash = ReadHash::new();
        hash.add(0, &bytes[..9]);
        hash.add(10, &bytes[10..]);
        assert!(!hash.compare(256, &expected).unwrap());
        let mut hash = ReadHash::new();
        hash.add(0, &bytes);
        assert!(hash.compare(256, &[0; HASH_BYTES]).is_err());
    }
}
