//! The records of a chunk: the literals and the copies that make up its content.

use crate::check::check_limit;
use crate::error::{FormatError, Result};
use crate::limits::ADDRESS_BYTES_MAX;
use crate::lrzip::header::Version;

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Literals.
    Literals {
        /// The number of literals, at least 1.
        length_bytes: u64,
    },
    /// A copy of earlier content.
    Match {
        /// The number of bytes, at least 1.
        length_bytes: u64,
        /// The distance back to the source, at least 1; less than the length for a period.
        distance_bytes: u64,
    },
    /// The end of the chunk.
    End {
        /// The CRC-32 of its content (reflected, initial value 0, not inverted).
        /// [`Header::digest`](super::Header) tells whether it is meaningful.
        crc: Option<u32>,
    },
}

/// The size of the longest record: type, length and distance of eight bytes each.
const RECORD_BYTES_MAX: usize = 1 + 8 + 8;

/// Parses records from bytes that arrive in parts.
#[derive(Debug, Clone)]
pub struct RecordParser {
    length_width: usize,
    distance_width: usize,
    crc_width: usize,
    buffer: [u8; RECORD_BYTES_MAX],
    buffered_bytes: usize,
    has_ended: bool,
}

impl RecordParser {
    /// Creates a parser for the records of a chunk with numbers of this width.
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
            buffer: [0; RECORD_BYTES_MAX],
            buffered_bytes: 0,
            has_ended: false,
        }
    }

    /// Returns whether the end record was parsed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Parses the next record from the start of `input` and advances `input`. Returns `None` if the
    /// record continues in the next part.
    ///
    /// # Errors
    /// `Value` for matches without length or distance, `OverLimit`, `Trailing` for bytes after the
    /// end record.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Record>> {
        if self.has_ended && !input.is_empty() {
            return Err(FormatError::Trailing {
                what: "the last record of a chunk",
                extra_bytes: input.len() as u64,
            });
        }
        loop {
            let needed = self.needed_bytes();
            if self.buffered_bytes == needed {
                break;
            }
            let Some((&byte, rest)) = input.split_first() else {
                return Ok(None);
            };
            self.buffer[self.buffered_bytes] = byte;
            self.buffered_bytes += 1;
            *input = rest;
        }
        let record = self.record()?;
        self.buffered_bytes = 0;
        self.has_ended = matches!(record, Record::End { .. });
        Ok(Some(record))
    }

    /// Returns the size of the current record, if the buffered bytes determine it.
    fn needed_bytes(&self) -> usize {
        let fixed = 1 + self.length_width;
        if self.buffered_bytes < fixed {
            return fixed;
        }
        match (self.buffer[0], self.length()) {
            (0, 0) => fixed + self.crc_width,
            (0, _) => fixed,
            _ => fixed + self.distance_width,
        }
    }

    fn length(&self) -> u64 {
        number(&self.buffer[1..1 + self.length_width])
    }

    fn record(&self) -> Result<Record> {
        let length_bytes = self.length();
        check_limit("record length in bytes", length_bytes, ADDRESS_BYTES_MAX)?;
        let rest = &self.buffer[1 + self.length_width..self.buffered_bytes];
        match (self.buffer[0], length_bytes) {
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

    fn records(version: Version, width: u8, bytes: &[u8], part: usize) -> Result<Vec<Record>> {
        let mut parser = RecordParser::new(version, width);
        let mut found = Vec::new();
        for mut input in bytes.chunks(part) {
            while let Some(record) = parser.next(&mut input)? {
                found.push(record);
            }
        }
        Ok(found)
    }

    #[test]
    fn parses_records_of_every_width_from_any_parts() {
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
        for part in 1..20 {
            let expected = Ok(vec![literals, found, end(Some(0x0403_0201))]);
            assert_eq!(records(Version::V6, 3, &v6, part), expected);
            let expected = Ok(vec![literals, found, end(None)]);
            assert_eq!(records(Version::V7, 3, &v7, part), expected);
            let expected = Ok(vec![literals, found, end(Some(0))]);
            assert_eq!(records(Version::V4, 8, &v4, part), expected);
        }
    }

    #[test]
    fn rejects_invalid_records() {
        let no_distance = [1, 5, 0, 0];
        let no_length = [1, 0, 0, 7];
        let trailing = [0, 0, 0, 1, 2, 3, 4, 0];
        for bytes in [&no_distance[..], &no_length, &trailing] {
            assert!(records(Version::V6, 1, bytes, 100).is_err(), "{bytes:?}");
        }
    }
}
