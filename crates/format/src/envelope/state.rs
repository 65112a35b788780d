//! What a machine without the secrets of an encrypted archive keeps to add to it: the ends of files
//! with parts of the archive inside (`docs/format-envelope.md`, section 8).
//!
//! ```text
//! pieces of the archive inside | StatePart | checksum of StatePart | its size | Magic
//! ```

use refrain_protect::checksum64;
use refrain_protect::envelope::{LINK_BYTES, RUN_KEY_BYTES, SALT_BYTES};

use super::run::RunTable;
use crate::bytes::ByteReader;
use crate::check::{check_equal, check_limit};
use crate::error::{FormatError, Result};

const MAGIC: [u8; 8] = *b"RFNSTAT1";

/// The size of what is behind the part's own bytes.
pub const STATE_ENDING_BYTES: usize = 24;

/// The largest part without its pieces, in bytes: 2^20 pieces and a table.
pub const STATE_PART_BYTES_MAX: u64 = 1 << 25;

const WHAT: &str = "state of a writer";

/// Bytes of the archive inside that are in a file of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatePiece {
    /// Where they are in the archive inside.
    pub offset: u64,
    /// How many they are.
    pub bytes: u64,
}

/// What the archive is behind one run, and which bytes of that run's part of the archive inside
/// are in front of this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatePart {
    /// The salt of the archive.
    pub salt: [u8; SALT_BYTES],
    /// The link of the run; of the archive itself, its salt.
    pub link: [u8; LINK_BYTES],
    /// The link of the run that the pieces continue; `None` if they begin the archive inside.
    pub parent: Option<[u8; LINK_BYTES]>,
    /// The text of the public key for runs.
    pub public_key: String,
    /// The key of writers, by which runs without content are read.
    pub writers_key: [u8; RUN_KEY_BYTES],
    /// The table of the run.
    pub table: RunTable,
    /// Ascending.
    pub pieces: Vec<StatePiece>,
}

impl StatePart {
    /// The part, and what is behind it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [self.salt, self.link].concat();
        bytes.push(u8::from(self.parent.is_some()));
        bytes.extend(self.parent.unwrap_or_default());
        bytes.extend(self.writers_key);
        let table = self.table.to_bytes();
        for number in [self.table.number(), table.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(table);
        bytes.extend((self.public_key.len() as u64).to_le_bytes());
        bytes.extend(self.public_key.bytes());
        for piece in &self.pieces {
            bytes.extend(piece.offset.to_le_bytes());
            bytes.extend(piece.bytes.to_le_bytes());
        }
        let (checksum, size) = (checksum64(&bytes), bytes.len() as u64);
        bytes.extend(checksum.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }

    /// The size of the part that ends a file with these last bytes.
    ///
    /// # Errors
    /// Damaged: it is no file of state. Limit.
    pub fn size_of(ending: &[u8; STATE_ENDING_BYTES]) -> Result<u64> {
        let mut reader = ByteReader::new(WHAT, ending);
        reader.u64()?;
        let size = reader.u64()?;
        if reader.rest() != MAGIC {
            return Err(FormatError::Truncated {
                what: WHAT,
                needed_bytes: STATE_ENDING_BYTES as u64,
                available_bytes: 0,
            });
        }
        check_limit("bytes of the state of a writer", size, STATE_PART_BYTES_MAX)?;
        Ok(size)
    }

    /// Parses a part, of [this size](Self::size_of), and what is behind it.
    ///
    /// # Errors
    /// Damaged.
    pub fn parse(bytes: &[u8]) -> Result<StatePart> {
        let (bytes, ending) = bytes
            .split_last_chunk::<STATE_ENDING_BYTES>()
            .unwrap_or((&[], &[0; STATE_ENDING_BYTES]));
        check_equal(WHAT, Self::size_of(ending)?, bytes.len() as u64)?;
        let stated = ByteReader::new(WHAT, ending).u64()?;
        check_equal(
            "checksum of the state of a writer",
            checksum64(bytes),
            stated,
        )?;
        let mut reader = ByteReader::new(WHAT, bytes);
        let (salt, link) = (reader.array()?, reader.array()?);
        let has_parent = reader.u8()? != 0;
        let parent = reader.array()?;
        let writers_key = reader.array()?;
        let number = reader.u64()?;
        let table_bytes = reader.u64()?;
        let table = RunTable::parse_any(number, reader.take(size(table_bytes))?)?;
        let key_bytes = reader.u64()?;
        let public_key = String::from_utf8_lossy(reader.take(size(key_bytes))?).into_owned();
        let mut pieces = Vec::new();
        while reader.remaining() > 0 {
            pieces.push(StatePiece {
                offset: reader.u64()?,
                bytes: reader.u64()?,
            });
        }
        Ok(StatePart {
            salt,
            link,
            parent: has_parent.then_some(parent),
            public_key,
            writers_key,
            table,
            pieces,
        })
    }
}

/// A size that is compared with the bytes that are there.
fn size(stated: u64) -> usize {
    usize::try_from(stated).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::run::{RunCipher, RunRow};
    use super::*;

    fn part(runs: u64) -> StatePart {
        let mut table = RunTable::of_base(3, 40_000, true);
        for number in 0..runs {
            let row = RunRow {
                position: table.records_end() + 2000,
                records: 1,
                start: table.end(),
                bytes: 100,
                link: [number as u8; LINK_BYTES],
                cipher: if number % 2 == 0 { RunCipher::Shared } else { RunCipher::Archive },
            };
            table.push(row).unwrap();
        }
        StatePart {
            salt: [1; SALT_BYTES],
            link: [2; LINK_BYTES],
            parent: (runs > 0).then_some([3; LINK_BYTES]),
            public_key: "age1pq1".to_owned(),
            writers_key: [4; RUN_KEY_BYTES],
            table,
            pieces: (0..runs)
                .map(|number| StatePiece {
                    offset: number * 9,
                    bytes: 5,
                })
                .collect(),
        }
    }

    #[test]
    fn parts_read_back() {
        for runs in [0, 1, 70] {
            let part = part(runs);
            let bytes = part.to_bytes();
            assert_eq!(StatePart::parse(&bytes), Ok(part));
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                assert!(StatePart::parse(&changed).is_err(), "{runs} {at}");
                assert!(StatePart::parse(&bytes[..at]).is_err(), "{runs} {at}");
            }
        }
    }
}
