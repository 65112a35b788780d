//! The decoder: alternates between decoding a batch of commands and carrying them out, so that the
//! processor can work ahead in both loops.

use super::model::DecoderModel;
use super::rans::{State, WORD_BYTES, Words};
use super::symbols::{
    CHUNK_BYTES, Contexts, LENGTH_ESCAPE, LOW_BITS, NEW, RECENT, RECENT_AT_START, RUN_ESCAPE,
    RUN_LENGTH_CONTEXT, class_start, distance_context, expected_byte, length_context, length_min,
    recent_after,
};
use crate::host::Host;

/// Commands in a batch: about 50 µs.
const BATCH: usize = 1024;
/// Literals between two check-ins.
const LITERALS: usize = 32 << 10;

/// Why data cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    /// The data end too early.
    Truncated,
    /// A match or a run of literals does not fit in the block.
    OutsideBlock,
    /// The data of a chunk do not end with its last byte.
    End,
}

/// A run of literals, and a match after it.
#[derive(Clone, Copy, Default)]
struct Command {
    run: u32,
    length: u32,
    distance: u32,
}

/// The state of a decoder between two chunks.
pub(super) struct Decoder {
    host: Host,
    contexts: Contexts,
    model: DecoderModel,
    batch: Vec<Command>,
    recent: [u32; RECENT],
    command_context: usize,
    /// The distance of the last match that was copied.
    last_distance: u32,
    /// Whether what remains of truncated data is decoded before that is an error.
    is_lenient: bool,
}

/// A sequence of words with the two states that read it.
struct Input<'a> {
    words: Words<'a>,
    first: State,
    second: State,
}

impl<'a> Input<'a> {
    fn new(words: &'a [[u8; WORD_BYTES]]) -> Self {
        let mut words = Words::new(words);
        let (first, second) = (words.state(), words.state());
        Self {
            words,
            first,
            second,
        }
    }

    fn is_finished(&self) -> bool {
        self.words.is_exhausted() && self.first.is_initial() && self.second.is_initial()
    }
}

/// Where a chunk lies, and where decoding stops: before its end for a prefix of the block.
#[derive(Clone, Copy)]
struct Bounds {
    end: usize,
    stop: usize,
}

impl Decoder {
    /// More than a decoder takes beside its tables, in bytes.
    pub(super) const MEMORY_BYTES: u64 = (BATCH * size_of::<Command>()) as u64 + (64 << 10);

    pub(super) fn new(host: Host, contexts: Contexts) -> Self {
        Self {
            host,
            contexts,
            model: DecoderModel::new(contexts),
            batch: vec![Command::default(); BATCH],
            recent: RECENT_AT_START,
            command_context: 0,
            last_distance: RECENT_AT_START[0],
            is_lenient: false,
        }
    }

    /// Lets the decoder write what it can of damaged data.
    pub(super) fn lenient(self) -> Self {
        Self {
            is_lenient: true,
            ..self
        }
    }

    /// Decodes the first `out.len()` of `raw_bytes` bytes.
    pub(super) fn decode(
        &mut self,
        mut data: &[u8],
        raw_bytes: usize,
        out: &mut [u8],
    ) -> Result<(), Damage> {
        let mut position = 0;
        while position < out.len() {
            let end = raw_bytes.min(position + CHUNK_BYTES);
            let bounds = Bounds {
                end,
                stop: end.min(out.len()),
            };
            data = self.chunk(data, out, position, bounds)?;
            position = end;
        }
        if position >= raw_bytes && !data.is_empty() {
            return Err(Damage::End);
        }
        Ok(())
    }

