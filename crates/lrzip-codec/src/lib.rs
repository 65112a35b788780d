#![doc = include_str!("../README.md")]
//!
//! # The end of a block
//!
//! Bytes after the last raw byte of a block are examined only on request
//! ([`LrzipDecoder::check_end`]), and only some back ends have checksums: the archives have their
//! own digests.

mod codec;
mod cpu;
mod decoder;
mod encoder;
mod filter;
mod libraries;
mod lzo;
#[cfg(any(test, feature = "property"))]
pub mod property;
mod stage;
mod zpaq;
mod zstd;

#[cfg(test)]
mod tests;

pub use codec::{HEADER_BYTES_MAX, LrzipCodec};
pub use decoder::LrzipDecoder;
pub use encoder::{LRZIP_LEVELS, LZMA_PROPERTIES, LrzipPlan, encode_lrzip_block};
pub use filter::{LrzipFilter, StreamFilter};
pub use stage::Progress;
