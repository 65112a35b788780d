//! The frame that begins a generation, and the extension of its End frame.

use crate::bytes::{ByteReader, put_varint, put_varints};
use crate::check::{check_at_most, check_range};
use crate::error::{FormatError, Result};
use crate::head::{head_of, head_only, take_extensions};

/// The payload of a Generation frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenerationStart {
    /// Where the frame begins: the number of bytes of the archive before it.
    pub previous_bytes: u64,
    /// The root hash of the generation before.
    pub previous_root_hash: [u8; 32],
}

impl GenerationStart {
    /// Parses the payload.
    ///
    /// # Errors
    /// A value out of range; bytes at the end.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = head_only("generation", payload)?;
        let start = Self {
            previous_bytes: reader.varint()?,
            previous_root_hash: reader.array()?,
        };
        take_extensions(reader)?;
        check_range("start of a generation", start.previous_bytes, 0)?;
        Ok(start)
    }

    /// Returns the payload.
    #[must_use]
    pub fn to_payload(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        put_varint(&mut fields, self.previous_bytes);
        fields.extend(self.previous_root_hash);
        head_of(&fields)
    }
}

/// The id of the extension of an End frame that only generations from 1 on have.
const EXTENSION_ID: u64 = 3;

/// What the End frame of a generation from 1 on states besides the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenerationEnd {
    /// The id of its first member. Its members are those from this one on.
    pub first_member: u64,
    /// Where its Catalog frame begins, and the size of the frame in bytes.
    pub catalog: (u64, u64),
    /// The root hash of the generation before.
    pub previous_root_hash: [u8; 32],
}

impl GenerationEnd {
    /// Takes the extension if it is next.
    pub(crate) fn take(reader: &mut ByteReader<'_>, member_count: u64) -> Result<Option<Self>> {
        if reader.rest().first() != Some(&(EXTENSION_ID as u8)) {
            return Ok(None);
        }
        reader.varint()?;
        let length = reader.count(1)?;
        let mut fields = ByteReader::new("generation in the end", reader.take(length)?);
        let end = Self {
            first_member: fields.varint()?,
            catalog: (fields.varint()?, fields.varint()?),
            previous_root_hash: fields.array()?,
        };
        fields.finish()?;
        check_at_most(
            "first member of a generation",
            end.first_member,
            member_count,
        )?;
        check_range("end of the catalog", end.catalog.0, end.catalog.1)?;
        Ok(Some(end))
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let mut fields = Vec::new();
        let (offset, bytes) = self.catalog;
        put_varints(&mut fields, &[self.first_member, offset, bytes]);
        fields.extend(self.previous_root_hash);
        put_varints(out, &[EXTENSION_ID, fields.len() as u64]);
        out.extend(fields);
    }
}

/// A generation's number must be the one after `previous`.
pub(crate) fn check_number(found: u16, previous: u16) -> Result<()> {
    match previous.checked_add(1) {
        Some(expected) if expected == found => Ok(()),
        Some(_) => Err(FormatError::Mismatch {
            what: "number of a generation",
            found: u64::from(found),
            expected: u64::from(previous) + 1,
        }),
        None => Err(FormatError::OverLimit {
            what: "generations",
            value: u64::from(previous) + 1,
            limit: u64::from(u16::MAX),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_and_ends_parse_as_written() {
        let start = GenerationStart {
            previous_bytes: 12_345,
            previous_root_hash: [7; 32],
        };
        assert_eq!(GenerationStart::parse(&start.to_payload()), Ok(start));
        assert!(GenerationStart::parse(&start.to_payload()[..20]).is_err());
        let end = GenerationEnd {
            first_member: 3,
            catalog: (1000, 70),
            previous_root_hash: [9; 32],
        };
        let mut bytes = Vec::new();
        end.put(&mut bytes);
        let take = |member_count| {
            let mut reader = ByteReader::new("test", &bytes);
            GenerationEnd::take(&mut reader, member_count)
        };
        assert_eq!(take(3), Ok(Some(end)));
        assert!(take(2).is_err(), "members that the archive does not have");
        assert_eq!(
            GenerationEnd::take(&mut ByteReader::new("test", &[]), 0),
            Ok(None)
        );
    }

    #[test]
    fn numbers_go_up_by_one() {
        assert!(check_number(1, 0).is_ok());
        assert!(check_number(3, 1).is_err() && check_number(1, 1).is_err());
        assert!(check_number(0, u16::MAX).is_err());
    }
}
