//! The header of an Extents frame's payload.

use crate::bytes::put_varints;
use crate::check::{check_limit, check_range, check_raw};
use crate::coding::{CODING_BYTES_MAX, Coding};
use crate::constants::FrameKind;
use crate::error::{FormatError, Result};
use crate::frame::FrameBuilder;
use crate::head::{SplitPayload, take_extensions};
use crate::limits::{EPOCH_BYTES_MAX, Limits};
use refrain_protect::checksum64;

/// The largest size of the head: its size, seven numbers, the coding, a checksum.
const HEAD_BYTES_MAX: usize = 3 + 7 * 10 + CODING_BYTES_MAX + 8;

/// The smallest size of an extent in a packed section: its kind and its length.
const EXTENT_PACKED_BYTES_MIN: u64 = 2;

/// The header of an Extents frame's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtentsHeader {
    /// 0, 1, 2 … in file order.
    pub epoch_id: u64,
    /// The offset of the epoch in the content space.
    pub content_start: u64,
    /// The number of content bytes of the epoch: the sum of the lengths of its extents.
    pub content_bytes: u64,
    /// The number of store bytes that all earlier epochs have introduced: the offset of this
    /// epoch's first `Fresh` extent.
    pub store_start: u64,
    /// The number of store bytes that this epoch introduces: the sum of its `Fresh` lengths.
    pub fresh_bytes: u64,
    /// The number of extents.
    pub extent_count: u64,
    /// The size of the packed section before coding, in bytes.
    pub packed_raw_bytes: u64,
    /// The XXH3-64 of the packed section before coding. It is stored only if the section is coded;
    /// otherwise the payload's checksum covers it.
    pub packed_checksum: u64,
    /// How the packed section is coded.
    pub coding: Coding,
}

impl ExtentsHeader {
    /// Parses the payload of an Extents frame: the header and the coded section.
    ///
    /// # Errors
    /// Damaged lengths, counts or coding; values above the limits.
    pub fn parse<'a>(payload: &'a [u8], limits: &Limits) -> Result<(Self, &'a [u8])> {
        let split = SplitPayload::new(payload)?;
        let mut reader = split.fields("extents header");
        let mut header = Self {
            epoch_id: reader.varint()?,
            content_start: reader.varint()?,
            content_bytes: reader.varint()?,
            store_start: reader.varint()?,
            fresh_bytes: reader.varint()?,
            extent_count: reader.varint()?,
            packed_raw_bytes: reader.varint()?,
            packed_checksum: 0,
            coding: Coding::parse(&mut reader)?,
        };
        header.packed_checksum =
            if header.coding.is_uncoded() { checksum64(split.data) } else { reader.u64()? };
        take_extensions(reader)?;
        header.check(split.data.len(), &limits.capped())?;
        Ok((header, split.data))
    }

    /// Returns the end of the epoch in the content space.
    #[must_use]
    pub fn content_end(&self) -> u64 {
        self.content_start.saturating_add(self.content_bytes)
    }

    /// Returns the number of store bytes that this epoch and all earlier ones have introduced.
    #[must_use]
    pub fn store_end(&self) -> u64 {
        self.store_start.saturating_add(self.fresh_bytes)
    }

    /// Compares the decoded section with the header; part of
    /// [`unpack_extents`](super::unpack_extents).
    ///
    /// # Errors
    /// The length or the checksum differs.
    pub fn check_raw(&self, raw: &[u8]) -> Result<()> {
        check_raw("extents", raw, self.packed_raw_bytes, self.packed_checksum)
    }

    /// Starts a frame with space for this header. Append the coded section with
    /// [`FrameBuilder::payload`].
    #[must_use]
    pub fn builder(buffer: Vec<u8>) -> FrameBuilder {
        FrameBuilder::new(FrameKind::Extents, buffer, HEAD_BYTES_MAX)
    }

    /// Fills in the header. The frame then lacks only
    /// [`finish_header`](crate::frame::finish_header).
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects under the format's own limits.
    pub fn finish(&self, builder: FrameBuilder) -> Result<Vec<u8>> {
        self.check(builder.appended_bytes(), &Limits::default())?;
        let numbers = [
            self.epoch_id,
            self.content_start,
            self.content_bytes,
            self.store_start,
            self.fresh_bytes,
            self.extent_count,
            self.packed_raw_bytes,
        ];
        let mut fields = Vec::with_capacity(HEAD_BYTES_MAX);
        put_varints(&mut fields, &numbers);
        self.coding.write(&mut fields);
        if !self.coding.is_uncoded() {
            fields.extend(self.packed_checksum.to_le_bytes());
        }
        builder.finish(&fields)
    }

    fn check(&self, data_bytes: usize, limits: &Limits) -> Result<()> {
        check_limit("epoch bytes", self.content_bytes, EPOCH_BYTES_MAX)?;
        check_limit("extents", self.extent_count, limits.extents_per_frame_max)?;
        check_limit(
            "packed extents bytes",
            self.packed_raw_bytes,
            limits.packed_raw_bytes_max,
        )?;
        check_range("end of content", self.content_start, self.content_bytes)?;
        check_range("end of the store", self.store_start, self.fresh_bytes)?;
        self.check_counts()?;
        self.coding
            .check_data_bytes(self.packed_raw_bytes, data_bytes as u64)
    }

    fn check_counts(&self) -> Result<()> {
        let rules = [
            ("extents", self.extent_count, self.extent_count >= 1),
            // Every extent has at least one byte of content.
            (
                "extents",
                self.extent_count,
                self.extent_count <= self.content_bytes,
            ),
            // The section holds at least the kind and the length of every extent.
            (
                "extents",
                self.extent_count,
                self.extent_count <= self.packed_raw_bytes / EXTENT_PACKED_BYTES_MIN,
            ),
            (
                "fresh bytes",
                self.fresh_bytes,
                self.fresh_bytes <= self.content_bytes,
            ),
        ];
        for (what, value, holds) in rules {
            if !holds {
                return Err(FormatError::Value {
                    what,
                    value,
                    rule: "consistent with the other counts of the epoch",
                });
            }
        }
        Ok(())
    }
}
