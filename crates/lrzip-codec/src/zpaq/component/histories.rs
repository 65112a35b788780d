//! Components with tables of bit histories: the indirect model (ICM) and the indirect correction
//! (ISSE).

use super::bit::{BitPosition, Contexts, Predictions, target};
use crate::cpu::prefetch;
use crate::zpaq::table::allocate;
use crate::zpaq::tables::{Tables, clamp_stretched, clamp_weight};
use refrain_codec::Result;

const ROW_BYTES: usize = 16;
const LINE_ROWS: usize = 4;

/// A check byte, and the histories of the 15 prefixes of a nibble.
type NibbleHistories = [u8; ROW_BYTES];

/// The candidate rows of a context are in one cache line.
#[derive(Clone)]
#[repr(align(64))]
struct Line([NibbleHistories; LINE_ROWS]);

pub(crate) struct HistoryTable {
    lines: Vec<Line>,
    /// The number of bits by which a context is shifted right to obtain its check byte.
    check_shift: u32,
    line: usize,
    slot: usize,
    /// A copy of the row of this nibble. It is written back at the next nibble.
    row: NibbleHistories,
}

impl HistoryTable {
    fn new(size_bits: u8) -> Result<HistoryTable> {
        Ok(HistoryTable {
            lines: allocate(1 << size_bits, Line([[0; ROW_BYTES]; LINE_ROWS]))?,
            check_shift: u32::from(size_bits) + 2,
            line: 0,
            slot: 0,
            row: [0; ROW_BYTES],
        })
    }

    #[inline(always)]
    fn line_of(&self, context: u32) -> usize {
        (context as usize / LINE_ROWS) & (self.lines.len() - 1)
    }

    #[inline(always)]
    fn prefetch(&self, context: u32) {
        prefetch(&self.lines[self.line_of(context)]);
    }

    /// Selects the row of a context: among three candidates the one with its check byte, else the
    /// one with the least used history, which is cleared.
    #[inline(always)]
    fn select_row(&mut self, context: u32) {
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

    #[inline(always)]
    fn history(&self, position: BitPosition) -> u8 {
        self.row[position.nibble & 15]
    }
}

/// Combines the context of the byte with its known bits into the context of a row.
#[inline(always)]
fn row_context(context: u32, partial: u32) -> u32 {
    context.wrapping_add(16 * partial)
}

/// The probability of a one for a history of an [`Icm`], in units of 2^-23, and its stretched
/// value.
#[derive(Clone, Copy)]
struct Counter {
    probability: u32,
    stretched: i32,
}

/// The probability of a one, indexed by a bit history.
pub(crate) struct Icm {
    pub(crate) index: u8,
    histories: HistoryTable,
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
            histories: HistoryTable::new(size_bits)?,
            counters: std::array::from_fn(counter),
        })
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, context: u32, partial: u32) {
        self.histories.prefetch(row_context(context, partial));
    }

    #[inline(always)]
    pub(crate) fn begin_nibble(&mut self, context: u32, partial: u32) {
        self.histories.select_row(row_context(context, partial));
    }

    #[inline(always)]
    pub(crate) fn predict(&self, position: BitPosition) -> i32 {
        self.counters[usize::from(self.histories.history(position))].stretched
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, position: BitPosition, bit: usize, tables: &Tables) {
        let history = self.histories.history(position);
        let counter = &mut self.counters[usize::from(history)];
        let change = (target(bit) - (counter.probability >> 8) as i32) >> 2;
        counter.probability = counter.probability.wrapping_add(change as u32);
        // Computed here, where it is not on the critical path.
        counter.stretched = tables.stretch(counter.probability >> 8);
        self.histories.row[position.nibble & 15] = tables.next(history, bit);
    }
}

/// The largest number of links of a chain, which are updated in parallel lanes.
const LANES: usize = 8;

/// A chain of ISSE components, each of which corrects the prediction of the previous one by a
/// weight and a bias that a bit history selects.
pub(crate) struct Chain {
    /// The indices of the component that the first link corrects, and of the first link. The other
    /// links follow.
    pub(crate) input: u8,
    pub(crate) first: u8,
    links: Vec<Link>,
    lanes: LinkLanes,
}

struct Link {
    histories: HistoryTable,
    /// The weight of the input and the bias, indexed by history.
    weights: Box<[[i32; 2]; 256]>,
}

/// The values of the links for this bit. Lanes without a link are ignored.
#[derive(Default)]
struct LinkLanes {
    histories: [u8; LANES],
    weights: [i32; LANES],
    biases: [i32; LANES],
    inputs: [i32; LANES],
    /// The probability of a one, in units of 1/32768.
    squashed: [i32; LANES],
}

impl Chain {
    pub(crate) fn new(first: u8, size_bits: u8, input: u8, tables: &Tables) -> Result<Chain> {
        let weights = |state: usize| {
            let stretched = tables.stretch(tables.initial(state as u8) >> 8);
            [1 << 15, clamp_weight(stretched * 1024)]
        };
        let link = Link {
            histories: HistoryTable::new(size_bits)?,
            weights: Box::new(std::array::from_fn(weights)),
        };
        Ok(Chain {
            input,
            first,
            links: vec![link],
            lanes: LinkLanes::default(),
        })
    }

    /// Appends a chain that corrects the last link of this one. Returns `next` if it does not
    /// correct it.
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
            link.histories.prefetch(row_context(context, partial));
        }
    }

    #[inline(always)]
    pub(crate) fn begin_nibble(&mut self, contexts: &Contexts, partial: u32) {
        for (link, context) in self.with_contexts(contexts) {
            link.histories.select_row(row_context(context, partial));
        }
    }

    #[inline(always)]
    pub(crate) fn predict(
        &mut self,
        position: BitPosition,
        predictions: &mut Predictions,
        tables: &Tables,
    ) {
        let mut input = predictions[usize::from(self.input)];
        let lanes = &mut self.lanes;
        let outputs = &mut predictions[usize::from(self.first)..];
        for (lane, (link, output)) in self.links.iter().zip(outputs).enumerate() {
            let lane = lane % LANES;
            let history = link.histories.history(position);
            let [weight, bias] = link.weights[usize::from(history)];
            lanes.histories[lane] = history;
            lanes.weights[lane] = weight;
            lanes.biases[lane] = bias;
            lanes.inputs[lane] = input;
            input = clamp_stretched((weight * input + bias * 64) >> 16);
            lanes.squashed[lane] = tables.squash(input);
            *output = input;
        }
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, position: BitPosition, bit: usize, tables: &Tables) {
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
            link.histories.row[position.nibble & 15] = tables.next(history, bit);
        }
    }
}
