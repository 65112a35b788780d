//! Chooses the matches of a segment: the cheapest way through it at the present prices.

use super::arrivals::{Arrival, Arrivals, Context, StepKind};
use super::finder::{Finder, Search};
use super::matches::{Match, common};
use super::model::EncoderModel;
use super::prices::Prices;
use super::symbols::{
    Contexts, DISTANCE_CONTEXTS, LENGTH_ESCAPE, NEW, RECENT, RUN_ESCAPE, command, distance_context,
    expected_byte, length_code, length_min, previous_byte, recent_after,
};
use crate::host::Host;

/// The most positions between two updates of the prices.
const SEGMENT_BYTES: usize = 32 << 10;
/// All lengths up to this are tried, and the longest of each distance.
const EACH_LENGTH_MAX: u32 = 64;
/// Matches of this length are taken at once. The finder compares no more: of longer ones it returns
/// the nearest, not the longest. With 64, logs are a fifth larger at level 1, encoded as fast.
const ENOUGH_BYTES: usize = 273;
/// Positions between two check-ins, each about a microsecond.
const POSITIONS: usize = 256;

/// How much a parser tries.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// Ways that are kept for each position.
    pub ways: usize,
    /// Ways that are continued with new distances.
    pub ways_to_new: usize,
    /// How matches are found. With rows, positions inside a way that costs no more at the next
    /// position are not continued.
    pub search: Search,
}

/// A run of literals and a match after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequence {
    pub run: u32,
    pub kind: u8,
    pub length: u32,
    pub distance: u32,
}

/// The part of a block that is parsed next.
#[derive(Clone, Copy)]
pub(super) struct Segment<'a> {
    /// The whole block.
    pub raw: &'a [u8],
    pub start: usize,
    /// No match exceeds this.
    pub end: usize,
}

pub(super) struct Parser {
    host: Host,
    contexts: Contexts,
    effort: Effort,
    finder: Finder,
    arrivals: Arrivals,
    prices: Prices,
    found: Vec<Match>,
}

/// A match of any length in a range that continues an arrival.
struct Continuation {
    /// The index of the arrival.
    from: usize,
    /// Its position in the segment and in the block.
    offset: usize,
    position: usize,
    kind: usize,
    lengths: std::ops::RangeInclusive<u32>,
    distance: u32,
    distance_prices: [u32; DISTANCE_CONTEXTS],
}

impl Parser {
    /// More than a parser takes, in bytes.
    pub(super) fn memory_bytes(raw_bytes: u64, effort: Effort) -> u64 {
        Finder::memory_bytes(raw_bytes, effort.search)
            + Arrivals::memory_bytes(SEGMENT_BYTES + 1, effort.ways)
            + Prices::MEMORY_BYTES
            + (64 << 10)
    }

    /// A parser for a block of `raw_bytes`; `None` if there is not enough memory.
    pub(super) fn new(
        host: Host,
        raw_bytes: usize,
        contexts: Contexts,
        effort: Effort,
    ) -> Option<Self> {
        Some(Self {
            host,
            contexts,
            effort,
            finder: Finder::new(host, raw_bytes, effort.search)?,
            arrivals: Arrivals::new(SEGMENT_BYTES.min(raw_bytes) + 1, effort.ways),
            prices: Prices::new(contexts),
            found: Vec::new(),
        })
    }

    /// Parses the beginning of `segment`; appends to `sequences`. Returns the position after them
    /// and the literals that follow, which `context` counts.
    pub(super) fn parse(
        &mut self,
        model: &EncoderModel,
        segment: Segment<'_>,
        context: &mut Context,
        sequences: &mut Vec<Sequence>,
    ) -> usize {
        self.prices.set(model);
        let size = (segment.end - segment.start).min(SEGMENT_BYTES);
        self.arrivals.clear(size + 1);
        let start = Arrival {
            cost: self.prices.run(usize::from(context.command), context.run),
            from: 0,
            step: StepKind::Literal,
            context: *context,
        };
        self.arrivals.add(0, start);
        let mut found = std::mem::take(&mut self.found);
        let (mut offset, mut long) = (0, None);
        while offset < size && long.is_none() {
            let position = segment.start + offset;
            if position.is_multiple_of(POSITIONS) {
                (self.host.check_in)();
            }
            if self.effort.search == Search::Rows && self.arrivals.is_passed(offset) {
                self.finder
                    .skip(segment.raw, position, ENOUGH_BYTES, &mut found);
                offset += 1;
                continue;
            }
            self.finder
                .find(segment.raw, position, ENOUGH_BYTES, &mut found);
            long = self.long_match(segment, position, &found);
            if long.is_none() {
                self.continue_ways(model, segment, offset, size, &found);
                offset += 1;
            }
        }
        self.found = found;
        *context = self.trace_back(offset, sequences);
        let mut position = segment.start + offset;
        if let Some(long) = long {
            sequences.push(self.take(long, position, context));
            position += 1;
            for skipped in position..position + long.length as usize - 1 {
                if skipped.is_multiple_of(POSITIONS) {
                    (self.host.check_in)();
                }
                self.finder
                    .skip(segment.raw, skipped, ENOUGH_BYTES, &mut self.found);
            }
            position += long.length as usize - 1;
        }
        position
    }

