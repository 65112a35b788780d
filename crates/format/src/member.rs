//! The MemberStart and MemberEnd frames: the start and the end of a named byte sequence.

use refrain_tree::Timestamp;

use crate::bytes::ByteReader;
use crate::check::{
    check_equal, check_limit, check_positive, check_range, check_text, check_timestamp,
};
use crate::error::{FormatError, Result};
use crate::frame::complete_frame;
use crate::layout::{FrameKind, MEMBER_END_FIXED_BYTES, MEMBER_START_FIXED_BYTES};
use crate::limits::{DIGEST_BYTES_MAX, DIGESTS_MAX, NAME_BYTES_MAX};

/// A flag of a member: its entries are sorted.
const ENTRIES_ARE_SORTED: u8 = 1;

const HAS_MODE: u8 = 1;
const HAS_MODIFIED: u8 = 2;
const HAS_CONTENT_BYTES: u8 = 4;

/// The type of a member's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemberKind {
    /// 1: a file.
    File,
    /// 2: the content of a non-seekable stream, such as a pipe.
    Stream,
    /// 3: a directory tree: a list of entries, and the data of its files as content.
    Tree,
    /// 4: a tar stream, taken apart into entries and the data of its files.
    Tar,
}

impl MemberKind {
    /// Whether members of this kind have entries, from which their stream is made.
    #[must_use]
    pub fn has_entries(self) -> bool {
        matches!(self, Self::Tree | Self::Tar)
    }

    fn id(self) -> u8 {
        match self {
            Self::File => 1,
            Self::Stream => 2,
            Self::Tree => 3,
            Self::Tar => 4,
        }
    }

    fn from_id(id: u8) -> Result<Self> {
        match id {
            1 => Ok(Self::File),
            2 => Ok(Self::Stream),
            3 => Ok(Self::Tree),
            4 => Ok(Self::Tar),
            _ => Err(FormatError::Value {
                what: "member kind",
                value: u64::from(id),
                rule: "from 1 to 4",
            }),
        }
    }
}

/// The payload of a MemberStart frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStart {
    /// 0, 1, 2 … in file order.
    pub member_id: u64,
    /// The offset of the member in the content space.
    pub content_start: u64,
    /// The type of its content.
    pub kind: MemberKind,
    /// The name as bytes, by custom UTF-8, without zero bytes; empty if there is none. It is not
    /// trusted: a reader that creates files by it must reject names that lead out of the output
    /// directory.
    pub name: Vec<u8>,
    /// Permission bits, as in `st_mode & 0o7777`.
    pub mode: Option<u32>,
    /// The time of the last modification of the content.
    pub modified: Option<Timestamp>,
    /// The expected length, if it was known in advance; MemberEnd states the true one.
    pub content_bytes_hint: Option<u64>,
}

