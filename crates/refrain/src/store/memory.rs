//! Buffers of a block's size and more: the system may refuse them, which is an error and no abort.

use refrain_pool::{Error, try_reserve_exact};

use crate::error::Result;

/// A buffer of zeros.
///
/// # Errors
/// `Limit` if the system refuses the memory.
pub(crate) fn zeroed(length_bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = with_capacity(length_bytes)?;
    buffer.resize(length_bytes, 0);
    Ok(buffer)
}

/// An empty buffer with room for `capacity_bytes`.
///
/// # Errors
/// As [`zeroed`].
pub(crate) fn with_capacity(capacity_bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    reserve(&mut buffer, capacity_bytes as u64)?;
    Ok(buffer)
}

/// Makes room for `additional` more items.
///
/// # Errors
/// As [`zeroed`].
pub(crate) fn reserve<T>(buffer: &mut Vec<T>, additional: u64) -> Result<()> {
    let refused = |reason: &dyn std::fmt::Display| Error::MemoryUnavailable {
        length_bytes: additional.saturating_mul(size_of::<T>() as u64),
        reason: reason.to_string(),
    };
    let additional = usize::try_from(additional).map_err(|error| refused(&error))?;
    Ok(try_reserve_exact(buffer, additional).map_err(|error| refused(&error))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_memory_is_an_error() {
        assert_eq!(zeroed(3).unwrap(), [0; 3]);
        assert!(with_capacity(1000).unwrap().capacity() >= 1000);
        for error in [
            zeroed(usize::MAX).unwrap_err(),
            reserve(&mut vec![1], u64::MAX).unwrap_err(),
        ] {
            assert!(error.is_out_of_memory(), "{error}");
        }
    }
}
