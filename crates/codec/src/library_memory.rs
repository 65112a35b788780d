//! Memory that a library allocates where it panics if there is none.
//!
//! The crates `bzip2` and `libdeflater` assert that their libraries got the memory for a stream.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};
use crate::id::CodecId;

/// Calls `create`, which allocates about `bytes` and panics if it cannot.
///
/// The memory is asked for first, since a panic prints a message. If others take it in between, the
/// panic is caught.
///
/// # Errors
/// `OutOfMemory`.
pub fn create_with_memory<T>(codec: CodecId, bytes: u64, create: impl FnOnce() -> T) -> Result<T> {
    let out_of_memory = Error::OutOfMemory {
        codec,
        wanted_bytes: bytes,
    };
    let mut memory = Vec::<u8>::new();
    let is_there =
        usize::try_from(bytes).is_ok_and(|bytes| memory.try_reserve_exact(bytes).is_ok());
    drop(memory);
    if !is_there {
        return Err(out_of_memory);
    }
    // AssertUnwindSafe: constructors share nothing with what remains.
    catch_unwind(AssertUnwindSafe(create)).map_err(|_| out_of_memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_does_not_exist_is_an_error() {
        let create = |bytes| create_with_memory(CodecId::BZIP2, bytes, || 7);
        assert_eq!(create(1 << 20), Ok(7));
        for bytes in [u64::MAX, 1 << 62] {
            let error = create(bytes).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        }
    }
}
