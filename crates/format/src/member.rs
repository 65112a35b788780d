//! The MemberStart and MemberEnd frames: the start and the end of a named byte sequence.

use refrain_entries::Timestamp;
use refrain_protect::HashKind;

use crate::bytes::{ByteReader, put_varint, unzigzag, zigzag};
use crate::check::{
    check_equal, check_limit, check_positive, check_range, check_text, check_timestamp,
};
use crate::constants::FrameKind;
use crate::error::{FormatError, Result};
use crate::frame::complete_frame;
use crate::head::{head_of, head_only, take_extensions};
use crate::layers::TreeLayers;
use crate::limits::{DIGEST_BYTES_MAX, DIGESTS_MAX, NAME_BYTES_MAX};

/// Flags of a member: its entries are sorted; it has entries.
const ENTRIES_ARE_SORTED: u64 = 1;
const HAS_ENTRIES: u64 = 2;
/// It is a layered tree, and the number of all its entries is stated.
const IS_LAYERED: u64 = 4;

const HAS_MODE: u64 = 1;
const HAS_MODIFIED: u64 = 2;
const HAS_CONTENT_BYTES: u64 = 4;
const IS_SPARSE: u64 = 8;

/// The largest mode: permission bits, set-id bits and the sticky bit.
const MODE_MAX: u32 = 0o7777;

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
    /// 5: a directory tree that consists of the entries of earlier trees and changes to them
    /// ([`MemberStart::layers`]).
    LayeredTree,
}

impl MemberKind {
    /// Whether members of this kind have entries, from which their stream is made.
    #[must_use]
    pub fn has_entries(self) -> bool {
        matches!(self, Self::Tree | Self::Tar | Self::LayeredTree)
    }

    /// Whether members of this kind are directory trees.
    #[must_use]
    pub fn is_tree(self) -> bool {
        matches!(self, Self::Tree | Self::LayeredTree)
    }

    /// Whether the index states the path order of the entries: for a tree whose frames of entries
    /// are not in path order.
    #[must_use]
    pub fn has_slices(self, end: &MemberEnd) -> bool {
        self.is_tree() && end.entry_count > 0 && !end.entries_are_sorted
    }

    pub(crate) fn id(self) -> u8 {
        match self {
            Self::File => 1,
            Self::Stream => 2,
            Self::Tree => 3,
            Self::Tar => 4,
            Self::LayeredTree => 5,
        }
    }

