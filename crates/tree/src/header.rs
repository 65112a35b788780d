//! The bytes of a tar header: encoding and parsing. Pure functions over slices.

use crate::entry::{EntryKind, Timestamp};

/// The unit of tar: a header is one record, data is padded to whole records.
pub const RECORD_BYTES: usize = 512;

/// The number of zero bytes after data of `size_bytes`, up to the next record.
pub fn padding_bytes(size_bytes: u64) -> u64 {
    let record = RECORD_BYTES as u64;
    (record - size_bytes % record) % record
}

/// The largest number that eleven octal digits hold; larger sizes and times go to a pax record.
const OCTAL_11_MAX: u64 = (1 << 33) - 1;
/// The largest number that seven octal digits hold (owner, group, device numbers).
const OCTAL_7_MAX: u64 = (1 << 21) - 1;
/// The name of the header that carries pax records. Readers ignore it; a fixed one is
/// deterministic.
const PAX_HEADER_NAME: &[u8] = b"././@PaxHeader";

/// A field of the header: `(offset, length)`, each following the one before it.
type Field = (usize, usize);
const fn field_after(field: Field, length: usize) -> Field {
    (field.0 + field.1, length)
}
const NAME: Field = (0, 100);
const MODE: Field = field_after(NAME, 8);
const UID: Field = field_after(MODE, 8);
const GID: Field = field_after(UID, 8);
const SIZE: Field = field_after(GID, 12);
const MTIME: Field = field_after(SIZE, 12);
const CHECKSUM: Field = field_after(MTIME, 8);
const TYPE: Field = field_after(CHECKSUM, 1);
const LINK: Field = field_after(TYPE, 100);
const MAGIC: Field = field_after(LINK, 8);
const USER: Field = field_after(MAGIC, 32);
const GROUP: Field = field_after(USER, 32);
const DEVICE_MAJOR: Field = field_after(GROUP, 8);
const DEVICE_MINOR: Field = field_after(DEVICE_MAJOR, 8);
const PREFIX: Field = field_after(DEVICE_MINOR, 155);
const _: () = assert!(PREFIX.0 + PREFIX.1 + 12 == RECORD_BYTES);

/// The magic and version of POSIX tar.
const USTAR: &[u8; 8] = b"ustar\x0000";
/// The magic of POSIX tar without version; GNU tar's own dialect has `ustar  ` instead.
const USTAR_MAGIC: &[u8; 6] = b"ustar\0";

/// The contents of a header, which describes one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TarHeader {
    /// The path as bytes, components separated by `/`; untrusted.
    pub path: Vec<u8>,
    /// The type of the entry.
    pub kind: EntryKind,
    /// Permission bits.
    pub mode: u32,
    /// The id of the owner.
    pub uid: u64,
    /// The id of the group.
    pub gid: u64,
    /// The number of bytes of data after the header.
    pub size_bytes: u64,
    /// The time of the last modification.
    pub modified: Timestamp,
    /// The target of a symbolic or hard link; empty for other entries.
    pub link: Vec<u8>,
    /// The major and minor number of a device; zero for other entries.
    pub device: (u32, u32),
}

/// The reason why a header is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderError {
    /// The checksum does not match.
    Checksum {
        /// The sum of the bytes.
        computed: u64,
        /// The sum in the header.
        stored: u64,
    },
    /// A field that should hold a number does not.
    Number {
        /// The offset of the field in the header.
        field_offset: usize,
    },
    /// A pax record is not `LENGTH KEY=VALUE\n`, or its value is invalid.
    Pax {
        /// The offset of the record in the pax records.
        offset: usize,
    },
    /// An unsupported type of entry (GNU sparse files, multi-volume parts).
    Type {
        /// The type flag.
        flag: u8,
    },
}

impl std::error::Error for HeaderError {}

