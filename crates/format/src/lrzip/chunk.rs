//! Chunks: their headers, the headers of their blocks, and the order of the blocks of two streams.
//!
//! A chunk's header is followed by two block headers without blocks, the *roots* of the streams.
//! Each block header states the position of the next one in its stream, counted from the first
//! root. Writers leave no gaps, so the positions of the two next block headers determine which
//! stream the next block belongs to, in one pass from front to back: [`BlockWalk`]. Anything else
//! (gaps, steps back, loops) is rejected.

use crate::check::{check_limit, check_range};
use crate::error::{FormatError, Result};
use crate::limits::ADDRESS_BYTES_MAX;
use crate::lrzip::header::{Cipher, Version};
use crate::lrzip::record::number;

/// The stream of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Records.
    Records = 0,
    /// Literal bytes.
    Literals = 1,
}

/// The filter that was applied to the content of a chunk before its matches were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefilter {
    /// x86 branches made absolute.
    X86,
    /// ARM64 branches made absolute.
    Arm64,
}

/// The header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// The width of its numbers in bytes.
    pub width_bytes: u8,
    /// Whether no chunk follows; the oldest versions do not state it.
    pub is_last: Option<bool>,
    /// The filter that was applied to its content.
    pub prefilter: Option<Prefilter>,
    /// The offset of its first root in the chunk.
    pub length_bytes: u64,
}

/// The size of the longest chunk header in bytes.
pub const CHUNK_HEADER_BYTES_MAX: usize = 3 + 8;

impl ChunkHeader {
    /// Parses a header from the start of `bytes`; pass [`CHUNK_HEADER_BYTES_MAX`] of them if
    /// available. `has_prefilter` states whether the chunks of the archive name a filter.
    ///
    /// # Errors
    /// `Truncated`; `Value` for a width or a flag that no writer writes; `Reserved` for an unknown
    /// filter.
    pub fn parse(
        version: Version,
        is_encrypted: bool,
        has_prefilter: bool,
        bytes: &[u8],
    ) -> Result<ChunkHeader> {
        let mut header = ChunkHeader {
            width_bytes: 8,
            is_last: None,
            prefilter: None,
            length_bytes: 0,
        };
        let mut at = 0;
        let mut byte = || {
            let byte = bytes.get(at).copied();
            at += 1;
            byte.ok_or(FormatError::Truncated {
                what: "chunk header",
                needed_bytes: at as u64,
                available_bytes: bytes.len() as u64,
            })
        };
        if version == Version::V4 {
            return Ok(header);
        }
        header.width_bytes = byte()?;
        if !matches!(header.width_bytes, 1..=8) {
            let rule = "1 to 8";
            let value = u64::from(header.width_bytes);
            return Err(FormatError::Value {
                what: "width of numbers in a chunk",
                value,
                rule,
            });
        }
        header.length_bytes = 1;
        if version == Version::V5 {
            return Ok(header);
        }
        if has_prefilter {
            header.prefilter = match byte()? {
                0 => None,
                1 => Some(Prefilter::X86),
                2 => Some(Prefilter::Arm64),
                value => {
                    let value = u64::from(value);
                    return Err(FormatError::Reserved {
                        what: "chunk filter",
                        value,
                    });
                }
            };
            header.length_bytes += 1;
        }
        header.is_last = match byte()? {
            flag @ (0 | 1) => Some(flag == 1),
            value => {
                let (what, rule) = ("flag of the last chunk", "0 or 1");
                return Err(FormatError::Value {
                    what,
                    value: u64::from(value),
                    rule,
                });
            }
        };
        header.length_bytes += 1;
        if !is_encrypted {
            // The length of the chunk, which is not reliable: writers round it up to a page and
            // truncate it.
            header.length_bytes += u64::from(header.width_bytes);
        }
        Ok(header)
    }

    /// Returns the width of the numbers in block headers, in bytes.
    #[must_use]
    pub fn number_width_bytes(&self, version: Version, is_encrypted: bool) -> u8 {
        match version {
            Version::V4 | Version::V5 => 8,
            _ if is_encrypted => 8,
            _ => self.width_bytes,
        }
    }
}

