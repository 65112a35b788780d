//! Frames, the unit of an archive: a 32-byte header and a payload, which consists of a head and
//! data.
//!
//! Writing: [`FrameBuilder`] reserves space for the header and the head before the data. A worker
//! completes the payload and its checksum. The thread that orders the frames adds the archive's id,
//! the sequence number and the header checksum ([`finish_header`]).
//!
//! Reading: [`UntrustedFrameHeader`] → [`FrameHeader`] → payload.

use crate::bytes::ByteReader;
use crate::check::check_limit;
use crate::constants::{FRAME_HEADER_BYTES, FrameKind, MAGIC, SYNC};
use crate::error::{FormatError, MAGIC_NAME, Result};
use crate::head::{SplitPayload, head_of};
use crate::limits::{CATALOG_BYTES_MAX, HEAD_BYTES_MAX, INDEX_BYTES_MAX, Limits, WHOLE_BYTES_MAX};
use memchr::memmem;
use refrain_protect::{CHECKSUM_CHUNK_BYTES, Checksum64, checksum64};

/// The offset of the header checksum, which covers everything before it.
const CHECKED_BYTES: usize = 28;

/// Flag bit: a reader that does not know the frame's kind may skip the frame.
pub const FLAG_SKIPPABLE: u8 = 1;

/// Flag bit of a skippable frame: programs that change the archive and do not know the frame's kind
/// keep the frame.
pub const FLAG_KEEP: u8 = 2;

const ARCHIVE_ID_AT: usize = 4;
const KIND_AT: usize = 8;
const FLAGS_AT: usize = 9;
const GENERATION_AT: usize = 10;
const SEQUENCE_AT: usize = 12;
const PAYLOAD_BYTES_AT: usize = 16;
const PAYLOAD_CHECKSUM_AT: usize = 20;

const _: () = assert!(PAYLOAD_CHECKSUM_AT + 8 == CHECKED_BYTES);
const _: () = assert!(CHECKED_BYTES + 4 == FRAME_HEADER_BYTES);

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
    /// header at all. Scans use it.
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

    /// Returns whether this is an intact header that begins a run behind an encrypted archive; its
    /// other fields are not checked.
    #[must_use]
    pub fn is_run(&self) -> bool {
        let kind = self.bytes.get(KIND_AT).copied();
        self.is_intact() && kind == Some(FrameKind::Run.id())
    }

    /// Checks the header of a frame that [`check`](Self::check) does not read: one of this reserved
    /// kind that may not be skipped.
    ///
    /// # Errors
    /// As [`check`](Self::check); unsupported: a frame of another kind.
    pub(crate) fn check_reserved(&self, kind: FrameKind) -> Result<FrameHeader> {
        self.check_intact()?;
        let header = self.parse_fields()?;
        if header.kind == kind && !header.skippable && !header.keep {
            return Ok(header);
        }
        Err(FormatError::Kind {
            kind: header.kind.id(),
        })
    }

    fn check_intact(&self) -> Result<()> {
        let mut reader = ByteReader::new("frame header", &self.bytes);
        let sync: [u8; 4] = reader.array()?;
        if sync != SYNC {
            return Err(FormatError::Sync { found: sync });
        }
        let (checked, checksum) = self.bytes.split_at(CHECKED_BYTES);
        let expected = u64::from(ByteReader::new("frame header", checksum).u32()?);
        let found = u64::from(checksum64(checked) as u32);
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
        reader.take(ARCHIVE_ID_AT)?;
        let archive_id = reader.u32()?;
        let kind = FrameKind::from_id(reader.u8()?);
        let flags = reader.u8()?;
        let unknown_bits = flags & !(FLAG_SKIPPABLE | FLAG_KEEP);
        if unknown_bits != 0 {
            return Err(FormatError::Flags { unknown_bits });
        }
        Ok(FrameHeader {
            archive_id,
            kind,
            generation: reader.u16()?,
            skippable: flags & FLAG_SKIPPABLE != 0,
            keep: flags & FLAG_KEEP != 0,
            sequence: u64::from(reader.u32()?),
            payload_bytes: u64::from(reader.u32()?),
            payload_checksum: reader.u64()?,
        })
    }
}

