//! The Block frame: a range of the store, coded on its own.
//!
//! An encoder reserves space for frame header and head, lets the codec append its output after
//! them, and fills both in at the end.

use crate::bytes::{ByteReader, put_varint};
use crate::check::{
    check_checksum, check_equal, check_limit, check_positive, check_range, check_raw_length,
};
use crate::coding::{CODING_BYTES_MAX, Coding};
use crate::constants::{FRAME_HEADER_BYTES, FrameKind};
use crate::error::{FormatError, Result};
use crate::frame::{FrameBuilder, detached_frame};
use crate::head::{SplitPayload, take_extensions};
use crate::limits::Limits;
use refrain_protect::{CHECKSUM_CHUNK_BYTES, checksum64, chunked_checksum64};

const PIECE_CHECKSUM_BYTES: usize = 4;

/// The largest size of the fields before the pieces' checksums: the head's size, three numbers, the
/// coding and a checksum.
const FIELDS_BYTES_MAX: usize = 3 + 3 * 10 + CODING_BYTES_MAX + 8;

/// Returns the largest size of a Block frame without its data, in bytes, for a block of
/// `raw_bytes`.
#[must_use]
pub fn block_frame_overhead_max(raw_bytes: u64) -> u64 {
    let pieces = raw_bytes.div_ceil(CHECKSUM_CHUNK_BYTES as u64);
    let table_bytes = pieces.saturating_mul(PIECE_CHECKSUM_BYTES as u64);
    table_bytes.saturating_add((FRAME_HEADER_BYTES + FIELDS_BYTES_MAX) as u64)
}

/// The header of a Block frame's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// 0, 1, 2 … in file order.
    pub block_id: u64,
    /// The offset of the block in the store.
    pub store_start: u64,
    /// The number of bytes of the block in the store.
    pub raw_bytes: u64,
    /// The [`chunked_checksum64`] of the raw bytes. Unlike the payload's checksum, it also covers
    /// errors of the codec. Absent exactly if the data is uncoded.
    pub raw_checksum: Option<u64>,
    /// How the data is coded.
    pub coding: Coding,
}

