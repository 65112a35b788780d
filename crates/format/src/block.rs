//! The Block frame: a range of the store, coded on its own.
//!
//! Its header has a fixed size. An encoder reserves space for it and for the frame header, lets the
//! codec append its output after them, and fills both in at the end, so no data is copied.

use crate::bytes::ByteReader;
use crate::check::{check_checksum, check_limit, check_positive, check_range, check_raw_length};
use crate::coding::{CODING_BYTES, Coding};
use crate::error::Result;
use crate::frame::{CHECKSUM_DIRECT_BYTES, FrameBuilder};
use crate::layout::{BLOCK_HEADER_BYTES, FrameKind};
use crate::limits::Limits;
use refrain_protect::chunked_checksum64;

const _: () = assert!(BLOCK_HEADER_BYTES == 4 * 8 + CODING_BYTES);
// The checksums of an uncoded block's pieces are also those of its payload's pieces.
const _: () = assert!(BLOCK_HEADER_BYTES == CHECKSUM_DIRECT_BYTES);

/// The header of a Block frame's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// 0, 1, 2 … in file order.
    pub block_id: u64,
    /// The offset of the block in the store.
    pub store_start: u64,
    /// The number of bytes of the block in the store.
    pub raw_bytes: u64,
    /// The [`chunked_checksum64`] of the raw bytes. It also covers errors of the codec, which the
    /// payload's checksum does not.
    pub raw_checksum: u64,
    /// How the data is coded.
    pub coding: Coding,
}

