//! What is passed to the body of a coroutine when it is entered: one word, so that it travels in a
//! register.
//!
//! `unsafe` here: a pointer to the waker of the entering code, which waits until the turn ends.
#![allow(unsafe_code)]

use std::ptr;
use std::task::Waker;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TurnStart {
    /// Null without a waker; [`REFUSED`].
    waker: *const Waker,
}

/// Not the address of a waker, since it is not aligned.
const REFUSED: *const Waker = ptr::without_provenance(1);

// SAFETY: it is a shared reference to a waker, and these are `Sync`.
unsafe impl Send for TurnStart {}

impl TurnStart {
    pub(super) const REFUSED: TurnStart = TurnStart { waker: REFUSED };

    /// Another turn. The waker remains where it is until the turn ends.
    #[inline]
    pub(super) fn with(waker: Option<&Waker>) -> TurnStart {
        TurnStart {
            waker: waker.map_or(ptr::null(), ptr::from_ref),
        }
    }

    #[inline]
    pub(super) fn is_refused(self) -> bool {
        self.waker == REFUSED
    }

    /// A copy of the waker.
    ///
    /// # Safety
    /// The turn that began with this entry has not ended, and it was not refused.
    pub(super) unsafe fn waker(self) -> Option<Waker> {
        // SAFETY: the entering code holds a reference to it during the turn.
        unsafe { self.waker.as_ref() }.cloned()
    }
}
