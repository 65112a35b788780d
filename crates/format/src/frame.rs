//! Frames, the unit of an archive: a 40-byte header and a payload.
//!
//! Writing: [`FrameBuilder`] reserves space for the frame header (and for the payload's own fixed
//! header) before the payload, so nothing is copied. A worker completes the payload and its
//! checksum. The thread that orders the frames writes the sequence number and the header checksum
//! ([`finish_header`]).
//!
//! Reading: [`UntrustedFrameHeader`] → [`FrameHeader`] → payload.

use crate::bytes::ByteReader;
use crate::check::check_limit;
use crate::error::{FormatError, Result};
use crate::layout::{
    ARCHIVE_BYTES, BLOCK_HEADER_BYTES, END_BYTES, ENTRIES_HEADER_BYTES, EXTENTS_HEADER_BYTES,
    FRAME_HEADER_BYTES, FrameKind, MAGIC, MEMBER_END_FIXED_BYTES, MEMBER_START_FIXED_BYTES, SYNC,
};
use crate::limits::{
    DIGEST_BYTES_MAX, DIGESTS_MAX, FIRST_PATH_BYTES_MAX, INDEX_BYTES_MAX, Limits, NAME_BYTES_MAX,
};
use refrain_protect::{CHECKSUM_CHUNK_BYTES, Checksum64, checksum64};

/// The offset of the header checksum, which covers everything before it.
const CHECKED_BYTES: usize = 32;

/// Flag bit: a reader that does not know the frame's kind may skip the frame.
pub const FLAG_SKIPPABLE: u8 = 1;

const KIND_AT: usize = 4;
const FLAGS_AT: usize = 5;
const PAYLOAD_BYTES_AT: usize = 8;
const SEQUENCE_AT: usize = 16;
const PAYLOAD_CHECKSUM_AT: usize = 24;

const _: () = assert!(PAYLOAD_CHECKSUM_AT + 8 == CHECKED_BYTES);
const _: () = assert!(CHECKED_BYTES + 8 == FRAME_HEADER_BYTES);

/// A frame header as read: only [`check`](Self::check) gives access to its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntrustedFrameHeader {
    bytes: [u8; FRAME_HEADER_BYTES],
}

impl UntrustedFrameHeader {
    /// Wraps the bytes without checking them.
    #[must_use]
    pub fn new(bytes: [u8; FRAME_HEADER_BYTES]) -> Self {
        Self { bytes }
    }

    /// Wraps the first bytes of `bytes` without checking them.
    ///
    /// # Errors
    /// [`FormatError::Truncated`] if there are fewer than [`FRAME_HEADER_BYTES`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Ok(Self::new(ByteReader::new("frame header", bytes).array()?))
    }

    /// Returns whether the sync word and the checksum are right, that is, whether this is a frame
    /// header at all. A scan uses it.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.check_intact().is_ok()
    }

    /// Returns whether this is an intact header that begins an appended generation; its other
    /// fields are not checked.
    #[must_use]
    pub fn is_generation(&self) -> bool {
        let kind = self.bytes.get(KIND_AT).copied();
        self.is_intact() && kind == Some(FrameKind::Generation.id())
    }

    fn check_intact(&self) -> Result<()> {
        let mut reader = ByteReader::new("frame header", &self.bytes);
        let sync: [u8; 4] = reader.array()?;
        if sync != SYNC {
            return Err(FormatError::Sync { found: sync });
        }
        let (checked, checksum) = self.bytes.split_at(CHECKED_BYTES);
        let expected = ByteReader::new("frame header", checksum).u64()?;
        let found = checksum64(checked);
        if found != expected {
            return Err(FormatError::Checksum {
                what: "frame header",
                found,
                expected,
            });
        }
        Ok(())
    }

    /// Checks everything that does not depend on the payload. `bytes_left` is the number of bytes
    /// that follow the header, if known.
    ///
    /// # Errors
    /// Damaged: wrong sync word or checksum, a payload size that is impossible for the kind or
    /// beyond `bytes_left`. Unsupported: an unknown kind that is not skippable, an unknown flag, a
    /// reserved field in use. Limit: a payload larger than `limits` allow.
    pub fn check(&self, limits: &Limits, bytes_left: Option<u64>) -> Result<FrameHeader> {
        self.check_intact()?;
        let header = self.parse_fields()?;
        header.check_kind()?;
        header.check_payload_bytes(&limits.capped())?;
        match bytes_left {
            Some(available_bytes) if available_bytes < header.payload_bytes => {
                Err(FormatError::Truncated {
                    what: "frame payload",
                    needed_bytes: header.payload_bytes,
                    available_bytes,
                })
            }
            _ => Ok(header),
        }
    }

    fn parse_fields(&self) -> Result<FrameHeader> {
        let mut reader = ByteReader::new("frame header", &self.bytes);
        reader.take(KIND_AT)?;
        let kind = FrameKind::from_id(reader.u8()?);
        let flags = reader.u8()?;
        let unknown_bits = flags & !FLAG_SKIPPABLE;
        if unknown_bits != 0 {
            return Err(FormatError::Flags { unknown_bits });
        }
        reader.reserved(2)?;
        Ok(FrameHeader {
            kind,
            skippable: flags & FLAG_SKIPPABLE != 0,
            payload_bytes: reader.u64()?,
            sequence: reader.u64()?,
            payload_checksum: reader.u64()?,
        })
    }
}

