//! The header of an archive: version, content length, LZMA properties, digest, encryption.

use crate::bytes::ByteReader;
use crate::check::check_limit;
use crate::error::{FormatError, Result};
use crate::limits::ADDRESS_BYTES_MAX;
use crate::lrzip::rounds::{salt_start_at, stated_rounds};

/// The size of the longest header: lrzip-next's with a comment. Pass this many bytes to the parser
/// if available.
pub const HEADER_BYTES_MAX: usize = 21 + 255;

pub(super) const MAGIC: [u8; 4] = *b"LRZI";

/// The sizes in bytes of lrzip's header, and of the descriptor of its second cipher.
const HEADER_BYTES: usize = 24;
const DESCRIPTOR_BYTES: usize = 32;

/// The accepted number of iterations of the second cipher's key derivation: some tens of seconds on
/// one core. lrzip accepts 5 million.
const GCM_ITERATIONS_MAX: u32 = 10_000_000;

/// Returns whether the bytes begin like an lrzip archive.
#[must_use]
pub fn is_lrzip(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(&MAGIC)
}

/// The version of the format that an archive follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// lrzip 0.4x: one chunk, records with lengths of eight bytes.
    V4,
    /// lrzip 0.5x.
    V5,
    /// lrzip 0.6xx.
    V6,
    /// lrzip 0.7.x. Since 0.7.1 chunks name a filter, which the header does not state.
    V7,
    /// lrzip-next, 0.8 to 0.14.
    Next {
        /// The minor version, 8 to 14.
        minor: u8,
    },
}

impl Version {
    /// Returns the minor version that headers state.
    #[must_use]
    pub fn minor(self) -> u8 {
        match self {
            Version::V4 => 4,
            Version::V5 => 5,
            Version::V6 => 6,
            Version::V7 => 7,
            Version::Next { minor } => minor,
        }
    }

    /// Returns the customary name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Version::V4 => "0.4",
            Version::V5 => "0.5",
            Version::V6 => "0.6",
            Version::V7 => "0.7",
            Version::Next { minor: 8 } => "0.8 (lrzip-next)",
            Version::Next { minor: 9 } => "0.9 (lrzip-next)",
            Version::Next { minor: 10 } => "0.10 (lrzip-next)",
            Version::Next { minor: 11 } => "0.11 (lrzip-next)",
            Version::Next { minor: 12 } => "0.12 (lrzip-next)",
            Version::Next { minor: 13 } => "0.13 (lrzip-next)",
            Version::Next { .. } => "0.14 (lrzip-next)",
        }
    }
}

/// The digest that protects the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestKind {
    /// The MD5 of the whole content, at the end of the archive.
    Md5,
    /// A CRC-32 at the end of the records of each chunk.
    Crc,
}

/// Properties of all LZMA blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LzmaProperties {
    /// `(pb * 5 + lp) * 9 + lc`.
    pub packed: u8,
    /// The dictionary size in bytes; 0 if the writer did not know it yet.
    pub dictionary_bytes: u32,
}

/// How an archive is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128-CBC with a key by SHA-512, not authenticated.
    Cbc {
        /// The salt; its first two bytes encode the number of rounds.
        salt: [u8; 8],
        /// The number of rounds of 64 bytes that are hashed for the key.
        loops: u64,
    },
    /// AES-256-GCM with a key by PBKDF2-HMAC-SHA512.
    Gcm {
        /// Salt.
        salt: [u8; 16],
        /// Iterations.
        iterations: u32,
    },
}

impl Cipher {
    /// Returns the first cipher for an archive that is written at this time (in seconds since
    /// 1970), with lrzip's number of rounds of that time: at most what [`Header::parse`] accepts,
    /// and at least the number of November 2026. `salt` is random; its start is replaced.
    #[must_use]
    pub fn cbc_written_at(unix_seconds: u64, mut salt: [u8; 8]) -> Cipher {
        let [shift, mantissa] = salt_start_at(unix_seconds);
        (salt[0], salt[1]) = (shift, mantissa);
        let loops = u64::from(mantissa) << shift;
        Cipher::Cbc { salt, loops }
    }

