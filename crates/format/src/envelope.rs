//! The head of an encrypted archive: an Envelope frame, written twice, with the slots that hold the
//! archive's key ([`refrain_protect::envelope`]). Records follow it, and a tail.
//!
//! ```text
//! Magic | Envelope | Envelope | record 0 | record 1 | … | last record | Tail
//! ```
//!
//! Both frames have the same contents and the same size, which leaves room for more slots. To
//! change the slots in place, one frame is written and made durable before the other.

pub mod run;
pub mod state;

use refrain_protect::envelope::{
    FileKey, MAC_BYTES, PASSWORD_SALT_BYTES, PasswordCost, RECORD_BYTES, SALT_BYTES,
    SEALED_RECORD_BYTES, Slot,
};

use crate::bytes::{ByteReader, put_varint, put_varints};
use crate::check::{check_at_most, check_equal, check_limit};
use crate::constants::{FRAME_HEADER_BYTES, FrameKind, MAGIC, TAIL_BYTES};
use crate::end::Tail;
use crate::error::{FormatError, Result};
use crate::frame::{FrameHeader, UntrustedFrameHeader, complete_frame};
use crate::head::{SplitPayload, head_of};
use crate::limits::HEAD_BYTES_MAX;

/// The largest number of slots.
pub const SLOTS_MAX: usize = 64;

/// Envelope frames have a multiple of this size, so that the second is found if the first is
/// damaged.
pub const ENVELOPE_STEP_BYTES: u64 = 1024;

/// The largest Envelope frame: a full head, its header, and room.
pub const ENVELOPE_BYTES_MAX: u64 = HEAD_BYTES_MAX as u64 + 2 * ENVELOPE_STEP_BYTES;

/// The room for slots that a new archive has at least: four passwords or X25519 keys.
const ROOM_BYTES: u64 = 4 * 100;

/// The id of the only cipher: AEGIS-256 in records of 16 KiB.
const CIPHER_AEGIS256: u64 = 1;

const WHAT: &str = "envelope";

/// A slot as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredSlot {
    /// A slot of a known kind.
    Known(Slot),
    /// A slot of a kind that a later version defines.
    Unknown {
        /// The kind.
        kind: u64,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

const PASSWORD: u64 = 1;
const X25519: u64 = 2;
const HYBRID: u64 = 3;

/// The contents of an Envelope frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Random bytes of the archive, which all its keys depend on.
    pub salt: [u8; SALT_BYTES],
    /// The commitment to the file key ([`FileKey::commitment`]).
    pub commitment: [u8; MAC_BYTES],
    /// How often the slots were changed. The copy with the larger number is the newer one.
    pub revision: u64,
    /// The slots.
    pub slots: Vec<StoredSlot>,
}

/// An Envelope frame as read: whether it is authentic shows once a slot was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEnvelope {
    /// Its contents.
    pub envelope: Envelope,
    /// The size of the frame, and of its copy, in bytes.
    pub frame_bytes: u64,
    /// Which of the two frames it is, 0 or 1.
    pub copy: u64,
    authenticated: Vec<u8>,
    authenticator: [u8; MAC_BYTES],
}

impl StoredEnvelope {
    /// Parses a frame with this header and payload.
    ///
    /// # Errors
    /// Damaged: a checksum or a field is wrong. Unsupported: another cipher. Limit: too many slots.
    pub fn parse(frame: &[u8]) -> Result<StoredEnvelope> {
        let header = envelope_header(frame)?;
        check_at_most("copy of an envelope", header.sequence, 1)?;
        let payload = frame.get(FRAME_HEADER_BYTES..).unwrap_or_default();
        let payload = payload.get(..header.payload_bytes as usize);
        let payload = payload.ok_or(FormatError::Truncated {
            what: WHAT,
            needed_bytes: header.frame_bytes(),
            available_bytes: frame.len() as u64,
        })?;
        header.check_payload(payload)?;
        let split = SplitPayload::new(payload)?;
        let mut reader = split.fields(WHAT);
        let fields = reader.rest();
        check_equal("scope of an envelope", reader.varint()?, 0)?;
        check_equal("scope id of an envelope", reader.varint()?, 0)?;
        let cipher = reader.varint()?;
        if cipher != CIPHER_AEGIS256 {
            return Err(FormatError::Reserved {
                what: "cipher",
                value: cipher,
            });
        }
        let envelope = Envelope::parse_fields(&mut reader)?;
        let authenticated_bytes = fields.len() - reader.remaining();
        let authenticator = reader.array()?;
        reader.finish()?;
        if let Some(at) = split.data.iter().position(|&byte| byte != 0) {
            return Err(FormatError::Value {
                what: "room for slots",
                value: at as u64,
                rule: "zero",
            });
        }
        Ok(StoredEnvelope {
            envelope,
            frame_bytes: header.frame_bytes(),
            copy: header.sequence,
            authenticated: fields
                .get(..authenticated_bytes)
                .unwrap_or_default()
                .to_vec(),
            authenticator,
        })
    }

