//! Serves an opened archive through several handlers: NBD, HTTP, and a mounted file system.
//!
//! All handlers share a [`Service`]: the archive, and the [`Statistics`] of requests. Each handler
//! is a module of its own and knows nothing of the others. Handlers wait for clients on their own
//! threads, never on workers of a pool.

#![forbid(unsafe_code)]

mod block_source;
mod clients;
mod error;
pub mod fuse;
pub mod http;
mod listener;
pub mod nbd;
pub mod readahead;
mod service;
mod socket;
pub mod statistics;
pub mod trace;
pub mod tree;

pub use block_source::{BlockSource, FileOfArchive};
pub use clients::{Client, Clients, Handler};
pub use error::{Error, Result};
pub use listener::{Address, Listener, StopSignal};
pub use service::{Reporter, Service};
pub use socket::Socket;
pub use statistics::{Operation, Outcome, Statistics};
