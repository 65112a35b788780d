//! Heads of archives in volumes: which files or objects hold the bytes of an archive, and in which
//! order.
//!
//! A folder (or a prefix of a bucket) has volumes and heads. Neither is ever changed: each run adds
//! volumes and a head that lists them behind the earlier ones. The newest head is the archive.
//! Names of heads count backwards, so that the first of them in order is the newest.

use std::fmt;

use refrain_protect::{HASH_BYTES, checksum64};

use crate::bytes::{ByteReader, put_varint};
use crate::error::{FormatError, Result};
use crate::limits::ADDRESS_BYTES_MAX;

/// The first bytes of a head.
pub const VOLUMES_MAGIC: [u8; 8] = [0xd2, b'R', b'F', b'V', b'\r', b'\n', 0x1a, b'\n'];

/// The version of heads that this crate writes. A later one is not read.
pub const VOLUMES_VERSION: u8 = 1;

/// Bytes of a head.
pub const HEAD_BYTES_MAX: usize = 16 << 20;

/// Volumes of an archive.
pub const VOLUMES_MAX: usize = 1 << 18;

/// The number of the last possible head.
pub const HEAD_NUMBER_MAX: u32 = 99_999_999;

/// What names of heads begin with.
pub const HEAD_PREFIX: &str = "head-";

/// What names of volumes begin with.
pub const VOLUME_PREFIX: &str = "data-";

/// With so few volumes all are listed in each head.
const LISTED_MIN: usize = 32;

/// The least number of volumes that a head lists besides those of its base.
const TAIL_MIN: usize = 16;

const CHECKSUM_BYTES: usize = 8;

/// The least bytes of a volume in a head: its name, one piece and its digest.
const VOLUME_ROW_BYTES_MIN: usize = 1 + 1 + 8 + 1 + 2 + HASH_BYTES;

/// The name of the head with a number, from 1 to [`HEAD_NUMBER_MAX`].
pub fn head_name(number: u32) -> String {
    let back = HEAD_NUMBER_MAX.saturating_sub(number);
    format!("{HEAD_PREFIX}{back:08}-{number:08}")
}

/// The number of the head with this name, if it is the name of one.
pub fn head_number(name: &str) -> Option<u32> {
    let (_, number) = name.strip_prefix(HEAD_PREFIX)?.split_once('-')?;
    let number: u32 = number.parse().ok()?;
    let is_it = (1..=HEAD_NUMBER_MAX).contains(&number) && head_name(number) == name;
    is_it.then_some(number)
}

/// The name of a volume. No two runs choose the same: each draws a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeName {
    /// The head with which it was made.
    pub head: u32,
    /// Its place among those of the run, from 0.
    pub index: u32,
    /// The run's random number.
    pub run: u64,
}

impl VolumeName {
    /// The name in this text, if it is one.
    pub fn parse(text: &str) -> Option<VolumeName> {
        let mut parts = text.strip_prefix(VOLUME_PREFIX)?.split('-');
        let name = VolumeName {
            head: parts.next()?.parse().ok()?,
            index: parts.next()?.parse().ok()?,
            run: u64::from_str_radix(parts.next()?, 16).ok()?,
        };
        (name.to_string() == text).then_some(name)
    }
}

impl fmt::Display for VolumeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VolumeName { head, index, run } = self;
        write!(f, "{VOLUME_PREFIX}{head:08}-{index:06}-{run:016x}")
    }
}

/// Bytes of a volume, and zeros that follow them in the archive and are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumePiece {
    /// Bytes of the volume.
    pub data_bytes: u64,
    /// Zeros behind them.
    pub zero_bytes: u64,
}

/// A file or object with bytes of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its name.
    pub name: VolumeName,
    /// What of the archive it holds, from front to back.
    pub pieces: Vec<VolumePiece>,
    /// BLAKE3 of its bytes.
    pub digest: [u8; HASH_BYTES],
}

impl Volume {
    /// The length of the file or object.
    pub fn data_bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.data_bytes).sum()
    }

    /// How many bytes of the archive it stands for.
    pub fn archive_bytes(&self) -> u64 {
        let bytes = |piece: &VolumePiece| piece.data_bytes + piece.zero_bytes;
        self.pieces.iter().map(bytes).sum()
    }
}

/// A head whose volumes are before those of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseHead {
    /// Its number.
    pub number: u32,
    /// BLAKE3 of its bytes.
    pub digest: [u8; HASH_BYTES],
}

/// What a head says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeHead {
    /// Its number.
    pub number: u32,
    /// The head that lists the volumes before these; it has no base itself.
    pub base: Option<BaseHead>,
    /// The volumes, in the order of the archive.
    pub volumes: Vec<Volume>,
}