impl std::fmt::Display for HeaderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HeaderError::Checksum { computed, stored } => {
                write!(f, "tar header checksum is {computed}, expected {stored}")
            }
            HeaderError::Number { field_offset } => {
                write!(f, "tar header field at {field_offset} is not a number")
            }
            HeaderError::Pax { offset } => write!(f, "pax record at {offset} is malformed"),
            HeaderError::Type { flag } => {
                write!(f, "tar entry type {:?} is not supported", char::from(*flag))
            }
        }
    }
}

// ---------------------------------------------------------------------------------- encoding

impl TarHeader {
    /// Encodes the header as whole records: pax records for what the plain header cannot hold, then
    /// the plain header.
    pub fn encode(&self) -> Vec<u8> {
        let records = self.pax_records();
        let mut bytes = Vec::with_capacity(RECORD_BYTES);
        if !records.is_empty() {
            let pax = TarHeader {
                size_bytes: records.len() as u64,
                ..TarHeader::pax_carrier()
            };
            bytes.extend_from_slice(&pax.plain(b'x'));
            bytes.extend_from_slice(&records);
            bytes.resize(bytes.len().next_multiple_of(RECORD_BYTES), 0);
        }
        bytes.extend_from_slice(&self.plain(type_flag(self.kind)));
        bytes
    }

    fn pax_carrier() -> TarHeader {
        TarHeader {
            path: PAX_HEADER_NAME.to_vec(),
            kind: EntryKind::Other,
            mode: 0o644,
            uid: 0,
            gid: 0,
            size_bytes: 0,
            modified: Timestamp {
                seconds: 0,
                nanoseconds: 0,
            },
            link: Vec::new(),
            device: (0, 0),
        }
    }

    fn pax_records(&self) -> Vec<u8> {
        let mut records = Vec::new();
        let Timestamp {
            seconds,
            nanoseconds,
        } = self.modified;
        if self.path.len() > NAME.1 {
            push_pax(&mut records, b"path", &self.path);
        }
        if self.link.len() > LINK.1 {
            push_pax(&mut records, b"linkpath", &self.link);
        }
        if self.size_bytes > OCTAL_11_MAX {
            push_pax(
                &mut records,
                b"size",
                self.size_bytes.to_string().as_bytes(),
            );
        }
        if nanoseconds != 0 || octal_seconds(seconds).is_none() {
            push_pax(&mut records, b"mtime", pax_time(self.modified).as_bytes());
        }
        for (key, number) in [(b"uid", self.uid), (b"gid", self.gid)] {
            if number > OCTAL_7_MAX {
                push_pax(&mut records, key, number.to_string().as_bytes());
            }
        }
        records
    }

    /// The ustar record, which every tar program since 1988 can read.
    fn plain(&self, flag: u8) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        put_bytes(&mut record, NAME, &self.path);
        put_octal(&mut record, MODE, u64::from(self.mode & 0o7777));
        put_octal(
            &mut record,
            UID,
            if self.uid > OCTAL_7_MAX { 0 } else { self.uid },
        );
        put_octal(
            &mut record,
            GID,
            if self.gid > OCTAL_7_MAX { 0 } else { self.gid },
        );
        let size = if self.size_bytes > OCTAL_11_MAX {
            0
        } else {
            self.size_bytes
        };
        put_octal(&mut record, SIZE, size);
        put_octal(
            &mut record,
            MTIME,
            octal_seconds(self.modified.seconds).unwrap_or(0),
        );
        put_bytes(&mut record, TYPE, &[flag]);
        put_bytes(&mut record, LINK, &self.link);
        put_bytes(&mut record, MAGIC, USTAR);
        put_octal(&mut record, DEVICE_MAJOR, u64::from(self.device.0));
        put_octal(&mut record, DEVICE_MINOR, u64::from(self.device.1));
        let sum = format!("{:06o}\0 ", checksum(&record));
        put_bytes(&mut record, CHECKSUM, sum.as_bytes());
        record
    }
}

fn octal_seconds(seconds: i64) -> Option<u64> {
    u64::try_from(seconds)
        .ok()
        .filter(|seconds| *seconds <= OCTAL_11_MAX)
}

