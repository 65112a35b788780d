//! The encoder: parses a block segment by segment, each at the prices of what was coded before.

use super::arrivals::Context;
use super::model::{EncoderModel, memory_bytes as model_memory_bytes};
use super::parse::{Effort, Parser, Segment, Sequence};
use super::rans::{self, Step};
use super::symbols::{
    CHUNK_BYTES, Contexts, LENGTH_ESCAPE, LOW_BITS, LOWS, NEW, RUN_ESCAPE, RUN_LENGTH_CONTEXT,
    class, command, distance_context, expected_byte, length_code, length_context, length_min,
};
use crate::host::Host;

/// A new match of two bytes takes eight steps.
const COMMAND_STEPS_PER_BYTE_MAX: usize = 4;
/// A symbol, after an escape where it is new.
const LITERAL_STEPS_PER_BYTE_MAX: usize = 2;
/// The state for commands, and for what follows them. Literals alternate.
const FIRST: u8 = 0;
const SECOND: u8 = 1;

/// More than an encoder takes, in bytes.
pub(super) fn memory_bytes(raw_bytes: u64, effort: Effort, contexts: Contexts) -> u64 {
    let chunk = raw_bytes.min(CHUNK_BYTES as u64);
    let steps_per_byte = (COMMAND_STEPS_PER_BYTE_MAX + LITERAL_STEPS_PER_BYTE_MAX) as u64;
    let steps = steps_per_byte * chunk * size_of::<(u8, Step)>() as u64;
    let words = 2 * COMMAND_STEPS_PER_BYTE_MAX as u64 * chunk;
    Parser::memory_bytes(raw_bytes, effort) + model_memory_bytes(contexts) + steps + words
}

/// Appends the data of a block to `out`, at most about `limit_bytes`. `None` if there is not enough
/// memory.
pub(super) fn encode(
    host: Host,
    raw: &[u8],
    effort: Effort,
    contexts: Contexts,
    limit_bytes: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    let mut parser = Parser::new(host, raw.len(), contexts, effort)?;
    let mut writer = Writer::new(raw.len().min(CHUNK_BYTES), contexts)?;
    let mut sequences = Vec::new();
    let mut words = Vec::new();
    let limit = out.len() + limit_bytes;
    let mut context = Context::START;
    let mut start = 0;
    while start < raw.len() && out.len() < limit {
        let end = raw.len().min(start + CHUNK_BYTES);
        let mut written = start;
        while start < end {
            sequences.clear();
            let segment = Segment { raw, start, end };
            start = parser.parse(&writer.model, segment, &mut context, &mut sequences);
            for sequence in &sequences {
                writer.write_sequence(raw, &mut written, sequence);
            }
        }
        if written < end {
            writer.write_last_literals(raw, written, end);
            context.run = 0;
        }
        writer.finish_chunk(host, &mut words, out);
    }
    Some(())
}

/// Turns sequences into steps of the entropy coder.
struct Writer {
    contexts: Contexts,
    model: EncoderModel,
    commands: Vec<(u8, Step)>,
    literals: Vec<(u8, Step)>,
    literal_state: u8,
    command_context: usize,
    last_distance: u32,
}

impl Writer {
    /// A writer for chunks of at most `chunk_bytes`; `None` if there is not enough memory.
    fn new(chunk_bytes: usize, contexts: Contexts) -> Option<Self> {
        let steps = |per_byte_max: usize| {
            let mut steps = Vec::new();
            // Growth would copy it, and take three times as much.
            steps.try_reserve_exact(chunk_bytes * per_byte_max).ok()?;
            Some(steps)
        };
        Some(Self {
            contexts,
            model: EncoderModel::new(contexts),
            commands: steps(COMMAND_STEPS_PER_BYTE_MAX)?,
            literals: steps(LITERAL_STEPS_PER_BYTE_MAX)?,
            literal_state: FIRST,
            command_context: usize::from(Context::START.command),
            last_distance: Context::START.recent[0],
        })
    }

    /// Writes a sequence from `written` on, which becomes its end.
    fn write_sequence(&mut self, raw: &[u8], written: &mut usize, sequence: &Sequence) {
        let &Sequence {
            run,
            length,
            distance,
            ..
        } = sequence;
        let kind = usize::from(sequence.kind);
        let code = self.write_command(run, kind, length);
        if kind == NEW {
            self.write_distance(code, distance);
        }
        self.write_literals(raw, *written, run as usize);
        *written += run as usize + length as usize;
        self.command_context = self.contexts.of_command(kind, code, *written);
        self.last_distance = distance;
    }

    /// Writes the literals at the end of a chunk. Their command has a match with a new distance,
    /// which is not there, so that a decoder detects a wrong length of the block.
    fn write_last_literals(&mut self, raw: &[u8], written: usize, end: usize) {
        let run = end - written;
        self.write_command(run as u32, NEW, length_min(NEW));
        self.write_literals(raw, written, run);
    }

    /// Returns the code of the length.
    fn write_command(&mut self, run: u32, kind: usize, length: u32) -> u32 {
        let code = length_code(kind, length);
        let symbol = command(run.min(RUN_ESCAPE), kind, code);
        let steps = &mut self.commands;
        let commands = &mut self.model.commands;
        commands.encode(self.command_context, symbol, |step| {
            steps.push((FIRST, step))
        });
        if run >= RUN_ESCAPE {
            self.write_number(RUN_LENGTH_CONTEXT, run - RUN_ESCAPE);
        }
        if code == LENGTH_ESCAPE {
            let rest = length - length_min(kind) - LENGTH_ESCAPE;
            self.write_number(length_context(kind), rest);
        }
        code
    }

    fn write_number(&mut self, context: usize, number: u32) {
        let class = class(number);
        let mut push = |step| self.commands.push((SECOND, step));
        self.model.lengths.encode(context, class.symbol, &mut push);
        Step::plain(class.bits, class.plain, push);
    }

    fn write_distance(&mut self, length_code: u32, distance: u32) {
        let class = class(distance - 1);
        let mut push = |step| self.commands.push((SECOND, step));
        let context = distance_context(length_code);
        self.model
            .distances
            .encode(context, class.symbol, &mut push);
        if class.bits < LOW_BITS {
            Step::plain(class.bits, class.plain, push);
        } else {
            let low = class.plain as usize % LOWS;
            Step::plain(class.bits - LOW_BITS, class.plain >> LOW_BITS, &mut push);
            self.model.lows.encode(0, low as u8, push);
        }
    }

    fn write_literals(&mut self, raw: &[u8], start: usize, run: usize) {
        let expected = expected_byte(raw, start, self.last_distance);
        let mut context = self.contexts.of_first_literal(expected);
        for &byte in &raw[start..start + run] {
            let (steps, state) = (&mut self.literals, self.literal_state);
            let literals = &mut self.model.literals;
            literals.encode(context, byte, |step| steps.push((state, step)));
            self.literal_state ^= 1;
            context = self.contexts.of_literal(byte);
        }
    }

    /// Appends the data of the chunk to `out`.
    fn finish_chunk(&mut self, host: Host, words: &mut Vec<u32>, out: &mut Vec<u8>) {
        // Literals first: from damaged data, commands can be carried out as far as they go.
        for steps in [&mut self.literals, &mut self.commands] {
            rans::encode(host, steps, words);
            out.extend_from_slice(&(words.len() as u32).to_le_bytes());
            for word in words.iter() {
                out.extend_from_slice(&word.to_le_bytes());
            }
            steps.clear();
        }
        self.literal_state = FIRST;
    }
}
