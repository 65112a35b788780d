//! The parameters of a block: the escape byte of `repeats`, and the length of the text without its
//! repeats (four bytes, little-endian), which is the raw length when none were removed.

use crate::error::{Error, Result};
use crate::params::Params;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) escape: u8,
    /// The length of the text without its repeats, 1 to the raw length.
    pub(super) reduced_bytes: u32,
}

impl Header {
    pub(super) fn new(escape: u8, reduced_bytes: usize) -> Self {
        Self {
            escape,
            // Blocks are at most 2^30 bytes.
            reduced_bytes: reduced_bytes as u32,
        }
    }

    pub(super) fn to_params(self) -> Params {
        let [a, b, c, d] = self.reduced_bytes.to_le_bytes();
        Params::from_array([self.escape, a, b, c, d])
    }

    pub(super) fn from_params(params: &Params, raw_length_bytes: u64) -> Result<Self> {
        let [escape, a, b, c, d] = params.to_array()?;
        let reduced_bytes = u32::from_le_bytes([a, b, c, d]);
        if !(1..=raw_length_bytes).contains(&u64::from(reduced_bytes)) {
            return Err(Error::Description {
                field: "bwt reduced length",
                value: u64::from(reduced_bytes),
            });
        }
        if u64::from(reduced_bytes) == raw_length_bytes && escape != 0 {
            return Err(Error::Description {
                field: "bwt escape byte of a block without repeats",
                value: u64::from(escape),
            });
        }
        Ok(Self {
            escape,
            reduced_bytes,
        })
    }
}
