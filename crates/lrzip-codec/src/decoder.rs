//! The streaming decoder of one block.

use refrain_codec::Result;

use crate::codec::LrzipCodec;
use crate::stage::{Progress, Stage, damaged};
use crate::{filter, libraries, lzo, zpaq};

/// Opens one foreign block, from front to back.
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
    /// A decoder for a block of `raw_length_bytes`, which may not use more memory than `memory_bytes_max` where the data decides how much it needs.
    ///
    /// # Errors
    /// `Description` for properties that no library takes; `OutOfMemory`.
    pub fn new(
        codec: LrzipCodec,
        raw_length_bytes: u64,
        memory_bytes_max: u64,
    ) -> Result<LrzipDecoder> {
        let stage: Box<dyn Stage> = match codec {
            LrzipCodec::Stored => Box::new(Copy),
            LrzipCodec::Bzip2 => Box::new(libraries::Bzip2::new()),
            LrzipCodec::Zlib => Box::new(libraries::Zlib::new()),
            LrzipCodec::Lzma {
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
            LrzipCodec::Lzo => Box::new(lzo::decode::Lzo::new()),
            LrzipCodec::Zpaq => {
                Box::new(zpaq::decoder::Zpaq::new(raw_length_bytes, memory_bytes_max))
            }
        };
        Ok(LrzipDecoder {
            stage,
            codec,
            raw_length_bytes,
            produced_bytes: 0,
        })
    }

    /// Raw bytes that were made so far.
    #[must_use]
    pub fn produced_bytes(&self) -> u64 {
        self.produced_bytes
    }

    /// Takes coded bytes and fills `out` as far as they and the block reach. `is_last`: no more input will come.
    ///
    /// # Errors
    /// `Damaged` for bytes that the codec does not write, and when the input is over before the block is; `OutOfMemory`.
    pub fn step(&mut self, input: &[u8], is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let left = self.raw_length_bytes - self.produced_bytes;
        let wanted = usize::try_from(left).unwrap_or(out.len()).min(out.len());
        let out = &mut out[..wanted];
        if out.is_empty() {
            return Ok(Progress::default());
        }
        let progress = self.stage.step(input, is_last, out)?;
        self.produced_bytes += progress.produced_bytes as u64;
        let stands_still = progress == Progress::default();
        let all_taken =
            is_last && progress.consumed_bytes == input.len() && progress.produced_bytes == 0;
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

/// Bytes as they are.
struct Copy;

impl Stage for Copy {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let count = input.len().min(out.len());
        out[..count].copy_from_slice(&input[..count]);
        Ok(Progress {
            consumed_bytes: count,
            produced_bytes: count,
        })
    }
}
