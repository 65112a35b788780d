//! The inverse filters as streams: branch converters and delta.
//!
//! The x86 converter is the one of 7z and xz ("BCJ" of the LZMA SDK), which keeps track of skipped
//! opcodes. The x86 filter of `refrain-codec` is simpler and has a different format.

use crate::stage::{Progress, Stage, damaged};
use refrain_codec::CodecId;
use refrain_codec::Result;
use refrain_codec::arm64_decode_at;

/// A filter that was applied before compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LrzipFilter {
    /// The targets of x86 calls and jumps were made absolute.
    X86,
    /// The targets of ARM64 branches and the pages of addresses were made absolute.
    Arm64,
    /// From each byte, the one `distance_bytes` before it was subtracted.
    Delta {
        /// 1 to 255.
        distance_bytes: u8,
    },
}

impl std::fmt::Display for LrzipFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::X86 => f.write_str("x86"),
            Self::Arm64 => f.write_str("arm64"),
            Self::Delta { distance_bytes } => write!(f, "delta:{distance_bytes}"),
        }
    }
}

/// Inverts a filter, from front to back.
#[derive(Debug, Clone)]
pub struct StreamFilter {
    filter: LrzipFilter,
    position: u32,
    x86: X86Decoder,
    delta: [u8; 256],
}

impl StreamFilter {
    /// Starts at the beginning of the filtered bytes.
    #[must_use]
    pub fn new(filter: LrzipFilter) -> StreamFilter {
        StreamFilter {
            filter,
            position: 0,
            x86: X86Decoder::default(),
            delta: [0; 256],
        }
    }

    /// Inverts the filter from the beginning of `bytes` and returns the number of final bytes. The
    /// caller passes the rest, a few bytes, again before the bytes that follow. At the end of the
    /// data the rest is final, unchanged.
    pub fn apply(&mut self, bytes: &mut [u8]) -> usize {
        let done = match self.filter {
            LrzipFilter::X86 => self.x86.decode(self.position, bytes),
            LrzipFilter::Arm64 => arm64_decode_at(bytes, self.position),
            LrzipFilter::Delta { distance_bytes } => {
                self.undo_delta(distance_bytes, bytes);
                bytes.len()
            }
        };
        self.position = self.position.wrapping_add(done as u32);
        done
    }

