//! The number of arenas of the allocator.
//!
//! glibc gives each thread an arena of its own, up to eight for each processor (`mallopt(3)`,
//! `M_ARENA_MAX`), and memory that a thread frees remains in its arena. Here blocks of tens of
//! megabytes move between threads, so every arena grows to the size of the largest blocks: level 8
//! with 512 MiB and seven threads used 657 MB, and 450 MB with two arenas. The two are not
//! contended: two kernel trees at level 1 took 3.16 s instead of 3.40 (medians of three), `test` of
//! them 1.29 instead of 1.30 (medians of nine).
//!
//! `unsafe`: `mallopt(3)` takes two numbers. It is called before there are other threads.

#![allow(unsafe_code)]

/// Limits the allocator to two arenas, which all threads share. A program calls it once, before it
/// starts threads. Only glibc's allocator is affected.
pub fn limit_allocator_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes two numbers and no pointer.
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
}
