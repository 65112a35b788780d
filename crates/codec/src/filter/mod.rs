//! Reversible byte transforms in front of a codec. Every filter keeps the length, works in place,
//! and is streaming-safe from the block's start: the first n raw bytes follow from the first
//! n + `lookahead_bytes` filtered bytes.

mod arm64;
pub(crate) mod candidates;
pub(crate) mod chain;
mod delta;
pub(crate) mod step;
mod x86;

pub use arm64::decode_at as arm64_decode_at;
