//! Limits the number of arenas of the allocator, and what it retains.
//!
//! glibc gives each thread its own arena, up to eight per processor (`mallopt(3)`, `M_ARENA_MAX`),
//! and memory that a thread frees remains in its arena. Here blocks of tens of megabytes move
//! between threads, so every arena grows to the size of the largest blocks: level 8 with 512 MiB
//! and seven threads used 657 MB, and 450 MB with two arenas. The two are not contended: two kernel
//! trees at level 1 took 3.16 s instead of 3.40 (medians of three), `test` of them 1.29 instead of
//! 1.30 (medians of nine).
//!
//! glibc also learns from every large buffer that is freed to take the next one of that size from
//! an arena, where it leaves gaps. With a small budget they matter: 500 MB of a kernel tree with
//! 128 MiB at level 1 took 148 MB, and 134 with large buffers from the system (6.2 and 6.9 s, busy
//! machine); decompressing it from a pipe 164 and 143 MB.
//!
//! `unsafe`: `mallopt(3)` takes two numbers, `malloc_trim(3)` one, and both lock what they change.

#![allow(unsafe_code)]

/// Limits the allocator to two arenas, which all threads share. A program calls it once, before it
/// starts threads. Only glibc's allocator is affected.
pub fn limit_allocator_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes two numbers and no pointer.
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
}

/// Makes the allocator take large buffers from the system and return them at once, which costs time
/// and saves memory: for programs with a small memory budget. Only glibc's allocator is affected.
pub fn return_large_buffers() {
    /// Smaller than blocks, segments and tables of codecs; larger than pages of content.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    const LARGE_BYTES: libc::c_int = 256 << 10;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes two numbers and no pointer.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
}

/// Returns free memory of the allocator to the system, and large buffers as soon as they are freed:
/// for a program that was refused memory, and freed what it can do without. Only glibc's allocator
/// is affected.
pub fn return_free_memory() {
    return_large_buffers();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes a number and no pointer.
    let _ = unsafe { libc::malloc_trim(0) };
}