impl BlockHeader {
    /// Parses the payload of a Block frame: the header and the coded data.
    ///
    /// # Errors
    /// Damaged lengths or coding; more raw bytes than the limit.
    pub fn parse<'a>(payload: &'a [u8], limits: &Limits) -> Result<(Self, &'a [u8])> {
        let (header, _, data) = Self::parse_with_pieces(payload, limits)?;
        Ok((header, data))
    }

    /// Parses the payload of a Block frame: the header, the checksums of its pieces, and the coded
    /// data.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with_pieces<'a>(
        payload: &'a [u8],
        limits: &Limits,
    ) -> Result<(Self, PieceChecksums<'a>, &'a [u8])> {
        let split = SplitPayload::new(payload)?;
        let (header, pieces) = Self::parse_head(&split)?;
        header.check(split.data.len(), &limits.capped())?;
        Ok((header, pieces, split.data))
    }

    /// Parses the head of a Block frame whose data may be damaged or missing.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), except for the data.
    pub fn parse_head<'a>(split: &SplitPayload<'a>) -> Result<(Self, PieceChecksums<'a>)> {
        let mut reader = split.fields("block header");
        let mut header = Self {
            block_id: reader.varint()?,
            store_start: reader.varint()?,
            raw_bytes: reader.varint()?,
            raw_checksum: None,
            coding: Coding::parse(&mut reader)?,
        };
        if !header.coding.is_uncoded() {
            header.raw_checksum = Some(reader.u64()?);
        }
        let pieces = PieceChecksums::take(&mut reader, header.raw_bytes)?;
        take_extensions(reader)?;
        Ok((header, pieces))
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
        match self.raw_checksum {
            Some(expected) => check_checksum("block", chunked_checksum64(raw), expected),
            // The checksum of the payload covers it.
            None => Ok(()),
        }
    }

    /// Starts a frame with space for the head of a block of `raw_bytes`. Append the coded data with
    /// [`FrameBuilder::payload`].
    #[must_use]
    pub fn builder(buffer: Vec<u8>, raw_bytes: u64) -> FrameBuilder {
        let space = block_frame_overhead_max(raw_bytes) as usize - FRAME_HEADER_BYTES;
        FrameBuilder::new(FrameKind::Block, buffer, space)
    }

    /// Fills in the head. `sums` are the checksums of the pieces of the raw block. The frame then
    /// lacks only [`finish_header`](crate::frame::finish_header).
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects under the format's own limits.
    pub fn finish(&self, builder: FrameBuilder, sums: &[u64]) -> Result<Vec<u8>> {
        self.check(builder.appended_bytes(), &Limits::default())?;
        builder.finish(&self.fields(sums)?)
    }

    /// Returns the frame without its data, for an uncoded block whose bytes the writer appends
    /// without copying. `sums` are the checksums of its pieces.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_detached(&self, sums: &[u64]) -> Result<Vec<u8>> {
        let length = usize::try_from(self.raw_bytes).unwrap_or(usize::MAX);
        self.check(length, &Limits::default())?;
        let fields = self.fields(sums)?;
        Ok(detached_frame(
            FrameKind::Block,
            &fields,
            self.raw_bytes,
            sums,
        ))
    }

    fn fields(&self, sums: &[u64]) -> Result<Vec<u8>> {
        let mut fields = Vec::new();
        put_varint(&mut fields, self.block_id);
        put_varint(&mut fields, self.store_start);
        put_varint(&mut fields, self.raw_bytes);
        self.coding.write(&mut fields);
        if let Some(checksum) = self.raw_checksum {
            fields.extend(checksum.to_le_bytes());
        }
        let pieces = self.raw_bytes.div_ceil(CHECKSUM_CHUNK_BYTES as u64);
        check_equal("checksums of a block's pieces", sums.len() as u64, pieces)?;
        if pieces > 1 {
            let stored = sums.iter().map(|sum| (*sum as u32).to_le_bytes());
            stored.for_each(|bytes| fields.extend(bytes));
        }
        Ok(fields)
    }

    fn check(&self, data_bytes: usize, limits: &Limits) -> Result<()> {
        check_positive("raw bytes of a block", self.raw_bytes)?;
        check_limit(
            "raw bytes of a block",
            self.raw_bytes,
            limits.block_raw_bytes_max,
        )?;
        check_range("end of the store", self.store_start, self.raw_bytes)?;
        if self.raw_checksum.is_some() == self.coding.is_uncoded() {
            return Err(FormatError::Value {
                what: "checksum of a raw block",
                value: u64::from(self.raw_checksum.is_some()),
                rule: "present exactly if the block is coded",
            });
        }
        self.coding
            .check_data_bytes(self.raw_bytes, data_bytes as u64)
    }
}

/// The checksums of the pieces of a raw block, [`CHECKSUM_CHUNK_BYTES`] each. They verify partly
/// decoded blocks and the remains of damaged ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceChecksums<'a> {
    /// Empty for a block of one piece.
    bytes: &'a [u8],
}

impl<'a> PieceChecksums<'a> {
    fn take(reader: &mut ByteReader<'a>, raw_bytes: u64) -> Result<Self> {
        let pieces = raw_bytes.div_ceil(CHECKSUM_CHUNK_BYTES as u64);
        let length = match pieces {
            0 | 1 => 0,
            // `take` rejects a table that extends past the head.
            _ => usize::try_from(pieces.saturating_mul(PIECE_CHECKSUM_BYTES as u64))
                .unwrap_or(usize::MAX),
        };
        let bytes = reader.take(length)?;
        Ok(Self { bytes })
    }