    fn from_id(id: u64) -> Result<Self> {
        match id {
            1 => Ok(Self::File),
            2 => Ok(Self::Stream),
            3 => Ok(Self::Tree),
            4 => Ok(Self::Tar),
            5 => Ok(Self::LayeredTree),
            _ => Err(FormatError::Reserved {
                what: "member kind",
                value: id,
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
    /// The name as bytes, conventionally UTF-8, without zero bytes; empty if there is none. It is
    /// not trusted: a reader that creates files by it must reject names that lead out of the output
    /// directory.
    pub name: Vec<u8>,
    /// Permission bits, as in `st_mode & 0o7777`.
    pub mode: Option<u32>,
    /// The time of the last modification of the content.
    pub modified: Option<Timestamp>,
    /// The expected length, if it was known in advance; MemberEnd states the true one.
    pub content_bytes_hint: Option<u64>,
    /// Whether its content's hash leaves out zeros ([`HashKind::Sparse`]); only for files.
    pub is_sparse: bool,
    /// What a layered tree consists of besides its own entries; present exactly for that kind.
    pub layers: Option<TreeLayers>,
    /// Extensions of later versions, as stored; empty in this version.
    pub extensions: Vec<u8>,
}

impl MemberStart {
    /// Parses the payload of a MemberStart frame.
    ///
    /// # Errors
    /// A field out of its range.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = head_only("member start", payload)?;
        let member_id = reader.varint()?;
        let content_start = reader.varint()?;
        let kind = MemberKind::from_id(reader.varint()?)?;
        let present = reader.varint()?;
        check_present(present)?;
        let name_bytes = reader.varint()?;
        check_limit("member name", name_bytes, NAME_BYTES_MAX as u64)?;
        let name = reader.take(name_bytes as usize)?.to_vec();
        let is_present = |bit: u64| present & bit != 0;
        let mut start = Self {
            member_id,
            content_start,
            kind,
            name,
            mode: None,
            modified: None,
            content_bytes_hint: None,
            is_sparse: is_present(IS_SPARSE),
            layers: None,
            extensions: Vec::new(),
        };
        if is_present(HAS_MODE) {
            start.mode = Some(reader.varint_as("mode")?);
        }
        if is_present(HAS_MODIFIED) {
            start.modified = Some(take_time(&mut reader)?);
        }
        if is_present(HAS_CONTENT_BYTES) {
            start.content_bytes_hint = Some(reader.varint()?);
        }
        if kind == MemberKind::LayeredTree {
            start.layers = Some(TreeLayers::take(&mut reader, member_id)?);
        }
        start.extensions = take_extensions(reader)?;
        start.check()?;
        Ok(start)
    }

    /// Returns the payload.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_payload(&self) -> Result<Vec<u8>> {
        self.check()?;
        let mut fields = Vec::with_capacity(64 + self.name.len());
        put_varint(&mut fields, self.member_id);
        put_varint(&mut fields, self.content_start);
        put_varint(&mut fields, u64::from(self.kind.id()));
        put_varint(&mut fields, self.present());
        put_varint(&mut fields, self.name.len() as u64);
        fields.extend_from_slice(&self.name);
        if let Some(mode) = self.mode {
            put_varint(&mut fields, u64::from(mode));
        }
        if let Some(modified) = self.modified {
            put_time(&mut fields, modified);
        }
        if let Some(hint) = self.content_bytes_hint {
            put_varint(&mut fields, hint);
        }
        if let Some(layers) = &self.layers {
            layers.put(self.member_id, &mut fields);
        }
        fields.extend_from_slice(&self.extensions);
        Ok(head_of(&fields))
    }

    /// Returns the complete frame.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_frame(&self, archive_id: u32, sequence: u64) -> Result<Vec<u8>> {
        let payload = self.to_payload()?;
        let kind = FrameKind::MemberStart;
        Ok(complete_frame(kind, 0, &payload, archive_id, sequence))
    }

    fn present(&self) -> u64 {
        let bit = |is_present: bool, bit: u64| u64::from(is_present) * bit;
        bit(self.mode.is_some(), HAS_MODE)
            | bit(self.modified.is_some(), HAS_MODIFIED)
            | bit(self.content_bytes_hint.is_some(), HAS_CONTENT_BYTES)
            | bit(self.is_sparse, IS_SPARSE)
    }

    /// How its content is hashed.
    #[must_use]
    pub fn hash_kind(&self) -> HashKind {
        if self.is_sparse { HashKind::Sparse } else { HashKind::Plain }
    }

    /// Checks a member's name.
    ///
    /// # Errors
    /// It is too long, or has a zero byte.
    pub fn check_name(name: &[u8]) -> Result<()> {
        check_text("member name", name, NAME_BYTES_MAX)
    }

    fn check(&self) -> Result<()> {
        check_range("start of a member", self.content_start, 0)?;
        MemberStart::check_name(&self.name)?;
        if let Some(mode) = self.mode.filter(|&mode| mode > MODE_MAX) {
            return Err(FormatError::Value {
                what: "mode of a member",
                value: u64::from(mode),
                rule: "at most 0o7777",
            });
        }
        if let Some(modified) = self.modified {
            check_timestamp(modified)?;
        }
        if self.is_sparse && self.kind != MemberKind::File {
            return Err(FormatError::Value {
                what: "kind of a sparse member",
                value: u64::from(self.kind.id()),
                rule: "1, a file",
            });
        }
        self.check_layers()
    }
}

impl MemberStart {
    fn check_layers(&self) -> Result<()> {
        check_equal(
            "layers of a member (1: present)",
            u64::from(self.layers.is_some()),
            u64::from(self.kind == MemberKind::LayeredTree),
        )?;
        match &self.layers {
            Some(layers) => layers.check(self.member_id, self.content_start),
            None => Ok(()),
        }
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
    /// The length of the member as a stream: for a tree or tar stream, the length of the tar stream
    /// made from its entries and content; otherwise `content_bytes`.
    pub view_bytes: u64,
    /// The number of entries in all Entries frames of the member.
    pub entry_count: u64,
    /// For a layered tree: the number of all its entries, those of its layers among them.
    pub tree_entry_count: Option<u64>,
    /// The hash of the entries ([`EntriesHasher`](crate::root_hash::EntriesHasher)); present
    /// exactly if members of the kind have entries.
    pub entries_hash: Option<[u8; 32]>,
    /// BLAKE3 of the content; for a sparse member, the hash by
    /// [`SparseHasher`](refrain_protect::SparseHasher).
    pub blake3: [u8; 32],
    /// Whether there are entries and their paths ascend strictly by
    /// [`refrain_entries::compare_paths`] (entries without a path do not count). Then binary search
    /// finds an entry.
    pub entries_are_sorted: bool,
    /// Further digests by ascending id.
    pub digests: Vec<Digest>,
    /// Extensions of later versions, as stored; empty in this version.
    pub extensions: Vec<u8>,
}

impl MemberEnd {
    /// The end of a member without entries and further digests. The hash of its content is not
    /// known: zeros.
    #[must_use]
    pub fn of_content(member_id: u64, content_bytes: u64) -> Self {
        Self {
            member_id,
            content_bytes,
            view_bytes: content_bytes,
            entry_count: 0,
            tree_entry_count: None,
            entries_hash: None,
            blake3: [0; 32],
            entries_are_sorted: false,
            digests: Vec::new(),
            extensions: Vec::new(),
        }
    }

