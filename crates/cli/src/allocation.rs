//! Ends a run for which the system has no memory.
//!
//! Large buffers are allocated by calls that can fail. The many small allocations cannot, nor can
//! those of the C libraries, and of the runtime when it starts a thread: they abort the process,
//! which shells report as a crash. Budgets are chosen so that this does not happen
//! ([`crate::memory_limit`]). Where a user limits addresses further (`ulimit -v`) or asks for a
//! budget that does not fit, an abort for lack of memory ends with the exit code of limits.
//!
//! `unsafe`: an allocator has to be, and this one passes everything on to the system's; a signal
//! handler must restrict itself to calls that are safe there, which `mmap(2)`, `munmap(2)`,
//! `write(2)` and `_exit(2)` are.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

use signal_hook::consts::SIGABRT;

use crate::exit::Exit;

const TEXT: &[u8] =
    b"refrain: the system refuses more memory: use a smaller --memory, or fewer threads (-T)\n";

/// If the system cannot provide this much, there is no memory.
const SPARE_BYTES: usize = 4 << 20;

thread_local! {
    /// Whether this thread was refused memory: that explains an abort that follows.
    static WAS_REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// The system's allocator, which remembers refusals.
struct Remembering;

#[global_allocator]
static ALLOCATOR: Remembering = Remembering;

fn remember_refusal(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        // Fails only while the thread ends.
        let _ = WAS_REFUSED.try_with(|was_refused| was_refused.set(true));
    }
    memory
}

// SAFETY: passes everything on.
unsafe impl GlobalAlloc for Remembering {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the system's allocator requires.
        remember_refusal(unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        remember_refusal(unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        remember_refusal(unsafe { System.realloc(memory, layout, size_bytes) })
    }
}

/// From now on an abort for lack of memory ends with the exit code of limits. Other aborts are
/// unchanged.
pub fn end_orderly_without_memory() {
    let end = || {
        if WAS_REFUSED.try_with(Cell::get) == Ok(true) || is_exhausted() {
            // SAFETY: the bytes live as long as the program.
            let _ = unsafe { libc::write(libc::STDERR_FILENO, TEXT.as_ptr().cast(), TEXT.len()) };
            signal_hook::low_level::exit(Exit::Limit as i32);
        }
    };
    // SAFETY: the action allocates nothing, takes no lock and makes only calls that handlers may.
    // If it cannot be registered, an abort remains an abort.
    let _ = unsafe { signal_hook::low_level::register(SIGABRT, end) };
}

/// Whether the system refuses a small amount of memory.
fn is_exhausted() -> bool {
    let (access, kind) = (
        libc::PROT_NONE | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping at an address of the system's choice.
    let memory = unsafe { libc::mmap(ptr::null_mut(), SPARE_BYTES, access, kind, -1, 0) };
    if memory == libc::MAP_FAILED {
        return true;
    }
    // SAFETY: the mapping was created above, and nobody else knows it.
    let _ = unsafe { libc::munmap(memory, SPARE_BYTES) };
    false
}
