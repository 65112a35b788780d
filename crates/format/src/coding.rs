//! How data was coded: codec, filters, parameters, fallback, mask. It is part of the head of every
//! frame with coded data. This crate interprets only codec 0, the codec crate all others.

use crate::bytes::{ByteReader, put_varint};
use crate::check::{check_limit, check_positive};
use crate::error::{FormatError, Result};
use crate::limits::{FILTERS_MAX, PARAMS_BYTES_MAX};

/// The id of the codec for data that is stored uncoded.
pub const CODEC_NONE: u16 = 0;

/// The id shared by codecs that have a name instead of a number: their parameters begin with a
/// UUID.
pub const CODEC_NAMED: u16 = 255;

const NAME_BYTES: usize = 16;

pub(crate) const CODING_BYTES_MAX: usize = 3 + 2 + 2 * FILTERS_MAX + 1 + PARAMS_BYTES_MAX + 1;

/// Bits of the coding flags: the number of filters, whether there are parameters, the fallback,
/// whether there is a mask.
const FILTER_COUNT_BITS: u64 = 0b11;
const HAS_PARAMS: u64 = 1 << 2;
const FALLBACK_SHIFT: u32 = 3;
const FALLBACK_BITS: u64 = 0b1111;
const IS_MASKED: u64 = 1 << 7;

/// Codec, filters, parameters and fallback of coded data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Coding {
    codec: u16,
    fallback: u8,
    filter_count: u8,
    filters: [(u8, u8); FILTERS_MAX],
    params_bytes: u8,
    params: [u8; PARAMS_BYTES_MAX],
    /// The bits that are inverted in each byte of the coded data.
    mask: u8,
}

impl Default for Coding {
    fn default() -> Self {
        Self {
            codec: CODEC_NONE,
            fallback: 0,
            filter_count: 0,
            filters: [(0, 0); FILTERS_MAX],
            params_bytes: 0,
            params: [0; PARAMS_BYTES_MAX],
            mask: 0,
        }
    }
}

impl Coding {
    /// The coding of uncoded data.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates a coding. `filters` are (id, parameter) in the order in which the encoder applied
    /// them. `fallback` is 0 if the block was coded as planned, else the codec crate's number for
    /// the reason.
    ///
    /// # Errors
    /// More than [`FILTERS_MAX`] filters, a filter with id 0, more than [`PARAMS_BYTES_MAX`] bytes
    /// of parameters, a fallback above 15, or a named codec without a name.
    pub fn new(codec: u16, filters: &[(u8, u8)], params: &[u8], fallback: u8) -> Result<Self> {
        check_limit("filters", filters.len() as u64, FILTERS_MAX as u64)?;
        check_limit(
            "codec parameter bytes",
            params.len() as u64,
            PARAMS_BYTES_MAX as u64,
        )?;
        check_limit("fallback", u64::from(fallback), FALLBACK_BITS)?;
        if codec == CODEC_NAMED && params.len() < NAME_BYTES {
            return Err(FormatError::Value {
                what: "bytes of the parameters of a named codec",
                value: params.len() as u64,
                rule: "at least 16, its UUID",
            });
        }
        let mut coding = Self {
            codec,
            fallback,
            filter_count: filters.len() as u8,
            params_bytes: params.len() as u8,
            ..Self::default()
        };
        for (to, from) in coding.filters.iter_mut().zip(filters) {
            if from.0 == 0 {
                return Err(FormatError::Value {
                    what: "filter id",
                    value: 0,
                    rule: "at least 1",
                });
            }
            *to = *from;
        }
        for (to, from) in coding.params.iter_mut().zip(params) {
            *to = *from;
        }
        Ok(coding)
    }

    /// Returns the codec's id.
    #[must_use]
    pub fn codec(&self) -> u16 {
        self.codec
    }

    /// Returns the filters, (id, parameter), in the order in which the encoder applied them. A
    /// decoder undoes the last one first.
    #[must_use]
    pub fn filters(&self) -> &[(u8, u8)] {
        self.filters
            .get(..usize::from(self.filter_count))
            .unwrap_or_default()
    }

    /// Returns the ids of both filters, 0 for none.
    #[must_use]
    pub fn filter_ids(&self) -> [u8; FILTERS_MAX] {
        self.filters.map(|(id, _)| id)
    }

    /// Returns the codec's parameters.
    #[must_use]
    pub fn params(&self) -> &[u8] {
        self.params
            .get(..usize::from(self.params_bytes))
            .unwrap_or_default()
    }

    /// Returns the reason why the block was not coded as planned; 0 if it was.
    #[must_use]
    pub fn fallback(&self) -> u8 {
        self.fallback
    }

    /// Returns whether the data is stored as is: neither a codec nor a filter was applied.
    #[must_use]
    pub fn is_uncoded(&self) -> bool {
        self.codec == CODEC_NONE && self.filter_count == 0
    }

    /// Returns the bits that are inverted in each byte of the data; 0 for none.
    #[must_use]
    pub fn mask(&self) -> u8 {
        self.mask
    }

    /// Returns the same coding with another mask. A writer masks data that would look like a frame
    /// of its own archive.
    #[must_use]
    pub fn with_mask(self, mask: u8) -> Self {
        Self { mask, ..self }
    }