/// Seconds with a fraction. Before 1970 the fraction has the sign of the whole: -1 s and
/// 750,000,000 ns are -0.25.
fn pax_time(time: Timestamp) -> String {
    let nanoseconds = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds);
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let magnitude = nanoseconds.unsigned_abs();
    let text = format!(
        "{sign}{}.{:09}",
        magnitude / 1_000_000_000,
        magnitude % 1_000_000_000
    );
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Appends `LENGTH KEY=VALUE\n`, where LENGTH includes its own digits.
fn push_pax(records: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while rest + length.to_string().len() != length {
        length += 1;
    }
    records.extend_from_slice(length.to_string().as_bytes());
    records.push(b' ');
    records.extend_from_slice(key);
    records.push(b'=');
    records.extend_from_slice(value);
    records.push(b'\n');
}

fn put_bytes(record: &mut [u8; RECORD_BYTES], field: Field, value: &[u8]) {
    let target = record.iter_mut().skip(field.0).take(field.1);
    target.zip(value).for_each(|(to, from)| *to = *from);
}

/// Writes octal digits that fill the field up to its closing NUL.
fn put_octal(record: &mut [u8; RECORD_BYTES], field: Field, value: u64) {
    let text = format!("{value:0width$o}", width = field.1 - 1);
    debug_assert!(text.len() < field.1, "{value} does not fit");
    put_bytes(record, field, text.as_bytes());
}

/// The sum over all bytes; those of the checksum field count as spaces.
fn checksum(record: &[u8; RECORD_BYTES]) -> u64 {
    let sum_field = CHECKSUM.0..CHECKSUM.0 + CHECKSUM.1;
    let value = |(at, byte): (usize, &u8)| if sum_field.contains(&at) { b' ' } else { *byte };
    record
        .iter()
        .enumerate()
        .map(|pair| u64::from(value(pair)))
        .sum()
}

fn type_flag(kind: EntryKind) -> u8 {
    match kind {
        EntryKind::File | EntryKind::Other | EntryKind::Raw => b'0',
        EntryKind::Hardlink => b'1',
        EntryKind::Symlink => b'2',
        EntryKind::CharacterDevice => b'3',
        EntryKind::BlockDevice => b'4',
        EntryKind::Directory => b'5',
        EntryKind::Fifo => b'6',
    }
}

// ----------------------------------------------------------------------------------- parsing

/// One record whose checksum is verified and whose other fields are not.
#[derive(Debug, Clone, Copy)]
pub struct PlainHeader<'a> {
    record: &'a [u8; RECORD_BYTES],
}

