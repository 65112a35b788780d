//! Blocks of Zstandard: one frame (RFC 8878) that states its window.

use refrain_codec::{CodecId, Error, Result};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use crate::stage::{Progress, Stage, damaged};

const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// The memory of a decoder besides the window: two blocks of 128 KiB, tables, and margins.
const SPARE_BYTES: u64 = 512 << 10;

/// The smallest and the largest window that the library accepts, as logarithms.
const WINDOW_LOG_MIN: u32 = 10;
const WINDOW_LOG_MAX: u32 = 31;

/// Returns the memory of the decoder of a frame that begins with `start`: its window, or all of its
/// content.
pub(crate) fn memory_bytes(start: &[u8]) -> Result<u64> {
    let window = window_bytes(start).ok_or_else(|| damaged(CodecId::ZSTD, "not a zstd frame"))?;
    Ok(window.saturating_add(SPARE_BYTES))
}

fn window_bytes(start: &[u8]) -> Option<u64> {
    let frame = start.strip_prefix(&MAGIC)?;
    let (&descriptor, frame) = frame.split_first()?;
    if descriptor & 0x20 == 0 {
        // A window: 2^(10 + exponent), plus as many eighths of it as the mantissa states.
        let window = *frame.first()?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // No window: the length of the content, after the id of a dictionary.
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let (length_bytes, offset) = match descriptor >> 6 {
        0 => (1, 0),
        1 => (2, 256),
        2 => (4, 0),
        _ => (8, 0),
    };
    let length = frame.get(dictionary_bytes..)?.get(..length_bytes)?;
    let number = length
        .iter()
        .rev()
        .fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    number.checked_add(offset)
}

pub(crate) struct ZstdStage {
    context: DCtx<'static>,
    has_ended: bool,
}

/// `ZSTD_error_memory_allocation` (zstd_errors.h, whose numbers below 100 are fixed), as functions
/// return it.
const MEMORY_REFUSED: zstd_safe::ErrorCode = 64_usize.wrapping_neg();

const OUT_OF_MEMORY: Error = Error::OutOfMemory {
    codec: CodecId::ZSTD,
    wanted_bytes: SPARE_BYTES,
};

impl ZstdStage {
    /// The library refuses frames whose window is larger than `memory_bytes_max`, rounded up to a
    /// power of two.
    pub(crate) fn new(memory_bytes_max: u64) -> Result<ZstdStage> {
        let mut context = DCtx::try_create().ok_or(OUT_OF_MEMORY)?;
        let window_log_max = memory_bytes_max
            .checked_next_power_of_two()
            .map_or(WINDOW_LOG_MAX, u64::ilog2)
            .clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX);
        context
            .set_parameter(DParameter::WindowLogMax(window_log_max))
            .map_err(|_| Error::Description {
                field: "zstd window",
                value: u64::from(window_log_max),
            })?;
        Ok(ZstdStage {
            context,
            has_ended: false,
        })
    }
}

impl Stage for ZstdStage {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        if self.has_ended {
            return Ok(Progress::default());
        }
        let mut output = OutBuffer::around(out);
        let mut input = InBuffer::around(input);
        let left = self.context.decompress_stream(&mut output, &mut input);
        let left = left.map_err(|code| match code {
            MEMORY_REFUSED => OUT_OF_MEMORY,
            _ => damaged(
                CodecId::ZSTD,
                "not a zstd frame, its window is too large, or its checksum differs",
            ),
        })?;
        self.has_ended = left == 0;
        Ok(Progress {
            consumed_bytes: input.pos(),
            produced_bytes: output.pos(),
        })
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_state_their_window() {
        let of = |header: &[u8]| window_bytes(&[&MAGIC[..], header].concat());
        assert_eq!(of(&[0x00, 0x00]), Some(1 << 10));
        assert_eq!(of(&[0x00, 0x8F]), Some((1 << 27) + 7 * (1 << 24)));
        assert_eq!(of(&[0x84, 0xF8, 1, 2, 3, 4]), Some(1 << 41));
        assert_eq!(of(&[0x20, 200]), Some(200));
        assert_eq!(of(&[0x60, 1, 0]), Some(257));
        assert_eq!(of(&[0xA0, 1, 2, 0, 0]), Some(513));
        assert_eq!(of(&[0xE1, 99, 1, 0, 0, 0, 0, 0, 0, 1]), Some((1 << 56) + 1));
        assert_eq!(of(&[0xA3, 9, 9, 9, 9, 7, 0, 0, 0]), Some(7));
        for short in [&[][..], &[0x00], &[0xA0, 1, 2, 0]] {
            assert_eq!(of(short), None);
        }
        assert_eq!(window_bytes(b"LRZI0000"), None);
    }
}
