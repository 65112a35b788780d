//! Allocations whose refusal is expected: the caller waits for memory, or does with less.
//!
//! An allocator of the program may have a reserve for those that cannot fail. It asks
//! [`is_refusable`] what an allocation is.

use std::cell::Cell;
use std::collections::TryReserveError;

thread_local! {
    static IS_REFUSABLE: Cell<bool> = const { Cell::new(false) };
}

/// Reserves room for exactly `additional` more items, as [`Vec::try_reserve_exact`] does, without
/// the program's reserve.
///
/// # Errors
/// The allocator refuses the memory.
pub fn try_reserve_exact<T>(list: &mut Vec<T>, additional: usize) -> Result<(), TryReserveError> {
    IS_REFUSABLE.set(true);
    let result = list.try_reserve_exact(additional);
    IS_REFUSABLE.set(false);
    result
}

/// Whether the calling thread is in [`try_reserve_exact`].
pub fn is_refusable() -> bool {
    // Not while the thread ends.
    IS_REFUSABLE.try_with(Cell::get).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_ends_the_expectation() {
        let mut list = Vec::<u64>::new();
        assert!(try_reserve_exact(&mut list, 3).is_ok() && list.capacity() >= 3);
        assert!(try_reserve_exact(&mut list, usize::MAX / 16).is_err());
        assert!(!is_refusable());
    }
}
