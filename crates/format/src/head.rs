//! The head of a payload: its size, the fields of the kind, and room for the fields of later minor
//! versions.
//!
//! ```text
//! payload = Head_Bytes | fields | extensions | data
//!                        \-- Head_Bytes --/
//! ```
//!
//! An extension is an id, a length and bytes. A reader ignores unknown even ids and rejects unknown
//! odd ones as unsupported (the idea of PNG's critical and ancillary chunks). Version 1.0 defines
//! none.

use crate::bytes::{ByteReader, put_varint};
use crate::check::check_limit;
use crate::error::{FormatError, Result};
use crate::limits::HEAD_BYTES_MAX;

/// A payload, split into its head and its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitPayload<'a> {
    /// The head, its size included.
    pub head: &'a [u8],
    /// The rest of the payload.
    pub data: &'a [u8],
    fields: &'a [u8],
}

impl<'a> SplitPayload<'a> {
    /// Splits a payload.
    ///
    /// # Errors
    /// The head is longer than the payload or its limit.
    pub fn new(payload: &'a [u8]) -> Result<Self> {
        let mut reader = ByteReader::new("head of a frame", payload);
        let field_bytes = reader.varint()?;
        check_limit("head bytes", field_bytes, HEAD_BYTES_MAX as u64)?;
        let fields = reader.take(field_bytes as usize)?;
        let data = reader.take(reader.remaining())?;
        let head = payload
            .get(..payload.len() - data.len())
            .unwrap_or_default();
        Ok(Self { head, data, fields })
    }

    /// Returns a reader of the fields; `what` names them in errors.
    pub(crate) fn fields(&self, what: &'static str) -> ByteReader<'a> {
        ByteReader::new(what, self.fields)
    }
}

/// The most bytes that state the size of a head.
pub const HEAD_SIZE_BYTES_MAX: usize = 3;

/// Returns the size of a head, of which `payload` has at least the first
/// [`HEAD_SIZE_BYTES_MAX`] bytes, or all; the size itself is included.
///
/// # Errors
/// The size is not a number, or above its limit.
pub fn head_bytes(payload: &[u8]) -> Result<u64> {
    let mut reader = ByteReader::new("head of a frame", payload);
    let field_bytes = reader.varint()?;
    check_limit("head bytes", field_bytes, HEAD_BYTES_MAX as u64)?;
    Ok((payload.len() - reader.remaining()) as u64 + field_bytes)
}

/// Returns the reader of the fields of a payload that is all head.
///
/// # Errors
/// Bytes follow the head; as [`SplitPayload::new`].
pub(crate) fn head_only<'a>(what: &'static str, payload: &'a [u8]) -> Result<ByteReader<'a>> {
    let split = SplitPayload::new(payload)?;
    if split.data.is_empty() {
        Ok(split.fields(what))
    } else {
        Err(FormatError::Trailing {
            what,
            extra_bytes: split.data.len() as u64,
        })
    }
}

/// Checks the extensions, which are all that `reader` has left, and returns their bytes.
///
/// # Errors
/// An odd id, which a reader must know; ids that do not ascend.
pub(crate) fn take_extensions(mut reader: ByteReader<'_>) -> Result<Vec<u8>> {
    let extensions = reader.rest().to_vec();
    let mut previous_id = 0;
    while reader.remaining() > 0 {
        let id = reader.varint()?;
        if id <= previous_id {
            return Err(FormatError::Value {
                what: "extension id",
                value: id,
                rule: "above 0 and above the previous id",
            });
        }
        if id % 2 == 1 {
            return Err(FormatError::Reserved {
                what: "extension that a reader must know",
                value: id,
            });
        }
        let length = reader.count(1)?;
        reader.take(length)?;
        previous_id = id;
    }
    Ok(extensions)
}

pub(crate) fn head_of(fields: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(fields.len() + 3);
    put_varint(&mut head, fields.len() as u64);
    head.extend_from_slice(fields);
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;

    #[test]
    fn payloads_are_split_behind_their_heads() {
        let payload = [2, 7, 8, 9];
        let split = SplitPayload::new(&payload).unwrap();
        assert_eq!(
            (split.head, split.fields, split.data),
            (&payload[..3], &payload[1..3], &payload[3..])
        );
        assert_eq!(head_of(&[7, 8]), payload[..3]);
        assert_eq!(head_bytes(&payload), Ok(3));
        let longest = head_of(&vec![1; HEAD_BYTES_MAX]);
        assert_eq!(
            head_bytes(&longest[..HEAD_SIZE_BYTES_MAX]),
            Ok(longest.len() as u64)
        );
        assert!(head_bytes(&[]).is_err() && head_bytes(&[0xFF; 3]).is_err());
        assert!(SplitPayload::new(&[5, 1]).is_err());
        assert!(SplitPayload::new(&[]).is_err());
        assert!(head_only("x", &payload).is_err());
        assert!(head_only("x", &payload[..3]).is_ok());
    }

    #[test]
    fn even_extensions_are_ignored_and_odd_ones_unsupported() {
        let check = |bytes: &[u8]| take_extensions(ByteReader::new("x", bytes));
        assert_eq!(check(&[]), Ok(vec![]));
        assert_eq!(check(&[2, 1, 9, 4, 0]), Ok(vec![2, 1, 9, 4, 0]));
        assert_eq!(
            check(&[2, 0, 3, 0]).unwrap_err().class(),
            ErrorClass::Unsupported
        );
        for damaged in [&[4, 0, 2, 0][..], &[2, 5, 1], &[0, 0], &[2]] {
            assert_eq!(check(damaged).unwrap_err().class(), ErrorClass::Damaged);
        }
    }
}
