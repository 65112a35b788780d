//! The decoder for each format.

use std::io::Read;

use crate::bzip2::Bzip2Decoder;
use crate::decoder::{Decoder, Resources};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::gzip::GzipDecoder;
use crate::input::Input;
use crate::lz4::Lz4Decoder;
use crate::xz::XzDecoder;
use crate::zstd::ZstdDecoder;

/// Returns a decoder for a file of this format.
///
/// # Errors
/// `Unsupported` for a format that holds files instead of a sequence of bytes.
pub fn decoder(
    format: Format,
    reader: Box<dyn Read + Send>,
    resources: Resources,
) -> Result<Box<dyn Decoder>> {
    let input = Input::new(reader);
    Ok(match format {
        Format::Gzip => Box::new(GzipDecoder::new(input)),
        Format::Xz => Box::new(XzDecoder::new(input, resources)),
        Format::Zstd => Box::new(ZstdDecoder::new(input, resources)),
        Format::Bzip2 => Box::new(Bzip2Decoder::new(input)),
        Format::Lz4 => Box::new(Lz4Decoder::new(input)),
        Format::Zip => {
            return Err(Error::unsupported(
                0,
                "a zip file holds files, not a stream",
            ));
        }
    })
}
