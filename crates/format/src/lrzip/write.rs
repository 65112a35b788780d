//! Writes what [`header`](super::header), [`chunk`](super::chunk) and [`record`](super::record)
//! parse: version 6 (lrzip 0.6), and for the second cipher version 7 (without filters, as lrzip
//! 0.7.1 writes it).

use crate::check::check_limit;
use crate::error::{FormatError, Result};
use crate::limits::ADDRESS_BYTES_MAX;
use crate::lrzip::chunk::{BackEnd, BlockHeader};
use crate::lrzip::header::{Cipher, DigestKind, Header, MAGIC, Version};

/// The largest number of bytes in one record.
pub const RECORD_LENGTH_MAX: u64 = u16::MAX as u64;

/// The largest width of a number in bytes.
pub const WIDTH_BYTES_MAX: u8 = 8;

/// Returns the number of bytes for numbers up to `largest`, at least 1.
#[must_use]
pub fn width_bytes(largest: u64) -> u8 {
    let bytes = (u64::BITS - largest.leading_zeros()).div_ceil(8);
    u8::try_from(bytes.max(1)).unwrap_or(WIDTH_BYTES_MAX)
}

impl Header {
    /// Returns the header's bytes. Only versions 6 and 7 are written.
    ///
    /// # Errors
    /// `Version` for another version; `Value` if the version does not have the cipher; `OverLimit`
    /// for the length of the content.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if !matches!(self.version, Version::V6 | Version::V7) {
            return Err(FormatError::Version {
                major: 0,
                minor: u16::from(self.version.minor()),
            });
        }
        let content_bytes = self.content_bytes.unwrap_or(0);
        check_limit("content length in bytes", content_bytes, ADDRESS_BYTES_MAX)?;
        let (size_or_salt, encryption) = match (self.cipher, self.version) {
            (None, _) => (content_bytes.to_le_bytes(), 0),
            (Some(Cipher::Cbc { salt, .. }), Version::V6) => (salt, 1),
            (Some(Cipher::Gcm { salt, .. }), Version::V7) => {
                (salt.first_chunk().copied().unwrap_or_default(), 3)
            }
            _ => {
                let (what, rule) = ("encryption", "1 in version 6, 3 in version 7");
                return Err(FormatError::Value {
                    what,
                    value: u64::from(self.version.minor()),
                    rule,
                });
            }
        };
        let mut bytes = Vec::with_capacity(56);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[0, self.version.minor()]);
        bytes.extend_from_slice(&size_or_salt);
        bytes.extend_from_slice(&[u8::from(self.is_streaming), 0]);
        bytes.push(self.lzma.packed);
        bytes.extend_from_slice(&self.lzma.dictionary_bytes.to_le_bytes());
        // In version 7 the last byte states that the archive is not written as a stream.
        let is_whole = self.version == Version::V7 && !self.is_streaming;
        bytes.extend_from_slice(&[
            u8::from(self.digest == DigestKind::Md5),
            encryption,
            u8::from(is_whole),
        ]);
        if let Some(Cipher::Gcm { salt, iterations }) = self.cipher {
            bytes.extend_from_slice(&[1, 16]);
            bytes.extend_from_slice(&iterations.to_le_bytes());
            bytes.extend_from_slice(&[0, 0]);
            bytes.extend_from_slice(&salt);
            bytes.extend_from_slice(&[0; 8]);
        }
        Ok(bytes)
    }
}

/// Returns the header of a chunk without filters, as [`ChunkHeader`](super::ChunkHeader) parses it.
/// `content_bytes` may be unknown: readers do not rely on it.
#[must_use]
pub fn chunk_header_bytes(
    version: Version,
    width_bytes: u8,
    is_last: bool,
    is_encrypted: bool,
    content_bytes: Option<u64>,
) -> Vec<u8> {
    let mut bytes = vec![width_bytes];
    if version == Version::V7 {
        bytes.push(0);
    }
    bytes.push(u8::from(is_last));
    if !is_encrypted {
        put_number(&mut bytes, content_bytes.unwrap_or(0), width_bytes);
    }
    bytes
}

