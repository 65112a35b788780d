//! Filters of foreign blocks, as streams: branch converters and delta.
//!
//! The x86 converter is the one of 7z and xz (the LZMA SDK's "BCJ"), which keeps track of opcodes that it passed; ours in
//! `filter/x86.rs` is a simpler one and does not know its output.

use crate::stage::{Progress, Stage, damaged};
use refrain_codec::CodecId;
use refrain_codec::Result;
use refrain_codec::arm64_decode_at;

/// What was done to bytes before they were squeezed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LrzipFilter {
    /// Targets of x86 calls and jumps made absolute.
    X86,
    /// Targets of ARM64 branches and pages of addresses made absolute.
    Arm64,
    /// Each byte less the one so many bytes before.
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

/// Takes a filter back, from front to back.
#[derive(Debug, Clone)]
pub struct StreamFilter {
    filter: LrzipFilter,
    position: u32,
    x86: X86,
    delta: [u8; 256],
}

impl StreamFilter {
    /// At the beginning of the filtered bytes.
    #[must_use]
    pub fn new(filter: LrzipFilter) -> StreamFilter {
        StreamFilter {
            filter,
            position: 0,
            x86: X86::default(),
            delta: [0; 256],
        }
    }

    /// Takes the filter back from the beginning of `bytes`, and returns how many are done. The rest, a few bytes, belongs
    /// before what comes next; at the end of all bytes it stays as it is.
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

/// The state of the x86 converter between two pieces.
#[derive(Debug, Clone, Copy)]
struct X86 {
    /// Which of the last bytes were opcodes that were passed, and bit 4: the top byte of the last one was plausible.
    mask: u32,
    /// Where the last opcode was.
    opcode_at: u32,
}

impl Default for X86 {
    fn default() -> X86 {
        X86 {
            mask: 0,
            opcode_at: 0u32.wrapping_sub(INSTRUCTION_BYTES),
        }
    }
}

/// Opcode and operand.
const INSTRUCTION_BYTES: u32 = 5;

/// By the opcodes among the three bytes before: whether this one may be converted.
const MAY_CONVERT: [bool; 8] = [true, true, true, false, true, false, false, false];

/// By the mask: how many bytes of the operand belong to an instruction that was passed.
const SHARED_BYTES: [u32; 8] = [0, 1, 2, 2, 3, 3, 3, 3];

impl X86 {
    fn decode(&mut self, position: u32, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        if position.wrapping_sub(self.opcode_at) > INSTRUCTION_BYTES {
            self.opcode_at = position.wrapping_sub(INSTRUCTION_BYTES);
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
            self.pass_to(here);
            let is_plausible = is_sign(operand[3]);
            let history = self.mask >> 1;
            if is_plausible && history < 0x10 && MAY_CONVERT[(history & 7) as usize] {
                let value = operand.try_into().map_or(0, u32::from_le_bytes);
                let value = self.relative(value, here.wrapping_add(INSTRUCTION_BYTES));
                // 25 bits; the highest of them fills the top byte.
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

    /// Moves on to the opcode at `here`.
    fn pass_to(&mut self, here: u32) {
        let passed = here.wrapping_sub(self.opcode_at);
        self.opcode_at = here;
        self.mask = match passed {
            0..=INSTRUCTION_BYTES => (0..passed).fold(self.mask, |mask, _| (mask & 0x77) << 1),
            _ => 0,
        };
    }

    /// The operand, relative to `next` again. Bytes shared with an instruction that was passed must not look like a target, or the
    /// encoder would have turned them.
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

/// The top byte of a plausible target.
fn is_sign(byte: u8) -> bool {
    byte == 0 || byte == 0xFF
}

/// A stage with a filter behind it.
pub(crate) struct Filtered<S> {
    stage: S,
    filter: StreamFilter,
    /// Raw bytes: first those that are filtered and wait, then those that are not filtered yet.
    held: Vec<u8>,
    /// Of the former, how many were given and how many there are.
    given: usize,
    ready: usize,
    left_bytes: u64,
}

/// Bytes that are taken from the stage at a time.
const HELD_BYTES: usize = 64 << 10;

impl<S: Stage> Filtered<S> {
    pub(crate) fn new(stage: S, filter: LrzipFilter, raw_length_bytes: u64) -> Filtered<S> {
        Filtered {
            stage,
            filter: StreamFilter::new(filter),
            held: Vec::with_capacity(HELD_BYTES),
            given: 0,
            ready: 0,
            left_bytes: raw_length_bytes,
        }
    }
}

impl<S: Stage> Stage for Filtered<S> {
    fn step(&mut self, input: &[u8], is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let mut progress = Progress::default();
        loop {
            let count = (self.ready - self.given).min(out.len() - progress.produced_bytes);
            let (from, to) = (self.given, progress.produced_bytes);
            out[to..to + count].copy_from_slice(&self.held[from..from + count]);
            self.given += count;
            progress.produced_bytes += count;
            if self.given < self.ready || progress.produced_bytes == out.len() {
                return Ok(progress);
            }
            self.held.drain(..self.ready);
            let before = self.held.len();
            let room =
                (HELD_BYTES - before).min(usize::try_from(self.left_bytes).unwrap_or(HELD_BYTES));
            self.held.resize(before + room, 0);
            let rest = &input[progress.consumed_bytes..];
            let made = self.stage.step(rest, is_last, &mut self.held[before..])?;
            self.held.truncate(before + made.produced_bytes);
            progress.consumed_bytes += made.consumed_bytes;
            self.left_bytes -= made.produced_bytes as u64;
            (self.given, self.ready) = (0, self.filter.apply(&mut self.held));
            if self.left_bytes == 0 {
                self.ready = self.held.len();
            }
            if self.ready == 0 && made == Progress::default() {
                if self.left_bytes == 0 {
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
    use refrain_codec::property::{noise, x86_code};

    /// What liblzma makes of `raw` with a filter alone: it is squeezed behind the filter, and opened without it.
    fn filtered_by_liblzma(raw: &[u8], add: impl Fn(&mut Filters)) -> Vec<u8> {
        let mut options = LzmaOptions::new_preset(0).unwrap();
        options.dict_size(1 << 20);
        let run = |mut stream: Stream, input: &[u8]| {
            let mut out = Vec::with_capacity(raw.len() * 2 + 1000);
            loop {
                let taken = stream.total_in() as usize;
                let status = stream.process_vec(&input[taken..], &mut out, Action::Finish);
                if status.unwrap() == Status::StreamEnd {
                    return out;
                }
            }
        };
        let (mut both, mut plain) = (Filters::new(), Filters::new());
        add(&mut both);
        both.lzma2(&options);
        plain.lzma2(&options);
        let packed = run(Stream::new_raw_encoder(&both).unwrap(), raw);
        run(Stream::new_raw_decoder(&plain).unwrap(), &packed)
    }

    fn undone_in_pieces(filter: LrzipFilter, filtered: &[u8], piece: usize) -> Vec<u8> {
        let mut stream = StreamFilter::new(filter);
        let (mut held, mut out) = (Vec::new(), Vec::new());
        for part in filtered.chunks(piece) {
            held.extend_from_slice(part);
            let done = stream.apply(&mut held);
            out.extend(held.drain(..done));
        }
        out.extend(held);
        out
    }

    /// Bytes full of opcodes and plausible operands, in which conversions overlap.
    fn opcode_soup() -> Vec<u8> {
        let words = [0xE8, 0xE9, 0x00, 0xFF, 0x01, 0x94, 0x90, 0xB0];
        let picks = noise(300_000, 5);
        picks
            .iter()
            .map(|&pick| words[usize::from(pick & 7)])
            .collect()
    }

    #[test]
    fn liblzmas_filters_are_taken_back_whatever_the_pieces() {
        for raw in [opcode_soup(), x86_code(200_000, 1), noise(100_003, 2)] {
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
                assert!(filtered != raw, "{filter}: nothing to undo");
                for piece in [1, 7, 4096, raw.len()] {
                    assert!(
                        undone_in_pieces(filter, &filtered, piece) == raw,
                        "{filter} in {piece}"
                    );
                }
            }
        }
    }
}