    /// Whether it was written by somebody who has this key, and the key is the archive's.
    #[must_use]
    pub fn is_authentic(&self, file_key: &FileKey) -> bool {
        let Envelope {
            salt, commitment, ..
        } = &self.envelope;
        file_key.commitment(salt) == *commitment
            && file_key.is_authentic(salt, &self.authenticated, &self.authenticator)
    }

    /// Where the records begin in the file, in bytes.
    #[must_use]
    pub fn records_offset(&self) -> u64 {
        MAGIC.len() as u64 + 2 * self.frame_bytes
    }
}

impl Envelope {
    fn parse_fields(reader: &mut ByteReader<'_>) -> Result<Envelope> {
        let salt = reader.array()?;
        let commitment = reader.array()?;
        let revision = reader.varint()?;
        let count = reader.count(2)?;
        check_limit("slots", count as u64, SLOTS_MAX as u64)?;
        let slots = (0..count)
            .map(|_| parse_slot(reader))
            .collect::<Result<_>>()?;
        Ok(Envelope {
            salt,
            commitment,
            revision,
            slots,
        })
    }

    /// The number in all frames of the archive that tells it from others.
    #[must_use]
    pub fn archive_id(&self) -> u32 {
        let [a, b, c, d, ..] = self.salt;
        u32::from_le_bytes([a, b, c, d])
    }

    /// The size of the frames of a new archive with these slots, in bytes, with room for some more.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        let needed = self.fields().len() as u64 + 3 + (FRAME_HEADER_BYTES + MAC_BYTES) as u64;
        (needed + ROOM_BYTES).next_multiple_of(ENVELOPE_STEP_BYTES)
    }

    /// Returns both frames, each of `frame_bytes` bytes.
    ///
    /// # Errors
    /// Limit: there is no room for all slots.
    pub fn to_frames(&self, file_key: &FileKey, frame_bytes: u64) -> Result<[Vec<u8>; 2]> {
        let mut fields = self.fields();
        let authenticator = file_key.authenticate(&self.salt, &fields);
        fields.extend(authenticator);
        let mut payload = head_of(&fields);
        let payload_bytes = frame_bytes.saturating_sub(FRAME_HEADER_BYTES as u64);
        if payload.len() as u64 > payload_bytes || self.slots.len() > SLOTS_MAX {
            return Err(FormatError::OverLimit {
                what: "bytes of slots",
                value: payload.len() as u64,
                limit: payload_bytes,
            });
        }
        payload.resize(payload_bytes as usize, 0);
        Ok([0, 1]
            .map(|copy| complete_frame(FrameKind::Envelope, 0, &payload, self.archive_id(), copy)))
    }

    fn fields(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        put_varints(&mut fields, &[0, 0, CIPHER_AEGIS256]);
        fields.extend(self.salt);
        fields.extend(self.commitment);
        put_varints(&mut fields, &[self.revision, self.slots.len() as u64]);
        for slot in &self.slots {
            let (kind, bytes) = slot_bytes(slot);
            put_varints(&mut fields, &[kind, bytes.len() as u64]);
            fields.extend(bytes);
        }
        fields
    }
}