/// A frame header that has passed its checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// The archive's id, the same in all its frames. It tells the frames of an archive from those
    /// of an archive inside it.
    pub archive_id: u32,
    /// The kind of the frame.
    pub kind: FrameKind,
    /// The generation that the frame belongs to: 0 for those of an archive that nothing was added
    /// to.
    pub generation: u16,
    /// Whether a reader that does not know the kind may skip the frame.
    pub skippable: bool,
    /// Whether programs that change the archive and do not know the kind keep the frame.
    pub keep: bool,
    /// The size of the payload that follows the header, in bytes.
    pub payload_bytes: u64,
    /// 0, 1, 2 … in file order.
    pub sequence: u64,
    /// The [`payload_checksum`] of the payload.
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

    /// Compares the checksum of a payload that the reader hashed in parts.
    ///
    /// # Errors
    /// [`FormatError::Checksum`] if `found` is not the checksum in the header.
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
        if self.kind.is_known() || (self.keep && !self.skippable) {
            // A frame that every reader must understand cannot be marked skippable.
            return if self.skippable || self.keep {
                Err(FormatError::Value {
                    what: "flags of a frame that is not skippable",
                    value: u64::from(self.kind.id()),
                    rule: "clear",
                })
            } else {
                Ok(())
            };
        }
        if self.skippable {
            Ok(())
        } else {
            Err(FormatError::Kind {
                kind: self.kind.id(),
            })
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
    let data_bytes_max = match kind {
        FrameKind::Archive | FrameKind::MemberStart | FrameKind::MemberEnd => 0,
        FrameKind::Block => limits.block_raw_bytes_max,
        FrameKind::Extents | FrameKind::Entries => limits.packed_raw_bytes_max,
        FrameKind::Index | FrameKind::End => INDEX_BYTES_MAX,
        FrameKind::Whole => WHOLE_BYTES_MAX as u64,
        FrameKind::Generation => 0,
        FrameKind::Catalog => CATALOG_BYTES_MAX,
        _ => return None,
    };
    Some((1, data_bytes_max.saturating_add(HEAD_BYTES_MAX as u64)))
}

/// Checks that a file begins with [`MAGIC`].
///
/// # Errors
/// [`FormatError::Truncated`] or [`FormatError::Magic`].
pub fn check_magic(start_of_file: &[u8]) -> Result<()> {
    let found: [u8; 8] = ByteReader::new(MAGIC_NAME, start_of_file).array()?;
    if found == MAGIC { Ok(()) } else { Err(FormatError::Magic { found }) }
}

/// Returns the checksum of a payload: the XXH3-64 of its head and of the XXH3-64s (little endian)
/// of every [`CHECKSUM_CHUNK_BYTES`] of its data. A payload with a damaged head counts as head.
///
/// An uncoded block is the data itself, and the block's own checksum is made of the same checksums
/// of pieces, so its bytes are read once for both.
#[must_use]
pub fn payload_checksum(payload: &[u8]) -> u64 {
    let (head, data) = head_and_data(payload);
    checksum_of_pieces(head, &piece_sums(data))
}

/// Divides a payload. If its head is damaged, all of it counts as head.
pub(crate) fn head_and_data(payload: &[u8]) -> (&[u8], &[u8]) {
    match SplitPayload::new(payload) {
        Ok(split) => (split.head, split.data),
        Err(_) => (payload, &[]),
    }
}

pub(crate) fn piece_sums(data: &[u8]) -> Vec<u64> {
    data.chunks(CHECKSUM_CHUNK_BYTES).map(checksum64).collect()
}

pub(crate) fn checksum_of_pieces(direct: &[u8], sums: &[u64]) -> u64 {
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
    reserved_bytes: usize,
    kind: FrameKind,
}