/// A frame header that has passed its checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// Whether a reader that does not know the kind may skip the frame.
    pub skippable: bool,
    /// The size of the payload that follows the header, in bytes.
    pub payload_bytes: u64,
    /// 0, 1, 2 … in file order.
    pub sequence: u64,
    /// XXH3-64 of the payload.
    pub payload_checksum: u64,
}

impl FrameHeader {
    /// Returns the size of the whole frame in bytes, header included.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        self.payload_bytes.saturating_add(FRAME_HEADER_BYTES as u64)
    }

    /// Returns whether this version skips the frame without reading its payload.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        !self.kind.is_known()
    }

    /// Compares the payload with its length and checksum.
    ///
    /// # Errors
    /// [`FormatError::Mismatch`] if the length differs, [`FormatError::Checksum`] if the bytes do.
    pub fn check_payload(&self, payload: &[u8]) -> Result<()> {
        if payload.len() as u64 != self.payload_bytes {
            return Err(FormatError::Mismatch {
                what: "frame payload length in bytes",
                found: payload.len() as u64,
                expected: self.payload_bytes,
            });
        }
        self.check_payload_checksum(payload_checksum(payload))
    }

    /// Compares the checksum of the payload, for a reader that hashed the payload in parts.
    ///
    /// # Errors
    /// [`FormatError::Checksum`] if `found` is not the checksum stated in the header.
    pub fn check_payload_checksum(&self, found: u64) -> Result<()> {
        if found != self.payload_checksum {
            return Err(FormatError::Checksum {
                what: "frame payload",
                found,
                expected: self.payload_checksum,
            });
        }
        Ok(())
    }

    fn check_kind(&self) -> Result<()> {
        if self.kind.is_known() {
            // A frame that every reader must understand cannot be marked skippable.
            return match self.skippable {
                true => Err(FormatError::Value {
                    what: "skippable flag of a frame of this version",
                    value: u64::from(self.kind.id()),
                    rule: "clear",
                }),
                false => Ok(()),
            };
        }
        match self.skippable {
            true => Ok(()),
            false => Err(FormatError::Kind {
                kind: self.kind.id(),
            }),
        }
    }

    fn check_payload_bytes(&self, limits: &Limits) -> Result<()> {
        let Some((least, most)) = payload_bytes_range(self.kind, limits) else {
            return Ok(());
        };
        if self.payload_bytes < least {
            return Err(FormatError::Truncated {
                what: "frame payload of this kind",
                needed_bytes: least,
                available_bytes: self.payload_bytes,
            });
        }
        check_limit("frame payload bytes", self.payload_bytes, most)
    }
}

