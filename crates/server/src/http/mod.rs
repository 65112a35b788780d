//! The HTTP handler: members and entries under their names, with ranges, directory pages, frames
//! under their hash, and the statistics.
//!
//! | file | what |
//! |---|---|
//! | `handler` | a connection from its first to its last request |
//! | `connection`, `reader` | bytes from and to a client, with time limits |
//! | `head`, `host`, `target`, `range`, `conditions`, `date` | what a request says |
//! | `visit`, `route` | which archive and which resource a path names |
//!
//! `exchange`
//! one request, and the forms of responses
//!
//! `answer`
//! dispatches a request to its answer
//! | `response`, `page`, `content`, `tar_permits` | heads, pages, ranges of bytes |
//! | `listing`, `directories` | pages of members and entries |
//!
//! `frames`, `metrics`, `internal`
//! everything below `/.refrain/`
//!
//! `content_type`
//! what a response says about its bytes
//!
//! HTTP/1.1 with one thread for each connection that is not idle: it waits for its client and for
//! the archive, and all share the decoding. httparse implements the grammar of heads.

mod answer;
mod answer_memory;
mod conditions;
mod connection;
mod content;
mod content_type;
mod date;
mod directories;
mod exchange;
mod frames;
mod handler;
mod head;
mod host;
mod internal;
mod listing;
mod metrics;
mod next_piece;
mod page;
mod range;
mod reader;
mod response;
mod route;
mod settings;
mod shared;
mod target;
mod tier_metrics;
mod visit;
mod working_archives;

#[cfg(any(test, feature = "property"))]
pub mod property;

pub use handler::HttpHandler;
pub use settings::HttpSettings;