    /// Parses the payload of a MemberEnd frame.
    ///
    /// # Errors
    /// A field out of its range.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = head_only("member end", payload)?;
        let member_id = reader.varint()?;
        let content_bytes = reader.varint()?;
        let flags = take_flags(&mut reader)?;
        let mut end = Self {
            blake3: reader.array()?,
            entries_are_sorted: flags & ENTRIES_ARE_SORTED != 0,
            ..Self::of_content(member_id, content_bytes)
        };
        if flags & HAS_ENTRIES != 0 {
            end.view_bytes = reader.varint()?;
            end.entry_count = reader.varint()?;
            end.entries_hash = Some(reader.array()?);
        }
        if flags & IS_LAYERED != 0 {
            end.tree_entry_count = Some(reader.varint()?);
        }
        end.digests = take_digests(&mut reader)?;
        end.extensions = take_extensions(reader)?;
        end.check()?;
        Ok(end)
    }

    /// Returns the payload.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_payload(&self) -> Result<Vec<u8>> {
        self.check()?;
        let mut fields = Vec::with_capacity(128);
        put_varint(&mut fields, self.member_id);
        self.put_shown(&mut fields);
        fields.extend_from_slice(&self.extensions);
        Ok(head_of(&fields))
    }

    /// Appends the fields that the member's hash covers: all but the id.
    pub(crate) fn put_shown(&self, out: &mut Vec<u8>) {
        let entries_flag = u64::from(self.entries_hash.is_some()) * HAS_ENTRIES;
        let sorted_flag = u64::from(self.entries_are_sorted) * ENTRIES_ARE_SORTED;
        put_varint(out, self.content_bytes);
        let layered_flag = u64::from(self.tree_entry_count.is_some()) * IS_LAYERED;
        put_varint(out, entries_flag | sorted_flag | layered_flag);
        out.extend(self.blake3);
        if let Some(entries_hash) = &self.entries_hash {
            put_varint(out, self.view_bytes);
            put_varint(out, self.entry_count);
            out.extend(entries_hash);
        }
        if let Some(count) = self.tree_entry_count {
            put_varint(out, count);
        }
        put_varint(out, self.digests.len() as u64);
        for digest in &self.digests {
            put_varint(out, u64::from(digest.id));
            put_varint(out, digest.bytes.len() as u64);
            out.extend_from_slice(&digest.bytes);
        }
    }

