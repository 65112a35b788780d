//! The header of an Entries frame's payload.

use super::pack::PackedEntries;
use crate::bytes::{put_varint, put_varints};
use crate::check::{check_limit, check_positive, check_range, check_raw, check_text};
use crate::coding::{CODING_BYTES_MAX, Coding};
use crate::constants::FrameKind;
use crate::error::{FormatError, Result};
use crate::frame::FrameBuilder;
use crate::head::{SplitPayload, take_extensions};
use crate::limits::{ENTRIES_PER_FRAME_MAX, FIRST_PATH_BYTES_MAX, Limits};

/// The largest size of the head without the first path: its size, five numbers, a checksum, the
/// coding.
const HEAD_FIXED_BYTES_MAX: usize = 3 + 5 * 10 + 8 + CODING_BYTES_MAX;

/// The header of an Entries frame's payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntriesHeader {
    /// The id of the member to which the entries belong.
    pub member_id: u64,
    /// The number of entries of this member in earlier frames.
    pub first_entry: u64,
    /// The number of entries in this frame.
    pub entry_count: u64,
    /// The size of the packed section before coding, in bytes.
    pub packed_raw_bytes: u64,
    /// The XXH3-64 of the packed section before coding.
    pub packed_checksum: u64,
    /// How the packed section is coded.
    pub coding: Coding,
    /// The path of the first entry that has one, or its first [`FIRST_PATH_BYTES_MAX`] bytes if it
    /// is longer; empty if no entry has a path.
    pub first_path: Vec<u8>,
}

impl EntriesHeader {
    /// Returns the header of a frame with these entries of member `member_id`. `first_entry` counts
    /// the member's entries in earlier frames.
    #[must_use]
    pub fn new(member_id: u64, first_entry: u64, packed: &PackedEntries, coding: Coding) -> Self {
        Self {
            member_id,
            first_entry,
            entry_count: packed.entry_count,
            packed_raw_bytes: packed.raw.len() as u64,
            packed_checksum: packed.checksum,
            coding,
            first_path: packed.first_path.clone(),
        }
    }

    /// Parses the payload of an Entries frame: the header and the coded section.
    ///
    /// # Errors
    /// Damaged lengths, counts or coding; values above the limits.
    pub fn parse<'a>(payload: &'a [u8], limits: &Limits) -> Result<(Self, &'a [u8])> {
        let split = SplitPayload::new(payload)?;
        let mut reader = split.fields("entries header");
        let mut header = Self {
            member_id: reader.varint()?,
            first_entry: reader.varint()?,
            entry_count: reader.varint()?,
            packed_raw_bytes: reader.varint()?,
            packed_checksum: reader.u64()?,
            coding: Coding::parse(&mut reader)?,
            first_path: Vec::new(),
        };
        let first_path_bytes = reader.count(1)?;
        header.first_path = reader.take(first_path_bytes)?.to_vec();
        take_extensions(reader)?;
        header.check(split.data.len(), &limits.capped())?;
        Ok((header, split.data))
    }

    /// Compares the decoded section with the header; part of
    /// [`unpack_entries`](super::unpack_entries).
    ///
    /// # Errors
    /// The length or the checksum differs.
    pub fn check_raw(&self, raw: &[u8]) -> Result<()> {
        check_raw("entries", raw, self.packed_raw_bytes, self.packed_checksum)
    }

    /// Starts a frame with space for the header of `packed`. Append the coded section with
    /// [`FrameBuilder::payload`].
    #[must_use]
    pub fn builder(packed: &PackedEntries, buffer: Vec<u8>) -> FrameBuilder {
        builder_for(&packed.first_path, buffer)
    }

    /// Returns the frame of a coded section. It lacks only
    /// [`finish_header`](crate::frame::finish_header).
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn frame_of(&self, data: &[u8]) -> Result<Vec<u8>> {
        let mut builder = builder_for(&self.first_path, Vec::new());
        builder.payload().extend_from_slice(data);
        self.finish(builder)
    }

    /// Fills in the header. The frame then lacks only
    /// [`finish_header`](crate::frame::finish_header).
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects under the format's own limits.
    pub fn finish(&self, builder: FrameBuilder) -> Result<Vec<u8>> {
        self.check(builder.appended_bytes(), &Limits::default())?;
        let numbers = [
            self.member_id,
            self.first_entry,
            self.entry_count,
            self.packed_raw_bytes,
        ];
        let mut fields = Vec::with_capacity(HEAD_FIXED_BYTES_MAX + self.first_path.len());
        put_varints(&mut fields, &numbers);
        fields.extend(self.packed_checksum.to_le_bytes());
        self.coding.write(&mut fields);
        put_varint(&mut fields, self.first_path.len() as u64);
        fields.extend_from_slice(&self.first_path);
        builder.finish(&fields)
    }

    fn check(&self, data_bytes: usize, limits: &Limits) -> Result<()> {
        check_positive("entries", self.entry_count)?;
        check_limit("entries", self.entry_count, ENTRIES_PER_FRAME_MAX)?;
        check_limit(
            "packed entries bytes",
            self.packed_raw_bytes,
            limits.packed_raw_bytes_max,
        )?;
        check_text("first path", &self.first_path, FIRST_PATH_BYTES_MAX)?;
        check_range("entries of a member", self.first_entry, self.entry_count)?;
        // Each entry has at least one byte.
        if self.entry_count > self.packed_raw_bytes {
            return Err(FormatError::Value {
                what: "entries",
                value: self.entry_count,
                rule: "at most the packed bytes",
            });
        }
        self.coding
            .check_data_bytes(self.packed_raw_bytes, data_bytes as u64)
    }
}

fn builder_for(first_path: &[u8], buffer: Vec<u8>) -> FrameBuilder {
    let space = HEAD_FIXED_BYTES_MAX + first_path.len();
    FrameBuilder::new(FrameKind::Entries, buffer, space)
}
