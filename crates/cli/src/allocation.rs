//! Ends a run for which the system has no memory.
//!
//! Large buffers are allocated by calls that can fail, and the engine waits for memory or ends the
//! run with an error. The many small allocations cannot fail, nor can those of the runtime when it
//! starts a thread: they abort the process, which shells report as a crash. So some memory is
//! *reserved* for them: mapped, but not touched, and returned to the system when it refuses a small
//! allocation. A run that waits for memory therefore gets so far that it can free some, and then
//! reserves memory anew. Budgets are chosen so that the system refuses none
//! ([`crate::memory_limit`]). Where a user limits addresses further (`ulimit -v`) or asks for a
//! budget that does not fit, and even the reserve is used up, an abort for lack of memory ends with
//! the exit code of limits.
//!
//! `unsafe`: an allocator has to be, and this one passes everything on to the system's; a signal
//! handler must restrict itself to calls that are safe there, which `mmap(2)`, `munmap(2)`,
//! `write(2)` and `_exit(2)` are.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use refrain_pool::is_refusable;
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

/// The memory that is reserved for small allocations. An epoch of the match stage has lists of some
/// megabytes.
const RESERVE_BYTES: usize = 8 << 20;

/// The largest allocations for which the reserve is given up. Larger ones can fail.
const SMALL_BYTES_MAX: usize = 2 << 20;

/// The reserve; null if it was given up.
static RESERVE: AtomicPtr<libc::c_void> = AtomicPtr::new(ptr::null_mut());

/// Maps the reserve, if it is not there and the system allows it.
fn reserve() {
    if !RESERVE.load(Ordering::Relaxed).is_null() {
        return;
    }
    let Some(memory) = map(RESERVE_BYTES) else {
        return;
    };
    let null = ptr::null_mut();
    let order = (Ordering::AcqRel, Ordering::Relaxed);
    if RESERVE
        .compare_exchange(null, memory, order.0, order.1)
        .is_err()
    {
        // Another thread was faster.
        unmap(memory, RESERVE_BYTES);
    }
}

/// Returns the reserve to the system, if it is there.
fn give_up_reserve() {
    let memory = RESERVE.swap(ptr::null_mut(), Ordering::AcqRel);
    if !memory.is_null() {
        unmap(memory, RESERVE_BYTES);
    }
}

/// The system's allocator, with the reserve, which remembers refusals.
struct Remembering;

#[global_allocator]
static ALLOCATOR: Remembering = Remembering;

/// The result of `allocate`, a second one if the reserve may help.
#[inline]
fn with_reserve(size_bytes: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let memory = allocate();
    if !memory.is_null() {
        return memory;
    }
    refused(size_bytes, allocate)
}

#[cold]
fn refused(size_bytes: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    if size_bytes > SMALL_BYTES_MAX || is_refusable() {
        return remember_refusal(ptr::null_mut());
    }
    give_up_reserve();
    // Also if another thread gave it up: what is left of it may suffice.
    remember_refusal(allocate())
}

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
        with_reserve(layout.size(), || unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
        if layout.size() > SMALL_BYTES_MAX {
            reserve();
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        with_reserve(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        with_reserve(size_bytes, || unsafe {
            System.realloc(memory, layout, size_bytes)
        })
    }
}

/// From now on small allocations have a reserve, and an abort for lack of memory ends with the exit
/// code of limits. Other aborts are unchanged.
pub fn end_orderly_without_memory() {
    reserve();
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
    let memory = map(SPARE_BYTES);
    memory.is_none_or(|memory| {
        unmap(memory, SPARE_BYTES);
        false
    })
}

/// New memory that nothing has touched, which limits of addresses and of data count.
fn map(length_bytes: usize) -> Option<*mut libc::c_void> {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping at an address of the system's choice.
    let memory = unsafe { libc::mmap(ptr::null_mut(), length_bytes, access, kind, -1, 0) };
    (memory != libc::MAP_FAILED).then_some(memory)
}

/// Returns memory from [`map`] of this length to the system.
fn unmap(memory: *mut libc::c_void, length_bytes: usize) {
    // SAFETY: `map` made the mapping, and the caller has the only pointer to it.
    let _ = unsafe { libc::munmap(memory, length_bytes) };
}
