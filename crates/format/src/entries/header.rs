//! The head of an Entries frame.

use crate::bytes::Reader;
use crate::check::{check_limit, check_positive, check_range, check_raw};
use crate::coding::{CODING_BYTES, Coding};
use crate::error::{FormatError, Result};
use crate::frame::FrameBuilder;
use crate::layout::{ENTRIES_HEADER_BYTES, FrameKind};
use crate::limits::{ENTRIES_PER_FRAME_MAX, Limits};

const _: () = assert!(ENTRIES_HEADER_BYTES == 5 * 8 + CODING_BYTES);

/// Bytes that an entry takes in a packed section at least: kind, shared and own path length, mode, seconds, nanoseconds,
/// size, place. (A path may share everything with the one before it.)
const ENTRY_PACKED_BYTES_MIN: u64 = 8;

/// Head of an Entries frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntriesHeader {
    /// The member that the entries belong to.
    pub member_id: u64,
    /// How many entries of this member stand in earlier frames.
    pub first_entry: u64,
    /// Entries in this frame.
    pub entry_count: u64,
    /// Bytes of the packed section before coding.
    pub packed_raw_bytes: u64,
    /// XXH3-64 of the packed section before coding.
    pub packed_checksum: u64,
    /// How the packed section is coded.
    pub coding: Coding,
}

impl EntriesHeader {
    /// Reads the payload of an Entries frame: the head and the coded section.
    ///
    /// # Errors
    /// Damaged lengths, counts or coding; anything over the limits.
    pub fn parse<'a>(payload: &'a [u8], limits: &Limits) -> Result<(Self, &'a [u8])> {
        let mut reader = Reader::new("entries head", payload);
        let head = Self {
            member_id: reader.u64()?,
            first_entry: reader.u64()?,
            entry_count: reader.u64()?,
            packed_raw_bytes: reader.u64()?,
            packed_checksum: reader.u64()?,
            coding: Coding::parse(&mut reader)?,
        };
        let data = reader.take(reader.remaining())?;
        head.check(data.len(), &limits.capped())?;
        Ok((head, data))
    }

    /// Compares the decoded section with the head; part of [`unpack_entries`](super::unpack_entries).
    ///
    /// # Errors
    /// The length or the checksum differs.
    pub fn check_raw(&self, raw: &[u8]) -> Result<()> {
        check_raw("entries", raw, self.packed_raw_bytes, self.packed_checksum)
    }

    /// A frame with room for this head; append the coded section with [`FrameBuilder::payload`].
    #[must_use]
    pub fn builder(buffer: Vec<u8>) -> FrameBuilder {
        FrameBuilder::with_header_space(FrameKind::Entries, false, buffer, ENTRIES_HEADER_BYTES)
    }

    /// Fills in the head. What is left is [`finish_header`](crate::frame::finish_header).
    ///
    /// # Errors
    /// What [`parse`](Self::parse) would refuse under the format's own limits.
    pub fn finish(&self, builder: FrameBuilder) -> Result<Vec<u8>> {
        self.check(builder.appended_bytes(), &Limits::default())?;
        let fields = [
            self.member_id,
            self.first_entry,
            self.entry_count,
            self.packed_raw_bytes,
            self.packed_checksum,
        ];
        let mut head: Vec<u8> = fields.into_iter().flat_map(u64::to_le_bytes).collect();
        self.coding.write(&mut head);
        Ok(builder.finish_with_header(&head))
    }

    fn check(&self, data_bytes: usize, limits: &Limits) -> Result<()> {
        check_positive("entries", self.entry_count)?;
        check_limit("entries", self.entry_count, ENTRIES_PER_FRAME_MAX)?;
        check_limit(
            "packed entries bytes",
            self.packed_raw_bytes,
            limits.packed_raw_bytes_max,
        )?;
        check_range("entries of a member", self.first_entry, self.entry_count)?;
        if self.entry_count > self.packed_raw_bytes / ENTRY_PACKED_BYTES_MIN {
            return Err(FormatError::Value {
                what: "entries",
                value: self.entry_count,
                rule: "at most an eighth of the packed bytes",
            });
        }
        self.coding
            .check_data_bytes(self.packed_raw_bytes, data_bytes as u64)
    }
}