impl VolumeHead {
    /// Whether a head should refer to its base: `count` volumes of which the last `tail` are not in
    /// the base. Lists of all volumes in each of n heads would be n² long; so they are n^1.5.
    pub fn is_based(count: usize, tail: usize) -> bool {
        count > LISTED_MIN && tail <= count.isqrt().max(TAIL_MIN)
    }

    /// The bytes of the head.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = VOLUMES_MAGIC.to_vec();
        bytes.push(VOLUMES_VERSION);
        put_varint(&mut bytes, u64::from(self.number));
        put_varint(&mut bytes, self.base.map_or(0, |base| base.number.into()));
        bytes.extend(self.base.iter().flat_map(|base| base.digest));
        put_varint(&mut bytes, self.volumes.len() as u64);
        for volume in &self.volumes {
            put_varint(&mut bytes, u64::from(volume.name.head));
            put_varint(&mut bytes, u64::from(volume.name.index));
            bytes.extend(volume.name.run.to_le_bytes());
            put_varint(&mut bytes, volume.pieces.len() as u64);
            for piece in &volume.pieces {
                put_varint(&mut bytes, piece.data_bytes);
                put_varint(&mut bytes, piece.zero_bytes);
            }
            bytes.extend(volume.digest);
        }
        let checksum = checksum64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    /// What these bytes say.
    ///
    /// # Errors
    /// They are no head, or a damaged one; `Unsupported` for one of a later version.
    pub fn parse(bytes: &[u8]) -> Result<VolumeHead> {
        let mut reader = ByteReader::new("a head", bytes);
        let magic = reader.array()?;
        if magic != VOLUMES_MAGIC {
            return Err(FormatError::Magic { found: magic });
        }
        let version = reader.u8()?;
        if version != VOLUMES_VERSION {
            return Err(FormatError::Version {
                major: version.into(),
                minor: 0,
            });
        }
        let rest = reader.rest();
        let (fields, checksum) =
            rest.split_last_chunk::<CHECKSUM_BYTES>()
                .ok_or(FormatError::Truncated {
                    what: "a head",
                    needed_bytes: CHECKSUM_BYTES as u64,
                    available_bytes: rest.len() as u64,
                })?;
        let covered = &bytes[..bytes.len() - CHECKSUM_BYTES];
        let (found, expected) = (checksum64(covered), u64::from_le_bytes(*checksum));
        if found != expected {
            return Err(FormatError::Checksum {
                what: "a head",
                found,
                expected,
            });
        }
        let mut reader = ByteReader::new("a head", fields);
        let head = parse_fields(&mut reader)?;
        reader.finish()?;
        Ok(head)
    }
}

fn parse_fields(reader: &mut ByteReader<'_>) -> Result<VolumeHead> {
    let number = number_of(reader.varint_as("number of a head")?)?;
    let base = match reader.varint_as("number of a base")? {
        0 => None,
        base => Some(BaseHead {
            number: number_of(base)?,
            digest: reader.array()?,
        }),
    };
    if base.is_some_and(|base| base.number >= number) {
        return Err(FormatError::Value {
            what: "number of a base",
            value: base.map_or(0, |base| base.number.into()),
            rule: "less than that of the head",
        });
    }
    let count = reader.count(VOLUME_ROW_BYTES_MIN)?;
    if count > VOLUMES_MAX {
        return Err(FormatError::OverLimit {
            what: "volumes of an archive",
            value: count as u64,
            limit: VOLUMES_MAX as u64,
        });
    }
    let mut volumes = Vec::with_capacity(count);
    let mut archive_bytes = 0;
    for _ in 0..count {
        volumes.push(parse_volume(reader, &mut archive_bytes)?);
    }
    Ok(VolumeHead {
        number,
        base,
        volumes,
    })
}

fn number_of(number: u32) -> Result<u32> {
    if (1..=HEAD_NUMBER_MAX).contains(&number) {
        return Ok(number);
    }
    Err(FormatError::Value {
        what: "number of a head",
        value: number.into(),
        rule: "1 to 99,999,999",
    })
}