    /// Returns the customary name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Cipher::Cbc { .. } => "AES-128-CBC",
            Cipher::Gcm { .. } => "AES-256-GCM",
        }
    }
}

/// The header of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The version.
    pub version: Version,
    /// The length of the content, if known.
    pub content_bytes: Option<u64>,
    /// The properties of LZMA blocks.
    pub lzma: LzmaProperties,
    /// The digest that protects the content.
    pub digest: DigestKind,
    /// The encryption.
    pub cipher: Option<Cipher>,
    /// Whether chunks after the first one begin with a header of their own (`LRZC`).
    pub is_streaming: bool,
    /// The offset of the first chunk.
    pub length_bytes: usize,
}

impl Header {
    /// Parses a header from the first bytes of an archive; pass [`HEADER_BYTES_MAX`] of them if
    /// available.
    ///
    /// # Errors
    /// `Magic`, `Truncated`, `Version`; `Value` and `OverLimit` for values that no writer writes.
    pub fn parse(bytes: &[u8]) -> Result<Header> {
        let mut reader = ByteReader::new("lrzip header", bytes);
        if reader.array::<4>()? != MAGIC {
            let mut found = [0; 8];
            found
                .iter_mut()
                .zip(bytes)
                .for_each(|(to, &from)| *to = from);
            return Err(FormatError::Magic { found });
        }
        let (major, minor) = (reader.u8()?, reader.u8()?);
        match (major, minor) {
            (0, 4) => parse_lrzip(Version::V4, reader),
            (0, 5) => parse_lrzip(Version::V5, reader),
            (0, 6) => parse_lrzip(Version::V6, reader),
            (0, 7) => parse_lrzip(Version::V7, reader),
            (0, 8..=14) => parse_next(minor, reader),
            _ => Err(FormatError::Version {
                major: u16::from(major),
                minor: u16::from(minor),
            }),
        }
    }
}

fn parse_lrzip(version: Version, mut reader: ByteReader) -> Result<Header> {
    let size_or_salt = reader.array::<8>()?;
    let streaming = reader.u8()?;
    reader.u8()?;
    let lzma = LzmaProperties {
        packed: reader.u8()?,
        dictionary_bytes: reader.u32()?,
    };
    let (digest, encryption, _last) = (reader.u8()?, reader.u8()?, reader.u8()?);
    let mut length_bytes = HEADER_BYTES;
    let cipher = match encryption {
        0 => None,
        1 => Some(cbc(size_or_salt)?),
        3 if version == Version::V7 => {
            length_bytes += DESCRIPTOR_BYTES;
            Some(gcm(reader.array()?)?)
        }
        value => {
            return Err(FormatError::Reserved {
                what: "encryption",
                value: u64::from(value),
            });
        }
    };
    let content_bytes = match cipher {
        Some(_) => None,
        None => content_bytes(version, u64::from_le_bytes(size_or_salt))?,
    };
    Ok(Header {
        version,
        content_bytes,
        lzma,
        // Before 0.560 the field was unused; any value other than 1 means that there is no MD5.
        digest: match digest {
            1 if version != Version::V4 => DigestKind::Md5,
            _ => DigestKind::Crc,
        },
        cipher,
        is_streaming: version == Version::V7 && streaming == 1,
        length_bytes,
    })
}

/// The old versions end at the stated length and have no other end mark.
fn content_bytes(version: Version, stated: u64) -> Result<Option<u64>> {
    check_limit("content length in bytes", stated, ADDRESS_BYTES_MAX)?;
    let ends_by_length = matches!(version, Version::V4 | Version::V5);
    Ok((stated > 0 || ends_by_length).then_some(stated))
}