/// Returns the smallest and largest payload of a kind under `limits`; `None` if this version does
/// not read the kind.
fn payload_bytes_range(kind: FrameKind, limits: &Limits) -> Option<(u64, u64)> {
    let range = |fixed: usize, most: u64| Some((fixed as u64, (fixed as u64).saturating_add(most)));
    match kind {
        FrameKind::Archive => range(ARCHIVE_BYTES, 0),
        FrameKind::MemberStart => range(MEMBER_START_FIXED_BYTES, NAME_BYTES_MAX as u64),
        FrameKind::Block => range(BLOCK_HEADER_BYTES, limits.block_raw_bytes_max),
        FrameKind::Extents => range(EXTENTS_HEADER_BYTES, limits.packed_raw_bytes_max),
        FrameKind::MemberEnd => range(
            MEMBER_END_FIXED_BYTES,
            (DIGESTS_MAX * (2 + DIGEST_BYTES_MAX)) as u64,
        ),
        FrameKind::Entries => range(
            ENTRIES_HEADER_BYTES,
            limits
                .packed_raw_bytes_max
                .saturating_add(FIRST_PATH_BYTES_MAX as u64),
        ),
        FrameKind::Index => Some((1, limits.index_bytes_max.min(INDEX_BYTES_MAX))),
        FrameKind::End => range(END_BYTES, 0),
        _ => None,
    }
}

/// Checks that a file begins with [`MAGIC`].
///
/// # Errors
/// [`FormatError::Truncated`] or [`FormatError::Magic`].
pub fn check_magic(start_of_file: &[u8]) -> Result<()> {
    let found: [u8; 8] = ByteReader::new("archive magic", start_of_file).array()?;
    match found == MAGIC {
        true => Ok(()),
        false => Err(FormatError::Magic { found }),
    }
}

/// The number of bytes at the start of a payload that its checksum covers directly; the rest enters
/// as the checksums of its pieces.
pub(crate) const CHECKSUM_DIRECT_BYTES: usize = 64;

/// Returns the checksum of a payload: the XXH3-64 of its first 64 bytes and of the XXH3-64s (little
/// endian) of every [`CHECKSUM_CHUNK_BYTES`] of the rest.
///
/// The rest is hashed in pieces because, for an uncoded block, it is the block itself: the block's
/// own checksum consists of the same checksums of pieces, so the bytes are read once for both.
#[must_use]
pub fn payload_checksum(payload: &[u8]) -> u64 {
    let (direct, rest) = payload.split_at(payload.len().min(CHECKSUM_DIRECT_BYTES));
    let sums: Vec<u64> = rest.chunks(CHECKSUM_CHUNK_BYTES).map(checksum64).collect();
    checksum_of_pieces(direct, &sums)
}

fn checksum_of_pieces(direct: &[u8], sums: &[u64]) -> u64 {
    let mut checksum = Checksum64::new();
    checksum.update(direct);
    sums.iter()
        .for_each(|sum| checksum.update(&sum.to_le_bytes()));
    checksum.value()
}

/// Builds one frame in one buffer.
#[derive(Debug)]
pub struct FrameBuilder {
    bytes: Vec<u8>,
    /// The size of the frame header and the payload's fixed header, which are filled in at the end.
    reserved_bytes: usize,
}

impl FrameBuilder {
    /// Starts a frame of `kind` without a payload; `buffer` is cleared and reused.
    #[must_use]
    pub fn with_buffer(kind: FrameKind, skippable: bool, buffer: Vec<u8>) -> Self {
        Self::with_header_space(kind, skippable, buffer, 0)
    }

    /// Starts a frame of `kind` that is not skippable.
    #[must_use]
    pub fn new(kind: FrameKind) -> Self {
        Self::with_buffer(kind, false, Vec::new())
    }

    /// Starts a frame and reserves `header_bytes` of its payload, to be filled in at the end.
    pub(crate) fn with_header_space(
        kind: FrameKind,
        skippable: bool,
        mut buffer: Vec<u8>,
        header_bytes: usize,
    ) -> Self {
        let reserved_bytes = FRAME_HEADER_BYTES + header_bytes;
        buffer.clear();
        buffer.resize(reserved_bytes, 0);
        let mut builder = Self {
            bytes: buffer,
            reserved_bytes,
        };
        builder.patch(0, &SYNC);
        builder.patch(KIND_AT, &[kind.id()]);
        builder.patch(FLAGS_AT, &[u8::from(skippable) * FLAG_SKIPPABLE]);
        builder
    }