impl FrameBuilder {
    /// Starts a frame of `kind` with space for a head of at most `head_bytes_max`; `buffer` is
    /// cleared and reused.
    pub(crate) fn new(kind: FrameKind, buffer: Vec<u8>, head_bytes_max: usize) -> Self {
        let mut bytes = buffer;
        let reserved_bytes = FRAME_HEADER_BYTES + head_bytes_max;
        bytes.clear();
        bytes.resize(reserved_bytes, 0);
        Self {
            bytes,
            reserved_bytes,
            kind,
        }
    }

    /// Returns the buffer. Append the data to it, and do not change earlier bytes.
    pub fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Returns the number of bytes of data so far.
    #[must_use]
    pub fn appended_bytes(&self) -> usize {
        self.bytes.len().saturating_sub(self.reserved_bytes)
    }

    /// Removes the data, for another attempt.
    pub fn clear_appended(&mut self) {
        self.bytes.truncate(self.reserved_bytes);
    }

    /// Writes a head with these fields. The frame then lacks only [`finish_header`].
    ///
    /// # Errors
    /// The head is longer than the space for it.
    pub(crate) fn finish(mut self, fields: &[u8]) -> Result<Vec<u8>> {
        let data = self.bytes.get(self.reserved_bytes..).unwrap_or_default();
        let prefix = detached_frame(self.kind, fields, data.len() as u64, &piece_sums(data));
        let gap = self.reserved_bytes.checked_sub(prefix.len());
        let gap = gap.ok_or(FormatError::OverLimit {
            what: "bytes of a frame's head",
            value: prefix.len() as u64,
            limit: self.reserved_bytes as u64,
        })?;
        patch(&mut self.bytes, gap, &prefix);
        self.bytes.drain(..gap);
        Ok(self.bytes)
    }
}

/// Returns the start of a frame, its header and head, for data stored elsewhere (`data_bytes`, with
/// these checksums of its pieces). It lacks only [`finish_header`].
pub(crate) fn detached_frame(
    kind: FrameKind,
    fields: &[u8],
    data_bytes: u64,
    sums: &[u64],
) -> Vec<u8> {
    frame_prefix(kind, 0, &head_of(fields), data_bytes, sums)
}

pub(crate) fn frame_prefix(
    kind: FrameKind,
    flags: u8,
    head: &[u8],
    data_bytes: u64,
    sums: &[u64],
) -> Vec<u8> {
    let mut prefix = vec![0; FRAME_HEADER_BYTES];
    prefix.extend_from_slice(head);
    let payload_bytes = (head.len() as u64).saturating_add(data_bytes);
    patch(&mut prefix, 0, &SYNC);
    patch(&mut prefix, KIND_AT, &[kind.id()]);
    patch(&mut prefix, FLAGS_AT, &[flags]);
    // A payload beyond the limits fails every check of its length.
    let stated_bytes = u32::try_from(payload_bytes).unwrap_or(u32::MAX);
    patch(&mut prefix, PAYLOAD_BYTES_AT, &stated_bytes.to_le_bytes());
    let checksum = checksum_of_pieces(head, sums);
    patch(&mut prefix, PAYLOAD_CHECKSUM_AT, &checksum.to_le_bytes());
    prefix
}

/// Overwrites `frame[at..]` with `value`. Ignores ranges outside the frame (such a frame fails
/// every check).
fn patch(frame: &mut [u8], at: usize, value: &[u8]) {
    if let Some(target) = frame.get_mut(at..at + value.len()) {
        target.copy_from_slice(value);
    }
}

/// Completes a frame: writes the archive's id, the `sequence` number and the header checksum. This
/// is cheap, so the thread that orders the frames can do it.
pub fn finish_header(frame: &mut [u8], archive_id: u32, sequence: u64) {
    patch(frame, ARCHIVE_ID_AT, &archive_id.to_le_bytes());
    patch(frame, SEQUENCE_AT, &(sequence as u32).to_le_bytes());
    let checksum = checksum64(frame.get(..CHECKED_BYTES).unwrap_or_default()) as u32;
    patch(frame, CHECKED_BYTES, &checksum.to_le_bytes());
}