fn cbc(salt: [u8; 8]) -> Result<Cipher> {
    let loops = stated_rounds([salt[0], salt[1]])?;
    Ok(Cipher::Cbc { salt, loops })
}

fn gcm(descriptor: [u8; DESCRIPTOR_BYTES]) -> Result<Cipher> {
    let mut reader = ByteReader::new("encryption descriptor", &descriptor);
    let (suite, salt_bytes) = (reader.u8()?, reader.u8()?);
    if (suite, salt_bytes) != (1, 16) {
        return Err(FormatError::Reserved {
            what: "cipher suite",
            value: u64::from(suite) << 8 | u64::from(salt_bytes),
        });
    }
    let iterations = reader.u32()?;
    check_limit(
        "iterations of the key derivation",
        u64::from(iterations),
        u64::from(GCM_ITERATIONS_MAX),
    )?;
    if iterations == 0 {
        return Err(FormatError::Value {
            what: "iterations of the key derivation",
            value: 0,
            rule: "at least 1",
        });
    }
    reader.u16()?;
    Ok(Cipher::Gcm {
        salt: reader.array()?,
        iterations,
    })
}

fn parse_next(minor: u8, mut reader: ByteReader) -> Result<Header> {
    let version = Version::Next { minor };
    let stated = reader.u64()?;
    let (digest, encryption, filter) = (reader.u8()?, reader.u8()?, reader.u8()?);
    // Since 0.11 a byte says to which method the properties belong.
    let method = match minor {
        11.. => Some(reader.u8()? & 15),
        _ => None,
    };
    let properties = reader.u8()?;
    // Since 0.9 there are levels and a comment.
    let comment_bytes = match minor {
        9.. => Some((reader.u8()?, reader.u8()?).1),
        _ => None,
    };
    let fixed_bytes = 18 + 2 * usize::from(minor >= 9) + usize::from(minor >= 11);
    for (what, value) in [("encryption", encryption), ("filter", filter)] {
        if value != 0 {
            return Err(FormatError::Reserved {
                what,
                value: u64::from(value),
            });
        }
    }
    let digest = match digest {
        0 => DigestKind::Crc,
        1 => DigestKind::Md5,
        value => {
            return Err(FormatError::Reserved {
                what: "digest",
                value: u64::from(value),
            });
        }
    };
    let is_lzma = match method {
        Some(method) => method == 1,
        // The highest bit marks the properties of other methods.
        None => properties < 0x80,
    };
    Ok(Header {
        version,
        content_bytes: content_bytes(version, stated)?,
        lzma: LzmaProperties {
            packed: 0x5D,
            dictionary_bytes: if is_lzma { lzma2_dictionary_bytes(properties)? } else { 0 },
        },
        digest,
        cipher: None,
        is_streaming: false,
        length_bytes: fixed_bytes + usize::from(comment_bytes.unwrap_or(0)),
    })
}

