//! The codecs, one file or directory each. `registry.rs` lists them.

pub(crate) mod bwt;
pub(crate) mod bzip2;
pub(crate) mod cm;
pub(crate) mod deflate;
pub(crate) mod lz;
pub(crate) mod lz4;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod lzma;
pub(crate) mod none;
pub(crate) mod ppmd;
mod stream_decoder;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod zstd;
