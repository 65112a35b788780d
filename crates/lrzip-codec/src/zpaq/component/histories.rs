//! Components that look up bit histories: the indirect model (ICM), and the indirect correction (ISSE).

use super::bit::{At, Contexts, Predictions, target};
use crate::cpu::prefetch;
use crate::zpaq::table::table;
use crate::zpaq::tables::{Tables, clamp_stretched, clamp_weight};
use refrain_codec::Result;

const ROW_BYTES: usize = 16;
const LINE_ROWS: usize = 4;

/// A check byte, and the histories of the 15 beginnings of a half byte.
type Row = [u8; ROW_BYTES];

/// The rows among which a context finds its own lie in one line of the cache.
#[derive(Clone)]
#[repr(align(64))]
struct Line([Row; LINE_ROWS]);

/// A hash table of bit histories.
pub(crate) struct Rows {
    lines: Vec<Line>,
    /// By so much a context is shifted to become its check byte.
    check_shift: u32,
    /// Where `row` belongs.
    line: usize,
    slot: usize,
    /// The row of this half byte, taken out of the table until the next one.
    row: Row,
}

impl Rows {
    fn new(size_bits: u8) -> Result<Rows> {
        Ok(Rows {
            lines: table(1 << size_bits, Line([[0; ROW_BYTES]; LINE_ROWS]))?,
            check_shift: u32::from(size_bits) + 2,
            line: 0,
            slot: 0,
            row: [0; ROW_BYTES],
        })
    }

    /// The line of a context.
    #[inline(always)]
    fn line_of(&self, context: u32) -> usize {
        (context as usize / LINE_ROWS) & (self.lines.len() - 1)
    }

    #[inline(always)]
    fn prefetch(&self, context: u32) {
        prefetch(&self.lines[self.line_of(context)]);
    }

    /// Finds or makes the row of a context: of three candidates the one with the right check byte, else the one that was used
    /// least.
    #[inline(always)]
    fn turn_to(&mut self, context: u32) {
        self.lines[self.line].0[self.slot] = self.row;
        let check = context.checked_shr(self.check_shift).unwrap_or(0) as u8;
        self.line = self.line_of(context);
        let rows = &self.lines[self.line].0;
        let first = context as usize % LINE_ROWS;
        let slots = [first, first ^ 1, first ^ 2];
        if let Some(slot) = slots.into_iter().find(|&slot| rows[slot][0] == check) {
            self.slot = slot;
            self.row = rows[slot];
            return;
        }
        let [a, b, c] = slots.map(|slot| rows[slot][1]);
        self.slot = match () {
            () if a <= b && a <= c => slots[0],
            () if b < c => slots[1],
            () => slots[2],
        };
        self.row = [0; ROW_BYTES];
        self.row[0] = check;
    }

    /// The history for this bit.
    #[inline(always)]
    fn history(&self, at: At) -> u8 {
        self.row[at.in_half & 15]
    }
}

/// The context of a row: that of the byte, and the bits of it that are known.
#[inline(always)]
fn of_half(context: u32, partial: u32) -> u32 {
    context.wrapping_add(16 * partial)
}

/// What an [`Icm`] knows of a history: a probability of a one, of 2^23, and what it is when stretched.
#[derive(Clone, Copy)]
struct Counter {
    probability: u32,
    stretched: i32,
}

/// A history, and what followed it.
pub(crate) struct Icm {
    pub(crate) index: u8,
    rows: Rows,
    counters: [Counter; 256],
}

impl Icm {
    pub(crate) fn new(index: u8, size_bits: u8, tables: &Tables) -> Result<Icm> {
        let counter = |state: usize| {
            let probability = tables.initial(state as u8);
            let stretched = tables.stretch(probability >> 8);
            Counter {
                probability,
                stretched,
            }
        };
        Ok(Icm {
            index,
            rows: Rows::new(size_bits)?,
            counters: std::array::from_fn(counter),
        })
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, context: u32, partial: u32) {
        self.rows.prefetch(of_half(context, partial));
    }

    #[inline(always)]
    pub(crate) fn begin_half(&mut self, context: u32, partial: u32) {
        self.rows.turn_to(of_half(context, partial));
    }

    #[inline(always)]
    pub(crate) fn predict(&self, at: At) -> i32 {
        self.counters[usize::from(self.rows.history(at))].stretched
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, at: At, bit: usize, tables: &Tables) {
        let history = self.rows.history(at);
        let counter = &mut self.counters[usize::from(history)];
        let change = (target(bit) - (counter.probability >> 8) as i32) >> 2;
        counter.probability = counter.probability.wrapping_add(change as u32);
        // Here nobody waits for it.
        counter.stretched = tables.stretch(counter.probability >> 8);
        self.rows.row[at.in_half & 15] = tables.next(history, bit);
    }
}