    /// Returns the complete frame.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_frame(&self, archive_id: u32, sequence: u64) -> Result<Vec<u8>> {
        let payload = self.to_payload()?;
        let kind = FrameKind::MemberEnd;
        Ok(complete_frame(kind, 0, &payload, archive_id, sequence))
    }

    /// Compares the end with the kind of the member and with its frames of entries.
    pub(crate) fn check_kind(&self, kind: MemberKind, first_paths_ascend: bool) -> Result<()> {
        let has_entries = kind.has_entries();
        check_equal(
            "number of a layered tree's entries (1: stated)",
            u64::from(self.tree_entry_count.is_some()),
            u64::from(kind == MemberKind::LayeredTree),
        )?;
        check_equal(
            "hash of entries (1: present)",
            u64::from(self.entries_hash.is_some()),
            u64::from(has_entries),
        )?;
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
        if self.entries_hash.is_none() {
            check_equal(
                "bytes of a member as a stream",
                self.view_bytes,
                self.content_bytes,
            )?;
            check_equal("entries of a member without any", self.entry_count, 0)?;
        }
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

fn take_flags(reader: &mut ByteReader<'_>) -> Result<u64> {
    let flags = reader.varint()?;
    match flags & !(ENTRIES_ARE_SORTED | HAS_ENTRIES | IS_LAYERED) {
        0 => Ok(flags),
        unknown => Err(FormatError::Reserved {
            what: "member flags",
            value: unknown,
        }),
    }
}

fn check_present(present: u64) -> Result<()> {
    match present & !(HAS_MODE | HAS_MODIFIED | HAS_CONTENT_BYTES | IS_SPARSE) {
        0 => Ok(()),
        unknown => Err(FormatError::Reserved {
            what: "member start presence bits",
            value: unknown,
        }),
    }
}

fn take_digests(reader: &mut ByteReader<'_>) -> Result<Vec<Digest>> {
    let count = reader.varint()?;
    check_limit("digests", count, DIGESTS_MAX as u64)?;
    let mut digests = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let id = reader.varint_as("digest id")?;
        let length = reader.count(1)?;
        let bytes = reader.take(length)?.to_vec();
        digests.push(Digest { id, bytes });
    }
    Ok(digests)
}

pub(crate) fn take_time(reader: &mut ByteReader<'_>) -> Result<Timestamp> {
    Ok(Timestamp {
        seconds: unzigzag(reader.varint()?),
        nanoseconds: reader.varint_as("nanoseconds of a time")?,
    })
}

/// Appends a time: seconds, which may be negative, and nanoseconds.
pub(crate) fn put_time(out: &mut Vec<u8>, time: Timestamp) {
    put_varint(out, zigzag(time.seconds));
    put_varint(out, u64::from(time.nanoseconds));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;
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
            is_sparse: false,
            layers: None,
            extensions: Vec::new(),
        }
    }

    fn end() -> MemberEnd {
        MemberEnd {
            member_id: 1,
            content_bytes: 12,
            view_bytes: 1024,
            entry_count: 1,
            tree_entry_count: None,
            entries_hash: Some([9; 32]),
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
            extensions: vec![2, 1, 0],
        }
    }

    #[test]
    fn a_start_parses_as_written() {
        let payload = start().to_payload().unwrap();
        assert_eq!(payload.len(), 6 + 7 + 2 + 1 + 5);
        assert_eq!(MemberStart::parse(&payload), Ok(start()));
        let sparse = MemberStart {
            is_sparse: true,
            layers: None,
            ..start()
        };
        let payload = sparse.to_payload().unwrap();
        assert_eq!(MemberStart::parse(&payload), Ok(sparse));
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
        assert!(is_rejected(|start| start.mode = Some(0o10_000)));
        assert!(is_rejected(|start| {
            (start.is_sparse, start.kind) = (true, MemberKind::Stream);
        }));
    }

    #[test]
    fn what_later_versions_may_define_is_unsupported() {
        let mut payload = start().to_payload().unwrap();
        payload[3] = 6;
        let class = |payload: &[u8]| MemberStart::parse(payload).unwrap_err().class();
        assert_eq!(class(&payload), ErrorClass::Unsupported);
        payload[3] = 1;
        payload[4] |= 16;
        assert_eq!(class(&payload), ErrorClass::Unsupported);
    }

    #[test]
    fn numbers_that_no_field_holds_are_damaged() {
        let payload = start().to_payload().unwrap();
        let class = |payload: &[u8]| MemberStart::parse(payload).unwrap_err().class();
        // The mode is two bytes, the nanoseconds are the last five: replace them by 2^32 or
        // more.
        let mode_at = payload.len() - 8;
        let mut large_mode = payload.clone();
        large_mode.splice(mode_at..mode_at + 2, [0x80, 0x80, 0x80, 0x80, 0x10]);
        large_mode[0] += 3;
        assert_eq!(class(&large_mode), ErrorClass::Damaged);
        let mut large_time = payload;
        *large_time.last_mut().unwrap() = 0x10;
        assert_eq!(class(&large_time), ErrorClass::Damaged);
        // The id of the last digest, before its length, its bytes and the extension.
        let mut payload = end().to_payload().unwrap();
        let id_at = payload.len() - 8;
        assert_eq!(payload[id_at], 99);
        payload.splice(id_at..=id_at, [0x80, 2]);
        payload[0] += 1;
        let class = MemberEnd::parse(&payload).unwrap_err().class();
        assert_eq!(class, ErrorClass::Damaged);
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
