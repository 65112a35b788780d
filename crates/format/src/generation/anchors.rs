//! Fingerprints of the store, by which a later generation finds repeats without decoding it.
//!
//! Only fingerprints whose low bits are zero are kept, some every 4 KiB of the store, and those
//! with more zero bits in frames of their own: a writer with little memory for a large store reads
//! only these. That a sample chosen by its own bits finds nearly all long repeats is the idea of
//! sparse indexing (Lillibridge and others, FAST 2009); the writer looks closer where one was
//! found.

use crate::bytes::{ByteReader, put_varint, put_varints};
use crate::check::{check_at_most, check_range};
use crate::error::{FormatError, Result};
use crate::head::{SplitPayload, head_of, take_extensions};

/// A fingerprint and the store address of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The fingerprint; its bits 16 to 31 are not kept.
    pub fingerprint: u64,
    /// The address of the first of its bytes in the store.
    pub offset_in_store: u64,
}

/// The payload of an Anchors frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnchorsFrame {
    /// At least this many low bits of all its fingerprints are zero, at most 16.
    pub zero_bits: u8,
    /// The anchors, by ascending address.
    pub anchors: Vec<Anchor>,
}

/// Bytes of a fingerprint in the frame: bits 0 to 15, then 32 to 63.
const FINGERPRINT_BYTES: usize = 6;
const ANCHOR_BYTES_MIN: usize = FINGERPRINT_BYTES + 1;

impl AnchorsFrame {
    /// Parses the payload.
    ///
    /// # Errors
    /// Values out of range; bytes at the end.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let split = SplitPayload::new(payload)?;
        let mut fields = split.fields("anchors");
        let [_scope, _scope_id] = [fields.varint()?, fields.varint()?];
        let zero_bits = fields.varint_as("zero bits of anchors")?;
        check_at_most("zero bits of anchors", u64::from(zero_bits), 16)?;
        take_extensions(fields)?;
        let mut reader = ByteReader::new("anchors", split.data);
        let count = reader.count(ANCHOR_BYTES_MIN)?;
        let mut anchors = Vec::with_capacity(count);
        let mut at = 0;
        for _ in 0..count {
            at = check_range("address of an anchor", at, reader.varint()?)?;
            let low = u64::from(reader.u16()?);
            let high = u64::from(reader.u32()?);
            if low & ((1_u64 << zero_bits) - 1) != 0 {
                return Err(FormatError::Value {
                    what: "low bits of a fingerprint",
                    value: low,
                    rule: "zero, as many as the frame states",
                });
            }
            anchors.push(Anchor {
                fingerprint: high << 32 | low,
                offset_in_store: at,
            });
        }
        reader.finish()?;
        Ok(Self { zero_bits, anchors })
    }

    /// Returns the payload.
    ///
    /// # Errors
    /// Anchors that are not in ascending order, or without the stated bits.
    pub fn to_payload(&self) -> Result<Vec<u8>> {
        let mut fields = Vec::new();
        put_varints(&mut fields, &[0, 0, u64::from(self.zero_bits)]);
        let mut payload = head_of(&fields);
        put_varint(&mut payload, self.anchors.len() as u64);
        let mut at = 0;
        for anchor in &self.anchors {
            put_varint(&mut payload, anchor.offset_in_store.wrapping_sub(at));
            at = anchor.offset_in_store;
            payload.extend((anchor.fingerprint as u16).to_le_bytes());
            payload.extend(((anchor.fingerprint >> 32) as u32).to_le_bytes());
        }
        Self::parse(&payload)?;
        Ok(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_parse_as_written() {
        let anchor = |fingerprint, offset_in_store| Anchor {
            fingerprint,
            offset_in_store,
        };
        let frame = AnchorsFrame {
            zero_bits: 5,
            anchors: vec![
                anchor(0xFEDC_BA98_0000_0020, 0),
                anchor(0x0123_4567_0000_FFE0, 4711),
                anchor(0, 1 << 40),
            ],
        };
        let payload = frame.to_payload().unwrap();
        assert_eq!(AnchorsFrame::parse(&payload), Ok(frame.clone()));
        for length in 0..payload.len() {
            assert!(AnchorsFrame::parse(&payload[..length]).is_err());
        }
        let refused = |anchors| {
            let frame = AnchorsFrame {
                zero_bits: 5,
                anchors,
            };
            assert!(frame.to_payload().is_err());
        };
        refused(vec![anchor(1, 0)]);
        refused(vec![anchor(0, 5), anchor(0, 4)]);
    }
}