impl MemberStart {
    /// Parses the payload of a MemberStart frame.
    ///
    /// # Errors
    /// A field out of its range.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new("member start", payload);
        let member_id = reader.u64()?;
        let content_start = reader.u64()?;
        let kind = MemberKind::from_id(reader.u8()?)?;
        let present = reader.u8()?;
        let name_bytes = usize::from(reader.u16()?);
        reader.reserved(4)?;
        check_present(present)?;
        let mode = u64::from(reader.u32()?);
        let nanoseconds = reader.u32()?;
        let seconds = reader.i64()?;
        let hint = reader.u64()?;
        let name = reader.take(name_bytes)?.to_vec();
        reader.finish()?;
        let time = Timestamp {
            seconds,
            nanoseconds,
        };
        let start = Self {
            member_id,
            content_start,
            kind,
            name,
            mode: optional(present, HAS_MODE, "absent mode", mode)?.map(|mode| mode as u32),
            modified: optional_time(present, time)?,
            content_bytes_hint: optional(present, HAS_CONTENT_BYTES, "absent length", hint)?,
        };
        start.check()?;
        Ok(start)
    }

    /// Returns the payload.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_payload(&self) -> Result<Vec<u8>> {
        self.check()?;
        let time = self.modified.unwrap_or_default();
        let mut payload = Vec::with_capacity(MEMBER_START_FIXED_BYTES + self.name.len());
        payload.extend(self.member_id.to_le_bytes());
        payload.extend(self.content_start.to_le_bytes());
        payload.push(self.kind.id());
        payload.push(self.present());
        payload.extend((self.name.len() as u16).to_le_bytes());
        payload.extend([0; 4]);
        payload.extend(self.mode.unwrap_or_default().to_le_bytes());
        payload.extend(time.nanoseconds.to_le_bytes());
        payload.extend(time.seconds.to_le_bytes());
        payload.extend(self.content_bytes_hint.unwrap_or_default().to_le_bytes());
        payload.extend_from_slice(&self.name);
        Ok(payload)
    }

    /// Returns the complete frame.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_frame(&self, sequence: u64) -> Result<Vec<u8>> {
        Ok(complete_frame(
            FrameKind::MemberStart,
            false,
            &self.to_payload()?,
            sequence,
        ))
    }

    fn present(&self) -> u8 {
        let bit = |is_present: bool, bit: u8| u8::from(is_present) * bit;
        bit(self.mode.is_some(), HAS_MODE)
            | bit(self.modified.is_some(), HAS_MODIFIED)
            | bit(self.content_bytes_hint.is_some(), HAS_CONTENT_BYTES)
    }

    fn check(&self) -> Result<()> {
        check_range("start of a member", self.content_start, 0)?;
        check_text("member name", &self.name, NAME_BYTES_MAX)?;
        if let Some(modified) = self.modified {
            check_timestamp(modified)?;
        }
        Ok(())
    }
}

/// A further digest of a member's content, computed on request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// The hash function: [`DIGEST_MD5`] and so on; a reader ignores unknown ids.
    pub id: u8,
    /// The digest.
    pub bytes: Vec<u8>,
}

/// [`Digest::id`] of MD5 (RFC 1321), 16 bytes.
pub const DIGEST_MD5: u8 = 1;
/// [`Digest::id`] of SHA-1 (FIPS 180-4), 20 bytes.
pub const DIGEST_SHA1: u8 = 2;
/// [`Digest::id`] of SHA-256 (FIPS 180-4), 32 bytes.
pub const DIGEST_SHA256: u8 = 3;
/// [`Digest::id`] of SHA-512 (FIPS 180-4), 64 bytes.
pub const DIGEST_SHA512: u8 = 4;
/// [`Digest::id`] of the CRC-32 of ISO-HDLC (as in gzip), 4 bytes, little endian.
pub const DIGEST_CRC32: u8 = 5;

impl Digest {
    /// Returns the length of the digest, if the function is known.
    fn known_bytes(&self) -> Option<usize> {
        match self.id {
            DIGEST_MD5 => Some(16),
            DIGEST_SHA1 => Some(20),
            DIGEST_SHA256 => Some(32),
            DIGEST_SHA512 => Some(64),
            DIGEST_CRC32 => Some(4),
            _ => None,
        }
    }

    fn check(&self) -> Result<()> {
        let length = self.bytes.len() as u64;
        check_limit("digest bytes", length, DIGEST_BYTES_MAX as u64)?;
        match self.known_bytes() {
            Some(known) if known as u64 != length => Err(FormatError::Mismatch {
                what: "length in bytes of a digest",
                found: length,
                expected: known as u64,
            }),
            _ => check_positive("digest bytes", length),
        }
    }
}

/// The payload of a MemberEnd frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberEnd {
    /// The id of its MemberStart.
    pub member_id: u64,
    /// The number of content bytes of the member.
    pub content_bytes: u64,
    /// The length of the member as a stream: of a tree or a tar stream, the length of the tar
    /// stream that its entries and its content give; of others, `content_bytes`.
    pub view_bytes: u64,
    /// The number of entries in all Entries frames of the member.
    pub entry_count: u64,
    /// BLAKE3 of the content.
    pub blake3: [u8; 32],
    /// Whether the paths of the entries ascend strictly by [`refrain_tree::compare_paths`] (entries
    /// without a path do not count), so that one is found by binary search.
    pub entries_are_sorted: bool,
    /// Further digests by ascending id.
    pub digests: Vec<Digest>,
}