impl BlockHeader {
    /// Parses the payload of a Block frame: the header and the coded data.
    ///
    /// # Errors
    /// Damaged lengths or coding; more raw bytes than the limit.
    pub fn parse<'a>(payload: &'a [u8], limits: &Limits) -> Result<(Self, &'a [u8])> {
        let mut reader = ByteReader::new("block header", payload);
        let header = Self {
            block_id: reader.u64()?,
            store_start: reader.u64()?,
            raw_bytes: reader.u64()?,
            raw_checksum: reader.u64()?,
            coding: Coding::parse(&mut reader)?,
        };
        let data = reader.take(reader.remaining())?;
        header.check(data.len(), &limits.capped())?;
        Ok((header, data))
    }

    /// Returns the end of the block in the store. It does not overflow for a parsed header.
    #[must_use]
    pub fn store_end(&self) -> u64 {
        self.store_start.saturating_add(self.raw_bytes)
    }

    /// Compares decoded bytes with the header.
    ///
    /// # Errors
    /// The length or the checksum differs.
    pub fn check_raw(&self, raw: &[u8]) -> Result<()> {
        check_raw_length(raw, self.raw_bytes)?;
        check_checksum("block", chunked_checksum64(raw), self.raw_checksum)
    }

    /// Starts a frame with space for this header. Append the coded data with
    /// [`FrameBuilder::payload`].
    #[must_use]
    pub fn builder(buffer: Vec<u8>) -> FrameBuilder {
        FrameBuilder::with_header_space(FrameKind::Block, false, buffer, BLOCK_HEADER_BYTES)
    }

    /// Fills in the header. The frame then lacks only
    /// [`finish_header`](crate::frame::finish_header).
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects under the format's own limits.
    pub fn finish(&self, builder: FrameBuilder) -> Result<Vec<u8>> {
        self.check(builder.appended_bytes(), &Limits::default())?;
        Ok(builder.finish_with_header(&self.to_bytes()))
    }

    /// Returns the frame without its data, for an uncoded block whose bytes the writer writes after
    /// it without copying. `sums` are the checksums of its pieces, from which
    /// [`raw_checksum`](Self::raw_checksum) is computed.
    ///
    /// # Errors
    /// The same as [`finish`](Self::finish).
    pub fn finish_detached(&self, sums: &[u64]) -> Result<Vec<u8>> {
        let length = usize::try_from(self.raw_bytes).unwrap_or(usize::MAX);
        self.check(length, &Limits::default())?;
        Ok(Self::builder(Vec::new()).finish_detached(&self.to_bytes(), self.raw_bytes, sums))
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BLOCK_HEADER_BYTES);
        bytes.extend(self.block_id.to_le_bytes());
        bytes.extend(self.store_start.to_le_bytes());
        bytes.extend(self.raw_bytes.to_le_bytes());
        bytes.extend(self.raw_checksum.to_le_bytes());
        self.coding.write(&mut bytes);
        bytes
    }

    fn check(&self, data_bytes: usize, limits: &Limits) -> Result<()> {
        check_positive("raw bytes of a block", self.raw_bytes)?;
        check_limit(
            "raw bytes of a block",
            self.raw_bytes,
            limits.block_raw_bytes_max,
        )?;
        check_range("end of the store", self.store_start, self.raw_bytes)?;
        self.coding
            .check_data_bytes(self.raw_bytes, data_bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorClass, FormatError};
    use crate::frame::{UntrustedFrameHeader, finish_header};
    use crate::layout::FRAME_HEADER_BYTES;
    use refrain_protect::checksum64;

    fn header_of(raw: &[u8], coding: Coding) -> BlockHeader {
        BlockHeader {
            block_id: 3,
            store_start: 1000,
            raw_bytes: raw.len() as u64,
            raw_checksum: chunked_checksum64(raw),
            coding,
        }
    }

    fn frame(raw: &[u8]) -> Vec<u8> {
        let mut builder = BlockHeader::builder(Vec::new());
        builder.payload().extend_from_slice(raw);
        let mut frame = header_of(raw, Coding::none()).finish(builder).unwrap();
        finish_header(&mut frame, 4);
        frame
    }

    #[test]
    fn a_frame_parses_as_written() {
        let raw = b"the unique bytes";
        let frame = frame(raw);
        let header = UntrustedFrameHeader::parse(&frame)
            .unwrap()
            .check(&Limits::default(), None)
            .unwrap();
        let payload = &frame[FRAME_HEADER_BYTES..];
        header.check_payload(payload).unwrap();
        let (parsed, data) = BlockHeader::parse(payload, &Limits::default()).unwrap();
        assert_eq!(parsed, header_of(raw, Coding::none()));
        assert_eq!(data, raw);
        assert_eq!(parsed.store_end(), 1016);
        parsed.check_raw(data).unwrap();
        assert!(parsed.check_raw(b"the unique bytez").is_err());
        assert!(parsed.check_raw(b"short").is_err());
    }

    #[test]
    fn a_detached_frame_followed_by_its_data_is_the_frame() {
        let raw = b"the unique bytes";
        let mut detached = header_of(raw, Coding::none())
            .finish_detached(&[checksum64(raw)])
            .unwrap();
        finish_header(&mut detached, 4);
        detached.extend_from_slice(raw);
        assert_eq!(detached, frame(raw));
    }

    #[test]
    fn a_reused_buffer_produces_the_same_frame() {
        let fresh = frame(b"abc");
        let mut builder = BlockHeader::builder(vec![0xee; 5000]);
        builder.payload().extend_from_slice(b"first try");
        builder.clear_appended();
        builder.payload().extend_from_slice(b"abc");
        let mut again = header_of(b"abc", Coding::none()).finish(builder).unwrap();
        finish_header(&mut again, 4);
        assert_eq!(again, fresh);
    }

    #[test]
    fn rejects_blocks_above_the_limit_and_empty_blocks() {
        let frame = frame(&[1; 100]);
        let small = Limits {
            block_raw_bytes_max: 99,
            ..Limits::default()
        };
        let error = BlockHeader::parse(&frame[FRAME_HEADER_BYTES..], &small).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Limit);
        let empty = BlockHeader::builder(Vec::new());
        assert!(matches!(
            header_of(b"", Coding::none()).finish(empty),
            Err(FormatError::Value { .. })
        ));
    }
}