/// Moves a frame to a generation. It then lacks only [`finish_header`].
pub(crate) fn set_generation(frame: &mut [u8], generation: u16) {
    patch(frame, GENERATION_AT, &generation.to_le_bytes());
}

/// Returns a complete frame with a copy of `payload`, which begins with a head; `flags` are
/// [`FLAG_SKIPPABLE`] and [`FLAG_KEEP`].
#[must_use]
pub fn complete_frame(
    kind: FrameKind,
    flags: u8,
    payload: &[u8],
    archive_id: u32,
    sequence: u64,
) -> Vec<u8> {
    let (head, data) = head_and_data(payload);
    let mut frame = frame_prefix(kind, flags, head, data.len() as u64, &piece_sums(data));
    frame.extend_from_slice(data);
    finish_header(&mut frame, archive_id, sequence);
    frame
}

/// Returns the position of the next intact frame header at or after `from`. Salvage uses it to find
/// frames when the archive or its index is damaged.
#[must_use]
pub fn find_frame(bytes: &[u8], from: usize) -> Option<usize> {
    let last = bytes.len().checked_sub(FRAME_HEADER_BYTES)?;
    let mut at = from;
    while at <= last {
        at += memmem::find(bytes.get(at..)?, &SYNC)?;
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

    fn padding(data: &[u8], sequence: u64) -> Vec<u8> {
        let payload = [&head_of(&[]), data].concat();
        complete_frame(FrameKind::Padding, FLAG_SKIPPABLE, &payload, 7, sequence)
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
        assert_eq!(header.payload_bytes, 8);
        assert_eq!((header.archive_id, header.sequence), (7, 9));
        assert_eq!(header.frame_bytes(), 40);
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
        let payload = b"\0parity";
        let skipped = complete_frame(FrameKind::Recovery, FLAG_SKIPPABLE, payload, 7, 0);
        assert!(check(&skipped).unwrap().is_skipped());
        let kept = complete_frame(FrameKind::Recovery, 3, payload, 7, 0);
        assert!(check(&kept).unwrap().keep);
        let unclear = complete_frame(FrameKind::Recovery, FLAG_KEEP, payload, 7, 0);
        assert!(matches!(check(&unclear), Err(FormatError::Value { .. })));
        let needed = complete_frame(FrameKind::Envelope, 0, payload, 7, 0);
        assert_eq!(check(&needed), Err(FormatError::Kind { kind: 16 }));
        let mut flagged = padding(b"", 0);
        flagged[FLAGS_AT] |= 4;
        finish_header(&mut flagged, 7, 0);
        assert_eq!(check(&flagged), Err(FormatError::Flags { unknown_bits: 4 }));
        let mut reserved = padding(b"", 0);
        set_generation(&mut reserved, 300);
        finish_header(&mut reserved, 7, 0);
        assert_eq!(check(&reserved).unwrap().generation, 300);
    }

    #[test]
    fn forged_payload_sizes_are_rejected_before_allocation() {
        let mut frame = complete_frame(FrameKind::Block, 0, &[0; 200], 7, 0);
        patch(&mut frame, PAYLOAD_BYTES_AT, &(1_u32 << 31).to_le_bytes());
        finish_header(&mut frame, 7, 0);
        let header = UntrustedFrameHeader::parse(&frame).unwrap();
        assert!(matches!(
            header.check(&Limits::default(), None),
            Err(FormatError::OverLimit { .. })
        ));
        let cut = padding(b"0123456789", 0);
        let header = UntrustedFrameHeader::parse(&cut).unwrap();
        assert!(matches!(
            header.check(&Limits::default(), Some(10)),
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
