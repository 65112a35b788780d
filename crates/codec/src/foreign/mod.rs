//! Decoders of blocks that other programs wrote, as streams: input in pieces, output in pieces.
//!
//! Such blocks may be larger than memory, so unlike [`decode`](crate::decode) nothing here wants all of a block at once. Nothing
//! here says that the data is intact either: bytes behind the last raw one are not looked at, and the archives around
//! these blocks have digests of their own.

mod encode;
mod filter;
mod libraries;
mod lzo;
mod lzo_encode;
mod zpaq;

use crate::error::{Error, Result};
use crate::id::CodecId;

pub use encode::{FOREIGN_LEVELS, ForeignPlan, LZMA_PROPERTIES, encode_foreign};
pub use filter::{ForeignFilter, StreamFilter};

/// How a foreign block was coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignCodec {
    /// The bytes as they are.
    Stored,
    /// One bzip2 stream.
    Bzip2,
    /// One zlib stream (RFC 1950).
    Zlib,
    /// LZMA without a header; it may have an end marker.
    Lzma {
        /// `(pb * 5 + lp) * 9 + lc`.
        properties: u8,
        /// Bytes of the dictionary.
        dictionary_bytes: u32,
        /// What was done to the bytes before.
        filter: Option<ForeignFilter>,
    },
    /// LZO1X with its end marker.
    Lzo,
    /// ZPAQ blocks, with or without locator tags.
    Zpaq,
}

impl ForeignCodec {
    /// Our number of the codec.
    #[must_use]
    pub fn id(self) -> CodecId {
        match self {
            Self::Stored => CodecId::NONE,
            Self::Bzip2 => CodecId::BZIP2,
            Self::Zlib => CodecId::DEFLATE,
            Self::Lzma { .. } => CodecId::LZMA,
            Self::Lzo => CodecId::LZO,
            Self::Zpaq => CodecId::ZPAQ,
        }
    }

    /// Working memory of a decoder in bytes. `head` is the beginning of the coded bytes, [`HEAD_BYTES`] of them if there are so many:
    /// some codecs say only there what they need.
    ///
    /// # Errors
    /// `Damaged` when the beginning makes no sense.
    pub fn memory_bytes(self, head: &[u8]) -> Result<u64> {
        Ok(match self {
            Self::Stored => 0,
            Self::Bzip2 => 4 << 20,
            Self::Zlib | Self::Lzo => 128 << 10,
            Self::Lzma {
                dictionary_bytes, ..
            } => u64::from(dictionary_bytes) + (256 << 10),
            Self::Zpaq => zpaq::memory_bytes(head)?,
        })
    }
}

/// Coded bytes that tell how much memory a decoder needs: the longest header of a ZPAQ block and its tag.
pub const HEAD_BYTES: usize = (64 << 10) + 32;

/// What one step took and made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Coded bytes taken.
    pub taken_bytes: usize,
    /// Raw bytes made.
    pub made_bytes: usize,
}

/// A part of a decoder: coded bytes in, raw bytes out.
trait Stage: Send {
    /// Takes coded bytes and fills `out` as far as they reach. `is_last`: no more will come. Making nothing while
    /// taking nothing means that it waits for more input, or that the stream has ended.
    fn step(&mut self, input: &[u8], is_last: bool, out: &mut [u8]) -> Result<Progress>;
}

/// Opens one foreign block, from front to back.
pub struct ForeignDecoder {
    stage: Box<dyn Stage>,
    codec: ForeignCodec,
    raw_length_bytes: u64,
    made_bytes: u64,
}

impl std::fmt::Debug for ForeignDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForeignDecoder")
            .field("codec", &self.codec)
            .field("raw_length_bytes", &self.raw_length_bytes)
            .field("made_bytes", &self.made_bytes)
            .finish_non_exhaustive()
    }
}

impl ForeignDecoder {
    /// A decoder for a block of `raw_length_bytes`, which may not use more memory than `memory_bytes_max` where the data decides how much it needs.
    ///
    /// # Errors
    /// `Description` for properties that no library takes; `OutOfMemory`.
    pub fn new(
        codec: ForeignCodec,
        raw_length_bytes: u64,
        memory_bytes_max: u64,
    ) -> Result<ForeignDecoder> {
        let stage: Box<dyn Stage> = match codec {
            ForeignCodec::Stored => Box::new(Copy),
            ForeignCodec::Bzip2 => Box::new(libraries::Bzip2::new()),
            ForeignCodec::Zlib => Box::new(libraries::Zlib::new()),
            ForeignCodec::Lzma {
                properties,
                dictionary_bytes,
                filter,
            } => {
                let lzma = libraries::Lzma::new(properties, dictionary_bytes)?;
                match filter {
                    None => Box::new(lzma),
                    Some(filter) => Box::new(filter::Filtered::new(lzma, filter, raw_length_bytes)),
                }
            }
            ForeignCodec::Lzo => Box::new(lzo::Lzo::new()),
            ForeignCodec::Zpaq => Box::new(zpaq::Zpaq::new(raw_length_bytes, memory_bytes_max)),
        };
        Ok(ForeignDecoder {
            stage,
            codec,
            raw_length_bytes,
            made_bytes: 0,
        })
    }

    /// Raw bytes that were made so far.
    #[must_use]
    pub fn made_bytes(&self) -> u64 {
        self.made_bytes
    }

    /// Takes coded bytes and fills `out` as far as they and the block reach. `is_last`: no more input will come.
    ///
    /// # Errors
    /// `Damaged` for bytes that the codec does not write, and when the input is over before the block is; `OutOfMemory`.
    pub fn step(&mut self, input: &[u8], is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let left = self.raw_length_bytes - self.made_bytes;
        let wanted = usize::try_from(left).unwrap_or(out.len()).min(out.len());
        let out = &mut out[..wanted];
        if out.is_empty() {
            return Ok(Progress::default());
        }
        let progress = self.stage.step(input, is_last, out)?;
        self.made_bytes += progress.made_bytes as u64;
        let stands_still = progress == Progress::default();
        let all_taken = is_last && progress.taken_bytes == input.len() && progress.made_bytes == 0;
        // Who neither takes nor makes anything with input and room will not do so later: the stream ended early.
        if (stands_still && (is_last || !input.is_empty())) || all_taken {
            return Err(damaged(
                self.codec.id(),
                "the data ends before the block does",
            ));
        }
        Ok(progress)
    }
}

fn damaged(codec: CodecId, cause: &'static str) -> Error {
    Error::Damaged { codec, cause }
}

/// Bytes as they are.
struct Copy;

impl Stage for Copy {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let count = input.len().min(out.len());
        out[..count].copy_from_slice(&input[..count]);
        Ok(Progress {
            taken_bytes: count,
            made_bytes: count,
        })
    }
}

#[cfg(any(test, feature = "property"))]
pub mod property;

#[cfg(test)]
mod tests;
