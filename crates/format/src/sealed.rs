//! Encrypted ("sealed") frames: the seam between the format and a cipher. No cipher is behind it
//! yet, and version 1 neither writes sealed frames nor reads them.
//!
//! A sealed frame is a frame of kind Envelope whose payload hides one whole frame, header included:
//!
//! ```text
//! clear header (kind Envelope) | nonce | encrypted inner frame | tag
//! ```
//!
//! The clear header states only the length and the sequence number. Its checksums cover the
//! encrypted bytes, so scanning and recovery records work without the key. The cipher authenticates
//! the clear sequence number together with the inner frame, so sealed frames cannot be exchanged,
//! dropped or repeated unnoticed.
//!
//! The cipher's code implements [`FrameSealer`] and [`FrameOpener`]; keys, nonces and randomness
//! are its own business.

use crate::check::check_equal;
use crate::error::FormatError;
use crate::frame::{FrameHeader, UntrustedFrameHeader, complete_frame};
use crate::head::{SplitPayload, head_of};
use crate::layout::{FRAME_HEADER_BYTES, FrameKind};
use crate::limits::Limits;

/// Encrypts frames.
pub trait FrameSealer {
    /// Appends nonce, encrypted `frame` and tag to `sealed`. `sequence` is authenticated with the
    /// frame, but not stored.
    ///
    /// # Errors
    /// [`SealError::TooLong`] if the cipher cannot take a message of this length or no further
    /// message under its key.
    fn seal(&mut self, sequence: u64, frame: &[u8], sealed: &mut Vec<u8>) -> Result<(), SealError>;
}

/// Decrypts frames.
pub trait FrameOpener {
    /// Authenticates `sealed` together with `sequence`, and returns the inner frame.
    ///
    /// # Errors
    /// [`SealError::Rejected`] if anything differs from what was sealed. No decrypted byte is
    /// returned then.
    fn open(&self, sequence: u64, sealed: &[u8]) -> Result<Vec<u8>, SealError>;
}

/// Why a frame cannot be sealed or opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealError {
    /// The key is wrong or the bytes were changed; an authenticated cipher cannot tell which.
    Rejected,
    /// The message is too long for the cipher, or the key has encrypted as much as it may.
    TooLong,
    /// The inner frame breaks the format's rules.
    Format(FormatError),
}

/// The fields of an Envelope's head: it concerns the archive (scope 0, id 0).
const ENVELOPE_FIELDS: [u8; 2] = [0, 0];

/// Seals `frame`, a complete frame with this archive's id and `sequence` number, into a complete
/// Envelope frame of the same number.
///
/// # Errors
/// Those of the sealer.
pub fn seal_frame(
    sealer: &mut dyn FrameSealer,
    archive_id: u32,
    sequence: u64,
    frame: &[u8],
) -> Result<Vec<u8>, SealError> {
    let mut sealed = Vec::new();
    sealer.seal(sequence, frame, &mut sealed)?;
    let kind = FrameKind::Envelope;
    let mut payload = head_of(&ENVELOPE_FIELDS);
    payload.extend_from_slice(&sealed);
    Ok(complete_frame(kind, 0, &payload, archive_id, sequence))
}

/// Opens the payload of an Envelope frame whose checksums were compared. Returns the checked header
/// of the inner frame, and the whole inner frame.
///
/// # Errors
/// Those of the opener; [`SealError::Format`] if the inner header does not pass its checks, or has
/// another sequence number than the clear one, or is an Envelope itself (an unknown kind, as
/// everywhere in this version).
pub fn open_frame(
    opener: &dyn FrameOpener,
    clear: &FrameHeader,
    payload: &[u8],
    limits: &Limits,
) -> Result<(FrameHeader, Vec<u8>), SealError> {
    let sealed = SplitPayload::new(payload).map_err(SealError::Format)?.data;
    let frame = opener.open(clear.sequence, sealed)?;
    let inner = UntrustedFrameHeader::parse(&frame).map_err(SealError::Format)?;
    let payload_bytes = (frame.len() as u64).saturating_sub(FRAME_HEADER_BYTES as u64);
    let inner = inner.check(limits, Some(payload_bytes));
    let inner = inner.map_err(SealError::Format)?;
    check_equal(
        "sequence number of a sealed frame",
        inner.sequence,
        clear.sequence,
    )
    .map_err(SealError::Format)?;
    Ok((inner, frame))
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_protect::checksum64;

    /// Not a cipher: inverts all bits, and takes a checksum for the tag.
    struct Inverter;

    fn tag(sequence: u64, frame: &[u8]) -> [u8; 8] {
        (checksum64(frame) ^ sequence).to_le_bytes()
    }

    impl FrameSealer for Inverter {
        fn seal(
            &mut self,
            sequence: u64,
            frame: &[u8],
            out: &mut Vec<u8>,
        ) -> Result<(), SealError> {
            out.extend(frame.iter().map(|byte| !byte));
            out.extend(tag(sequence, frame));
            Ok(())
        }
    }

    impl FrameOpener for Inverter {
        fn open(&self, sequence: u64, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
            let (frame, found) = sealed.split_last_chunk().ok_or(SealError::Rejected)?;
            let frame: Vec<u8> = frame.iter().map(|byte| !byte).collect();
            let matches = *found == tag(sequence, &frame);
            matches.then_some(frame).ok_or(SealError::Rejected)
        }
    }

    #[test]
    fn a_sealed_frame_hides_its_kind_and_opens_at_its_own_sequence_number_only() {
        let inner = complete_frame(FrameKind::Index, 0, b"\x00secret", 7, 5);
        let outer = seal_frame(&mut Inverter, 7, 5, &inner).unwrap();
        let (header, payload) = outer.split_at(FRAME_HEADER_BYTES);
        let error = UntrustedFrameHeader::parse(header).unwrap();
        let error = error.check(&Limits::default(), None);
        assert_eq!(error, Err(FormatError::Kind { kind: 16 }));
        let mut clear = FrameHeader {
            archive_id: 7,
            kind: FrameKind::Envelope,
            skippable: false,
            keep: false,
            payload_bytes: payload.len() as u64,
            sequence: 5,
            payload_checksum: 0,
        };
        let open = |clear: &FrameHeader| open_frame(&Inverter, clear, payload, &Limits::default());
        let (opened, frame) = open(&clear).unwrap();
        assert_eq!((opened.kind, frame), (FrameKind::Index, inner));
        clear.sequence = 6;
        assert_eq!(open(&clear), Err(SealError::Rejected));
    }
}