    /// Returns the buffer. Append the payload to it (for blocks and packed sections, the coded
    /// data), and do not change earlier bytes.
    pub fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Returns the number of bytes appended so far.
    #[must_use]
    pub fn appended_bytes(&self) -> usize {
        self.bytes.len().saturating_sub(self.reserved_bytes)
    }

    /// Returns the size of the reserved header of the payload.
    pub(crate) fn header_bytes(&self) -> usize {
        self.reserved_bytes - FRAME_HEADER_BYTES
    }

    /// Removes the appended bytes, for another attempt.
    pub fn clear_appended(&mut self) {
        self.bytes.truncate(self.reserved_bytes);
    }

    /// Writes the payload's size and checksum. The frame then lacks only [`finish_header`].
    #[must_use]
    pub fn finish_payload(mut self) -> Vec<u8> {
        let payload = self.bytes.get(FRAME_HEADER_BYTES..).unwrap_or_default();
        let payload_bytes = payload.len() as u64;
        let checksum = payload_checksum(payload);
        self.patch(PAYLOAD_BYTES_AT, &payload_bytes.to_le_bytes());
        self.patch(PAYLOAD_CHECKSUM_AT, &checksum.to_le_bytes());
        self.bytes
    }

    /// Does the same as [`finish_with_headerer`](Self::finish_with_headerer) for a payload that
    /// continues with `detached_bytes` of data outside this buffer; `sums` are the checksums of its
    /// pieces.
    pub(crate) fn finish_detached(
        mut self,
        header: &[u8],
        detached_bytes: u64,
        sums: &[u64],
    ) -> Vec<u8> {
        self.patch(FRAME_HEADER_BYTES, header);
        let payload_bytes = header.len() as u64 + detached_bytes;
        self.patch(PAYLOAD_BYTES_AT, &payload_bytes.to_le_bytes());
        self.patch(
            PAYLOAD_CHECKSUM_AT,
            &checksum_of_pieces(header, sums).to_le_bytes(),
        );
        self.bytes
    }

    pub(crate) fn finish_with_header(mut self, header: &[u8]) -> Vec<u8> {
        self.patch(FRAME_HEADER_BYTES, header);
        self.finish_payload()
    }

    fn patch(&mut self, at: usize, value: &[u8]) {
        patch(&mut self.bytes, at, value);
    }
}

/// Overwrites `frame[at..]` with `value`. Ranges outside the frame are ignored (such a frame fails
/// every check).
fn patch(frame: &mut [u8], at: usize, value: &[u8]) {
    if let Some(target) = frame.get_mut(at..at + value.len()) {
        target.copy_from_slice(value);
    }
}

/// Completes a frame: writes its `sequence` number and the header checksum. This is cheap, so the
/// thread that orders the frames can do it.
pub fn finish_header(frame: &mut [u8], sequence: u64) {
    patch(frame, SEQUENCE_AT, &sequence.to_le_bytes());
    let checksum = checksum64(frame.get(..CHECKED_BYTES).unwrap_or_default());
    patch(frame, CHECKED_BYTES, &checksum.to_le_bytes());
}

/// Returns a complete frame with a copy of `payload`.
#[must_use]
pub fn complete_frame(kind: FrameKind, skippable: bool, payload: &[u8], sequence: u64) -> Vec<u8> {
    let mut builder = FrameBuilder::with_buffer(kind, skippable, Vec::new());
    builder.payload().extend_from_slice(payload);
    let mut frame = builder.finish_payload();
    finish_header(&mut frame, sequence);
    frame
}

