//! The header of an Entries frame's payload.

use super::pack::PackedEntries;
use crate::bytes::ByteReader;
use crate::check::{check_equal, check_limit, check_positive, check_range, check_raw, check_text};
use crate::coding::{CODING_BYTES, Coding};
use crate::error::{FormatError, Result};
use crate::frame::FrameBuilder;
use crate::layout::{ENTRIES_HEADER_BYTES, FrameKind};
use crate::limits::{ENTRIES_PER_FRAME_MAX, FIRST_PATH_BYTES_MAX, Limits};

const _: () = assert!(ENTRIES_HEADER_BYTES == 6 * 8 + CODING_BYTES);

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
    /// The header of a frame with these entries of member `member_id`, of which earlier frames hold
    /// `first_entry`.
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
        let mut reader = ByteReader::new("entries header", payload);
        let mut header = Self {
            member_id: reader.u64()?,
            first_entry: reader.u64()?,
            entry_count: reader.u64()?,
            packed_raw_bytes: reader.u64()?,
            packed_checksum: reader.u64()?,
            coding: Coding::parse(&mut reader)?,
            first_path: Vec::new(),
        };
        let first_path_bytes = usize::from(reader.u8()?);
        reader.reserved(7)?;
        header.first_path = reader.take(first_path_bytes)?.to_vec();
        let data = reader.take(reader.remaining())?;
        header.check(data.len(), &limits.capped())?;
        Ok((header, data))
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
        let header_bytes = ENTRIES_HEADER_BYTES + packed.first_path.len();
        FrameBuilder::with_header_space(FrameKind::Entries, false, buffer, header_bytes)
    }

    /// Fills in the header. The frame then lacks only
    /// [`finish_header`](crate::frame::finish_header).
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects under the format's own limits; a builder for a
    /// first path of another length.
    pub fn finish(&self, builder: FrameBuilder) -> Result<Vec<u8>> {
        self.check(builder.appended_bytes(), &Limits::default())?;
        let fields = [
            self.member_id,
            self.first_entry,
            self.entry_count,
            self.packed_raw_bytes,
            self.packed_checksum,
        ];
        let mut header: Vec<u8> = fields.into_iter().flat_map(u64::to_le_bytes).collect();
        self.coding.write(&mut header);
        header.push(self.first_path.len() as u8);
        header.extend([0; 7]);
        header.extend_from_slice(&self.first_path);
        check_equal(
            "bytes of an entries header",
            builder.header_bytes() as u64,
            header.len() as u64,
        )?;
        Ok(builder.finish_with_header(&header))
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