impl MemberEnd {
    /// Parses the payload of a MemberEnd frame.
    ///
    /// # Errors
    /// A field out of its range.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new("member end", payload);
        let mut end = Self {
            member_id: reader.u64()?,
            content_bytes: reader.u64()?,
            view_bytes: reader.u64()?,
            entry_count: reader.u64()?,
            blake3: reader.array()?,
            entries_are_sorted: take_flags(reader.u8()?)?,
            digests: Vec::new(),
        };
        let digest_count = u64::from(reader.u8()?);
        check_limit("digests", digest_count, DIGESTS_MAX as u64)?;
        for _ in 0..digest_count {
            let id = reader.u8()?;
            let length = usize::from(reader.u8()?);
            let bytes = reader.take(length)?.to_vec();
            end.digests.push(Digest { id, bytes });
        }
        reader.finish()?;
        end.check()?;
        Ok(end)
    }

    /// Returns the payload.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_payload(&self) -> Result<Vec<u8>> {
        self.check()?;
        let mut payload = Vec::with_capacity(MEMBER_END_FIXED_BYTES);
        payload.extend(self.member_id.to_le_bytes());
        payload.extend(self.content_bytes.to_le_bytes());
        payload.extend(self.view_bytes.to_le_bytes());
        payload.extend(self.entry_count.to_le_bytes());
        payload.extend(self.blake3);
        payload.push(u8::from(self.entries_are_sorted) * ENTRIES_ARE_SORTED);
        payload.push(self.digests.len() as u8);
        for digest in &self.digests {
            payload.push(digest.id);
            payload.push(digest.bytes.len() as u8);
            payload.extend_from_slice(&digest.bytes);
        }
        Ok(payload)
    }

    /// Returns the complete frame.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_frame(&self, sequence: u64) -> Result<Vec<u8>> {
        Ok(complete_frame(
            FrameKind::MemberEnd,
            false,
            &self.to_payload()?,
            sequence,
        ))
    }

    /// Compares the end with the kind of the member and with its frames of entries.
    pub(crate) fn check_kind(&self, has_entries: bool, first_paths_ascend: bool) -> Result<()> {
        if !has_entries {
            check_equal(
                "bytes of a member as a stream",
                self.view_bytes,
                self.content_bytes,
            )?;
        }
        let may_be_sorted = has_entries && self.entry_count > 0 && first_paths_ascend;
        if self.entries_are_sorted && !may_be_sorted {
            return Err(FormatError::Value {
                what: "mark of sorted entries",
                value: 1,
                rule: "set only if the first paths of the member's frames are in order",
            });
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        check_range("member bytes", self.content_bytes, 0)?;
        check_range("bytes of a member as a stream", self.view_bytes, 0)?;
        check_limit("digests", self.digests.len() as u64, DIGESTS_MAX as u64)?;
        let mut previous_id = 0;
        for digest in &self.digests {
            digest.check()?;
            if digest.id <= previous_id {
                return Err(FormatError::Value {
                    what: "digest id",
                    value: u64::from(digest.id),
                    rule: "above 0 and above the previous id",
                });
            }
            previous_id = digest.id;
        }
        Ok(())
    }
}

fn take_flags(flags: u8) -> Result<bool> {
    match flags & !ENTRIES_ARE_SORTED {
        0 => Ok(flags & ENTRIES_ARE_SORTED != 0),
        unknown => Err(FormatError::Reserved {
            what: "member flags",
            value: u64::from(unknown),
        }),
    }
}

fn check_present(present: u8) -> Result<()> {
    match present & !(HAS_MODE | HAS_MODIFIED | HAS_CONTENT_BYTES) {
        0 => Ok(()),
        unknown => Err(FormatError::Reserved {
            what: "member start presence bits",
            value: u64::from(unknown),
        }),
    }
}

