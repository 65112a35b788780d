//! LZO1X, as described in the Linux kernel's documentation ("LZO stream format as understood by Linux' LZO decompressor",
//! Documentation/staging/lzo.rst; the first byte 17, which marks a newer dialect there, is an ordinary instruction here).
//!
//! An instruction copies from at most 48 KiB back and is followed by up to three literal bytes; what an instruction below 16
//! means depends on how many literals came before it. Lengths go on in further bytes, 255 for each zero.

use crate::stage::{Progress, Stage, damaged};
use refrain_codec::CodecId;
use refrain_codec::Result;

/// A power of two above the largest distance, 16384 + 16384 + 16383.
const WINDOW_BYTES: usize = 1 << 16;
const WINDOW_MASK: usize = WINDOW_BYTES - 1;

/// Lengths stop here: no length that fits in memory goes beyond.
const LENGTH_MAX: u64 = 1 << 40;

/// What the instruction before copied as literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Literals {
    None,
    /// One to three, or none after a match that names none: then the next instruction is a run of literals.
    Few,
    /// Four or more.
    Many,
}

/// A match whose distance is not known yet.
#[derive(Debug, Clone, Copy)]
struct Match {
    length: u64,
    /// Added to the distance that follows.
    base: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    First,
    Instruction,
    /// The length of a run of literals goes on.
    LiteralLength(u64),
    /// The length of a match goes on; two bytes of distance follow.
    MatchLength(Match),
    /// One byte of distance follows: its bits begin at `shift`; with the number of literals after the match.
    NearDistance {
        found: Match,
        shift: u32,
        literals: u8,
    },
    /// Two bytes of distance follow; the first one is known.
    FarDistance {
        found: Match,
        low: Option<u8>,
    },
    Copy {
        distance: usize,
        left: u64,
        literals: u8,
    },
    Literals {
        left: u64,
        before: Literals,
    },
    End,
}

pub(crate) struct Lzo {
    state: State,
    before: Literals,
    window: Box<[u8]>,
    /// Bytes made, of which the window holds the last.
    made: u64,
}

impl Lzo {
    pub(crate) fn new() -> Lzo {
        Lzo {
            state: State::First,
            before: Literals::None,
            window: vec![0; WINDOW_BYTES].into_boxed_slice(),
            made: 0,
        }
    }

    /// One byte of an instruction.
    fn take(&mut self, byte: u8) -> Result<State> {
        let value = u64::from(byte);
        Ok(match self.state {
            State::First if byte > 17 => literal_run(value - 17),
            State::First | State::Instruction => self.instruction(byte),
            State::LiteralLength(length) => match byte {
                0 => State::LiteralLength(longer(length)?),
                _ => literal_run(length + value),
            },
            State::MatchLength(found) => match byte {
                0 => State::MatchLength(Match {
                    length: longer(found.length)?,
                    ..found
                }),
                _ => State::FarDistance {
                    found: Match {
                        length: found.length + value,
                        ..found
                    },
                    low: None,
                },
            },
            State::NearDistance {
                found,
                shift,
                literals,
            } => self.copy(
                found.base + (usize::from(byte) << shift),
                found.length,
                literals,
            )?,
            State::FarDistance { found, low: None } => State::FarDistance {
                found,
                low: Some(byte),
            },
            State::FarDistance {
                found,
                low: Some(low),
            } => {
                let distance = usize::from(u16::from_le_bytes([low, byte]) >> 2);
                // A far match of distance 0 ends the stream.
                match found.base == FAR_BASE && distance == 0 {
                    true => State::End,
                    false => self.copy(found.base + distance, found.length, low & 3)?,
                }
            }
            State::Copy { .. } | State::Literals { .. } | State::End => self.state,
        })
    }

    fn instruction(&self, byte: u8) -> State {
        let literals = byte & 3;
        let (low, wide) = (usize::from(byte), u64::from(byte));
        let near = |length, base, shift| State::NearDistance {
            found: Match { length, base },
            shift,
            literals,
        };
        match (byte, self.before) {
            (0, Literals::None) => State::LiteralLength(3 + 15),
            (..16, Literals::None) => literal_run(3 + wide),
            (..16, Literals::Few) => near(2, (low >> 2) + 1, 2),
            (..16, Literals::Many) => near(3, (low >> 2) + 2049, 2),
            (16..32, _) => far(wide & 7, 7, FAR_BASE + ((low & 8) << 11)),
            (32..64, _) => far(wide & 31, 31, 1),
            (64..128, _) => near(3 + (wide >> 5 & 1), (low >> 2 & 7) + 1, 3),
            (128.., _) => near(5 + (wide >> 5 & 3), (low >> 2 & 7) + 1, 3),
        }
    }

    fn copy(&self, distance: usize, left: u64, literals: u8) -> Result<State> {
        if distance as u64 > self.made {
            return Err(damaged(CodecId::LZO, "a copy from before the beginning"));
        }
        Ok(State::Copy {
            distance,
            left,
            literals,
        })
    }

    /// Makes one byte.
    #[inline]
    fn put(&mut self, byte: u8, out: &mut u8) {
        *out = byte;
        self.window[self.made as usize & WINDOW_MASK] = byte;
        self.made += 1;
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
            found: Match {
                length: 2 + length,
                base,
            },
            low: None,
        },
    }
}

fn literal_run(left: u64) -> State {
    let before = match left {
        0 => Literals::None,
        1..4 => Literals::Few,
        _ => Literals::Many,
    };
    State::Literals { left, before }
}

fn longer(length: u64) -> Result<u64> {
    match length {
        LENGTH_MAX.. => Err(damaged(CodecId::LZO, "an endless length")),
        _ => Ok(length + 255),
    }
}

impl Stage for Lzo {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let (mut taken, mut made) = (0, 0);
        // With no room left the next instruction is not looked at: it may lie behind the block, and be anything.
        while made < out.len() {
            match self.state {
                State::End => break,
                State::Copy {
                    distance,
                    left,
                    literals,
                } => {
                    let count = left.min((out.len() - made) as u64);
                    for to in &mut out[made..made + count as usize] {
                        let from =
                            self.window[(self.made as usize).wrapping_sub(distance) & WINDOW_MASK];
                        self.put(from, to);
                    }
                    made += count as usize;
                    self.state = match left - count {
                        0 => literal_run(u64::from(literals)),
                        left => State::Copy {
                            distance,
                            left,
                            literals,
                        },
                    };
                }
                State::Literals { left, before } => {
                    let count = left
                        .min((out.len() - made) as u64)
                        .min((input.len() - taken) as u64) as usize;
                    for (to, &from) in out[made..made + count].iter_mut().zip(&input[taken..]) {
                        self.put(from, to);
                    }
                    (made, taken) = (made + count, taken + count);
                    let left = left - count as u64;
                    if left > 0 {
                        self.state = State::Literals { left, before };
                        break;
                    }
                    self.before = before;
                    self.state = State::Instruction;
                }
                _ => {
                    let Some(&byte) = input.get(taken) else {
                        break;
                    };
                    taken += 1;
                    self.state = self.take(byte)?;
                }
            }
        }
        Ok(Progress {
            consumed_bytes: taken,
            produced_bytes: made,
        })
    }
}