impl BlockHeader {
    /// Creates the header of a block. `next` is the position of the next block header of its
    /// stream, counted from the first root; 0 if there is none.
    #[must_use]
    pub fn new(back_end: BackEnd, coded_bytes: u64, raw_bytes: u64, next: u64) -> BlockHeader {
        BlockHeader {
            kind: back_end.kind(),
            coded_bytes,
            raw_bytes,
            next,
        }
    }

    /// Creates the root of a stream.
    #[must_use]
    pub fn root(next: u64) -> BlockHeader {
        BlockHeader::new(BackEnd::None, 0, 0, next)
    }

    /// Returns its bytes with numbers of this width.
    ///
    /// # Errors
    /// `OverLimit` for a number that does not fit.
    pub fn to_bytes(self, width_bytes: u8) -> Result<Vec<u8>> {
        let mut bytes = vec![self.kind];
        for number in [self.coded_bytes, self.raw_bytes, self.next] {
            check_fits(number, width_bytes)?;
            put_number(&mut bytes, number, width_bytes);
        }
        Ok(bytes)
    }
}

impl BackEnd {
    /// Returns its id in block headers.
    #[must_use]
    pub fn kind(self) -> u8 {
        match self {
            BackEnd::None => 3,
            BackEnd::Bzip2 => 4,
            BackEnd::Lzo => 5,
            BackEnd::Lzma => 6,
            BackEnd::Gzip => 7,
            BackEnd::Zpaq => 8,
            BackEnd::LzmaX86 | BackEnd::Bzip3 => 9,
            BackEnd::LzmaArm64 | BackEnd::Zstd => 10,
            BackEnd::LzmaDelta(distance) => 10 + distance,
        }
    }
}

/// Writes the records of a chunk.
#[derive(Debug, Clone)]
pub struct RecordWriter {
    version: Version,
    width_bytes: u8,
}

impl RecordWriter {
    /// Creates a writer for a chunk with numbers of this width.
    #[must_use]
    pub fn new(version: Version, width_bytes: u8) -> RecordWriter {
        RecordWriter {
            version,
            width_bytes,
        }
    }

    /// Appends records for `length_bytes` literals.
    pub fn literals(&self, mut length_bytes: u64, out: &mut Vec<u8>) {
        while length_bytes > 0 {
            let part = length_bytes.min(RECORD_LENGTH_MAX);
            out.push(0);
            put_number(out, part, 2);
            length_bytes -= part;
        }
    }

    /// Appends records for a copy of `length_bytes` bytes from `distance_bytes` before.
    ///
    /// # Errors
    /// `Value` for a distance of 0, `OverLimit` for one that does not fit.
    pub fn matched(
        &self,
        mut length_bytes: u64,
        distance_bytes: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if distance_bytes == 0 {
            let (what, rule) = ("match distance", "at least 1");
            return Err(FormatError::Value {
                what,
                value: 0,
                rule,
            });
        }
        check_fits(distance_bytes, self.width_bytes)?;
        while length_bytes > 0 {
            let part = length_bytes.min(RECORD_LENGTH_MAX);
            out.push(1);
            put_number(out, part, 2);
            put_number(out, distance_bytes, self.width_bytes);
            length_bytes -= part;
        }
        Ok(())
    }

    /// Appends the end record; `crc` as in [`Record::End`](super::Record).
    pub fn end(&self, crc: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; 3]);
        if self.version != Version::V7 {
            out.extend_from_slice(&crc.to_le_bytes());
        }
    }
}

fn check_fits(number: u64, width_bytes: u8) -> Result<()> {
    let largest = u64::MAX >> (u64::BITS - 8 * u32::from(width_bytes.clamp(1, WIDTH_BYTES_MAX)));
    check_limit("number in a chunk", number, largest)
}