/// Returns the next position, at or after `from`, of an intact frame header. Salvage uses it to
/// find frames when a part of the archive or its index is damaged.
#[must_use]
pub fn find_frame(bytes: &[u8], from: usize) -> Option<usize> {
    let last = bytes.len().checked_sub(FRAME_HEADER_BYTES)?;
    let mut at = from;
    while at <= last {
        // Searching for one rare byte is the fastest search of the standard library.
        let window = bytes.get(at..=last)?;
        at += window.iter().position(|&byte| byte == SYNC[0])?;
        let header = UntrustedFrameHeader::parse(bytes.get(at..)?).ok()?;
        if header.is_intact() {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padding(payload: &[u8], sequence: u64) -> Vec<u8> {
        complete_frame(FrameKind::Padding, true, payload, sequence)
    }

    fn check(frame: &[u8]) -> Result<FrameHeader> {
        let header = UntrustedFrameHeader::parse(frame)?.check(&Limits::default(), None)?;
        header.check_payload(frame.get(FRAME_HEADER_BYTES..).unwrap_or_default())?;
        Ok(header)
    }

    #[test]
    fn a_frame_parses_as_written() {
        let header = check(&padding(b"nothing", 9)).unwrap();
        assert_eq!(header.kind, FrameKind::Padding);
        assert!(header.skippable && header.is_skipped());
        assert_eq!(header.payload_bytes, 7);
        assert_eq!(header.sequence, 9);
        assert_eq!(header.frame_bytes(), 47);
    }

    #[test]
    fn any_flipped_bit_is_detected() {
        let frame = padding(b"some payload bytes", 3);
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn unknown_kinds_and_flags_are_skipped_or_unsupported() {
        let skipped = complete_frame(FrameKind::Recovery, true, b"parity", 0);
        assert!(check(&skipped).unwrap().is_skipped());
        let needed = complete_frame(FrameKind::Envelope, false, b"secret", 0);
        assert_eq!(check(&needed), Err(FormatError::Kind { kind: 16 }));
        let mut flagged = padding(b"", 0);
        flagged[FLAGS_AT] |= 4;
        finish_header(&mut flagged, 0);
        assert_eq!(check(&flagged), Err(FormatError::Flags { unknown_bits: 4 }));
        let mut reserved = padding(b"", 0);
        reserved[7] = 1;
        finish_header(&mut reserved, 0);
        assert!(matches!(
            check(&reserved),
            Err(FormatError::Reserved { .. })
        ));
    }

    #[test]
    fn forged_payload_sizes_are_rejected_before_allocation() {
        let mut frame = complete_frame(FrameKind::Block, false, &[0; 200], 0);
        patch(&mut frame, PAYLOAD_BYTES_AT, &(1_u64 << 40).to_le_bytes());
        finish_header(&mut frame, 0);
        let header = UntrustedFrameHeader::parse(&frame).unwrap();
        assert!(matches!(
            header.check(&Limits::default(), None),
            Err(FormatError::OverLimit { .. })
        ));
        let cut = padding(b"0123456789", 0);
        let header = UntrustedFrameHeader::parse(&cut).unwrap();
        assert!(matches!(
            header.check(&Limits::default(), Some(9)),
            Err(FormatError::Truncated { .. })
        ));
    }

    #[test]
    fn scanning_finds_frames_among_other_bytes() {
        let mut bytes = vec![SYNC[0]; 100];
        bytes.extend(SYNC);
        let first = bytes.len();
        bytes.extend(padding(b"abc", 0));
        bytes.extend([7; 13]);
        let second = bytes.len();
        bytes.extend(padding(b"", 1));
        assert_eq!(find_frame(&bytes, 0), Some(first));
        assert_eq!(find_frame(&bytes, first + 1), Some(second));
        assert_eq!(find_frame(&bytes, second + 1), None);
        assert_eq!(find_frame(&bytes, usize::MAX), None);
        assert_eq!(find_frame(b"", 0), None);
    }

    #[test]
    fn checks_the_magic() {
        assert!(check_magic(&MAGIC).is_ok());
        assert!(matches!(
            check_magic(b"\x89PNG\r\n\x1a\n"),
            Err(FormatError::Magic { .. })
        ));
        assert!(matches!(
            check_magic(&MAGIC[..5]),
            Err(FormatError::Truncated { .. })
        ));
    }
}
