//! The atomics, locks and threads of the concurrent parts: the standard library's, or loom's.
//!
//! With `RUSTFLAGS="--cfg loom"` the same code runs in loom, which tries every interleaving that the C11 memory
//! model allows (Norris and Demsky, "CDSChecker", OOPSLA 2013). What is imported from here can be modelled.

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard, atomic};

#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

/// A value alone on its cache lines: two of 64 bytes, since processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
