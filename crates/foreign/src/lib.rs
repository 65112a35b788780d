#![doc = include_str!("../README.md")]
//!
//! # Functions
//!
//! [`Format::from_prefix`] recognizes a file by its first bytes. [`decoder`] reads one that holds a
//! sequence of bytes (gzip, xz, zstd, bzip2, lz4) from front to back, as the format's own program
//! does, and compares every checksum. Libraries decode; everything around their data (members,
//! streams, frames, padding, what follows the end) is read here, so that errors state their offset.
//!
//! Nothing here opens files or starts threads. liblzma starts as many as it is told.
//!
//! | module | contents |
//! |---|---|
//! | `format` | the formats: [`Format`] |
//! | `decoder` | [`Decoder`] and what it may use |
//! | `open` | the decoder for each format: [`decoder`] |
//! | `gzip`, `xz`, `zstd`, `bzip2`, `lz4` | one decoder each |
//! | `bzip2_blocks` | the blocks of bzip2 files, to be decoded in parallel |
//! | `zip` | [`ZipFile`]: entries and their content |
//! | `describe` | what a file states about itself: [`describe`](describe()) |
//! | `input` | the window over the compressed file |
//! | `error` | [`Error`] |

#![forbid(unsafe_code)]

mod bzip2;
mod bzip2_blocks;
mod decoder;
mod describe;
mod error;
mod format;
mod gzip;
mod input;
mod lz4;
mod open;
#[cfg(any(test, feature = "property"))]
pub mod property;
#[cfg(test)]
mod tests;
mod xz;
mod zip;
mod zstd;

pub use bzip2_blocks::{Block, BlockPart, BlockSplitter, StreamCheck};
pub use decoder::{Decoder, Resources};
pub use describe::{Bytes, Description, ZipCounts, describe};
pub use error::{Error, Result};
pub use format::Format;
pub use open::decoder;
pub use zip::{ZipEntry, ZipFile, ZipKind};