/// Returns the value of a field if it is present. An absent field must be zero.
fn optional(present: u8, bit: u8, what: &'static str, value: u64) -> Result<Option<u64>> {
    match (present & bit != 0, value) {
        (true, value) => Ok(Some(value)),
        (false, 0) => Ok(None),
        (false, value) => Err(FormatError::Value {
            what,
            value,
            rule: "0",
        }),
    }
}

fn optional_time(present: u8, time: Timestamp) -> Result<Option<Timestamp>> {
    match (present & HAS_MODIFIED != 0, time) {
        (true, time) => Ok(Some(time)),
        (false, absent) if absent == Timestamp::default() => Ok(None),
        (false, absent) => Err(FormatError::Value {
            what: "absent time",
            value: absent.seconds as u64,
            rule: "0",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn start() -> MemberStart {
        MemberStart {
            member_id: 1,
            content_start: 77,
            kind: MemberKind::File,
            name: b"b\xe4r.txt".to_vec(),
            mode: Some(0o644),
            modified: Some(Timestamp {
                seconds: -5,
                nanoseconds: 999_999_999,
            }),
            content_bytes_hint: None,
        }
    }

    fn end() -> MemberEnd {
        MemberEnd {
            member_id: 1,
            content_bytes: 12,
            view_bytes: 12,
            entry_count: 0,
            blake3: [7; 32],
            entries_are_sorted: true,
            digests: vec![
                Digest {
                    id: DIGEST_MD5,
                    bytes: vec![1; 16],
                },
                Digest {
                    id: 99,
                    bytes: vec![2; 3],
                },
            ],
        }
    }

    #[test]
    fn a_start_parses_as_written() {
        let payload = start().to_payload().unwrap();
        assert_eq!(payload.len(), MEMBER_START_FIXED_BYTES + 7);
        assert_eq!(MemberStart::parse(&payload), Ok(start()));
    }

    #[test]
    fn rejects_invalid_starts() {
        let is_rejected = |change: fn(&mut MemberStart)| {
            let mut start = start();
            change(&mut start);
            start.to_payload().is_err()
        };
        assert!(is_rejected(|start| start.name.push(0)));
        assert!(is_rejected(|start| start.name = vec![b'x'; 4097]));
        assert!(is_rejected(|start| start.content_start = u64::MAX));
        assert!(is_rejected(|start| {
            start.modified = Some(Timestamp {
                seconds: 0,
                nanoseconds: 1_000_000_000,
            });
        }));
        let mut absent_but_set = start();
        absent_but_set.mode = None;
        let mut payload = absent_but_set.to_payload().unwrap();
        payload[24] = 1;
        assert!(MemberStart::parse(&payload).is_err());
    }

    #[test]
    fn an_end_parses_as_written() {
        let payload = end().to_payload().unwrap();
        assert_eq!(MemberEnd::parse(&payload), Ok(end()));
    }

    #[test]
    fn rejects_invalid_ends() {
        let mut wrong_length = end();
        wrong_length.digests[0].bytes.pop();
        assert!(wrong_length.to_payload().is_err());
        let mut twice = end();
        twice.digests[1].id = DIGEST_MD5;
        twice.digests[1].bytes = vec![1; 16];
        assert!(twice.to_payload().is_err());
        let mut empty = end();
        empty.digests[1].bytes.clear();
        assert!(empty.to_payload().is_err());
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(refrain_testkit::scaled(256)))]
        #[test]
        fn accepted_starts_encode_to_the_same_bytes(flips in proptest::collection::vec((0_usize..60, any::<u8>()), 0..4)) {
            let mut payload = start().to_payload().unwrap();
            for (at, value) in flips {
                if let Some(byte) = payload.get_mut(at) {
                    *byte = value;
                }
            }
            if let Ok(start) = MemberStart::parse(&payload) {
                prop_assert_eq!(start.to_payload().unwrap(), payload);
            }
        }
    }
}
