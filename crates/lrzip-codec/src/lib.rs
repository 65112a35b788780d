//! Encodes and decodes the blocks of lrzip's archives.
//!
//! Such blocks may be larger than memory, so [`LrzipDecoder`] decodes them as a stream: encoded
//! bytes in, raw bytes out, in chunks of any size. [`encode_lrzip_block`] encodes a block that is
//! in memory. The crate contains what only lrzip uses (LZO1X, ZPAQ and lrzip's filters), and drives
//! the libraries for bzip2, zlib, LZMA and Zstandard in the form in which lrzip stores them.
//!
//! Bytes after the last raw byte of a block are examined only on request
//! ([`LrzipDecoder::check_end`]), and only some back ends have checksums: the archives have their
//! own digests.
//!
//! Depends on `refrain-codec` for the ids of codecs, the error type and the ARM64 filter.

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
