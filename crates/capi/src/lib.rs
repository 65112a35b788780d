//! The C library of Refrain: `librefrain.so`, `librefrain.a`, and `include/refrain.h`, which a test
//! makes from these sources.
//!
//! The functions are in [`calls`], the types in [`types`] and the numbers in [`numbers`]. Behind
//! them is safe code: a handle is a number in a table (`handles`), and a stream is the engine on a
//! thread of its own, which lends the caller its buffers (`exchange`, `lent`, `stream`). What C may
//! do wrong ends in `boundary`.

mod archive;
mod boundary;
pub mod calls;
mod exchange;
mod failure;
mod files;
mod handles;
mod lent;
pub mod numbers;
mod open;
mod progress;
mod ranges;
mod restoring;
mod settings;
mod stream;
pub mod types;
