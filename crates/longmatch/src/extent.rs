//! Extents: the map from content to the store.
#![forbid(unsafe_code)]

use crate::params::PERIOD_MAX;

/// A range of content and the source of its bytes. Extents point into the store, never at other
/// extents of the same run: reference depth is 1.
///
/// There are millions of extents (1.9 million for two kernel trees), so an extent takes 24 bytes,
/// and the few patterns are boxed. With the pattern inside, an extent took 80 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// The next bytes of the store, which no earlier extent refers to.
    Fresh {
        /// In bytes, at least 1.
        length: u64,
    },
    /// Bytes that the store already holds.
    Copy {
        /// In bytes, at least 1.
        length: u64,
        /// The offset of the first byte in the store.
        offset_in_store: u64,
    },
    /// A short pattern, repeated. It needs no bytes of the store.
    Fill {
        /// In bytes, at least 1; not necessarily a multiple of the period.
        length: u64,
        /// Byte `i` of the extent is byte `i % period` of the pattern.
        pattern: Box<Pattern>,
    },
    /// Bytes of earlier content, whatever its extents are ([`KnownRange`](crate::KnownRange)).
    Known {
        /// In bytes, at least 1.
        length: u64,
        /// The offset of the first byte in the content.
        offset_in_content: u64,
    },
}

const _: () = assert!(size_of::<Extent>() <= 24);

impl Extent {
    /// Returns the number of content bytes it covers.
    pub fn length(&self) -> u64 {
        match *self {
            Extent::Fresh { length }
            | Extent::Copy { length, .. }
            | Extent::Fill { length, .. }
            | Extent::Known { length, .. } => length,
        }
    }
}

/// A pattern of 1 to [`PERIOD_MAX`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    length: u8,
    bytes: [u8; PERIOD_MAX],
}

impl Pattern {
    /// One zero byte.
    pub const ZERO: Pattern = Pattern {
        length: 1,
        bytes: [0; PERIOD_MAX],
    };

    /// Creates the pattern of these bytes; `None` unless there are 1 to [`PERIOD_MAX`].
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

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns the pattern of a fill's tail that begins at byte `offset` of the fill.
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
