#![cfg(feature = "lrzip")]
//! Shared by reading and writing lrzip archives.

pub(crate) mod keys;
