//! Reversible byte transforms applied before a codec. Every filter preserves the length, works in
//! place, and restores prefixes: the first n raw bytes depend only on the first n +
//! `lookahead_bytes` filtered bytes, for filters of plug-ins all of them.

mod arm64;
pub(crate) mod candidates;
pub(crate) mod chain;
mod delta;
pub(crate) mod expression;
mod instruction;
mod opcodes;
pub(crate) mod plugin;
pub(crate) mod step;
mod transpose;
mod x86;
mod x86_64;
mod xor;

pub use arm64::decode_at as arm64_decode_at;
pub(crate) use x86_64::Walk;
