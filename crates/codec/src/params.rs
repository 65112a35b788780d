//! The parameters that a codec stores beside the payload of a block.

use crate::error::{Error, Result};

/// The maximum number of parameter bytes in a block description.
pub const MAX_PARAMS_BYTES: usize = 16;

/// The parameters of one codec for one block: at most `MAX_PARAMS_BYTES`. Only the codec interprets
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    length_bytes: u8,
    bytes: [u8; MAX_PARAMS_BYTES],
}

impl Params {
    /// No parameters.
    pub const EMPTY: Self = Self {
        length_bytes: 0,
        bytes: [0; MAX_PARAMS_BYTES],
    };

    /// Wraps `bytes`; `None` when there are more than `MAX_PARAMS_BYTES`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut params = Self::EMPTY;
        params.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        params.length_bytes = u8::try_from(bytes.len()).ok()?;
        Some(params)
    }

    /// Parameters of a fixed length, which is checked at compile time.
    pub(crate) fn from_array<const N: usize>(bytes: [u8; N]) -> Self {
        const { assert!(N <= MAX_PARAMS_BYTES) };
        let mut params = Self::EMPTY;
        params.bytes[..N].copy_from_slice(&bytes);
        params.length_bytes = N as u8;
        params
    }

    /// The parameter bytes of a codec that always has `N` of them.
    ///
    /// # Errors
    /// `Description` for any other length.
    pub(crate) fn to_array<const N: usize>(self) -> Result<[u8; N]> {
        let bytes = self.as_bytes();
        bytes.try_into().map_err(|_| wrong_length(bytes.len()))
    }

    /// The parameter bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length_bytes)]
    }
}

pub(crate) fn wrong_length(length_bytes: usize) -> Error {
    Error::Description {
        field: "parameter length",
        value: length_bytes as u64,
    }
}