/// Links of a chain whose arithmetic is done side by side.
const LANES: usize = 8;

/// A history says how to correct the prediction of another component; here a chain of them, each for the one before.
pub(crate) struct Chain {
    /// Numbers of the component that the first link corrects, and of the first link. The others follow.
    pub(crate) input: u8,
    pub(crate) first: u8,
    links: Vec<Link>,
    lanes: Lanes,
}

/// One ISSE.
struct Link {
    rows: Rows,
    /// By history: weight of the input, and what is added.
    weights: Box<[[i32; 2]; 256]>,
}

/// What the links know of this bit. Nobody reads lanes without a link.
#[derive(Default)]
struct Lanes {
    histories: [u8; LANES],
    weights: [i32; LANES],
    biases: [i32; LANES],
    inputs: [i32; LANES],
    /// The probability of a one, of 32768.
    squashed: [i32; LANES],
}

impl Chain {
    /// A chain of one link.
    pub(crate) fn new(first: u8, size_bits: u8, input: u8, tables: &Tables) -> Result<Chain> {
        let weights = |state: usize| {
            let stretched = tables.stretch(tables.initial(state as u8) >> 8);
            [1 << 15, clamp_weight(stretched * 1024)]
        };
        let link = Link {
            rows: Rows::new(size_bits)?,
            weights: Box::new(std::array::from_fn(weights)),
        };
        Ok(Chain {
            input,
            first,
            links: vec![link],
            lanes: Lanes::default(),
        })
    }

    /// Appends a chain that corrects the last link of this one; else gives it back.
    pub(crate) fn append(&mut self, mut next: Chain) -> Option<Chain> {
        let last = usize::from(self.first) + self.links.len() - 1;
        if usize::from(next.input) != last
            || usize::from(next.first) != last + 1
            || self.links.len() + next.links.len() > LANES
        {
            return Some(next);
        }
        self.links.append(&mut next.links);
        None
    }

    /// The links, each with its context.
    #[inline(always)]
    fn with_contexts<'a>(
        &'a mut self,
        contexts: &'a Contexts,
    ) -> impl Iterator<Item = (&'a mut Link, u32)> {
        let contexts = contexts[usize::from(self.first)..].iter().copied();
        self.links.iter_mut().zip(contexts)
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, contexts: &Contexts, partial: u32) {
        let contexts = &contexts[usize::from(self.first)..];
        for (link, &context) in self.links.iter().zip(contexts) {
            link.rows.prefetch(of_half(context, partial));
        }
    }

    #[inline(always)]
    pub(crate) fn begin_half(&mut self, contexts: &Contexts, partial: u32) {
        for (link, context) in self.with_contexts(contexts) {
            link.rows.turn_to(of_half(context, partial));
        }
    }

    #[inline(always)]
    pub(crate) fn predict(&mut self, at: At, predictions: &mut Predictions, tables: &Tables) {
        let mut input = predictions[usize::from(self.input)];
        let lanes = &mut self.lanes;
        let places = &mut predictions[usize::from(self.first)..];
        for (lane, (link, place)) in self.links.iter().zip(places).enumerate() {
            let lane = lane % LANES;
            let history = link.rows.history(at);
            let [weight, bias] = link.weights[usize::from(history)];
            lanes.histories[lane] = history;
            lanes.weights[lane] = weight;
            lanes.biases[lane] = bias;
            lanes.inputs[lane] = input;
            input = clamp_stretched((weight * input + bias * 64) >> 16);
            lanes.squashed[lane] = tables.squash(input);
            *place = input;
        }
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, at: At, bit: usize, tables: &Tables) {
        let lanes = &mut self.lanes;
        for lane in 0..LANES {
            let error = target(bit) - lanes.squashed[lane];
            let change = (error * lanes.inputs[lane] + (1 << 12)) >> 13;
            lanes.weights[lane] = clamp_weight(lanes.weights[lane] + change);
            lanes.biases[lane] = clamp_weight(lanes.biases[lane] + ((error + 16) >> 5));
        }
        for (lane, link) in self.links.iter_mut().enumerate() {
            let lane = lane % LANES;
            let history = lanes.histories[lane];
            link.weights[usize::from(history)] = [lanes.weights[lane], lanes.biases[lane]];
            link.rows.row[at.in_half & 15] = tables.next(history, bit);
        }
    }
}
