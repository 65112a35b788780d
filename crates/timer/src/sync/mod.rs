//! Atomics, locks and threads that loom can replace, and a lock for very short critical sections.
//!
//! With `RUSTFLAGS="--cfg loom"` the same code runs under loom, which tries every interleaving that
//! the C11 memory model allows (Norris and Demsky, "CDSChecker", OOPSLA 2013). Concurrent code that
//! imports its primitives from here can be model-checked.

#[cfg(all(loom, test))]
mod models;
mod primitives;
mod short_lock;

pub use primitives::{Condvar, Mutex, MutexGuard, Padded, atomic, fence, lock, thread, wait};
pub use short_lock::{ShortGuard, ShortLock};
