//! The decoder of LZO1X, after the Linux kernel's documentation ("LZO stream format as understood
//! by Linux' LZO decompressor", Documentation/staging/lzo.rst). A first byte of 17, which marks a
//! newer dialect there, is an ordinary instruction here.
//!
//! An instruction copies from at most 48 KiB back and is followed by up to three literal bytes. The
//! meaning of an instruction below 16 depends on the number of literals before it. Lengths continue
//! in further bytes, of which each zero adds 255.

use crate::stage::{Progress, Stage, damaged};
use refrain_codec::CodecId;
use refrain_codec::Result;

/// A power of two above the largest distance, 16384 + 16384 + 16383.
const WINDOW_BYTES: usize = 1 << 16;
const WINDOW_MASK: usize = WINDOW_BYTES - 1;

/// Longer lengths are refused; anything that fits in memory is shorter.
const LENGTH_MAX: u64 = 1 << 40;

/// The number of literals that the previous instruction copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LiteralCount {
    None,
    /// One to three.
    Few,
    /// Four or more.
    Many,
}

/// A match whose distance has not been read yet.
#[derive(Debug, Clone, Copy)]
struct Match {
    length: u64,
    /// The value to be added to the distance that follows.
    base: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    First,
    Instruction,
    /// The length of a run of literals continues.
    LiteralLength(u64),
    /// The length of a match continues; two bytes of distance follow.
    MatchLength(Match),
    /// One byte of distance follows, whose bits begin at `shift`. `literals` follow the match.
    NearDistance {
        partial: Match,
        shift: u32,
        literals: u8,
    },
    /// Two bytes of distance follow. `low` is the first one if it has been read.
    FarDistance {
        partial: Match,
        low: Option<u8>,
    },
    Copy {
        distance: usize,
        remaining: u64,
        literals: u8,
    },
    Literals {
        remaining: u64,
        before: LiteralCount,
    },
    End,
}

pub(crate) struct LzoStage {
    state: State,
    before: LiteralCount,
    window: Box<[u8]>,
    /// The number of bytes produced, of which the window holds the last.
    produced_bytes: u64,
}

impl LzoStage {
    pub(crate) fn new() -> LzoStage {
        LzoStage {
            state: State::First,
            before: LiteralCount::None,
            window: vec![0; WINDOW_BYTES].into_boxed_slice(),
            produced_bytes: 0,
        }
    }

    /// Parses one byte of an instruction and returns the next state.
    fn parse_byte(&mut self, byte: u8) -> Result<State> {
        let value = u64::from(byte);
        Ok(match self.state {
            State::First if byte > 17 => literal_run(value - 17),
            State::First | State::Instruction => self.instruction(byte),
            State::LiteralLength(length) => match byte {
                0 => State::LiteralLength(extended(length)?),
                _ => literal_run(length + value),
            },
            State::MatchLength(partial) => match byte {
                0 => State::MatchLength(Match {
                    length: extended(partial.length)?,
                    ..partial
                }),
                _ => State::FarDistance {
                    partial: Match {
                        length: partial.length + value,
                        ..partial
                    },
                    low: None,
                },
            },
            State::NearDistance {
                partial,
                shift,
                literals,
            } => self.copy(
                partial.base + (usize::from(byte) << shift),
                partial.length,
                literals,
            )?,
            State::FarDistance { partial, low: None } => State::FarDistance {
                partial,
                low: Some(byte),
            },
            State::FarDistance {
                partial,
                low: Some(low),
            } => {
                let distance = usize::from(u16::from_le_bytes([low, byte]) >> 2);
                // A far match of distance 0 ends the stream.
                if partial.base == FAR_BASE && distance == 0 {
                    State::End
                } else {
                    self.copy(partial.base + distance, partial.length, low & 3)?
                }
            }
            State::Copy { .. } | State::Literals { .. } | State::End => self.state,
        })
    }

