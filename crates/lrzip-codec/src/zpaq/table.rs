//! Allocation of the tables of a model.

use refrain_codec::{CodecId, Error, Result};

/// Allocates a table of `length` values.
///
/// # Errors
/// `OutOfMemory` if the allocation fails.
pub(crate) fn allocate<T: Clone>(length: usize, value: T) -> Result<Vec<T>> {
    let mut table = Vec::new();
    table
        .try_reserve_exact(length)
        .map_err(|_| Error::OutOfMemory {
            codec: CodecId::ZPAQ,
            wanted_bytes: (length as u64).saturating_mul(size_of::<T>() as u64),
        })?;
    table.resize(length, value);
    Ok(table)
}