/// How a block is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackEnd {
    /// Stored uncompressed.
    None,
    /// bzip2.
    Bzip2,
    /// LZO1X.
    Lzo,
    /// LZMA.
    Lzma,
    /// zlib, which lrzip calls gzip.
    Gzip,
    /// ZPAQ.
    Zpaq,
    /// LZMA after a filter for x86.
    LzmaX86,
    /// LZMA after a filter for ARM64.
    LzmaArm64,
    /// LZMA after a delta filter of this distance.
    LzmaDelta(u8),
    /// bzip3 (lrzip-next).
    Bzip3,
    /// Zstandard (lrzip-next).
    Zstd,
}

impl BackEnd {
    fn from_kind(version: Version, kind: u8) -> Result<BackEnd> {
        Ok(match (kind, version) {
            (3, _) => BackEnd::None,
            (4, _) => BackEnd::Bzip2,
            (5, _) => BackEnd::Lzo,
            (6, _) => BackEnd::Lzma,
            (7, _) => BackEnd::Gzip,
            (8, _) => BackEnd::Zpaq,
            (9, Version::V7) => BackEnd::LzmaX86,
            (10, Version::V7) => BackEnd::LzmaArm64,
            (11..=14, Version::V7) => BackEnd::LzmaDelta(kind - 10),
            (9, Version::Next { .. }) => BackEnd::Bzip3,
            (10, Version::Next { .. }) => BackEnd::Zstd,
            _ => {
                let (what, rule) = ("type of a block", "one of the version's back ends");
                return Err(FormatError::Value {
                    what,
                    value: u64::from(kind),
                    rule,
                });
            }
        })
    }

    /// Returns lrzip's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BackEnd::None => "none",
            BackEnd::Bzip2 => "bzip2",
            BackEnd::Lzo => "lzo",
            BackEnd::Gzip => "gzip",
            BackEnd::Zpaq => "zpaq",
            BackEnd::Bzip3 => "bzip3",
            BackEnd::Zstd => "zstd",
            BackEnd::Lzma | BackEnd::LzmaX86 | BackEnd::LzmaArm64 | BackEnd::LzmaDelta(_) => "lzma",
        }
    }
}

/// The header of a block, or a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    pub(super) kind: u8,
    /// The number of bytes of the block in the archive, without what encryption adds.
    pub coded_bytes: u64,
    /// The number of bytes of the block after decompression.
    pub raw_bytes: u64,
    pub(super) next: u64,
}

impl BlockHeader {
    /// Returns the size of a block header with numbers of this width.
    #[must_use]
    pub fn length_bytes(width_bytes: u8) -> usize {
        1 + 3 * usize::from(width_bytes)
    }

    /// Parses a block header. Its numbers are checked where they are used.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn parse(bytes: &[u8], width_bytes: u8) -> Result<BlockHeader> {
        let (width, needed) = (usize::from(width_bytes), Self::length_bytes(width_bytes));
        let Some((&kind, numbers)) = bytes.get(..needed).and_then(|bytes| bytes.split_first())
        else {
            return Err(FormatError::Truncated {
                what: "header of a block",
                needed_bytes: needed as u64,
                available_bytes: bytes.len() as u64,
            });
        };
        let field = |index: usize| number(&numbers[index * width..(index + 1) * width]);
        Ok(BlockHeader {
            kind,
            coded_bytes: field(0),
            raw_bytes: field(1),
            next: field(2),
        })
    }

    /// Returns whether this can be a root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        (self.kind, self.coded_bytes, self.raw_bytes) == (3, 0, 0)
    }

    fn is_empty(&self) -> bool {
        self.is_root()
    }
}

/// A block that the walk found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundBlock {
    /// How it is compressed.
    pub back_end: BackEnd,
    /// The number of bytes in the archive, without what encryption adds.
    pub coded_bytes: u64,
    /// The total number of bytes in the archive.
    pub stored_bytes: u64,
    /// The number of bytes after decompression.
    pub raw_bytes: u64,
}

/// The bytes that encryption adds to block headers and blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncryptionOverhead {
    /// The number of bytes added.
    pub added_bytes: u64,
    /// Shorter items are padded to this size.
    pub item_bytes_min: u64,
}

impl EncryptionOverhead {
    /// Returns the overhead of a cipher.
    #[must_use]
    pub fn for_cipher(cipher: Option<&Cipher>) -> EncryptionOverhead {
        let (added_bytes, item_bytes_min) = match cipher {
            None => (0, 0),
            // A salt; whole blocks of the cipher.
            Some(Cipher::Cbc { .. }) => (8, 16),
            // A nonce and a tag.
            Some(Cipher::Gcm { .. }) => (12 + 16, 0),
        };
        EncryptionOverhead {
            added_bytes,
            item_bytes_min,
        }
    }

