//! One extent, and the pattern that a fill repeats.

use crate::check::{check_limit, check_positive};
use crate::error::Result;
use crate::limits::PATTERN_BYTES_MAX;

/// A range of content. Lengths are in bytes and at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extent {
    /// The next `length` bytes of the store that no earlier extent has introduced.
    Fresh {
        /// The number of bytes of content.
        length: u64,
    },
    /// Store bytes introduced by an earlier extent.
    Copy {
        /// The number of bytes of content.
        length: u64,
        /// Their offset in the store.
        offset_in_store: u64,
    },
    /// Content that earlier epochs describe. It stands for that content's extents, and takes less
    /// space where content repeats as a whole.
    Reference {
        /// The number of bytes of content.
        length: u64,
        /// Where the same bytes are in the content space, before the epoch.
        offset_in_content: u64,
    },
    /// A pattern, repeated: byte i of the extent is byte `i % period` of the pattern.
    Fill {
        /// The number of bytes of content.
        length: u64,
        /// The pattern.
        pattern: Pattern,
    },
}

impl Extent {
    /// Returns the number of bytes of content.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            Self::Fresh { length }
            | Self::Copy { length, .. }
            | Self::Reference { length, .. }
            | Self::Fill { length, .. } => *length,
        }
    }
}

/// 1 to [`PATTERN_BYTES_MAX`] bytes, repeated by [`Extent::Fill`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pattern {
    period_bytes: u8,
    /// Zero after the period, so that equal patterns compare equal.
    bytes: [u8; PATTERN_BYTES_MAX],
}

impl Pattern {
    /// The pattern of a hole.
    pub const ZERO: Self = Self {
        period_bytes: 1,
        bytes: [0; PATTERN_BYTES_MAX],
    };

    /// Creates a pattern of these bytes.
    ///
    /// # Errors
    /// [`FormatError::Value`](crate::error::FormatError::Value) if there are none,
    /// [`FormatError::OverLimit`](crate::error::FormatError::OverLimit) if there are more than
    /// [`PATTERN_BYTES_MAX`].
    pub fn new(period: &[u8]) -> Result<Self> {
        check_positive("pattern bytes", period.len() as u64)?;
        check_limit(
            "pattern bytes",
            period.len() as u64,
            PATTERN_BYTES_MAX as u64,
        )?;
        let mut bytes = [0; PATTERN_BYTES_MAX];
        for (to, from) in bytes.iter_mut().zip(period) {
            *to = *from;
        }
        Ok(Self {
            period_bytes: period.len() as u8,
            bytes,
        })
    }

    /// Returns the bytes that repeat.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.period_bytes))
            .unwrap_or_default()
    }

    /// Returns whether every byte is zero, that is, whether the extent is a hole.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.bytes.iter().all(|&byte| byte == 0)
    }

    /// Returns this pattern as seen from byte `phase` of an extent.
    #[must_use]
    pub fn rotated(&self, phase: u64) -> Self {
        let mut rotated = *self;
        let period_bytes = usize::from(self.period_bytes);
        if let Some(period) = rotated.bytes.get_mut(..period_bytes) {
            period.rotate_left((phase % period_bytes.max(1) as u64) as usize);
        }
        rotated
    }

    /// Fills `out` with the extent's bytes from position `phase`.
    pub fn fill(&self, phase: u64, out: &mut [u8]) {
        let period = self.as_bytes();
        if let [byte] = period {
            out.fill(*byte);
            return;
        }
        let skip = (phase % period.len().max(1) as u64) as usize;
        let repeated = period.iter().cycle().skip(skip);
        for (to, from) in out.iter_mut().zip(repeated) {
            *to = *from;
        }
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Pattern({:02x?})", self.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_repeat_from_any_phase() {
        let pattern = Pattern::new(b"abc").unwrap();
        let mut out = [0; 7];
        pattern.fill(0, &mut out);
        assert_eq!(&out, b"abcabca");
        pattern.fill(1_000_001, &mut out);
        assert_eq!(&out, b"cabcabc");
        let mut rotated = [0; 7];
        pattern.rotated(1_000_001).fill(0, &mut rotated);
        assert_eq!(rotated, out);
        Pattern::ZERO.fill(9, &mut out);
        assert_eq!(out, [0; 7]);
        assert!(Pattern::ZERO.is_zero() && !pattern.is_zero());
        assert_eq!(Pattern::new(&[0]), Ok(Pattern::ZERO));
        assert!(Pattern::new(&[]).is_err());
        assert!(Pattern::new(&[1; 65]).is_err());
    }
}