/// A row. `archive_bytes` are those of the rows before it.
fn parse_volume(reader: &mut ByteReader<'_>, archive_bytes: &mut u64) -> Result<Volume> {
    let name = VolumeName {
        head: number_of(reader.varint_as("head of a volume")?)?,
        index: reader.varint_as("index of a volume")?,
        run: reader.u64()?,
    };
    let count = reader.count(2)?;
    let mut pieces = Vec::with_capacity(count);
    for _ in 0..count {
        let piece = VolumePiece {
            data_bytes: reader.varint()?,
            zero_bytes: reader.varint()?,
        };
        let bytes = piece.data_bytes.saturating_add(piece.zero_bytes);
        *archive_bytes = archive_bytes.saturating_add(bytes);
        if *archive_bytes > ADDRESS_BYTES_MAX {
            return Err(FormatError::OverLimit {
                what: "bytes of an archive",
                value: *archive_bytes,
                limit: ADDRESS_BYTES_MAX,
            });
        }
        pieces.push(piece);
    }
    let volume = Volume {
        name,
        pieces,
        digest: reader.array()?,
    };
    if volume.data_bytes() == 0 {
        return Err(FormatError::Value {
            what: "bytes of a volume",
            value: 0,
            rule: "at least 1",
        });
    }
    Ok(volume)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorClass;

    fn head(count: usize) -> VolumeHead {
        let volumes = (0..count as u64).map(|index| Volume {
            name: VolumeName {
                head: 1 + index as u32,
                index: index as u32 % 3,
                run: index.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            },
            pieces: (0..=index % 2)
                .map(|piece| VolumePiece {
                    data_bytes: 1 + index * 1000,
                    zero_bytes: piece * 7,
                })
                .collect(),
            digest: [index as u8; HASH_BYTES],
        });
        VolumeHead {
            number: 40,
            base: (count > 2).then_some(BaseHead {
                number: 7,
                digest: [9; HASH_BYTES],
            }),
            volumes: volumes.collect(),
        }
    }

    #[test]
    fn names_of_heads_count_backwards() {
        assert_eq!(head_name(17), "head-99999982-00000017");
        let mut last = head_name(1);
        for number in [2, 9, 10, 255, 65_536, HEAD_NUMBER_MAX] {
            let name = head_name(number);
            assert!(name < last, "{name}");
            assert_eq!(head_number(&name), Some(number));
            last = name;
        }
        for wrong in [
            "head-99999982-00000018",
            "head-99999982-17",
            "head-99999999-00000000",
            "data-99999982-00000017",
            "head-",
        ] {
            assert_eq!(head_number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_of_volumes_are_read_again() {
        let name = VolumeName {
            head: 3,
            index: 12,
            run: 0xabc,
        };
        assert_eq!(name.to_string(), "data-00000003-000012-0000000000000abc");
        assert_eq!(VolumeName::parse(&name.to_string()), Some(name));
        for wrong in [
            "data-3-12-abc",
            "data-00000003-000012",
            "head-1",
            "data-a-b-c",
        ] {
            assert_eq!(VolumeName::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_changed_or_shorter_head_is_damaged_and_a_later_one_unsupported() {
        let bytes = head(5).to_bytes();
        assert_eq!(VolumeHead::parse(&bytes), Ok(head(5)));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let error = VolumeHead::parse(&changed).unwrap_err();
            let expected = if at == 8 { ErrorClass::Unsupported } else { ErrorClass::Damaged };
            assert_eq!(error.class(), expected, "{at}: {error}");
            assert!(VolumeHead::parse(&bytes[..at]).is_err(), "{at}");
        }
    }

    #[test]
    fn impossible_values_are_refused() {
        let refused = |change: fn(&mut VolumeHead)| {
            let mut head = head(3);
            change(&mut head);
            VolumeHead::parse(&head.to_bytes()).unwrap_err().class()
        };
        let damaged = ErrorClass::Damaged;
        assert_eq!(refused(|head| head.number = 0), damaged);
        assert_eq!(refused(|head| head.number = 7), damaged);
        assert_eq!(refused(|head| head.volumes[0].name.head = 0), damaged);
        assert_eq!(refused(|head| head.volumes[0].pieces.clear()), damaged);
        let too_long = refused(|head| head.volumes[1].pieces[0].zero_bytes = u64::MAX);
        assert_eq!(too_long, ErrorClass::Limit);
    }

    #[test]
    fn lists_are_shared_when_they_are_long() {
        assert!(!VolumeHead::is_based(20, 1));
        assert!(VolumeHead::is_based(33, 16));
        assert!(!VolumeHead::is_based(33, 17));
        assert!(VolumeHead::is_based(10_000, 100));
        assert!(!VolumeHead::is_based(10_000, 101));
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(refrain_testkit::scaled(256)))]
        #[test]
        fn any_bytes_are_refused_or_said_again(count in 0_usize..6, at: usize, byte: u8) {
            let mut bytes = head(count).to_bytes();
            let end = bytes.len() - CHECKSUM_BYTES;
            let at = at % end;
            bytes[at] = byte;
            let checksum = checksum64(&bytes[..end]).to_le_bytes();
            bytes[end..].copy_from_slice(&checksum);
            if let Ok(head) = VolumeHead::parse(&bytes) {
                prop_assert_eq!(head.to_bytes(), bytes);
            }
        }
    }
}