    /// Returns the checksum of piece `piece`: the low 32 bits of its XXH3-64. `None` past the last
    /// piece, and for a block of one piece, which has only the checksum of the whole block.
    #[must_use]
    pub fn get(&self, piece: usize) -> Option<u32> {
        let (sums, _) = self.bytes.as_chunks();
        sums.get(piece).copied().map(u32::from_le_bytes)
    }

    /// Returns whether the checksum of piece `piece` matches `raw`; `None` if there is no checksum.
    #[must_use]
    pub fn check(&self, piece: usize, raw: &[u8]) -> Option<bool> {
        Some(self.get(piece)? == checksum64(raw) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;
    use crate::frame::{UntrustedFrameHeader, finish_header};

    fn header_of(raw: &[u8], coding: Coding) -> BlockHeader {
        BlockHeader {
            block_id: 3,
            store_start: 1000,
            raw_bytes: raw.len() as u64,
            raw_checksum: (!coding.is_uncoded()).then(|| chunked_checksum64(raw)),
            coding,
        }
    }

    fn sums(raw: &[u8]) -> Vec<u64> {
        raw.chunks(CHECKSUM_CHUNK_BYTES).map(checksum64).collect()
    }

    fn frame(raw: &[u8]) -> Vec<u8> {
        let mut builder = BlockHeader::builder(Vec::new(), raw.len() as u64);
        builder.payload().extend_from_slice(raw);
        let header = header_of(raw, Coding::none());
        let mut frame = header.finish(builder, &sums(raw)).unwrap();
        finish_header(&mut frame, 9, 4);
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
        assert!(parsed.check_raw(b"short").is_err());
    }

    #[test]
    fn a_detached_frame_followed_by_its_data_is_the_frame() {
        let raw = b"the unique bytes";
        let mut detached = header_of(raw, Coding::none())
            .finish_detached(&sums(raw))
            .unwrap();
        finish_header(&mut detached, 9, 4);
        detached.extend_from_slice(raw);
        assert_eq!(detached, frame(raw));
    }

    #[test]
    fn coded_blocks_have_checksums_of_the_block_and_of_its_pieces() {
        let raw: Vec<u8> = (0..200_000_u32).map(|at| (at / 7) as u8).collect();
        let header = header_of(&raw, Coding::new(2, &[], &[], 0).unwrap());
        let mut builder = BlockHeader::builder(Vec::new(), raw.len() as u64);
        builder.payload().extend_from_slice(b"coded");
        let frame = header.finish(builder, &sums(&raw)).unwrap();
        let payload = &frame[FRAME_HEADER_BYTES..];
        let (parsed, pieces, data) =
            BlockHeader::parse_with_pieces(payload, &Limits::default()).unwrap();
        assert_eq!((parsed, data), (header, &b"coded"[..]));
        parsed.check_raw(&raw).unwrap();
        for (number, piece) in raw.chunks(CHECKSUM_CHUNK_BYTES).enumerate() {
            assert_eq!(pieces.check(number, piece), Some(true));
            assert_eq!(pieces.check(number, &piece[1..]), Some(false));
        }
        assert_eq!(pieces.get(4), None);
        let mut changed = raw.clone();
        changed[150_000] ^= 1;
        assert!(parsed.check_raw(&changed).is_err());
    }

    #[test]
    fn a_reused_buffer_produces_the_same_frame() {
        let fresh = frame(b"abc");
        let mut builder = BlockHeader::builder(vec![0xee; 5000], 3);
        builder.payload().extend_from_slice(b"first try");
        builder.clear_appended();
        builder.payload().extend_from_slice(b"abc");
        let header = header_of(b"abc", Coding::none());
        let mut again = header.finish(builder, &sums(b"abc")).unwrap();
        finish_header(&mut again, 9, 4);
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
        let empty = BlockHeader::builder(Vec::new(), 0);
        assert!(matches!(
            header_of(b"", Coding::none()).finish(empty, &[]),
            Err(FormatError::Value { .. })
        ));
    }
}
