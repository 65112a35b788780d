//! Which worker the calling thread is.
//!
//! `unsafe`: a thread-local pointer to the worker's own state, which lies on its stack. [`Local::enter`] sets it for the duration of a call
//! and takes it away again, also when unwinding; [`here`] hands out a reference for the duration of a closure on the same thread, which
//! lies inside that call. A thread-local value with a destructor, or an `Arc` in a `RefCell`, would cost every checkpoint and join a check
//! of its state.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::null;

use super::worker::Local;

thread_local! {
    static HERE: Cell<*const Local> = const { Cell::new(null()) };
}

struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        HERE.set(null());
    }
}

/// Runs `body` as the worker `local`.
pub(crate) fn enter<R>(local: &Local, body: impl FnOnce() -> R) -> R {
    HERE.set(local);
    let _leave = Leave;
    body()
}

/// Calls `body` with the worker that this thread is, if it is one.
#[inline(always)]
pub(crate) fn here<R>(body: impl FnOnce(Option<&Local>) -> R) -> R {
    let local = HERE.get();
    // SAFETY: either null, or set by an `enter` that this call lies inside of, which borrows the worker's state meanwhile.
    body(unsafe { local.as_ref() })
}
