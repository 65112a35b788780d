//! Files of other formats: recognised, decoded and described.
//!
//! [`Format::of_prefix`] recognises a file by its first bytes. [`decoder`] reads one that holds a
//! sequence of bytes (gzip, xz, zstd, bzip2, lz4) from front to back, as the format's own program
//! reads it, and compares every checksum. Libraries decode; what is around their data (members,
//! streams, frames, padding, what follows the end) is read here, so that an error states its
//! offset.
//!
//! Nothing here opens files or starts threads. liblzma starts as many as it is told.
//!
//! | module | contents |
//! |---|---|
//! | `format` | the formats: [`Format`] |
//! | `decoder` | [`Decoder`] and what it may use |
//! | `gzip`, `xz`, `zstd`, `bzip2`, `lz4` | one decoder each |
//! | `input` | the window over the compressed file |
//! | `error` | [`Error`] |

#![forbid(unsafe_code)]

mod bzip2;
mod decoder;
mod error;
mod format;
mod gzip;
mod input;
mod lz4;
mod xz;
mod zstd;

pub use decoder::{Decoder, DecoderReader, Resources, decoder};
pub use error::{Error, Result};
pub use format::Format;
