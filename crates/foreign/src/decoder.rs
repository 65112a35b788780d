//! Decoders: a compressed file in, its content out, forward.

use std::io::{self, Read};

use crate::bzip2::Bzip2Decoder;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::gzip::GzipDecoder;
use crate::input::Input;
use crate::lz4::Lz4Decoder;
use crate::xz::XzDecoder;
use crate::zstd::ZstdDecoder;

/// What a decoder may use.
#[derive(Debug, Clone, Copy)]
pub struct Resources {
    /// Memory in bytes, for windows and dictionaries.
    pub memory_bytes: u64,
    /// Threads, at least 1. A library may start fewer.
    pub threads: usize,
}

/// Decodes a file from front to back, every stream, member or frame of it, and compares all
/// checksums that it has. After an error it must not be used any more.
pub trait Decoder: Send {
    /// Fills the beginning of `buffer` with the next content. Returns the number of bytes; 0 only
    /// at the end, or for an empty buffer.
    ///
    /// # Errors
    /// `Damaged`, `Truncated`, `Unsupported` and `Memory` for the file; `Io` of its reader.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize>;

    /// The bytes of the file that were decoded.
    fn offset(&self) -> u64;

    /// What a user should know although it is no failure, after the end.
    fn take_remark(&mut self) -> Option<String> {
        None
    }
}

/// A decoder for a file of this format.
///
/// # Errors
/// `Unsupported` for a format that holds files, not a sequence of bytes.
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
            return Err(Error::unsupported(0, "a zip file holds files, not a stream"));
        }
    })
}

/// A decoder as a reader. Its errors hold an [`Error`].
pub struct DecoderReader(pub Box<dyn Decoder>);

impl Read for DecoderReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error {
            Error::Io(error) => error,
            error => io::Error::new(io::ErrorKind::InvalidData, error),
        })
    }
}