    /// Returns the number of bytes in the archive of an item of `length_bytes`.
    #[must_use]
    pub fn stored_bytes(&self, length_bytes: u64) -> u64 {
        length_bytes
            .max(self.item_bytes_min)
            .saturating_add(self.added_bytes)
    }
}

/// Walks over the blocks of one chunk from front to back.
#[derive(Debug, Clone)]
pub struct BlockWalk {
    version: Version,
    overhead: EncryptionOverhead,
    header_bytes: u64,
    /// The current position, counted from the first root.
    position: u64,
    /// The position of each stream's next block header; 0 if there is none.
    next: [u64; 2],
    raw_bytes: [u64; 2],
}

impl BlockWalk {
    /// Starts after the two roots of a chunk, which must be decrypted.
    ///
    /// # Errors
    /// `Value` if they are not roots, or if there are no records.
    pub fn new(
        version: Version,
        overhead: EncryptionOverhead,
        number_width_bytes: u8,
        roots: [BlockHeader; 2],
    ) -> Result<BlockWalk> {
        for root in roots {
            if !root.is_root() {
                let (what, rule) = ("type of the root of a stream", "3, without a block");
                return Err(FormatError::Value {
                    what,
                    value: u64::from(root.kind),
                    rule,
                });
            }
        }
        let header_bytes =
            overhead.stored_bytes(BlockHeader::length_bytes(number_width_bytes) as u64);
        let next = roots.map(|root| root.next);
        if next[0] == 0 {
            let (what, rule) = ("position of the first records", "after the roots");
            return Err(FormatError::Value {
                what,
                value: 0,
                rule,
            });
        }
        Ok(BlockWalk {
            version,
            overhead,
            header_bytes,
            position: 2 * header_bytes,
            next,
            raw_bytes: [0; 2],
        })
    }

    /// Returns the position of the walk, counted from the first root: the header of the next block,
    /// or the end of the chunk.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the stream of the next block; `None` at the end of the chunk.
    ///
    /// # Errors
    /// `Mismatch` if no stream continues at this position.
    pub fn next_stream(&self) -> Result<Option<Stream>> {
        match self.next {
            [0, 0] => Ok(None),
            [here, _] if here == self.position => Ok(Some(Stream::Records)),
            [_, here] if here == self.position => Ok(Some(Stream::Literals)),
            [records, literals] => Err(FormatError::Mismatch {
                what: "position of the next block of the chunk",
                found: [records, literals]
                    .into_iter()
                    .filter(|&position| position > 0)
                    .min()
                    .unwrap_or(0),
                expected: self.position,
            }),
        }
    }

