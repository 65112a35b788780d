//! The records of a chunk: which literals and which copies its content is made of.

use crate::check::check_limit;
use crate::error::{FormatError, Result};
use crate::limits::ADDRESS_BYTES_MAX;
use crate::lrzip::header::Version;

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The next literals.
    Literals {
        /// How many, at least one.
        length_bytes: u64,
    },
    /// Earlier content.
    Match {
        /// How many bytes, at least one.
        length_bytes: u64,
        /// How far back they begin, at least one; less than the length for a period.
        distance_bytes: u64,
    },
    /// The chunk is complete.
    End {
        /// CRC-32 of its content, as [`Header::digest`](super::Header) tells whether it counts: reflected, from 0, not inverted.
        crc: Option<u32>,
    },
}

/// The longest record: head, length and distance of eight bytes each.
const RECORD_BYTES_MAX: usize = 1 + 8 + 8;

/// Parses records from bytes that come in pieces.
#[derive(Debug, Clone)]
pub struct RecordParser {
    length_width: usize,
    distance_width: usize,
    crc_width: usize,
    held: [u8; RECORD_BYTES_MAX],
    held_bytes: usize,
    has_ended: bool,
}

impl RecordParser {
    /// At the first record of a chunk with this width of numbers.
    #[must_use]
    pub fn new(version: Version, width_bytes: u8) -> RecordParser {
        RecordParser {
            length_width: match version {
                Version::V4 => 8,
                _ => 2,
            },
            distance_width: match version {
                Version::V4 => 8,
                _ => usize::from(width_bytes),
            },
            crc_width: match version {
                Version::V7 => 0,
                _ => 4,
            },
            held: [0; RECORD_BYTES_MAX],
            held_bytes: 0,
            has_ended: false,
        }
    }

    /// Whether the record that ends the chunk was parsed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Takes the next record from the beginning of `input` on, which it moves past what was taken. `None`: it goes on behind.
    ///
    /// # Errors
    /// `Value` for matches of no bytes or no distance, `OverLimit`, `Trailing` for bytes behind the last record.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Record>> {
        if self.has_ended && !input.is_empty() {
            return Err(FormatError::Trailing {
                what: "the last record of a chunk",
                extra_bytes: input.len() as u64,
            });
        }
        loop {
            let needed = self.needed_bytes();
            if self.held_bytes == needed {
                break;
            }
            let Some((&byte, rest)) = input.split_first() else {
                return Ok(None);
            };
            self.held[self.held_bytes] = byte;
            self.held_bytes += 1;
            *input = rest;
        }
        let record = self.record()?;
        self.held_bytes = 0;
        self.has_ended = matches!(record, Record::End { .. });
        Ok(Some(record))
    }

    /// Bytes of the record of which some are held; head and length tell.
    fn needed_bytes(&self) -> usize {
        let fixed = 1 + self.length_width;
        if self.held_bytes < fixed {
            return fixed;
        }
        match (self.held[0], self.length()) {
            (0, 0) => fixed + self.crc_width,
            (0, _) => fixed,
            _ => fixed + self.distance_width,
        }
    }

    fn length(&self) -> u64 {
        number(&self.held[1..1 + self.length_width])
    }

    fn record(&self) -> Result<Record> {
        let length_bytes = self.length();
        check_limit("record length in bytes", length_bytes, ADDRESS_BYTES_MAX)?;
        let rest = &self.held[1 + self.length_width..self.held_bytes];
        match (self.held[0], length_bytes) {
            (0, 0) => Ok(Record::End {
                crc: rest.try_into().ok().map(u32::from_le_bytes),
            }),
            (0, _) => Ok(Record::Literals { length_bytes }),
            _ => {
                let distance_bytes = number(rest);
                for (what, value) in [
                    ("match length", length_bytes),
                    ("match distance", distance_bytes),
                ] {
                    if value == 0 {
                        let rule = "at least 1";
                        return Err(FormatError::Value { what, value, rule });
                    }
                }
                check_limit("match distance in bytes", distance_bytes, ADDRESS_BYTES_MAX)?;
                Ok(Record::Match {
                    length_bytes,
                    distance_bytes,
                })
            }
        }
    }
}

/// A little-endian number of at most eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide.iter_mut()
        .zip(bytes)
        .for_each(|(to, &from)| *to = from);
    u64::from_le_bytes(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All records of `bytes`, given in pieces.
    fn records(version: Version, width: u8, bytes: &[u8], piece: usize) -> Result<Vec<Record>> {
        let mut parser = RecordParser::new(version, width);
        let mut found = Vec::new();
        for mut input in bytes.chunks(piece) {
            while let Some(record) = parser.next(&mut input)? {
                found.push(record);
            }
        }
        Ok(found)
    }

    #[test]
    fn records_of_every_width_in_any_pieces() {
        let literals = Record::Literals { length_bytes: 300 };
        let found = Record::Match {
            length_bytes: 65535,
            distance_bytes: 0x0203,
        };
        let end = |crc| Record::End { crc };
        let v6 = [0, 44, 1, 7, 255, 255, 3, 2, 0, 0, 0, 0, 1, 2, 3, 4];
        let v7 = [0, 44, 1, 1, 255, 255, 3, 2, 0, 0, 0, 0];
        let mut v4 = vec![0, 44, 1, 0, 0, 0, 0, 0, 0, 1, 255, 255, 0, 0, 0, 0, 0, 0];
        v4.extend([3, 2, 0, 0, 0, 0, 0, 0]);
        v4.extend([0; 9 + 4]);
        for piece in 1..20 {
            let expected = Ok(vec![literals, found, end(Some(0x0403_0201))]);
            assert_eq!(records(Version::V6, 3, &v6, piece), expected);
            let expected = Ok(vec![literals, found, end(None)]);
            assert_eq!(records(Version::V7, 3, &v7, piece), expected);
            let expected = Ok(vec![literals, found, end(Some(0))]);
            assert_eq!(records(Version::V4, 8, &v4, piece), expected);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let no_distance = [1, 5, 0, 0];
        let no_length = [1, 0, 0, 7];
        let behind = [0, 0, 0, 1, 2, 3, 4, 0];
        for bytes in [&no_distance[..], &no_length, &behind] {
            assert!(records(Version::V6, 1, bytes, 100).is_err(), "{bytes:?}");
        }
    }
}
