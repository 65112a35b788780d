//! How many arenas the allocator keeps.
//!
//! glibc gives each thread an arena of its own, up to eight per processor (mallopt(3), M_ARENA_MAX), and what a thread frees stays in its arena. Blocks wander
//! between threads here, each of tens of megabytes, so that every arena ends up with as much as the largest blocks take: level 8 with
//! 512 MiB and seven threads had 657 MB in use, and 450 MB with two arenas. Nothing waits for the two: medians of three and nine, two kernel
//! trees at level 1 3.40 -> 3.16 s, `test` of them 1.30 -> 1.29 s.
//!
//! `unsafe`: `mallopt(3)` takes two numbers, and is called before there are other threads.

#![allow(unsafe_code)]

/// Makes all threads share two arenas. To be called once by a program, before it starts threads; other allocators than glibc's are as they were.
pub fn share_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: two numbers go in, nothing is pointed at.
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
}