/// Returns the dictionary size of an LZMA2 code: 2^n or 3 * 2^(n - 1).
fn lzma2_dictionary_bytes(code: u8) -> Result<u32> {
    match code {
        0..40 => Ok((2 | u32::from(code & 1)) << (code / 2 + 11)),
        40 => Ok(u32::MAX),
        _ => Err(FormatError::Value {
            what: "LZMA dictionary code",
            value: u64::from(code),
            rule: "at most 40",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(minor: u8) -> [u8; 56] {
        let mut bytes = [0; 56];
        bytes[..6].copy_from_slice(&[b'L', b'R', b'Z', b'I', 0, minor]);
        bytes[6] = 200;
        bytes[16..21].copy_from_slice(&[0x5D, 0, 0, 1, 0]);
        bytes[21] = 1;
        bytes
    }

    #[test]
    fn parses_the_fields_of_every_version() {
        for (minor, version, digest) in [
            (4, Version::V4, DigestKind::Crc),
            (5, Version::V5, DigestKind::Md5),
            (6, Version::V6, DigestKind::Md5),
            (7, Version::V7, DigestKind::Md5),
        ] {
            let parsed = Header::parse(&header(minor)).unwrap();
            assert_eq!((parsed.version, parsed.digest), (version, digest));
            assert_eq!(parsed.content_bytes, Some(200));
            assert_eq!(parsed.lzma.dictionary_bytes, 1 << 16);
            assert_eq!(parsed.length_bytes, 24);
        }
        for minor in [0, 3, 15, 255] {
            assert!(matches!(
                Header::parse(&header(minor)),
                Err(FormatError::Version { .. })
            ));
        }
    }

    #[test]
    fn parses_the_headers_of_lrzip_next() {
        // The bytes after the encryption: filter, method, properties, levels, comment.
        for (minor, rest, length_bytes, dictionary_bytes) in [
            (8, &[0, 0x1A][..], 18, 32 << 20),
            (8, &[0, 0xB7], 18, 0),
            (9, &[0, 0x1A, 0x77, 3], 20 + 3, 32 << 20),
            (10, &[0, 0xF6, 0x77, 0], 20, 0),
            (11, &[0, 1, 0x1A, 0x77, 0], 21, 32 << 20),
            (12, &[0, 3, 6, 0x77, 0], 21, 0),
            (13, &[0, 0x74, 17, 0x77, 9], 21 + 9, 0),
            (14, &[0, 1, 0x1A, 0x77, 0], 21, 32 << 20),
        ] {
            let start = [
                b'L', b'R', b'Z', b'I', 0, minor, 200, 0, 0, 0, 0, 0, 0, 0, 1, 0,
            ];
            let bytes = [&start[..], rest].concat();
            let parsed = Header::parse(&bytes).unwrap();
            assert_eq!(parsed.version, Version::Next { minor });
            assert_eq!(parsed.content_bytes, Some(200));
            assert_eq!(parsed.digest, DigestKind::Md5);
            assert_eq!(parsed.length_bytes, length_bytes, "0.{minor}");
            assert_eq!(parsed.lzma.dictionary_bytes, dictionary_bytes, "0.{minor}");
            for length in 0..bytes.len() {
                assert!(Header::parse(&bytes[..length]).is_err(), "0.{minor}");
            }
            for unsupported in [14, 15, 16] {
                let mut bytes = bytes.clone();
                bytes[unsupported] = 2;
                let error = Header::parse(&bytes).unwrap_err();
                assert!(matches!(error, FormatError::Reserved { .. }), "{error}");
            }
        }
    }

    #[test]
    fn rounds_of_key_derivations_are_limited() {
        let mut bytes = header(6);
        (bytes[22], bytes[6], bytes[7]) = (1, 0x10, 0xAA);
        let parsed = Header::parse(&bytes).unwrap();
        assert!(matches!(
            parsed.cipher,
            Some(Cipher::Cbc {
                loops: 11_141_120,
                ..
            })
        ));
        assert_eq!(parsed.content_bytes, None);
        for shift in [30, 56, 64, 255] {
            bytes[6] = shift;
            assert!(matches!(
                Header::parse(&bytes),
                Err(FormatError::OverLimit { .. })
            ));
        }
        let mut bytes = header(7);
        bytes[22] = 3;
        bytes[24..26].copy_from_slice(&[1, 16]);
        bytes[26..30].copy_from_slice(&600_000_u32.to_le_bytes());
        assert_eq!(Header::parse(&bytes).unwrap().length_bytes, 56);
        bytes[29] = 0xFF;
        assert!(Header::parse(&bytes).is_err());
    }

    #[test]
    fn rejects_every_truncation() {
        let bytes = header(6);
        for length in 0..24 {
            assert!(Header::parse(&bytes[..length]).is_err(), "{length}");
        }
    }
}