    /// Decodes a chunk from `position` on. Returns the data after it.
    fn chunk<'d>(
        &mut self,
        data: &'d [u8],
        out: &mut [u8],
        mut position: usize,
        bounds: Bounds,
    ) -> Result<&'d [u8], Damage> {
        let (literals, data) = split_words(data, self.is_lenient)?;
        let (commands, data) = split_words(data, self.is_lenient)?;
        let (mut commands, mut literals) = (Input::new(commands), Input::new(literals));
        let mut coded = position;
        while position < bounds.stop {
            (self.host.check_in)();
            let count = self.read_batch(&mut commands, &mut coded, bounds.end);
            position = self.apply_batch(count, &mut literals, out, position, bounds)?;
        }
        if bounds.stop == bounds.end && !(commands.is_finished() && literals.is_finished()) {
            return Err(Damage::End);
        }
        Ok(data)
    }

    /// Decodes commands for the bytes from `position` on, until they reach `end` or the batch is
    /// full. Returns their number.
    #[inline(never)]
    fn read_batch(&mut self, input: &mut Input<'_>, position: &mut usize, end: usize) -> usize {
        let Input {
            mut words,
            mut first,
            mut second,
        } = *input;
        let (mut recent, mut context) = (self.recent, self.command_context);
        let mut at = *position;
        let mut count = 0;
        let model = &mut self.model;
        for entry in &mut self.batch {
            let symbol = model.commands.decode(context, &mut first, &mut words);
            let mut run = u32::from(symbol >> 6);
            let kind = usize::from(symbol >> 4 & 3);
            let code = u32::from(symbol & 15);
            if run == RUN_ESCAPE {
                run += number(model, RUN_LENGTH_CONTEXT, &mut second, &mut words);
            }
            let mut length = length_min(kind) + code;
            if code == LENGTH_ESCAPE {
                length += number(model, length_context(kind), &mut second, &mut words);
            }
            count += 1;
            at += run as usize;
            if at >= end {
                *entry = Command {
                    run,
                    ..Command::default()
                };
                break;
            }
            let distance = if kind == NEW {
                distance(model, code, &mut second, &mut words)
            } else {
                recent[kind]
            };
            recent = recent_after(recent, kind, distance);
            *entry = Command {
                run,
                length,
                distance,
            };
            at += length as usize;
            context = self.contexts.of_command(kind, code, at);
            if at >= end {
                break;
            }
        }
        (self.recent, self.command_context) = (recent, context);
        *input = Input {
            words,
            first,
            second,
        };
        *position = at;
        count
    }

    /// Carries out the first `count` commands of the batch. Returns the position after them.
    #[inline(never)]
    fn apply_batch(
        &mut self,
        count: usize,
        literals: &mut Input<'_>,
        out: &mut [u8],
        mut position: usize,
        bounds: Bounds,
    ) -> Result<usize, Damage> {
        // In registers from here on.
        let Input {
            mut words,
            mut first,
            mut second,
        } = *literals;
        let contexts = self.contexts;
        let mut last_distance = self.last_distance;
        for command in &self.batch[..count] {
            let run = command.run as usize;
            if run > bounds.end - position {
                return Err(Damage::OutsideBlock);
            }
            let end = position + run.min(bounds.stop - position);
            if position < end {
                let expected = expected_byte(out, position, last_distance);
                let mut context = contexts.of_first_literal(expected);
                for piece in out[position..end].chunks_mut(LITERALS) {
                    for byte in &mut *piece {
                        *byte = self.model.literals.decode(context, &mut first, &mut words);
                        context = contexts.of_literal(*byte);
                        std::mem::swap(&mut first, &mut second);
                    }
                    if piece.len() == LITERALS {
                        (self.host.check_in)();
                    }
                }
                position = end;
            }
            if position == bounds.stop {
                break;
            }
            let (length, distance) = (command.length as usize, command.distance as usize);
            if length > bounds.end - position || distance > position {
                return Err(Damage::OutsideBlock);
            }
            let length = length.min(bounds.stop - position);
            copy(out, position, distance, length);
            position += length;
            last_distance = command.distance;
        }
        self.last_distance = last_distance;
        *literals = Input {
            words,
            first,
            second,
        };
        Ok(position)
    }
}

/// Splits off the words that their number precedes; or those that are there.
fn split_words(data: &[u8], is_lenient: bool) -> Result<(&[[u8; WORD_BYTES]], &[u8]), Damage> {
    let (count, data) = data.split_first_chunk().ok_or(Damage::Truncated)?;
    let (words, _) = data.as_chunks::<WORD_BYTES>();
    let mut count = u32::from_le_bytes(*count) as usize;
    if count > words.len() {
        if !is_lenient {
            return Err(Damage::Truncated);
        }
        count = words.len();
    }
    Ok((&words[..count], &data[count * WORD_BYTES..]))
}

/// Reads the rest of a length.
#[inline(always)]
fn number(
    model: &mut DecoderModel,
    context: usize,
    state: &mut State,
    words: &mut Words<'_>,
) -> u32 {
    let (start, bits) = class_start(model.lengths.decode(context, state, words));
    start + state.plain(bits, words)
}

/// Reads a new distance.
#[inline(always)]
fn distance(
    model: &mut DecoderModel,
    length_code: u32,
    state: &mut State,
    words: &mut Words<'_>,
) -> u32 {
    let context = distance_context(length_code);
    let (start, bits) = class_start(model.distances.decode(context, state, words));
    let plain = if bits < LOW_BITS {
        state.plain(bits, words)
    } else {
        let high = state.plain(bits - LOW_BITS, words);
        high << LOW_BITS | u32::from(model.lows.decode(0, state, words))
    };
    1 + start + plain
}

/// Copies `length` bytes from `distance` bytes before `position`, which may overlap. May write more
/// bytes after them.
#[inline(always)]
fn copy(out: &mut [u8], position: usize, distance: usize, length: usize) {
    const STEP: usize = 16;
    let source = position - distance;
    if distance >= STEP && length <= 2 * STEP && out.len() - position >= 2 * STEP {
        // Two moves of constant length are faster than one of any length.
        let (before, after) = out.split_at_mut(position);
        if let (Some(from), Some(to)) = (before.get(source..source + STEP), after.get_mut(..STEP)) {
            to.copy_from_slice(from);
        }
        if length > STEP {
            out.copy_within(source + STEP..source + 2 * STEP, position + STEP);
        }
    } else if distance >= length {
        out.copy_within(source..source + length, position);
    } else {
        for index in position..position + length {
            out[index] = out[index - distance];
        }
    }
}