    /// Takes the decrypted header of the next block. Returns `None` for a block without bytes,
    /// which may end the literals; it takes space in the archive only if it is encrypted.
    ///
    /// # Errors
    /// `Value`, `Mismatch`, `OverLimit`, `Reserved` for values that no writer writes.
    pub fn take(&mut self, stream: Stream, header: &BlockHeader) -> Result<Option<FoundBlock>> {
        let payload_at = check_range(
            "position of a block in its chunk",
            self.position,
            self.header_bytes,
        )?;
        let stored_bytes = self.overhead.stored_bytes(header.coded_bytes);
        let end = check_range("position of a block in its chunk", payload_at, stored_bytes)?;
        if header.next != 0 && header.next < end {
            return Err(FormatError::Mismatch {
                what: "position of the next block of a stream",
                found: header.next,
                expected: end,
            });
        }
        self.next[stream as usize] = header.next;
        self.position = end;
        let is_tail = stream == Stream::Literals && header.is_empty() && header.next == 0;
        if is_tail {
            return Ok(None);
        }
        let back_end = BackEnd::from_kind(self.version, header.kind)?;
        for (what, value) in [
            ("length of a block in the archive", header.coded_bytes),
            ("length of a block", header.raw_bytes),
        ] {
            if value == 0 {
                return Err(FormatError::Value {
                    what,
                    value,
                    rule: "at least 1",
                });
            }
        }
        if back_end == BackEnd::None && header.coded_bytes != header.raw_bytes {
            return Err(FormatError::Mismatch {
                what: "length of an uncompressed block",
                found: header.coded_bytes,
                expected: header.raw_bytes,
            });
        }
        let raw_bytes = &mut self.raw_bytes[stream as usize];
        *raw_bytes = raw_bytes.saturating_add(header.raw_bytes);
        check_limit("bytes of a stream", *raw_bytes, ADDRESS_BYTES_MAX)?;
        Ok(Some(FoundBlock {
            back_end,
            coded_bytes: header.coded_bytes,
            stored_bytes,
            raw_bytes: header.raw_bytes,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u8, coded: u8, raw: u8, next: u8) -> BlockHeader {
        BlockHeader::parse(&[kind, coded, raw, next], 1).unwrap()
    }

    fn walk(next: [u8; 2]) -> Result<BlockWalk> {
        let roots = next.map(|next| header(3, 0, 0, next));
        BlockWalk::new(Version::V6, EncryptionOverhead::for_cipher(None), 1, roots)
    }

    #[test]
    fn accepts_blocks_of_both_streams_in_any_order() {
        let mut walk = walk([22, 8]).unwrap();
        assert_eq!(walk.next_stream(), Ok(Some(Stream::Literals)));
        let block = walk
            .take(Stream::Literals, &header(6, 10, 50, 0))
            .unwrap()
            .unwrap();
        assert_eq!((block.back_end, block.raw_bytes), (BackEnd::Lzma, 50));
        assert_eq!(walk.next_stream(), Ok(Some(Stream::Records)));
        walk.take(Stream::Records, &header(3, 7, 7, 0)).unwrap();
        assert_eq!(walk.next_stream(), Ok(None));
        assert_eq!(walk.position(), 33);
    }

    #[test]
    fn an_empty_block_may_end_the_literals_only() {
        let mut empty = walk([8, 19]).unwrap();
        empty.take(Stream::Records, &header(3, 7, 7, 0)).unwrap();
        assert_eq!(empty.take(Stream::Literals, &header(3, 0, 0, 0)), Ok(None));
        let mut walk = walk([8, 0]).unwrap();
        assert!(walk.take(Stream::Records, &header(3, 0, 0, 0)).is_err());
    }

    #[test]
    fn rejects_gaps_loops_and_invalid_headers() {
        assert!(walk([0, 8]).is_err(), "no records");
        let gap = walk([9, 0]).unwrap();
        assert!(gap.next_stream().is_err());
        for (what, wrong) in [
            ("a loop", header(3, 7, 7, 8)),
            ("into itself", header(3, 7, 7, 18)),
            ("stored, but shorter", header(3, 7, 8, 0)),
            ("no bytes", header(6, 0, 8, 0)),
            ("no raw bytes", header(6, 8, 0, 0)),
            ("unknown", header(9, 7, 7, 0)),
        ] {
            let mut walk = walk([8, 0]).unwrap();
            assert!(walk.take(Stream::Records, &wrong).is_err(), "{what}");
        }
        let huge = BlockHeader::parse(&[[6].as_slice(), &[0xFF; 24]].concat(), 8).unwrap();
        let roots = [8, 0].map(|next| header(3, 0, 0, next));
        let mut walk =
            BlockWalk::new(Version::V6, EncryptionOverhead::for_cipher(None), 1, roots).unwrap();
        assert!(walk.take(Stream::Records, &huge).is_err());
    }

    #[test]
    fn parses_chunk_headers_of_every_version() {
        let parse = |version, encrypted, filter, bytes: &[u8]| {
            let header = ChunkHeader::parse(version, encrypted, filter, bytes)?;
            Ok::<_, FormatError>((header.width_bytes, header.is_last, header.length_bytes))
        };
        assert_eq!(parse(Version::V4, false, false, &[]), Ok((8, None, 0)));
        assert_eq!(parse(Version::V5, false, false, &[3]), Ok((3, None, 1)));
        assert_eq!(
            parse(Version::V6, false, false, &[3, 1]),
            Ok((3, Some(true), 5))
        );
        assert_eq!(
            parse(Version::V6, true, false, &[3, 0]),
            Ok((3, Some(false), 2))
        );
        assert_eq!(
            parse(Version::V7, false, true, &[3, 0, 1]),
            Ok((3, Some(true), 6))
        );
        for wrong in [&[][..], &[0, 1], &[9, 1], &[3, 2], &[3]] {
            assert!(
                parse(Version::V6, false, false, wrong).is_err(),
                "{wrong:?}"
            );
        }
    }
}
