//! What the values are: content from a seed, in a file without a name, which is the last tier.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use refrain_cache::Key;

use crate::args::CacheArgs;
use crate::failure::{Failure, Result};

/// All values.
pub struct Origin {
    file: File,
    keys: Vec<Key>,
    value_bytes: usize,
}

impl Origin {
    /// Writes the values.
    pub fn create(args: &CacheArgs) -> Result<Origin> {
        let value_bytes = args.value.bytes as usize;
        let mut file = tempfile::tempfile().map_err(Failure::Storage)?;
        let mut keys = Vec::with_capacity(args.values as usize);
        let mut value = vec![0; value_bytes];
        for number in 0..u64::from(args.values) {
            fill(&mut value, number);
            keys.push(Key::of(&value));
            file.write_all(&value).map_err(Failure::Storage)?;
        }
        Ok(Origin {
            file,
            keys,
            value_bytes,
        })
    }

    /// The keys of all values.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The size of all values together.
    pub fn bytes(&self) -> u64 {
        (self.keys.len() * self.value_bytes) as u64
    }

    /// Reads a value.
    pub fn read(&self, number: usize) -> io::Result<Vec<u8>> {
        let mut value = vec![0; self.value_bytes];
        let offset = number as u64 * self.value_bytes as u64;
        self.file.read_exact_at(&mut value, offset)?;
        Ok(value)
    }

    /// Whether this is the value of a number.
    pub fn is(&self, number: usize, value: &[u8]) -> io::Result<bool> {
        Ok(self.read(number)? == value)
    }
}

/// Fills a value with bytes of its own (xorshift64*: Vigna 2016).
fn fill(value: &mut [u8], number: u64) {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for part in value.chunks_mut(8) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let bytes = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        part.copy_from_slice(bytes.split_at(part.len()).0);
    }
}
