//! An allocator that counts: how much memory is taken now, and the most that ever was.
//!
//! Unsafe because that is how allocators are made; every call goes to the system's allocator as it came.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// To be made a test binary's `#[global_allocator]`.
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

    /// Bytes that are taken now.
    pub fn now_bytes(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    /// Runs `body` and gives the most bytes that were taken meanwhile, above what was taken before.
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
        // SAFETY: as promised to us by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.taken(layout.size());
        // SAFETY: as promised to us by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        self.given_back(layout.size());
        // SAFETY: as promised to us by the caller.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        self.taken(new_bytes);
        self.given_back(layout.size());
        // SAFETY: as promised to us by the caller.
        unsafe { System.realloc(place, layout, new_bytes) }
    }
}
