//! The streaming decoder of one block.

use refrain_codec::Result;

use crate::codec::LrzipCodec;
use crate::stage::{Progress, Stage, damaged};
use crate::{filter, libraries, lzo, zpaq, zstd};

/// Decodes one block from front to back.
pub struct LrzipDecoder {
    stage: Box<dyn Stage>,
    codec: LrzipCodec,
    raw_length_bytes: u64,
    produced_bytes: u64,
}

impl std::fmt::Debug for LrzipDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LrzipDecoder")
            .field("codec", &self.codec)
            .field("raw_length_bytes", &self.raw_length_bytes)
            .field("produced_bytes", &self.produced_bytes)
            .finish_non_exhaustive()
    }
}

impl LrzipDecoder {
    /// Creates a decoder for a block of `raw_length_bytes`. For encodings that state the memory of
    /// their decoder (ZPAQ, Zstandard), the decoder refuses to use more than `memory_bytes_max`.
    ///
    /// # Errors
    /// `Description` for properties that the library does not accept; `OutOfMemory`.
    pub fn new(
        codec: LrzipCodec,
        raw_length_bytes: u64,
        memory_bytes_max: u64,
    ) -> Result<LrzipDecoder> {
        let stage: Box<dyn Stage> = match codec {
            LrzipCodec::Stored => Box::new(StoredStage),
            LrzipCodec::Bzip2 => Box::new(libraries::Bzip2Stage::new()),
            LrzipCodec::Zlib => Box::new(libraries::ZlibStage::new()),
            LrzipCodec::Lzma {
                properties,
                dictionary_bytes,
                filter,
            } => {
                let lzma = libraries::LzmaStage::new(properties, dictionary_bytes)?;
                match filter {
                    None => Box::new(lzma),
                    Some(filter) => {
                        Box::new(filter::FilteredStage::new(lzma, filter, raw_length_bytes))
                    }
                }
            }
            LrzipCodec::Lzo => Box::new(lzo::decode::LzoStage::new()),
            LrzipCodec::Zpaq => Box::new(zpaq::decoder::ZpaqStage::new(
                raw_length_bytes,
                memory_bytes_max,
            )),
            LrzipCodec::Zstd => Box::new(zstd::ZstdStage::new(memory_bytes_max)?),
        };
        Ok(LrzipDecoder {
            stage,
            codec,
            raw_length_bytes,
            produced_bytes: 0,
        })
    }

    /// Returns the number of raw bytes produced so far.
    #[must_use]
    pub fn produced_bytes(&self) -> u64 {
        self.produced_bytes
    }

    /// Consumes encoded bytes and fills `out`, until either or the block is used up. `is_last`
    /// states that no input follows.
    ///
    /// # Errors
    /// `Damaged` for invalid bytes, and if the input ends before the block does; `OutOfMemory`.
    pub fn step(&mut self, input: &[u8], is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let remaining = self.raw_length_bytes - self.produced_bytes;
        let count = usize::try_from(remaining)
            .unwrap_or(out.len())
            .min(out.len());
        let out = &mut out[..count];
        if out.is_empty() {
            return Ok(Progress::default());
        }
        let progress = self.stage.step(input, is_last, out)?;
        self.produced_bytes += progress.produced_bytes as u64;
        let makes_no_progress = progress == Progress::default();
        let is_exhausted =
            is_last && progress.consumed_bytes == input.len() && progress.produced_bytes == 0;
        // A stage that makes no progress with input and space available has reached the end of its
        // stream.
        if (makes_no_progress && (is_last || !input.is_empty())) || is_exhausted {
            return Err(damaged(
                self.codec.id(),
                "the data ends before the block does",
            ));
        }
        Ok(progress)
    }
}

impl LrzipDecoder {
    /// Returns whether the checksum of the block was compared.
    #[must_use]
    pub fn has_checked_end(&self) -> bool {
        self.stage.has_ended()
    }

    /// Examines what follows the last raw byte of a block that has a checksum
    /// ([`LrzipCodec::has_checksum`]): its end, and the checksum. Call it after all raw bytes were
    /// produced, until [`LrzipDecoder::has_checked_end`]. Returns the number of bytes consumed.
    ///
    /// # Errors
    /// `Damaged` if the checksum differs, the block has more raw bytes, or the input ends before
    /// the block does.
    pub fn check_end(&mut self, input: &[u8], is_last: bool) -> Result<usize> {
        if self.stage.has_ended() {
            return Ok(0);
        }
        let mut beyond = [0];
        let progress = self.stage.step(input, is_last, &mut beyond)?;
        let cause = match progress.produced_bytes {
            0 if self.stage.has_ended() || progress.consumed_bytes > 0 => {
                return Ok(progress.consumed_bytes);
            }
            0 if !is_last && input.is_empty() => return Ok(0),
            0 => "the data ends before its checksum",
            _ => "the data is longer than the block",
        };
        Err(damaged(self.codec.id(), cause))
    }
}

struct StoredStage;

impl Stage for StoredStage {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let count = input.len().min(out.len());
        out[..count].copy_from_slice(&input[..count]);
        Ok(Progress {
            consumed_bytes: count,
            produced_bytes: count,
        })
    }
}