    fn undo_delta(&mut self, distance_bytes: u8, bytes: &mut [u8]) {
        let mut position = self.position as u8;
        for byte in bytes {
            let before = self.delta[usize::from(position.wrapping_sub(distance_bytes))];
            *byte = byte.wrapping_add(before);
            self.delta[usize::from(position)] = *byte;
            position = position.wrapping_add(1);
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct X86Decoder {
    /// Which of the last bytes were skipped opcodes. Bit 4 is set if the top byte of the last
    /// operand was plausible.
    mask: u32,
    /// The position of the last opcode.
    opcode_position: u32,
}

impl Default for X86Decoder {
    fn default() -> X86Decoder {
        X86Decoder {
            mask: 0,
            opcode_position: 0u32.wrapping_sub(INSTRUCTION_BYTES),
        }
    }
}

const INSTRUCTION_BYTES: u32 = 5;

/// Whether an instruction may be converted, indexed by the opcodes among the three preceding bytes.
const MAY_CONVERT: [bool; 8] = [true, true, true, false, true, false, false, false];

/// The number of operand bytes that overlap a skipped instruction, indexed by the mask.
const SHARED_BYTES: [u32; 8] = [0, 1, 2, 2, 3, 3, 3, 3];

impl X86Decoder {
    fn decode(&mut self, position: u32, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        if position.wrapping_sub(self.opcode_position) > INSTRUCTION_BYTES {
            self.opcode_position = position.wrapping_sub(INSTRUCTION_BYTES);
        }
        while let Some(instruction) = bytes.get_mut(at..at + INSTRUCTION_BYTES as usize) {
            let [opcode, operand @ ..] = instruction else {
                break;
            };
            if *opcode & 0xFE != 0xE8 {
                at += 1;
                continue;
            }
            let here = position.wrapping_add(at as u32);
            self.advance_to(here);
            let is_plausible = is_sign(operand[3]);
            let history = self.mask >> 1;
            if is_plausible && history < 0x10 && MAY_CONVERT[(history & 7) as usize] {
                let value = operand.try_into().map_or(0, u32::from_le_bytes);
                let value = self.relative(value, here.wrapping_add(INSTRUCTION_BYTES));
                // The value has 25 bits; the highest one is extended over the top byte.
                let top = if value & 1 << 24 == 0 { 0 } else { 0xFF << 24 };
                operand.copy_from_slice(&(value & 0x00FF_FFFF | top).to_le_bytes());
                at += INSTRUCTION_BYTES as usize;
                self.mask = 0;
            } else {
                at += 1;
                self.mask |= 1 | if is_plausible { 0x10 } else { 0 };
            }
        }
        at
    }

    fn advance_to(&mut self, here: u32) {
        let distance = here.wrapping_sub(self.opcode_position);
        self.opcode_position = here;
        self.mask = match distance {
            0..=INSTRUCTION_BYTES => (0..distance).fold(self.mask, |mask, _| (mask & 0x77) << 1),
            _ => 0,
        };
    }

    /// Converts an operand back to be relative to `next`. The bytes that overlap a skipped
    /// instruction must not look like a target, because the encoder would have inverted them.
    fn relative(&self, mut value: u32, next: u32) -> u32 {
        loop {
            let relative = value.wrapping_sub(next);
            if self.mask == 0 {
                return relative;
            }
            let shared = 8 * SHARED_BYTES[(self.mask >> 1 & 7) as usize];
            if !is_sign((relative >> (24 - shared)) as u8) {
                return relative;
            }
            value = relative ^ (u32::MAX >> shared);
        }
    }
}

/// Whether this is the top byte of a plausible target.
fn is_sign(byte: u8) -> bool {
    byte == 0 || byte == 0xFF
}

pub(crate) struct FilteredStage<S> {
    stage: S,
    filter: StreamFilter,
    /// The output of the stage: `ready` filtered bytes, of which `delivered` have been returned,
    /// then unfiltered bytes.
    buffer: Vec<u8>,
    delivered: usize,
    ready: usize,
    remaining_bytes: u64,
}

const BUFFER_BYTES: usize = 64 << 10;

impl<S: Stage> FilteredStage<S> {
    pub(crate) fn new(stage: S, filter: LrzipFilter, raw_length_bytes: u64) -> FilteredStage<S> {
        FilteredStage {
            stage,
            filter: StreamFilter::new(filter),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            delivered: 0,
            ready: 0,
            remaining_bytes: raw_length_bytes,
        }
    }
}

impl<S: Stage> Stage for FilteredStage<S> {
    fn step(&mut self, input: &[u8], is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let mut progress = Progress::default();
        loop {
            let count = (self.ready - self.delivered).min(out.len() - progress.produced_bytes);
            let (from, to) = (self.delivered, progress.produced_bytes);
            out[to..to + count].copy_from_slice(&self.buffer[from..from + count]);
            self.delivered += count;
            progress.produced_bytes += count;
            if self.delivered < self.ready || progress.produced_bytes == out.len() {
                return Ok(progress);
            }
            self.buffer.drain(..self.ready);
            let before = self.buffer.len();
            let room = (BUFFER_BYTES - before)
                .min(usize::try_from(self.remaining_bytes).unwrap_or(BUFFER_BYTES));
            self.buffer.resize(before + room, 0);
            let rest = &input[progress.consumed_bytes..];
            let step = self.stage.step(rest, is_last, &mut self.buffer[before..])?;
            self.buffer.truncate(before + step.produced_bytes);
            progress.consumed_bytes += step.consumed_bytes;
            self.remaining_bytes -= step.produced_bytes as u64;
            (self.delivered, self.ready) = (0, self.filter.apply(&mut self.buffer));
            if self.remaining_bytes == 0 {
                self.ready = self.buffer.len();
            }
            if self.ready == 0 && step == Progress::default() {
                if self.remaining_bytes == 0 {
                    return Err(damaged(CodecId::LZMA, "no bytes are left"));
                }
                return Ok(progress);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use liblzma::stream::{Action, Filters, LzmaOptions, Status, Stream};
    use refrain_codec::property::{random_bytes, x86_code};

    /// Returns the output of one of liblzma's filters: compresses `raw` with the filter and
    /// decompresses the result without it.
    fn filtered_by_liblzma(raw: &[u8], add: impl Fn(&mut Filters)) -> Vec<u8> {
        let mut options = LzmaOptions::new_preset(0).unwrap();
        options.dict_size(1 << 20);
        let run = |mut stream: Stream, input: &[u8]| {
            let mut out = Vec::with_capacity(raw.len() * 2 + 1000);
            loop {
                let consumed = stream.total_in() as usize;
                let status = stream.process_vec(&input[consumed..], &mut out, Action::Finish);
                if status.unwrap() == Status::StreamEnd {
                    return out;
                }
            }
        };
        let (mut both, mut plain) = (Filters::new(), Filters::new());
        add(&mut both);
        both.lzma2(&options);
        plain.lzma2(&options);
        let compressed = run(Stream::new_raw_encoder(&both).unwrap(), raw);
        run(Stream::new_raw_decoder(&plain).unwrap(), &compressed)
    }

    fn inverted_in_chunks(filter: LrzipFilter, filtered: &[u8], chunk: usize) -> Vec<u8> {
        let mut stream = StreamFilter::new(filter);
        let (mut buffer, mut out) = (Vec::new(), Vec::new());
        for part in filtered.chunks(chunk) {
            buffer.extend_from_slice(part);
            let done = stream.apply(&mut buffer);
            out.extend(buffer.drain(..done));
        }
        out.extend(buffer);
        out
    }

    /// Returns bytes dense in opcodes and plausible operands, in which conversions overlap.
    fn dense_opcodes() -> Vec<u8> {
        let alphabet = [0xE8, 0xE9, 0x00, 0xFF, 0x01, 0x94, 0x90, 0xB0];
        let random_bytes = random_bytes(300_000, 5);
        random_bytes
            .iter()
            .map(|&random| alphabet[usize::from(random & 7)])
            .collect()
    }

    #[test]
    fn inverts_liblzmas_filters_in_chunks_of_any_size() {
        for raw in [
            dense_opcodes(),
            x86_code(200_000, 1),
            random_bytes(100_003, 2),
        ] {
            let cases: [(LrzipFilter, Vec<u8>); 3] = [
                (
                    LrzipFilter::X86,
                    filtered_by_liblzma(&raw, |filters| {
                        filters.x86();
                    }),
                ),
                (
                    LrzipFilter::Arm64,
                    filtered_by_liblzma(&raw, |filters| {
                        filters.arm64();
                    }),
                ),
                (
                    LrzipFilter::Delta { distance_bytes: 4 },
                    filtered_by_liblzma(&raw, |filters| {
                        filters.delta_properties(&[3]).unwrap();
                    }),
                ),
            ];
            for (filter, filtered) in cases {
                assert!(filtered != raw, "{filter}: the filter changes nothing");
                for chunk in [1, 7, 4096, raw.len()] {
                    assert!(
                        inverted_in_chunks(filter, &filtered, chunk) == raw,
                        "{filter} in {chunk}"
                    );
                }
            }
        }
    }
}