fn parse_slot(reader: &mut ByteReader<'_>) -> Result<StoredSlot> {
    let kind = reader.varint()?;
    let length = reader.count(1)?;
    let bytes = reader.take(length)?;
    let mut fields = ByteReader::new("slot", bytes);
    let slot = match kind {
        PASSWORD => Slot::Password {
            salt: fields.array::<PASSWORD_SALT_BYTES>()?,
            cost: PasswordCost {
                memory_kib: fields.varint_as("memory of a password")?,
                passes: fields.varint_as("passes of a password")?,
                lanes: fields.varint_as("lanes of a password")?,
            },
            wrapped: fields.array()?,
        },
        X25519 => Slot::X25519 {
            share: fields.array()?,
            wrapped: fields.array()?,
        },
        HYBRID => Slot::Hybrid {
            share: Box::new(fields.array()?),
            wrapped: fields.array()?,
        },
        _ => {
            let bytes = bytes.to_vec();
            return Ok(StoredSlot::Unknown { kind, bytes });
        }
    };
    fields.finish()?;
    Ok(StoredSlot::Known(slot))
}

fn slot_bytes(slot: &StoredSlot) -> (u64, Vec<u8>) {
    let slot = match slot {
        StoredSlot::Known(slot) => slot,
        StoredSlot::Unknown { kind, bytes } => return (*kind, bytes.clone()),
    };
    match slot {
        Slot::Password {
            cost,
            salt,
            wrapped,
        } => {
            let mut bytes = salt.to_vec();
            let numbers = [cost.memory_kib, cost.passes, cost.lanes];
            for number in numbers {
                put_varint(&mut bytes, u64::from(number));
            }
            bytes.extend(wrapped);
            (PASSWORD, bytes)
        }
        Slot::X25519 { share, wrapped } => (X25519, [&share[..], wrapped].concat()),
        Slot::Hybrid { share, wrapped } => (HYBRID, [&share[..], wrapped].concat()),
    }
}

/// The size of the archive inside, at the end of the last record.
pub const INNER_BYTES_BYTES: usize = 8;

/// How many records an archive of `inner_bytes` bytes takes without padding: the last also states
/// this size.
#[must_use]
pub fn record_count(inner_bytes: u64) -> u64 {
    inner_bytes
        .saturating_add(INNER_BYTES_BYTES as u64)
        .div_ceil(RECORD_BYTES as u64)
}

/// How many records hide how long an archive of `inner_bytes` bytes is: Padmé (Nikitin and others,
/// Reducing metadata leakage from encrypted files, PETS 2019) leaves as many sizes as the logarithm
/// of the size has bits, and adds at most 12 percent, 2 percent to 1 GiB.
#[must_use]
pub fn padded_record_count(inner_bytes: u64) -> u64 {
    let bytes = record_count(inner_bytes).saturating_mul(RECORD_BYTES as u64);
    let exponent = bytes.ilog2();
    let kept_bits = exponent.checked_ilog2().unwrap_or(0) + 1;
    let step = 1_u64 << exponent.saturating_sub(kept_bits);
    let padded = bytes.checked_next_multiple_of(step).unwrap_or(bytes);
    padded.div_ceil(RECORD_BYTES as u64)
}

/// Whether so many records for an archive of `inner_bytes` bytes may be padded. Nothing says it,
/// and the size may fit by chance; of less than 1 MiB or so it always does, which tells nothing.
#[must_use]
pub fn may_be_padded(records: u64, inner_bytes: u64) -> bool {
    let next = padded_record_count(inner_bytes.saturating_add(RECORD_BYTES as u64));
    let fits = padded_record_count(inner_bytes) == records;
    record_count(inner_bytes) < records || fits && next > records + 1
}

/// The tail behind `record_count` records: how far it is from the first Envelope frame.
#[must_use]
pub fn envelope_tail(records_offset: u64, record_count: u64) -> Tail {
    let records_bytes = record_count.saturating_mul(SEALED_RECORD_BYTES as u64);
    Tail {
        back_bytes: (records_offset - MAGIC.len() as u64).saturating_add(records_bytes),
    }
}

/// Returns the header of an Envelope frame that begins with these bytes.
///
/// # Errors
/// As [`StoredEnvelope::parse`], for the header.
pub fn envelope_header(frame: &[u8]) -> Result<FrameHeader> {
    let header = UntrustedFrameHeader::parse(frame)?.check_reserved(FrameKind::Envelope)?;
    check_limit("envelope bytes", header.frame_bytes(), ENVELOPE_BYTES_MAX)?;
    Ok(header)
}

/// Returns whether a file that begins with these bytes is an encrypted archive.
#[must_use]
pub fn is_envelope(first: &[u8]) -> bool {
    let frame = first.strip_prefix(&MAGIC);
    let header = frame.and_then(|frame| UntrustedFrameHeader::parse(frame).ok());
    header.is_some_and(|header| header.check_reserved(FrameKind::Envelope).is_ok())
}

