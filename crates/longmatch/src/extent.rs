//! Extents: what content is made of.
#![forbid(unsafe_code)]

use crate::params::PERIOD_MAX;

/// A stretch of content. Extents always point into the store, never at other extents: reference depth is 1.
///
/// There are millions of them (two kernel trees: 1.9), so one is 24 bytes long and the few patterns lie elsewhere: with patterns inside
/// it was 80 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// The next bytes of the store, seen here for the first time.
    Fresh {
        /// In bytes, at least 1.
        length: u64,
    },
    /// Bytes that the store holds already.
    Copy {
        /// In bytes, at least 1.
        length: u64,
        /// Where they begin.
        offset_in_store: u64,
    },
    /// A short pattern again and again, which needs no bytes of the store.
    Fill {
        /// In bytes, at least 1; need not be a multiple of the period.
        length: u64,
        /// Byte `i` of the extent is byte `i % period` of the pattern.
        pattern: Box<Pattern>,
    },
}

const _: () = assert!(size_of::<Extent>() <= 24);

impl Extent {
    /// Content bytes it covers.
    pub fn length(&self) -> u64 {
        match *self {
            Extent::Fresh { length }
            | Extent::Copy { length, .. }
            | Extent::Fill { length, .. } => length,
        }
    }
}

/// One to [`PERIOD_MAX`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    length: u8,
    bytes: [u8; PERIOD_MAX],
}

impl Pattern {
    /// The pattern of these bytes; `None` unless there are 1 to [`PERIOD_MAX`].
    pub fn new(bytes: &[u8]) -> Option<Pattern> {
        let mut pattern = Pattern {
            length: u8::try_from(bytes.len()).ok()?,
            bytes: [0; PERIOD_MAX],
        };
        pattern
            .bytes
            .get_mut(..bytes.len())
            .filter(|room| !room.is_empty())?
            .copy_from_slice(bytes);
        Some(pattern)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The pattern that a fill shows from its byte number `offset` on.
    pub fn rotated(&self, offset: u64) -> Pattern {
        let mut rotated = *self;
        let period = usize::from(self.length);
        rotated.bytes[..period].rotate_left((offset % period as u64) as usize);
        rotated
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x?}", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_1_to_64_bytes() {
        assert!(Pattern::new(&[]).is_none());
        assert!(Pattern::new(&[1; 65]).is_none());
        assert!(Pattern::new(&[1; 300]).is_none());
        assert_eq!(
            Pattern::new(b"abc").map(|p| p.rotated(4)),
            Pattern::new(b"bca")
        );
    }
}
