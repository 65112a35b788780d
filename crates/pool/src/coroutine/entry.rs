//! What passes from whoever enters a coroutine to its body.

use std::task::Waker;

/// What the one who enters passes in.
pub(super) struct Entry {
    pub(super) waker: Option<Waker>,
    /// The locks that the entering thread holds itself.
    pub(super) locks_held: u32,
}