    fn instruction(&self, byte: u8) -> State {
        let literals = byte & 3;
        let (low, wide) = (usize::from(byte), u64::from(byte));
        let near = |length, base, shift| State::NearDistance {
            partial: Match { length, base },
            shift,
            literals,
        };
        match (byte, self.before) {
            (0, LiteralCount::None) => State::LiteralLength(3 + 15),
            (..16, LiteralCount::None) => literal_run(3 + wide),
            (..16, LiteralCount::Few) => near(2, (low >> 2) + 1, 2),
            (..16, LiteralCount::Many) => near(3, (low >> 2) + 2049, 2),
            (16..32, _) => far(wide & 7, 7, FAR_BASE + ((low & 8) << 11)),
            (32..64, _) => far(wide & 31, 31, 1),
            (64..128, _) => near(3 + (wide >> 5 & 1), (low >> 2 & 7) + 1, 3),
            (128.., _) => near(5 + (wide >> 5 & 3), (low >> 2 & 7) + 1, 3),
        }
    }

    fn copy(&self, distance: usize, remaining: u64, literals: u8) -> Result<State> {
        if distance as u64 > self.produced_bytes {
            return Err(damaged(
                CodecId::LZO,
                "a match reaches back before the beginning",
            ));
        }
        Ok(State::Copy {
            distance,
            remaining,
            literals,
        })
    }

    #[inline]
    fn emit(&mut self, byte: u8, out: &mut u8) {
        *out = byte;
        self.window[self.produced_bytes as usize & WINDOW_MASK] = byte;
        self.produced_bytes += 1;
    }
}

/// Distances of far matches begin here.
const FAR_BASE: usize = 16384;

fn far(length: u64, all: u64, base: usize) -> State {
    match length {
        0 => State::MatchLength(Match {
            length: 2 + all,
            base,
        }),
        _ => State::FarDistance {
            partial: Match {
                length: 2 + length,
                base,
            },
            low: None,
        },
    }
}

fn literal_run(remaining: u64) -> State {
    let before = match remaining {
        0 => LiteralCount::None,
        1..4 => LiteralCount::Few,
        _ => LiteralCount::Many,
    };
    State::Literals { remaining, before }
}

fn extended(length: u64) -> Result<u64> {
    match length {
        LENGTH_MAX.. => Err(damaged(CodecId::LZO, "a length exceeds the limit")),
        _ => Ok(length + 255),
    }
}

impl Stage for LzoStage {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let (mut consumed, mut produced) = (0, 0);
        // Without space in `out`, the next instruction is not parsed: it may follow the block and
        // be anything.
        while produced < out.len() {
            match self.state {
                State::End => break,
                State::Copy {
                    distance,
                    remaining,
                    literals,
                } => {
                    let count = remaining.min((out.len() - produced) as u64);
                    for to in &mut out[produced..produced + count as usize] {
                        let from = self.window
                            [(self.produced_bytes as usize).wrapping_sub(distance) & WINDOW_MASK];
                        self.emit(from, to);
                    }
                    produced += count as usize;
                    self.state = match remaining - count {
                        0 => literal_run(u64::from(literals)),
                        remaining => State::Copy {
                            distance,
                            remaining,
                            literals,
                        },
                    };
                }
                State::Literals { remaining, before } => {
                    let count = remaining
                        .min((out.len() - produced) as u64)
                        .min((input.len() - consumed) as u64)
                        as usize;
                    for (to, &from) in out[produced..produced + count]
                        .iter_mut()
                        .zip(&input[consumed..])
                    {
                        self.emit(from, to);
                    }
                    (produced, consumed) = (produced + count, consumed + count);
                    let remaining = remaining - count as u64;
                    if remaining > 0 {
                        self.state = State::Literals { remaining, before };
                        break;
                    }
                    self.before = before;
                    self.state = State::Instruction;
                }
                _ => {
                    let Some(&byte) = input.get(consumed) else {
                        break;
                    };
                    consumed += 1;
                    self.state = self.parse_byte(byte)?;
                }
            }
        }
        Ok(Progress {
            consumed_bytes: consumed,
            produced_bytes: produced,
        })
    }
}