impl<'a> PlainHeader<'a> {
    /// Verifies the checksum of the record.
    pub fn checked(record: &'a [u8; RECORD_BYTES]) -> Result<PlainHeader<'a>, HeaderError> {
        let plain = PlainHeader { record };
        let (computed, stored) = (checksum(record), plain.number(CHECKSUM)?);
        match computed == stored {
            true => Ok(plain),
            false => Err(HeaderError::Checksum { computed, stored }),
        }
    }

    /// The type flag; `'x'`, `'g'`, `'L'` and `'K'` extend the header that follows.
    pub fn flag(&self) -> u8 {
        self.field(TYPE).first().copied().unwrap_or(0)
    }

    /// The number of bytes that follow this header.
    pub fn size_bytes(&self) -> Result<u64, HeaderError> {
        self.number(SIZE)
    }

    /// Parses the header, with the fields that extension records override.
    pub fn resolve(&self, overrides: Overrides) -> Result<TarHeader, HeaderError> {
        let path = overrides.path.map_or_else(|| self.path(), Ok)?;
        let kind = self.kind(&path)?;
        let modified = Timestamp {
            seconds: i64::try_from(self.number(MTIME)?).unwrap_or(i64::MAX),
            nanoseconds: 0,
        };
        let size_bytes = overrides.size_bytes.map_or_else(|| self.size_bytes(), Ok)?;
        Ok(TarHeader {
            path,
            kind,
            mode: (self.number(MODE)? & 0o7777) as u32,
            uid: overrides.uid.map_or_else(|| self.number(UID), Ok)?,
            gid: overrides.gid.map_or_else(|| self.number(GID), Ok)?,
            // Only files have data; some writers state the size of the target for hard links.
            size_bytes: if kind == EntryKind::File {
                size_bytes
            } else {
                0
            },
            modified: overrides.modified.unwrap_or(modified),
            link: overrides
                .link
                .unwrap_or_else(|| until_nul(self.field(LINK)).to_vec()),
            device: (self.device(DEVICE_MAJOR)?, self.device(DEVICE_MINOR)?),
        })
    }

    fn path(&self) -> Result<Vec<u8>, HeaderError> {
        let name = until_nul(self.field(NAME));
        let prefix = match self.field(MAGIC).starts_with(USTAR_MAGIC) {
            true => until_nul(self.field(PREFIX)),
            false => &[],
        };
        Ok(match prefix.is_empty() {
            true => name.to_vec(),
            false => [prefix, b"/", name].concat(),
        })
    }

    fn kind(&self, path: &[u8]) -> Result<EntryKind, HeaderError> {
        match self.flag() {
            // Before POSIX a directory was a file whose name ends in a slash.
            b'0' | 0 | b'7' if path.ends_with(b"/") => Ok(EntryKind::Directory),
            b'0' | 0 | b'7' => Ok(EntryKind::File),
            b'1' => Ok(EntryKind::Hardlink),
            b'2' => Ok(EntryKind::Symlink),
            b'3' => Ok(EntryKind::CharacterDevice),
            b'4' => Ok(EntryKind::BlockDevice),
            b'5' => Ok(EntryKind::Directory),
            b'6' => Ok(EntryKind::Fifo),
            flag => Err(HeaderError::Type { flag }),
        }
    }

    fn device(&self, field: Field) -> Result<u32, HeaderError> {
        let number = self.number(field)?;
        u32::try_from(number).map_err(|_| HeaderError::Number {
            field_offset: field.0,
        })
    }

    fn field(&self, field: Field) -> &'a [u8] {
        self.record
            .get(field.0..field.0 + field.1)
            .unwrap_or_default()
    }

    /// Parses octal digits between spaces and NULs, or GNU's base 256 if the first bit is set.
    fn number(&self, field: Field) -> Result<u64, HeaderError> {
        let bytes = self.field(field);
        let parsed = match bytes.split_first() {
            Some((first, rest)) if *first >= 0x80 => base_256(*first, rest),
            _ => octal(bytes),
        };
        parsed.ok_or(HeaderError::Number {
            field_offset: field.0,
        })
    }
}

