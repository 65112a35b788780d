//! Asks for a line of memory ahead of its use.
//!
//! Look-ups in a large index are cache misses, and so is most of what a long repeat is compared with. A load ahead of time makes misses
//! overlap, too, but the processor has to wait for the load itself; a prefetch it forgets.
//!
//! `unsafe`: the instruction takes an address. It reads nothing that the program could see, and faults for no address; the address
//! given here is that of a reference besides. There is no safe form of it yet.
#![allow(unsafe_code)]

/// Asks for the line that `place` begins in. A hint: nothing depends on it.
#[inline(always)]
pub(crate) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction, which accesses no memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changes() {
        let values = [1u64, 2, 3];
        values.iter().for_each(prefetch);
        assert_eq!(values, [1, 2, 3]);
    }
}
