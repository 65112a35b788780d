//! Files of other formats: gzip, xz, zstd, bzip2, lz4 and zip, and compressed tar streams.
//!
//! [`Dialect`](crate::Dialect) recognizes them; [`Archive`](crate::Archive),
//! [`extract`](crate::extract()) and [`verify`](crate::verify()) read them like archives with one
//! unnamed member. The limits of [`ReadOptions`] apply: memory for windows and dictionaries, and
//! the content limit for everything decoded, including what precedes a range.

use std::io::Read;

use crate::error::Result;
use crate::input::Input;
use crate::options::ReadOptions;
use crate::read::foreign::content::{Content, ContentReader};

pub use refrain_foreign::{Description, Format, ZipCounts};

/// The content of a compressed stream. The reader's errors contain an
/// [`Error`](crate::Error), which `Error::from` returns.
///
/// # Errors
/// `Damaged`, `Unsupported`, `Limit` and `Io` for the file.
pub fn unpacked(
    input: impl Into<Input>,
    format: Format,
    options: &ReadOptions,
) -> Result<Box<dyn Read + Send>> {
    let content = Content::open(input.into().into_feed(), format, options)?;
    Ok(Box::new(ContentReader(content)))
}
