//! Converts numbers to bytes and back: little-endian numbers, and LEB128 variable-length numbers in
//! their shortest form only (so each value has one encoding).

use crate::error::{FormatError, Result};

/// The size of the longest variable-length number: ceil(64 / 7) bytes.
pub(crate) const VARINT_BYTES_MAX: usize = 10;

#[derive(Debug, Clone)]
pub(crate) struct ByteReader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    /// Creates a cursor at the start of `bytes`; `what` names them in errors.
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, rest: bytes }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(FormatError::Truncated {
                what: self.what,
                needed_bytes: count as u64,
                available_bytes: self.rest.len() as u64,
            });
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the bytes up to the next zero byte, and the zero byte.
    pub(crate) fn take_until_zero(&mut self) -> Result<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == 0);
        let text = self.take(end.unwrap_or(self.rest.len()))?;
        self.take(1)?;
        Ok(text)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A variable-length number of a field with 8, 16 or 32 bits; `what` names it in errors. Larger
    /// numbers are damage.
    pub(crate) fn varint_as<T: TryFrom<u64>>(&mut self, what: &'static str) -> Result<T> {
        let value = self.varint()?;
        T::try_from(value).map_err(|_| FormatError::Value {
            what,
            value,
            rule: match size_of::<T>() {
                1 => "at most 255",
                2 => "at most 65,535",
                _ => "below 2^32",
            },
        })
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64> {
        // Most numbers of an archive fit in one byte.
        if let Some((&first, rest)) = self.rest.split_first()
            && first < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(first));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for (index, &byte) in self.rest.iter().take(VARINT_BYTES_MAX).enumerate() {
            let bits = u64::from(byte & 0x7f);
            // The tenth byte holds one bit only.
            if index == VARINT_BYTES_MAX - 1 && bits > 1 {
                return Err(FormatError::Varint { what: self.what });
            }
            value |= bits << (7 * index);
            if byte < 0x80 {
                // A last byte of zero adds nothing, so a shorter encoding exists.
                if byte == 0 && index > 0 {
                    return Err(FormatError::Varint { what: self.what });
                }
                self.take(index + 1)?;
                return Ok(value);
            }
        }
        if self.rest.len() >= VARINT_BYTES_MAX {
            return Err(FormatError::Varint { what: self.what });
        }
        Err(FormatError::Truncated {
            what: self.what,
            needed_bytes: self.rest.len() as u64 + 1,
            available_bytes: self.rest.len() as u64,
        })
    }

    /// Reads a variable-length number that counts items of at least `bytes_each` bytes each in the
    /// remaining bytes. Call it before allocating memory for the items.
    pub(crate) fn count(&mut self, bytes_each: usize) -> Result<usize> {
        let value = self.varint()?;
        let needed_bytes = value.saturating_mul(bytes_each as u64);
        match usize::try_from(value) {
            Ok(count) if needed_bytes <= self.remaining() as u64 => Ok(count),
            _ => Err(FormatError::Truncated {
                what: self.what,
                needed_bytes,
                available_bytes: self.remaining() as u64,
            }),
        }
    }

    pub(crate) fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(FormatError::Trailing {
            what: self.what,
            extra_bytes: self.rest.len() as u64,
        })
    }
}

#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_varints(out: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|&value| put_varint(out, value));
}

/// Maps signed numbers of small magnitude to small numbers: 0, -1, 1, -2 … to 0, 1, 2, 3 …
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Returns the difference `value - base`, encoded by [`zigzag`]. The subtraction wraps, so every
/// result is valid.
#[inline]
pub(crate) fn difference(value: u64, base: u64) -> u64 {
    zigzag(value.wrapping_sub(base) as i64)
}

#[inline]
pub(crate) fn add_difference(base: u64, coded: u64) -> u64 {
    base.wrapping_add(unzigzag(coded) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_varint(bytes: &[u8]) -> Result<u64> {
        let mut reader = ByteReader::new("test", bytes);
        let value = reader.varint()?;
        reader.finish()?;
        Ok(value)
    }

    #[test]
    fn varints_have_one_encoding() {
        assert_eq!(read_varint(&[0]), Ok(0));
        assert_eq!(read_varint(&[0x7f]), Ok(127));
        assert_eq!(read_varint(&[0x80, 1]), Ok(128));
        assert!(read_varint(&[0x80, 0]).is_err(), "a longer zero");
        assert!(read_varint(&[0xff, 0x80, 0]).is_err(), "a longer 127");
        assert!(read_varint(&[0x80]).is_err(), "cut off");
        assert!(read_varint(&[0xff; 10]).is_err(), "too long");
        let mut largest = vec![0xff; 9];
        largest.push(1);
        assert_eq!(read_varint(&largest), Ok(u64::MAX));
        largest[9] = 2;
        assert!(read_varint(&largest).is_err(), "65 bits");
    }

    #[test]
    fn counts_are_bounded_by_the_remaining_bytes() {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, 3);
        bytes.extend([0; 6]);
        assert_eq!(ByteReader::new("test", &bytes).count(2), Ok(3));
        assert!(ByteReader::new("test", &bytes).count(3).is_err());
        let mut huge = Vec::new();
        put_varint(&mut huge, u64::MAX);
        assert!(ByteReader::new("test", &huge).count(2).is_err());
    }

    #[test]
    fn numbers_too_large_for_their_field_are_damaged() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x80, 0x80, 0x80, 0x80, 0x10];
        let mut reader = ByteReader::new("test", &bytes);
        assert_eq!(reader.clone().varint_as("x"), Ok(u32::MAX));
        let class = |error: FormatError| error.class();
        let narrow = reader.clone().varint_as::<u16>("x").map_err(class);
        assert_eq!(narrow, Err(crate::error::ErrorClass::Damaged));
        reader.take(5).unwrap();
        let wide = reader.varint_as::<u32>("x").map_err(class);
        assert_eq!(wide, Err(crate::error::ErrorClass::Damaged));
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(refrain_testkit::scaled(256)))]
        #[test]
        fn varint_round_trip(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            prop_assert!(bytes.len() <= VARINT_BYTES_MAX);
            prop_assert_eq!(read_varint(&bytes), Ok(value));
        }

        #[test]
        fn accepted_varints_encode_to_the_same_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            if let Ok(value) = read_varint(&bytes) {
                let mut again = Vec::new();
                put_varint(&mut again, value);
                prop_assert_eq!(again, bytes);
            }
        }

        #[test]
        fn difference_round_trip(value: u64, base: u64) {
            prop_assert_eq!(add_difference(base, difference(value, base)), value);
        }
    }
}
