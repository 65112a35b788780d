//! The atomics and threads of the standard library or of loom.

#[cfg(loom)]
pub use loom::{
    sync::{atomic, atomic::fence},
    thread,
};

#[cfg(not(loom))]
pub use std::{
    sync::{atomic, atomic::fence},
    thread,
};

/// A value on its own cache lines: two lines of 64 bytes, because processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