/// The number of bytes of an encrypted archive without its records, which its size states.
#[must_use]
pub fn record_count_of(archive_bytes: u64, records_offset: u64) -> Option<u64> {
    let records_bytes = archive_bytes
        .checked_sub(records_offset)?
        .checked_sub(TAIL_BYTES as u64)?;
    let count = records_bytes / SEALED_RECORD_BYTES as u64;
    (count > 0 && records_bytes.is_multiple_of(SEALED_RECORD_BYTES as u64)).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_protect::envelope::Identity;

    fn key() -> FileKey {
        FileKey::new([1; 32])
    }

    fn envelope() -> Envelope {
        let salt = [2; SALT_BYTES];
        let identity: Identity =
            "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
                .parse()
                .unwrap();
        let slots = [
            Slot::for_password(&key(), &salt, b"x", PasswordCost::MIN, [3; 16]),
            Slot::for_recipient(&key(), &salt, &identity.recipient(), &[4; 64]),
        ];
        let mut slots: Vec<_> = slots.into_iter().flatten().map(StoredSlot::Known).collect();
        slots.push(StoredSlot::Unknown {
            kind: 99,
            bytes: vec![5; 7],
        });
        Envelope {
            salt,
            commitment: key().commitment(&salt),
            revision: 300,
            slots,
        }
    }

    #[test]
    fn frames_read_back_and_are_authentic() {
        let envelope = envelope();
        let frame_bytes = envelope.frame_bytes();
        assert_eq!(frame_bytes, ENVELOPE_STEP_BYTES);
        let frames = envelope.to_frames(&key(), frame_bytes).unwrap();
        for (copy, frame) in frames.iter().enumerate() {
            assert_eq!(frame.len() as u64, frame_bytes);
            let stored = StoredEnvelope::parse(frame).unwrap();
            assert_eq!(stored.envelope, envelope);
            assert_eq!((stored.copy, stored.records_offset()), (copy as u64, 2056));
            assert!(stored.is_authentic(&key()));
            assert!(!stored.is_authentic(&FileKey::new([9; 32])));
            assert!(is_envelope(&[&MAGIC, &frame[..]].concat()));
        }
        assert!(matches!(
            envelope.to_frames(&key(), 300),
            Err(FormatError::OverLimit { .. })
        ));
    }

    #[test]
    fn changed_heads_are_damaged_or_forged() {
        let envelope = envelope();
        let frames = envelope.to_frames(&key(), envelope.frame_bytes()).unwrap();
        for at in 0..frames[0].len() {
            let mut frame = frames[0].clone();
            frame[at] ^= 4;
            assert!(StoredEnvelope::parse(&frame).is_err(), "{at}");
        }
        // With right checksums.
        let forged = Envelope {
            revision: 301,
            ..envelope.clone()
        };
        let forged = forged.to_frames(&FileKey::new([9; 32]), 1024).unwrap();
        let stored = StoredEnvelope::parse(&forged[0]).unwrap();
        assert!(!stored.is_authentic(&key()));
    }

    #[test]
    fn sizes_are_counted_in_records() {
        assert_eq!(record_count(0), 1);
        assert_eq!(record_count(16_376), 1);
        assert_eq!(record_count(16_377), 2);
        assert_eq!(record_count_of(2056 + 16_400 * 3 + 8, 2056), Some(3));
        assert_eq!(record_count_of(2056 + 16_400 * 3 + 9, 2056), None);
        assert_eq!(record_count_of(2056 + 8, 2056), None);
        assert_eq!(record_count_of(7, 2056), None);
    }

    #[test]
    fn padding_leaves_few_sizes_and_adds_little() {
        let mut sizes = std::collections::BTreeSet::new();
        for inner_bytes in (1..40_000).map(|number| number * 9_973) {
            let (count, padded) = (record_count(inner_bytes), padded_record_count(inner_bytes));
            assert!(
                count <= padded && padded * 100 <= count * 112 + 100,
                "{count} {padded}"
            );
            sizes.insert(padded);
        }
        assert!(sizes.len() < 400, "{}", sizes.len());
        let large = record_count(1 << 30);
        assert!(padded_record_count(1 << 30) * 100 <= large * 104);
    }
}
