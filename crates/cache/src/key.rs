//! What a value is known by, and how it is told from another one.

use std::fmt;

use refrain_protect::{checksum64, content_hash};

/// The size of a sealed value beyond that of its content, in bytes.
pub const SEAL_BYTES: usize = 8;

/// The hash of a value's content (BLAKE3): equal content of all archives and versions has the same
/// key, so a value is never out of date.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl Key {
    /// The key of content.
    #[must_use]
    pub fn of(content: &[u8]) -> Key {
        Key(content_hash(content))
    }

    /// The key with these bytes: a hash.
    #[must_use]
    pub fn new(hash: [u8; 32]) -> Key {
        Key(hash)
    }

    /// The name in a cache: 128 bits in hexadecimal behind the version of what is stored.
    #[must_use]
    pub fn text(&self) -> String {
        let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
        let mut text = String::with_capacity(35);
        text.push_str("r1:");
        text.extend((self.0.iter().take(16)).flat_map(|byte| [byte >> 4, byte & 15].map(digit)));
        text
    }

    /// A number that is spread evenly.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.0.first_chunk().copied().map_or(0, u64::from_le_bytes)
    }

    /// The value as it is stored: the content, and what tells it from damaged content and from that
    /// of other keys.
    #[must_use]
    pub fn seal(&self, content: &[u8]) -> Vec<u8> {
        let mut value = Vec::with_capacity(content.len() + SEAL_BYTES);
        value.extend_from_slice(content);
        value.extend_from_slice(&self.mark(content).to_le_bytes());
        value
    }

    /// The content of a stored value; `None` if it is not this key's.
    #[must_use]
    pub fn open(&self, mut value: Vec<u8>) -> Option<Vec<u8>> {
        let (content, mark) = value.split_last_chunk::<SEAL_BYTES>()?;
        let length = content.len();
        if u64::from_le_bytes(*mark) != self.mark(content) {
            return None;
        }
        value.truncate(length);
        Some(value)
    }

    fn mark(&self, content: &[u8]) -> u64 {
        // The last bytes are not in the text, so a value under a wrong name is found out.
        let own = self.0.last_chunk().copied().map_or(0, u64::from_le_bytes);
        checksum64(content) ^ own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_open_under_their_key_and_undamaged_only() {
        let (key, other) = (Key([7; 32]), Key([8; 32]));
        for content in [&b""[..], b"x", &[3; 1000]] {
            let value = key.seal(content);
            assert_eq!(key.open(value.clone()), Some(content.to_vec()));
            assert_eq!(other.open(value.clone()), None);
            for bit in 0..value.len() * 8 {
                let mut changed = value.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(key.open(changed), None, "{bit}");
            }
            assert_eq!(key.open(value[1..].to_vec()), None);
        }
        assert_eq!(key.open(vec![]), None);
        assert_eq!(Key([0x9b; 32]).text(), format!("r1:{}", "9b".repeat(16)));
    }
}