    /// A match that is long enough to be taken at once.
    fn long_match(&self, segment: Segment<'_>, position: usize, found: &[Match]) -> Option<Match> {
        let longest = found.last()?;
        let rest = segment.end - position;
        if (longest.length as usize) < ENOUGH_BYTES || rest < ENOUGH_BYTES {
            return None;
        }
        let source = position - longest.distance as usize;
        Some(Match {
            length: common(segment.raw, source, position, rest) as u32,
            distance: longest.distance,
        })
    }

    /// The sequence that ends with this match at `position`.
    fn take(&self, taken: Match, position: usize, context: &mut Context) -> Sequence {
        let Match { length, distance } = taken;
        let recent = context.recent.iter().position(|&recent| recent == distance);
        let kind = recent.unwrap_or(NEW);
        let run = context.run;
        let end = position + length as usize;
        let command = self
            .contexts
            .of_command(kind, length_code(kind, length), end);
        *context = Context {
            run: 0,
            recent: recent_after(context.recent, kind, distance),
            command: command as u8,
        };
        Sequence {
            run,
            kind: kind as u8,
            length,
            distance,
        }
    }

    /// Continues the ways to one position with a literal and with matches.
    fn continue_ways(
        &mut self,
        model: &EncoderModel,
        segment: Segment<'_>,
        offset: usize,
        size: usize,
        found: &[Match],
    ) {
        let (raw, position) = (segment.raw, segment.start + offset);
        let limit = size - offset;
        for (rank, from) in self.arrivals.places(offset).enumerate() {
            let Some(&arrival) = self.arrivals.get(from) else { break };
            self.add_literal(model, raw, position, offset, from, &arrival);
            let recent = arrival.context.recent;
            for (kind, &distance) in recent.iter().enumerate() {
                let source = position.wrapping_sub(distance as usize);
                if raw.get(source) == Some(&raw[position]) && !recent[..kind].contains(&distance) {
                    let length = common(raw, source, position, limit) as u32;
                    let continuation = Continuation {
                        from,
                        offset,
                        position,
                        kind,
                        lengths: 1..=length,
                        distance,
                        distance_prices: [0; DISTANCE_CONTEXTS],
                    };
                    self.add_matches(model, &arrival, &continuation);
                }
            }
            if rank < self.effort.ways_to_new {
                let mut shortest = length_min(NEW);
                for &Match { length, distance } in found {
                    let length = length.min(limit as u32);
                    if !recent.contains(&distance) && shortest <= length {
                        let continuation = Continuation {
                            from,
                            offset,
                            position,
                            kind: NEW,
                            lengths: shortest..=length,
                            distance,
                            distance_prices: self.prices.distance(distance),
                        };
                        self.add_matches(model, &arrival, &continuation);
                    }
                    shortest = shortest.max(length + 1);
                }
            }
        }
    }

    #[inline(always)]
    fn add_literal(
        &mut self,
        model: &EncoderModel,
        raw: &[u8],
        position: usize,
        offset: usize,
        from: usize,
        arrival: &Arrival,
    ) {
        let Context {
            run,
            recent,
            command,
        } = arrival.context;
        let literal_context = if run == 0 {
            self.contexts
                .of_first_literal(expected_byte(raw, position, recent[0]))
        } else {
            self.contexts.of_literal(previous_byte(raw, position))
        };
        let price = model.literals.price(literal_context, raw[position]);
        // What the command costs at least depends on the run.
        let longer = self.prices.run(usize::from(command), run + 1);
        let cost = arrival.cost - self.prices.run(usize::from(command), run) + longer + price;
        let next = Arrival {
            cost,
            from: from as u32,
            step: StepKind::Literal,
            context: Context {
                run: run + 1,
                recent,
                command,
            },
        };
        self.arrivals.add(offset + 1, next);
    }

