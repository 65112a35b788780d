//! Bytes that can be read at any offset.

use std::io;
use std::sync::Arc;

/// Bytes that can be read at any offset, from several threads at once.
///
/// The size may change during reading (a growing log, a truncated file). A read past the present
/// end returns a short count, never an error.
pub trait Source: Send + Sync {
    /// The present size in bytes.
    fn size_bytes(&self) -> io::Result<u64>;

    /// Reads into `buffer` from `offset` until it is full or the source ends. Returns the number of
    /// bytes read, less than `buffer.len()` only at the end of the source.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// The next range at or after `offset` that may hold data, as `(start, end)`. Bytes before
    /// `start` are a hole (all zero). `None` if only a hole remains. By default everything is data.
    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        let size = self.size_bytes()?;
        Ok((offset < size).then_some((offset, size)))
    }

    /// Whether the byte at `offset`, which was read before, can be read again. Default: yes.
    fn can_reread(&self, offset: u64) -> bool {
        let _ = offset;
        true
    }

    /// Whether the bytes may have changed since the source was opened, so that reads may have mixed
    /// old and new ones. Default: no.
    fn has_changed(&self) -> io::Result<bool> {
        Ok(false)
    }

    /// The cache in front of the source, if there is one. Default: none.
    fn cache(&self) -> Option<&dyn CachedRanges> {
        None
    }
}

/// A source with a cache in front of it. What a cache has are whole ranges, such as frames, that
/// are always read alike; everything else is read by [`Source::read_at`], from the source itself.
pub trait CachedRanges {
    /// As [`Source::read_at`], from the cache if it has this range, or what it is `named`.
    ///
    /// # Errors
    /// From the source: what a cache cannot do is read from there.
    fn read_cached(
        &self,
        offset: u64,
        buffer: &mut [u8],
        named: Option<&dyn NamedRange>,
    ) -> io::Result<usize>;

    /// The bytes in `buffer`, which were read from the cache, are not what belongs there: reads the
    /// range from the source, and the cache gets it. Returns whether the source has other bytes.
    ///
    /// # Errors
    /// From the source.
    fn read_anew(
        &self,
        offset: u64,
        buffer: &mut [u8],
        named: Option<&dyn NamedRange>,
    ) -> io::Result<bool>;
}

/// A range whose content has a name: a value that is the same wherever it occurs, also where the
/// bytes of the range say something of their place.
pub trait NamedRange {
    /// What the value is known by, a hash of it.
    fn name(&self) -> [u8; 16];

    /// The value of the range with these bytes; `None` if that has another name.
    fn value_of(&self, range: &[u8]) -> Option<Vec<u8>>;

    /// Bytes of the range with this value, which readers take for those of the source; `None` if
    /// the value has another name.
    fn range_of(&self, value: &[u8]) -> Option<Vec<u8>>;
}

macro_rules! source_by_reference {
    ($($reference:ty),*) => {$(
        impl<S: Source + ?Sized> Source for $reference {
            fn size_bytes(&self) -> io::Result<u64> {
                (**self).size_bytes()
            }

            fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
                (**self).read_at(offset, buffer)
            }

            fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
                (**self).next_data(offset)
            }

            fn can_reread(&self, offset: u64) -> bool {
                (**self).can_reread(offset)
            }

            fn has_changed(&self) -> io::Result<bool> {
                (**self).has_changed()
            }

            fn cache(&self) -> Option<&dyn CachedRanges> {
                (**self).cache()
            }
        }
    )*};
}

source_by_reference!(&S, Arc<S>, Box<S>);