    pub(crate) fn parse(reader: &mut ByteReader<'_>) -> Result<Self> {
        let codec = reader.varint_as("codec")?;
        let flags = reader.varint()?;
        let known = FILTER_COUNT_BITS | HAS_PARAMS | FALLBACK_BITS << FALLBACK_SHIFT | IS_MASKED;
        if flags & !known != 0 {
            return Err(FormatError::Reserved {
                what: "coding flags",
                value: flags & !known,
            });
        }
        let filter_count = flags & FILTER_COUNT_BITS;
        if filter_count > FILTERS_MAX as u64 {
            return Err(FormatError::Reserved {
                what: "number of filters",
                value: filter_count,
            });
        }
        let mut filters = Vec::with_capacity(FILTERS_MAX);
        for _ in 0..filter_count {
            filters.push((reader.u8()?, reader.u8()?));
        }
        let params = match flags & HAS_PARAMS {
            0 => &[][..],
            _ => take_params(reader)?,
        };
        let fallback = (flags >> FALLBACK_SHIFT & FALLBACK_BITS) as u8;
        let coding = Self::new(codec, &filters, params, fallback)?;
        match flags & IS_MASKED {
            0 => Ok(coding),
            _ => Ok(coding.with_mask(take_mask(reader)?)),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let params_flag = u64::from(self.params_bytes > 0) * HAS_PARAMS;
        let mask_flag = u64::from(self.mask != 0) * IS_MASKED;
        let flags = u64::from(self.filter_count)
            | params_flag
            | u64::from(self.fallback) << FALLBACK_SHIFT
            | mask_flag;
        put_varint(out, u64::from(self.codec));
        put_varint(out, flags);
        for (id, parameter) in self.filters() {
            out.extend([id, parameter]);
        }
        if self.params_bytes > 0 {
            out.push(self.params_bytes);
            out.extend(self.params());
        }
        if self.mask != 0 {
            out.push(self.mask);
        }
    }

    /// Checks the length of coded data. It is never empty and never longer than the raw data (an
    /// encoder stores such data uncoded), and uncoded data has exactly the raw length. So the raw
    /// length alone bounds a frame's memory.
    pub(crate) fn check_data_bytes(&self, raw_bytes: u64, data_bytes: u64) -> Result<()> {
        if self.codec == CODEC_NONE && data_bytes != raw_bytes {
            return Err(FormatError::Mismatch {
                what: "length in bytes of stored data",
                found: data_bytes,
                expected: raw_bytes,
            });
        }
        if data_bytes == 0 || data_bytes > raw_bytes {
            return Err(FormatError::Value {
                what: "length in bytes of coded data",
                value: data_bytes,
                rule: "from 1 to its raw length",
            });
        }
        Ok(())
    }
}

fn take_params<'a>(reader: &mut ByteReader<'a>) -> Result<&'a [u8]> {
    let length = reader.varint()?;
    check_positive("codec parameter bytes", length)?;
    check_limit("codec parameter bytes", length, PARAMS_BYTES_MAX as u64)?;
    reader.take(length as usize)
}

fn take_mask(reader: &mut ByteReader<'_>) -> Result<u8> {
    let mask = reader.u8()?;
    check_positive("mask", u64::from(mask))?;
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;
    use proptest::prelude::*;

    fn bytes_of(coding: &Coding) -> Vec<u8> {
        let mut bytes = Vec::new();
        coding.write(&mut bytes);
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Coding> {
        let mut reader = ByteReader::new("coding", bytes);
        let coding = Coding::parse(&mut reader)?;
        reader.finish()?;
        Ok(coding)
    }

    #[test]
    fn checks_the_length_of_coded_data() {
        assert!(Coding::none().check_data_bytes(10, 10).is_ok());
        assert!(Coding::none().check_data_bytes(10, 9).is_err());
        let coded = Coding::new(2, &[], &[], 0).unwrap();
        assert!(coded.check_data_bytes(10, 9).is_ok());
        assert!(coded.check_data_bytes(10, 11).is_err());
        assert!(coded.check_data_bytes(10, 0).is_err());
    }

    #[test]
    fn rejects_what_no_writer_writes() {
        assert!(Coding::new(3, &[(0, 1)], &[], 0).is_err());
        assert!(Coding::new(3, &[(1, 1); 3], &[], 0).is_err());
        assert!(Coding::new(3, &[], &[0; 65], 0).is_err());
        assert!(Coding::new(CODEC_NAMED, &[], &[0; 15], 0).is_err());
        let class = |bytes: &[u8]| parse(bytes).unwrap_err().class();
        assert_eq!(
            class(&[2, 3, 1, 0, 1, 0, 1, 0]),
            ErrorClass::Unsupported,
            "three filters"
        );
        assert_eq!(class(&[0x80, 0x80, 4, 0]), ErrorClass::Damaged, "codec");
        assert_eq!(class(&[2, 1, 0, 0]), ErrorClass::Damaged);
        assert_eq!(class(&[2, 4, 0]), ErrorClass::Damaged);
        assert_eq!(class(&[2, 0x80, 1, 0]), ErrorClass::Damaged);
        assert_eq!(class(&[2, 0x80, 2]), ErrorClass::Unsupported);
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(refrain_testkit::scaled(256)))]
        #[test]
        fn round_trip(codec in 0_u16..255, fallback in 0_u8..16, mask: u8, filters in proptest::collection::vec((1_u8.., any::<u8>()), 0..=2),
            params in proptest::collection::vec(any::<u8>(), 0..=64)) {
            let coding = Coding::new(codec, &filters, &params, fallback).unwrap().with_mask(mask);
            prop_assert_eq!(coding.filters(), &filters[..]);
            prop_assert_eq!(coding.params(), &params[..]);
            let bytes = bytes_of(&coding);
            prop_assert!(bytes.len() <= CODING_BYTES_MAX);
            prop_assert_eq!(parse(&bytes), Ok(coding));
        }

        #[test]
        fn accepted_codings_encode_to_the_same_bytes(bytes in proptest::collection::vec(0_u8..9, 0..20)) {
            if let Ok(coding) = parse(&bytes) {
                prop_assert_eq!(bytes_of(&coding), bytes);
            }
        }
    }
}