    #[inline(always)]
    fn add_matches(
        &mut self,
        model: &EncoderModel,
        arrival: &Arrival,
        continuation: &Continuation,
    ) {
        let &Continuation {
            kind,
            offset,
            position,
            ..
        } = continuation;
        let context = arrival.context;
        let command_context = usize::from(context.command);
        let run_code = context.run.min(RUN_ESCAPE);
        let mut before = arrival.cost - self.prices.run(command_context, context.run);
        if run_code == RUN_ESCAPE {
            before += self.prices.long_run(context.run - RUN_ESCAPE);
        }
        let recent = recent_after(context.recent, kind, continuation.distance);
        let (mut length, longest) = continuation.lengths.clone().into_inner();
        while length <= longest {
            let code = length_code(kind, length);
            let mut cost = before + continuation.distance_prices[distance_context(code)];
            cost += model
                .commands
                .price(command_context, command(run_code, kind, code));
            if code == LENGTH_ESCAPE {
                let rest = length - length_min(kind) - LENGTH_ESCAPE;
                cost += self.prices.long_match(kind, rest);
            }
            let next = self
                .contexts
                .of_command(kind, code, position + length as usize);
            let arrival = Arrival {
                cost: cost + self.prices.run(next, 0),
                from: continuation.from as u32,
                step: StepKind::Match(kind as u8),
                context: Context {
                    run: 0,
                    recent,
                    command: next as u8,
                },
            };
            self.arrivals.add(offset + length as usize, arrival);
            let is_last_but_one = length >= EACH_LENGTH_MAX && length < longest;
            length = if is_last_but_one { longest } else { length + 1 };
        }
    }

    /// Appends the sequences of the cheapest way to `offset`. Returns the context there.
    fn trace_back(&self, offset: usize, sequences: &mut Vec<Sequence>) -> Context {
        let first = sequences.len();
        let mut index = self.arrivals.places(offset).start;
        let mut context = Context::START;
        let mut is_last = true;
        while let Some(arrival) = self.arrivals.get(index) {
            if std::mem::take(&mut is_last) {
                context = arrival.context;
            }
            if self.arrivals.position(index) == 0 {
                break;
            }
            let before = arrival.from as usize;
            if let (StepKind::Match(kind), Some(from)) = (arrival.step, self.arrivals.get(before)) {
                let length = self.arrivals.position(index) - self.arrivals.position(before);
                sequences.push(Sequence {
                    run: from.context.run,
                    kind,
                    length: length as u32,
                    distance: arrival.context.recent[0],
                });
            }
            index = before;
        }
        sequences[first..].reverse();
        context
    }
}

const _: () = assert!(RECENT == NEW);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::random_bytes;

    #[test]
    fn the_longest_match_is_taken_and_not_the_nearest() {
        // Halves of the passages stand between them and their repetition in another order.
        const PASSAGE: usize = 200;
        let passages = random_bytes(16 * PASSAGE, 1);
        let mut raw = passages.clone();
        for passage in passages.chunks(PASSAGE).rev() {
            raw.extend_from_slice(&passage[..PASSAGE / 2]);
        }
        for passage in passages.chunks(PASSAGE).rev() {
            raw.extend_from_slice(passage);
        }
        let (contexts, effort) = (super::super::LARGEST_CONTEXTS, super::super::effort(2));
        let mut parser = Parser::new(Host::default(), raw.len(), contexts, effort).unwrap();
        let model = EncoderModel::new(contexts);
        let mut sequences = Vec::new();
        let (mut start, mut context) = (0, Context::START);
        while start < raw.len() {
            let (raw, end) = (&raw[..], raw.len());
            let segment = Segment { raw, start, end };
            start = parser.parse(&model, segment, &mut context, &mut sequences);
        }
        let whole = sequences
            .iter()
            .filter(|whole| whole.length as usize >= PASSAGE - 1);
        assert_eq!(whole.count(), 16);
    }
}
