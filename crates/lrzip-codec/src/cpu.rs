//! Compilation for AVX2, and prefetching.
//!
//! `unsafe` for two reasons: a function compiled for AVX2 may be called only where the processor
//! has it, and only intrinsics prefetch.
#![allow(unsafe_code)]

/// Proof that this processor has AVX2 and the bit operations that were introduced with it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// Returns `None` if the processor lacks any of the features.
    pub(crate) fn detect() -> Option<Self> {
        let has_all = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt");
        has_all.then_some(Self(()))
    }

    /// Runs `work`. Code that is inlined into it is compiled with these features.
    #[inline(always)]
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        // SAFETY: an `Avx2` exists only where the features were detected.
        unsafe { run_with_avx2(work) }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn run_with_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Prefetches the cache line that holds `value`. Affects only time.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and the address comes from a reference.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
