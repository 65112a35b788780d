//! A counting allocator: the memory in use now, and its peak.
//!
//! Unsafe, because `GlobalAlloc` is; every call is passed to the system's allocator unchanged.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// For use as the `#[global_allocator]` of a test binary.
pub struct CountingHeap {
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl CountingHeap {
    pub const fn new() -> Self {
        CountingHeap {
            now: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
        }
    }

    /// The bytes in use now.
    pub fn now_bytes(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    /// Runs `body`. Returns the peak of the bytes in use, above those in use before.
    pub fn peak_bytes_of<R>(&self, body: impl FnOnce() -> R) -> (R, usize) {
        let before = self.now_bytes();
        self.peak.store(before, Ordering::Relaxed);
        let result = body();
        let peak = self.peak.load(Ordering::Relaxed);
        (result, peak.saturating_sub(before))
    }

    fn taken(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(now, Ordering::Relaxed);
    }

    fn given_back(&self, bytes: usize) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on to the system's allocator with the arguments it came with.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.taken(layout.size());
        // SAFETY: the caller upholds the contract of the same method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.taken(layout.size());
        // SAFETY: the caller upholds the contract of the same method.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        self.given_back(layout.size());
        // SAFETY: the caller upholds the contract of the same method.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        self.taken(new_bytes);
        self.given_back(layout.size());
        // SAFETY: the caller upholds the contract of the same method.
        unsafe { System.realloc(place, layout, new_bytes) }
    }
}
