//! Which set of contexts suits a block.

use crate::look;

/// A set of contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Text, source code, markup, logs.
    Text,
    /// Executables and mixed binary data.
    Binary,
    /// Tables of fixed-size records.
    Record {
        /// Bytes from one record to the next, 2..=255.
        stride_bytes: usize,
    },
}

impl Profile {
    /// The byte that archives store: 0 text, 1 binary, 2 and above a stride.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
            Self::Record { stride_bytes } => stride_bytes as u8,
        }
    }

    /// The profile with this number. Every byte is one.
    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Text,
            1 => Self::Binary,
            stride => Self::Record {
                stride_bytes: usize::from(stride),
            },
        }
    }

    /// The profile for a block, from the share of text bytes in it.
    pub(crate) fn of(raw: &[u8]) -> Self {
        let histogram = look::histogram(raw);
        let text: u64 = histogram
            .iter()
            .enumerate()
            .filter(|(byte, _)| matches!(byte, 9 | 10 | 13 | 32..=126))
            .map(|(_, &count)| u64::from(count))
            .sum();
        match text * 10 >= raw.len() as u64 * 9 {
            true => Self::Text,
            false => Self::Binary,
        }
    }
}
