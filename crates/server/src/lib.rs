#![doc = include_str!("../README.md")]
//!
//! # Services
//!
//! All handlers share a [`Service`]: an archive, and the [`Statistics`] of requests; NBD and HTTP
//! also serve several [`Archives`] by name. Each handler is a module of its own and knows nothing
//! of the others. Handlers wait for clients and for the archive's bytes on threads of their own; a
//! silent client holds no thread. Decoding is a job of the pool of the process, in which clients
//! have equal shares.

#![forbid(unsafe_code)]

mod archive_counts;
mod archives;
mod block_source;
mod channel;
mod client_rules;
mod clients;
mod error;
mod etag;
#[cfg(any(test, feature = "property"))]
mod fixture;
pub mod fuse;
pub mod http;
mod listener;
pub mod nbd;
mod pace;
mod parking;
pub mod readahead;
mod reports;
pub mod scrub;
mod service;
mod share;
mod socket;
mod source_waits;
pub mod statistics;
mod threads;
mod time_limit;
mod tls;
pub mod trace;
pub mod tree;

pub use archives::{ArchiveFile, Archives, FileVersion, name_problem};
pub use block_source::{BlockSource, FileOfArchive};
pub use client_rules::ClientRule;
pub use clients::{Client, Clients, Handler};
pub use error::{Error, Result};
pub use listener::{Address, Listener, StopSignal};
pub use service::{Reporter, Service};
pub use socket::Socket;
pub use source_waits::SourceWaits;
pub use statistics::{Operation, Outcome, Statistics};
pub use tls::TlsSettings;
