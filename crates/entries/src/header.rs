//! The bytes of a tar header: encoding and parsing. Pure functions over slices.

use crate::entry::{EntryKind, Timestamp};
use crate::tar::pax::{decimal, parse_pax_time, pax_time, push_pax, split_pax};
use crate::tar::record::{
    CHECKSUM, DEVICE_MAJOR, DEVICE_MINOR, Field, GID, LINK, MAGIC, MODE, MTIME, NAME, OCTAL_7_MAX,
    OCTAL_11_MAX, PREFIX, RECORD_BYTES, SIZE, TYPE, UID, USTAR, USTAR_MAGIC, checksum, field,
    has_valid_checksum, put_checksum, put_octal, put_text, unsigned, until_nul,
};

/// The name of the header that carries pax records. Readers ignore it; a fixed one is
/// deterministic.
const PAX_HEADER_NAME: &[u8] = b"././@PaxHeader";

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
            push_pax(&mut records, b"mtime", &pax_time(self.modified));
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
        put_text(&mut record, NAME, &self.path);
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
        let size = if self.size_bytes > OCTAL_11_MAX { 0 } else { self.size_bytes };
        put_octal(&mut record, SIZE, size);
        put_octal(
            &mut record,
            MTIME,
            octal_seconds(self.modified.seconds).unwrap_or(0),
        );
        put_text(&mut record, TYPE, &[flag]);
        put_text(&mut record, LINK, &self.link);
        put_text(&mut record, MAGIC, USTAR);
        put_octal(&mut record, DEVICE_MAJOR, u64::from(self.device.0));
        put_octal(&mut record, DEVICE_MINOR, u64::from(self.device.1));
        put_checksum(&mut record);
        record
    }
}

fn octal_seconds(seconds: i64) -> Option<u64> {
    u64::try_from(seconds)
        .ok()
        .filter(|seconds| *seconds <= OCTAL_11_MAX)
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
        if has_valid_checksum(record) {
            Ok(plain)
        } else {
            Err(HeaderError::Checksum { computed, stored })
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
            size_bytes: if kind == EntryKind::File { size_bytes } else { 0 },
            modified: overrides.modified.unwrap_or(modified),
            link: overrides
                .link
                .unwrap_or_else(|| until_nul(self.field(LINK)).to_vec()),
            device: (self.device(DEVICE_MAJOR)?, self.device(DEVICE_MINOR)?),
        })
    }

    fn path(&self) -> Result<Vec<u8>, HeaderError> {
        let name = until_nul(self.field(NAME));
        let prefix = if self.field(MAGIC).starts_with(USTAR_MAGIC) {
            until_nul(self.field(PREFIX))
        } else {
            &[]
        };
        Ok(if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() })
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

    fn field(&self, at: Field) -> &'a [u8] {
        field(self.record, at)
    }

    fn number(&self, at: Field) -> Result<u64, HeaderError> {
        let malformed = HeaderError::Number { field_offset: at.0 };
        unsigned(self.field(at)).ok_or(malformed)
    }
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