fn octal(bytes: &[u8]) -> Option<u64> {
    let is_filler = |byte: &u8| matches!(byte, b' ' | 0);
    let start = bytes
        .iter()
        .position(|byte| *byte != b' ')
        .unwrap_or(bytes.len());
    let digits = bytes.get(start..)?;
    let end = digits.iter().position(is_filler).unwrap_or(digits.len());
    let (digits, filler) = digits.split_at(end);
    if !filler.iter().all(is_filler) {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// Parses a big-endian number; the top bit of the first byte is a flag. Negative numbers (0xff) are
/// refused.
fn base_256(first: u8, rest: &[u8]) -> Option<u64> {
    let start = u64::from(first & 0x7f);
    if first == 0xff {
        return None;
    }
    rest.iter().try_fold(start, |value, byte| {
        value.checked_mul(256)?.checked_add(u64::from(*byte))
    })
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The fields that pax records and GNU long names override in the header that follows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size_bytes: Option<u64>,
    modified: Option<Timestamp>,
    uid: Option<u64>,
    gid: Option<u64>,
}

impl Overrides {
    /// The data of a GNU `'L'` header.
    pub fn set_long_path(&mut self, data: &[u8]) {
        self.path = Some(until_nul(data).to_vec());
    }

    /// The data of a GNU `'K'` header.
    pub fn set_long_link(&mut self, data: &[u8]) {
        self.link = Some(until_nul(data).to_vec());
    }

    /// The records of a pax `'x'` header.
    pub fn set_pax(&mut self, records: &[u8]) -> Result<(), HeaderError> {
        let mut rest = records;
        while !rest.is_empty() {
            let malformed = HeaderError::Pax {
                offset: records.len() - rest.len(),
            };
            let (key, value, after) = split_pax(rest).ok_or(malformed.clone())?;
            self.set(key, value).ok_or(malformed)?;
            rest = after;
        }
        Ok(())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link = Some(value.to_vec()),
            b"size" => self.size_bytes = Some(decimal(value)?),
            b"mtime" => self.modified = Some(parse_pax_time(value)?),
            b"uid" => self.uid = Some(decimal(value)?),
            b"gid" => self.gid = Some(decimal(value)?),
            // The data of a sparse file is not its content, and would be restored wrongly.
            key if key.starts_with(b"GNU.sparse.") => return None,
            _ => {}
        }
        Some(())
    }
}

/// Splits the first record off `records`: key, value and the rest.
fn split_pax(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().position(|byte| *byte == b' ')?;
    let length = usize::try_from(decimal(records.get(..space)?)?).ok()?;
    let body = records
        .get(space.checked_add(1)?..length)?
        .strip_suffix(b"\n")?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    Some((
        body.get(..equals)?,
        body.get(equals + 1..)?,
        records.get(length..)?,
    ))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let is_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_digits
        .then(|| std::str::from_utf8(digits).ok()?.parse().ok())
        .flatten()
}

fn parse_pax_time(value: &[u8]) -> Option<Timestamp> {
    let (is_negative, value) = match value.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let mut parts = value.splitn(2, |byte| *byte == b'.');
    let seconds = i128::from(decimal(parts.next()?)?);
    let fraction = parts.next().unwrap_or(b"0");
    // File systems do not store more than nine digits.
    let nine: Vec<u8> = fraction
        .iter()
        .copied()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .collect();
    let magnitude = seconds * 1_000_000_000 + i128::from(decimal(&nine)?);
    let nanoseconds = if is_negative { -magnitude } else { magnitude };
    Some(Timestamp {
        seconds: i64::try_from(nanoseconds.div_euclid(1_000_000_000)).ok()?,
        nanoseconds: u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pax_lengths_include_their_own_digits() {
        // The value lengths around which the number of digits of the length changes.
        for value_length in (0..120).chain(980..1010) {
            let mut records = Vec::new();
            push_pax(&mut records, b"path", &vec![b'v'; value_length]);
            let (key, value, rest) = split_pax(&records).unwrap();
            assert_eq!(
                (key, value.len(), rest.len()),
                (&b"path"[..], value_length, 0)
            );
        }
    }

    #[test]
    fn pax_times_round_trip() {
        for seconds in [0, 1, -1, -2, 1_700_000_000, i64::MIN, i64::MAX] {
            for nanoseconds in [0, 1, 250_000_000, 999_999_999] {
                let time = Timestamp {
                    seconds,
                    nanoseconds,
                };
                assert_eq!(
                    parse_pax_time(pax_time(time).as_bytes()),
                    Some(time),
                    "{time:?}"
                );
            }
        }
        assert_eq!(
            pax_time(Timestamp {
                seconds: -1,
                nanoseconds: 750_000_000
            }),
            "-0.25"
        );
        assert_eq!(parse_pax_time(b"1.x"), None);
        assert_eq!(parse_pax_time(b""), None);
    }

    #[test]
    fn numbers_are_octal_or_base_256() {
        assert_eq!(octal(b"0000644\0"), Some(0o644));
        assert_eq!(octal(b"   644 \0"), Some(0o644));
        assert_eq!(octal(b"\0\0\0\0"), Some(0));
        assert_eq!(octal(b"64x"), None);
        assert_eq!(octal(b"64 4"), None);
        assert_eq!(octal(&[b'7'; 30]), None);
        assert_eq!(base_256(0x80, &[0, 1, 0]), Some(256));
        assert_eq!(base_256(0x80, &[1; 12]), None);
        assert_eq!(base_256(0xff, &[0xff; 3]), None);
    }
}
