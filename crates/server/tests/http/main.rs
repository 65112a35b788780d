//! The HTTP handler over sockets: its responses, and what clients can do to it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

mod clients;
mod content;
mod damage;
mod hostile;
mod internal;
mod pages;
mod support;
