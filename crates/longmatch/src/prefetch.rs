//! Prefetches a cache line.
//!
//! Lookups in a large index are cache misses, and so are most reads of the source of a long repeat.
//! Early loads make misses overlap too, but a load occupies the processor until it completes; a
//! prefetch does not.
//!
//! `unsafe`: the instruction takes an address. It returns no data to the program and does not fault
//! for any address, and the address here always comes from a reference. There is no safe form of it
//! yet.
#![allow(unsafe_code)]

/// Prefetches the cache line in which `value` begins. This is only a hint; no result depends on it.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction, which does not change
    // memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefetch_changes_nothing() {
        let values = [1u64, 2, 3];
        values.iter().for_each(prefetch);
        assert_eq!(values, [1, 2, 3]);
    }
}