fn put_number(out: &mut Vec<u8>, number: u64, width_bytes: u8) {
    let bytes = number.to_le_bytes();
    out.extend_from_slice(&bytes[..usize::from(width_bytes.min(WIDTH_BYTES_MAX))]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lrzip::{ChunkHeader, LzmaProperties, Record, RecordParser};

    fn header(version: Version, cipher: Option<Cipher>) -> Header {
        Header {
            version,
            content_bytes: cipher.is_none().then_some(77),
            lzma: LzmaProperties {
                packed: 0x5D,
                dictionary_bytes: 1 << 24,
            },
            digest: DigestKind::Md5,
            cipher,
            is_streaming: false,
            length_bytes: match cipher {
                Some(Cipher::Gcm { .. }) => 56,
                _ => 24,
            },
        }
    }

    #[test]
    fn headers_are_parsed_as_written() {
        let cbc = Cipher::Cbc {
            salt: [4, 200, 1, 2, 3, 4, 5, 6],
            loops: 200 << 4,
        };
        let gcm = Cipher::Gcm {
            salt: [9; 16],
            iterations: 600_000,
        };
        for header in [
            header(Version::V6, None),
            header(Version::V7, None),
            header(Version::V6, Some(cbc)),
            header(Version::V7, Some(gcm)),
        ] {
            let bytes = header.to_bytes().unwrap();
            assert_eq!(Header::parse(&bytes), Ok(header));
        }
        assert!(header(Version::V7, Some(cbc)).to_bytes().is_err());
        assert!(header(Version::V6, Some(gcm)).to_bytes().is_err());
        assert!(header(Version::V5, None).to_bytes().is_err());
    }

    #[test]
    fn chunk_headers_are_parsed_as_written() {
        for version in [Version::V6, Version::V7] {
            for (is_encrypted, width, is_last) in [(false, 3, true), (true, 6, false)] {
                let bytes = chunk_header_bytes(version, width, is_last, is_encrypted, Some(9));
                let names_filter = version == Version::V7;
                let parsed = ChunkHeader::parse(version, is_encrypted, names_filter, &bytes);
                let parsed = parsed.unwrap();
                assert_eq!((parsed.width_bytes, parsed.is_last), (width, Some(is_last)));
                assert_eq!(parsed.length_bytes, bytes.len() as u64);
                assert_eq!(parsed.prefilter, None);
            }
        }
    }

    #[test]
    fn block_headers_hold_numbers_of_their_width() {
        assert_eq!([0, 255, 256, 65_536].map(width_bytes), [1, 1, 2, 3]);
        assert_eq!(width_bytes(u64::MAX), 8);
        for width in 1..=8 {
            let largest = u64::MAX >> (64 - 8 * u32::from(width));
            let header = BlockHeader::new(BackEnd::Lzo, largest, 1, largest / 2);
            let bytes = header.to_bytes(width).unwrap();
            assert_eq!(BlockHeader::parse(&bytes, width), Ok(header));
            if width < 8 {
                assert!(BlockHeader::root(largest + 1).to_bytes(width).is_err());
            }
        }
    }

    #[test]
    fn long_records_are_split() {
        let writer = RecordWriter::new(Version::V6, 4);
        let mut bytes = Vec::new();
        writer.literals(70_000, &mut bytes);
        writer.matched(200_000, 65_536, &mut bytes).unwrap();
        writer.end(0x0102_0304, &mut bytes);
        let mut parser = RecordParser::new(Version::V6, 4);
        let (mut input, mut lengths) = (&bytes[..], [0, 0]);
        while let Some(record) = parser.next(&mut input).unwrap() {
            match record {
                Record::Literals { length_bytes } => lengths[0] += length_bytes,
                Record::Match {
                    length_bytes,
                    distance_bytes,
                } => {
                    assert_eq!(distance_bytes, 65_536);
                    lengths[1] += length_bytes;
                }
                Record::End { crc } => assert_eq!(crc, Some(0x0102_0304)),
            }
        }
        assert!(parser.has_ended() && input.is_empty());
        assert_eq!(lengths, [70_000, 200_000]);
        assert!(writer.matched(1, 0, &mut bytes).is_err());
        assert!(writer.matched(1, 1 << 32, &mut bytes).is_err());
    }
}
