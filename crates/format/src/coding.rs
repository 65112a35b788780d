//! How data was coded: codec, filters, parameters, fallback. The same 32 bytes are part of every
//! frame that holds coded data. This crate interprets only codec 0; the codec crate interprets the
//! others.

use crate::bytes::ByteReader;
use crate::check::check_limit;
use crate::error::{FormatError, Result};
use crate::limits::{FILTERS_MAX, PARAMS_BYTES_MAX};

/// The id of the codec for data that is stored uncoded.
pub const CODEC_NONE: u16 = 0;

/// The size of a coding in bytes.
pub(crate) const CODING_BYTES: usize = 32;

/// Codec, filters, parameters and fallback of coded data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Coding {
    codec: u16,
    fallback: u8,
    filter_count: u8,
    filters: [(u8, u8); FILTERS_MAX],
    params_bytes: u8,
    params: [u8; PARAMS_BYTES_MAX],
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
    /// More than [`FILTERS_MAX`] filters, a filter with id 0, or more than [`PARAMS_BYTES_MAX`]
    /// bytes of parameters.
    pub fn new(codec: u16, filters: &[(u8, u8)], params: &[u8], fallback: u8) -> Result<Self> {
        check_limit("filters", filters.len() as u64, FILTERS_MAX as u64)?;
        check_limit(
            "codec parameter bytes",
            params.len() as u64,
            PARAMS_BYTES_MAX as u64,
        )?;
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

    pub(crate) fn parse(reader: &mut ByteReader<'_>) -> Result<Self> {
        let codec = reader.u16()?;
        let fallback = reader.u8()?;
        let filter_count = usize::from(reader.u8()?);
        let filters: [u8; 2 * FILTERS_MAX] = reader.array()?;
        let params_bytes = usize::from(reader.u8()?);
        reader.reserved(7)?;
        let params: [u8; PARAMS_BYTES_MAX] = reader.array()?;
        let filters = [(filters[0], filters[1]), (filters[2], filters[3])];
        let (used_filters, spare_filters) = split(&filters, "filters", filter_count)?;
        let (used_params, spare_params) = split(&params, "codec parameter bytes", params_bytes)?;
        if spare_filters.iter().any(|&filter| filter != (0, 0)) {
            return Err(not_zero("unused filter slot"));
        }
        if spare_params.iter().any(|&byte| byte != 0) {
            return Err(not_zero("unused codec parameter byte"));
        }
        Self::new(codec, used_filters, used_params, fallback)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.codec.to_le_bytes());
        out.push(self.fallback);
        out.push(self.filter_count);
        for (id, parameter) in self.filters {
            out.extend([id, parameter]);
        }
        out.push(self.params_bytes);
        out.extend([0; 7]);
        out.extend(self.params);
    }

    /// Checks the length of coded data. It is never empty and never longer than the raw data (an
    /// encoder stores such data uncoded), and uncoded data has exactly the raw length. So the raw
    /// length alone bounds the memory for a frame.
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

fn split<'a, T>(slots: &'a [T], what: &'static str, used: usize) -> Result<(&'a [T], &'a [T])> {
    slots.split_at_checked(used).ok_or(FormatError::OverLimit {
        what,
        value: used as u64,
        limit: slots.len() as u64,
    })
}

fn not_zero(what: &'static str) -> FormatError {
    FormatError::Value {
        what,
        value: 1,
        rule: "all zero",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn unused_bytes_must_be_zero() {
        let coding = Coding::new(3, &[(1, 0)], &[5], 0).unwrap();
        for at in [6, 7, 9, 15, 17, 31] {
            let mut bytes = bytes_of(&coding);
            bytes[at] = 1;
            assert!(parse(&bytes).is_err(), "byte {at}");
        }
        assert!(Coding::new(3, &[(0, 1)], &[], 0).is_err());
        assert!(Coding::new(3, &[(1, 1); 3], &[], 0).is_err());
        assert!(Coding::new(3, &[], &[0; 17], 0).is_err());
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(refrain_testkit::scaled(256)))]
        #[test]
        fn round_trip(codec: u16, fallback: u8, filters in proptest::collection::vec((1_u8.., any::<u8>()), 0..=2),
            params in proptest::collection::vec(any::<u8>(), 0..=16)) {
            let coding = Coding::new(codec, &filters, &params, fallback).unwrap();
            prop_assert_eq!(coding.filters(), &filters[..]);
            prop_assert_eq!(coding.params(), &params[..]);
            let bytes = bytes_of(&coding);
            prop_assert_eq!(bytes.len(), CODING_BYTES);
            prop_assert_eq!(parse(&bytes), Ok(coding));
        }

        #[test]
        fn accepted_codings_encode_to_the_same_bytes(bytes in proptest::array::uniform32(0_u8..3)) {
            if let Ok(coding) = parse(&bytes) {
                prop_assert_eq!(bytes_of(&coding), bytes);
            }
        }
    }
}
