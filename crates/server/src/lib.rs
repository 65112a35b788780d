//! Serves an opened archive through several doors: NBD, HTTP, and a mounted file system.
//!
//! A [`Service`] is what all doors share: the archive, and the [`Statistics`] of what is asked of
//! it. Each door is a module of its own and knows nothing of the others. Doors wait for clients on
//! threads of their own, never on workers of a pool.

#![forbid(unsafe_code)]

mod error;
pub mod fuse;
mod service;
pub mod statistics;
pub mod tree;

pub use error::{Error, Result};
pub use service::Service;
pub use statistics::{Operation, Outcome, Statistics};
