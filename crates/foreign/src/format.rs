//! The formats, and how each is recognized.

use std::fmt;

/// A format of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// gzip (RFC 1952).
    Gzip,
    /// xz.
    Xz,
    /// Zstandard (RFC 8878).
    Zstd,
    /// bzip2.
    Bzip2,
    /// Frames of LZ4, also of its first version.
    Lz4,
    /// ZIP.
    Zip,
}

/// How a bzip2 file continues after its level: with a block, or with the end of an empty stream.
const BZIP2_BLOCK: &[u8] = b"\x31\x41\x59\x26\x53\x59";
const BZIP2_END: &[u8] = b"\x17\x72\x45\x38\x50\x90";

pub(crate) const LZ4_MAGIC: u32 = 0x184d_2204;
pub(crate) const LZ4_LEGACY_MAGIC: u32 = 0x184c_2102;
pub(crate) const ZSTD_MAGIC: u32 = 0xfd2f_b528;

/// Whether a frame with this first number is skipped by zstd and lz4.
pub(crate) fn is_skippable(magic: u32) -> bool {
    magic & 0xffff_fff0 == 0x184d_2a50
}

impl Format {
    /// The bytes at the beginning that suffice to recognize a format.
    pub const PREFIX_BYTES: usize = 512;

    /// The format of a file that begins with these bytes; fewer than [`Format::PREFIX_BYTES`] are
    /// taken for the whole file.
    #[must_use]
    pub fn from_prefix(first: &[u8]) -> Option<Format> {
        match first {
            [0x1f, 0x8b, ..] => Some(Format::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Format::Xz),
            [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] => is_bzip2(rest).then_some(Format::Bzip2),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Format::Zip),
            _ => zstd_or_lz4(first),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Gzip => "gzip",
            Format::Xz => "xz",
            Format::Zstd => "zstd",
            Format::Bzip2 => "bzip2",
            Format::Lz4 => "lz4",
            Format::Zip => "zip",
        }
    }

    /// The name of its independent parts, of which a file may have several.
    #[must_use]
    pub fn part_name(self) -> &'static str {
        match self {
            Format::Gzip => "member",
            Format::Xz | Format::Bzip2 => "stream",
            Format::Zstd | Format::Lz4 => "frame",
            Format::Zip => "entry",
        }
    }

    /// Whether a file holds one sequence of bytes instead of files.
    #[must_use]
    pub fn is_stream(self) -> bool {
        self != Format::Zip
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A file cut inside the number of its first block still is bzip2.
fn is_bzip2(rest: &[u8]) -> bool {
    let first = rest.get(..BZIP2_BLOCK.len()).unwrap_or(rest);
    BZIP2_BLOCK.starts_with(first) || BZIP2_END.starts_with(first)
}

/// zstd or lz4, also after frames that both skip. If those are longer than the prefix, the format
/// is taken for zstd: only its tools write such frames first.
fn zstd_or_lz4(mut rest: &[u8]) -> Option<Format> {
    let mut skipped = false;
    loop {
        let Some((magic, after)) = rest.split_first_chunk::<4>() else {
            return skipped.then_some(Format::Zstd);
        };
        match u32::from_le_bytes(*magic) {
            ZSTD_MAGIC => return Some(Format::Zstd),
            LZ4_MAGIC | LZ4_LEGACY_MAGIC => return Some(Format::Lz4),
            magic if is_skippable(magic) => {
                skipped = true;
                let length = after.first_chunk::<4>().copied().unwrap_or([0xff; 4]);
                let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
                rest = after
                    .get(4..)
                    .and_then(|rest| rest.get(length..))
                    .unwrap_or_default();
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognized_by_their_first_bytes() {
        let skipped = b"\x50\x2a\x4d\x18\x02\0\0\0xx";
        let behind = |magic: &[u8]| [skipped, magic].concat();
        for (first, format) in [
            (&b"\x1f\x8b\x08\0"[..], Some(Format::Gzip)),
            (b"\xfd7zXZ\0\0", Some(Format::Xz)),
            (b"\x28\xb5\x2f\xfd\0", Some(Format::Zstd)),
            (b"BZh91AY&SY", Some(Format::Bzip2)),
            (b"BZh1\x17\x72\x45\x38\x50\x90", Some(Format::Bzip2)),
            (b"BZh91", Some(Format::Bzip2)),
            (b"BZh9 is how bzip2 files begin", None),
            (b"\x04\x22\x4d\x18", Some(Format::Lz4)),
            (b"\x02\x21\x4c\x18", Some(Format::Lz4)),
            (b"PK\x03\x04\x14", Some(Format::Zip)),
            (b"PK\x05\x06\0", Some(Format::Zip)),
            (&behind(b"\x28\xb5\x2f\xfd"), Some(Format::Zstd)),
            (&behind(b"\x04\x22\x4d\x18"), Some(Format::Lz4)),
            (&behind(b""), Some(Format::Zstd)),
            (&behind(b"text"), None),
            (b"", None),
            (b"text", None),
        ] {
            assert_eq!(Format::from_prefix(first), format, "{first:?}");
        }
    }
}
