//! Encrypted archives: records around an archive, below everything that knows what an archive is.
//!
//! A writer gets an [`EnvelopeSink`](sink::EnvelopeSink), a reader the archive inside as a source
//! or a stream ([`open`]). Nothing else in the engine knows about encryption.

pub(crate) mod end;
pub mod keys;
pub(crate) mod open;
pub(crate) mod run_ending;
mod run_keys;
#[cfg(test)]
mod run_tests;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod state;
mod stream;
