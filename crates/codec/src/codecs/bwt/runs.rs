//! The model of a transformed block: runs of equal bytes, each a symbol and a length.
//!
//! Burrows and Wheeler (1994) code move-to-front ranks; Fenwick (1996) and Deorowicz (2002) show
//! that the next symbol in a transformed block depends on the recent symbols and run lengths. Here
//! the first decision for a symbol is whether it is the one before last. If not, it is coded by the
//! decisions of a Huffman tree, each predicted from the last symbols and their recency. A run
//! length is coded as its exponent in unary and its mantissa. Coding runs takes about a quarter of
//! the decisions of a bytewise coder on source code. Alternatives, measured on transformed source:
//! move-to-front ranks in unary with an escape, 1.3 % larger; bytewise with orders 0 to 3 and run
//! contexts, 0.8 % larger and more than twice as slow; ten contexts per symbol decision instead of
//! four, 0.1 % smaller.

use super::counter::{FAST, SLOW, Steps};
use super::history::History;
use super::predictor::{Contexts, Predictor, adapt, target};
use super::tree::{Shape, Tree};
use crate::arithmetic::BinaryCoder;

/// The steps of each input's counters. Counters that also store a confidence (22 bits and a count)
/// save only 0.2 %.
const REPEAT_STEPS: [&Steps; 4] = [&FAST, &FAST, &FAST, &FAST];
const SYMBOL_STEPS: [&Steps; 4] = [&FAST, &FAST, &FAST, &SLOW];
const EXPONENT_STEPS: [&Steps; 3] = [&SLOW, &SLOW, &SLOW];
const MANTISSA_STEPS: [&Steps; 3] = [&SLOW, &SLOW, &SLOW];

/// The rate of the counters for incompressible data.
const INCOMPRESSIBLE_RATE: u32 = 7;

/// Mantissa bits below the third are nearly random.
const MANTISSA_MODELED_BITS: u32 = 3;
const HALF: u32 = 1 << 15;
/// The maximum exponent of a run length: blocks are at most 2^30 bytes.
const EXPONENT_MAX: u32 = 30;

/// All predictors of the model; reused from block to block.
pub(super) struct RunModel {
    repeat: Predictor<4, 64, 64>,
    symbol: Predictor<4, 256, 256>,
    exponent: Predictor<3, 128, 256>,
    mantissa: Predictor<3, 128, 512>,
    /// The last eight decisions at each node of the symbol tree.
    node_decisions: [u8; 256],
    /// For each node, the probability of a 1 in incompressible data.
    plain_probabilities: [u16; 256],
}

/// One run: a byte and the number of times it is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ByteRun {
    pub(super) symbol: u8,
    pub(super) length: u32,
}

impl ByteRun {
    /// For decoders: the run is not known yet.
    pub(super) const UNKNOWN: Self = Self {
        symbol: 0,
        length: 1,
    };
}

impl RunModel {
    pub(super) const MEMORY_BYTES: usize = Predictor::<4, 64, 64>::MEMORY_BYTES
        + Predictor::<4, 256, 256>::MEMORY_BYTES
        + Predictor::<3, 128, 256>::MEMORY_BYTES
        + Predictor::<3, 128, 512>::MEMORY_BYTES;

    /// A model in its initial state. `None` when memory cannot be allocated.
    pub(super) fn new() -> Option<Self> {
        Some(Self {
            repeat: Predictor::new()?,
            symbol: Predictor::new()?,
            exponent: Predictor::new()?,
            mantissa: Predictor::new()?,
            node_decisions: [0; 256],
            plain_probabilities: [HALF as u16; 256],
        })
    }

    /// Returns to the initial state, codes the shape of the symbol tree of a block and returns a
    /// new history.
    pub(super) fn start<C: BinaryCoder>(&mut self, coder: &mut C, shape: &Shape) -> History {
        self.repeat.reset();
        self.symbol.reset();
        self.exponent.reset();
        self.mantissa.reset();
        self.node_decisions = [0; 256];
        self.plain_probabilities = [HALF as u16; 256];
        History::new(&shape.code(coder))
    }

    /// Codes one run. An encoder writes `run` and returns it; a decoder ignores `run`. A decoded
    /// length may be up to 2^31 - 1, regardless of the length of the block.
    #[inline(always)]
    pub(super) fn code<C: BinaryCoder>(
        &mut self,
        coder: &mut C,
        history: &mut History,
        run: ByteRun,
    ) -> ByteRun {
        let symbol = self.code_symbol(coder, history, run.symbol);
        let rank = history.learn_symbol(symbol);
        let length = self.code_length(coder, history, symbol, rank, run.length);
        history.learn_exponent(symbol, length.ilog2());
        ByteRun { symbol, length }
    }

    #[inline(always)]
    fn code_symbol<C: BinaryCoder>(&mut self, coder: &mut C, history: &History, symbol: u8) -> u8 {
        if history.is_incompressible() {
            return self.code_symbol_without_contexts(coder, &history.tree, symbol);
        }
        let candidate = history.recency.nth(1);
        let contexts = repeat_contexts(history, candidate);
        let is_repeat = symbol == candidate;
        if self.repeat.code(coder, &contexts, REPEAT_STEPS, is_repeat) {
            return candidate;
        }
        let mut node_context = NodeContext::root(history);
        let mut code = history.tree.code(symbol);
        // A tree of 256 leaves is at most 255 deep, so the loop ends.
        loop {
            let decisions = &mut self.node_decisions[usize::from(node_context.node)];
            let contexts = node_context.contexts(*decisions);
            let bit = self
                .symbol
                .code(coder, &contexts, SYMBOL_STEPS, code >> 31 != 0);
            *decisions = *decisions << 1 | u8::from(bit);
            code <<= 1;
            match history.tree.step(node_context.node, bit) {
                Ok(symbol) => return symbol,
                Err(node) => node_context.descend(node, bit),
            }
        }
    }

    fn code_symbol_without_contexts<C: BinaryCoder>(
        &mut self,
        coder: &mut C,
        tree: &Tree,
        symbol: u8,
    ) -> u8 {
        let (mut node, mut code) = (0, tree.code(symbol));
        loop {
            let counter = &mut self.plain_probabilities[usize::from(node)];
            // Counters may reach 0, which a coder does not accept.
            let probability = u32::from(*counter).max(1);
            let bit = coder.code(code >> 31 != 0, probability);
            adapt(counter, target(bit), INCOMPRESSIBLE_RATE);
            code <<= 1;
            match tree.step(node, bit) {
                Ok(symbol) => return symbol,
                Err(next) => node = next,
            }
        }
    }

    #[inline(always)]
    fn code_length<C: BinaryCoder>(
        &mut self,
        coder: &mut C,
        history: &History,
        symbol: u8,
        rank: u32,
        length: u32,
    ) -> u32 {
        let length = length.max(1);
        let last = history.last_exponent(symbol);
        let mean = u32::from(history.mean_exponents[usize::from(symbol)] >> 5).min(63);
        let latest = history.exponents & 15;
        let rank = rank.min(7);
        let wide = u32::from(symbol);
        let by_mean = hash(wide << 8 | mean, rank.min(2));
        let mut exponent = 0;
        while exponent < EXPONENT_MAX {
            let step = exponent.min(15);
            let contexts = Contexts {
                slots: [
                    (wide << 8 | step << 4 | last) as u16,
                    (step << 12 | history.exponents) as u16,
                    near(by_mean, step, 2),
                ],
                set: (step << 3 | rank) as usize,
                map: (step << 4 | last) as usize,
            };
            let more = length.ilog2() > exponent;
            if !self.exponent.code(coder, &contexts, EXPONENT_STEPS, more) {
                break;
            }
            exponent += 1;
        }
        self.code_mantissa(coder, symbol, [last, latest], exponent, length)
    }

    #[inline(always)]
    fn code_mantissa<C: BinaryCoder>(
        &mut self,
        coder: &mut C,
        symbol: u8,
        [last, latest]: [u32; 2],
        exponent: u32,
        length: u32,
    ) -> u32 {
        let mut known = 1;
        for depth in 0..exponent {
            let bit = length >> (exponent - 1 - depth) & 1 != 0;
            let bit = if depth < MANTISSA_MODELED_BITS {
                let size = exponent.min(15);
                let prefix = known & 15;
                let contexts = Contexts {
                    slots: [
                        (exponent << 4 | prefix) as u16,
                        (u32::from(symbol) << 8 | size << 4 | prefix) as u16,
                        (size << 12 | last << 8 | latest << 4 | prefix) as u16,
                    ],
                    set: (exponent << 2 | depth) as usize,
                    map: (exponent << 4 | prefix) as usize,
                };
                self.mantissa.code(coder, &contexts, MANTISSA_STEPS, bit)
            } else {
                coder.code(bit, HALF)
            };
            known = known << 1 | u32::from(bit);
        }
        known
    }
}

fn repeat_contexts(history: &History, candidate: u8) -> Contexts<4> {
    let (r1, r2) = (history.ranks & 15, history.ranks >> 4 & 15);
    let e1 = (history.exponents & 15).min(7);
    let latest = history.symbols & 255;
    let last = history.last_exponent(candidate).min(7);
    let candidate = u32::from(candidate);
    let mean = (history.mean_rank >> 4).min(63);
    Contexts {
        slots: [
            history.ranks as u16,
            (candidate << 8 | latest) as u16,
            (mean << 6 | last << 3 | e1) as u16,
            hash(candidate << 16 | r1.min(7) << 8 | last, 3),
        ],
        set: (e1.min(3) << 4 | r1.min(3) << 2 | r2.min(3)) as usize,
        map: (e1 << 3 | r1.min(7)) as usize,
    }
}

struct NodeContext {
    node: u8,
    depth: u32,
    /// The spread codes of the third, fourth and fifth most recent symbols, interleaved: the lowest
    /// three bits are their decisions at this node.
    guesses: u64,
    /// Whether each of them agrees with all decisions so far, one bit each.
    consistent: u32,
    latest: u32,
    by_two: u16,
}

impl NodeContext {
    #[inline(always)]
    fn root(history: &History) -> Self {
        let [x, y, z] = [2, 3, 4].map(|nth| history.tree.spread_code(history.recency.nth(nth)));
        Self {
            node: 0,
            depth: 0,
            guesses: x | y << 1 | z << 2,
            consistent: 7,
            latest: history.symbols & 0xFF,
            by_two: hash(history.symbols & 0xFFFF, 7),
        }
    }

    #[inline(always)]
    fn contexts(&self, decisions: u8) -> Contexts<4> {
        let node = u32::from(self.node);
        let [all, first_two] =
            PREDICTIONS[((self.consistent << 3 | self.guesses as u32 & 7) & 63) as usize];
        Contexts {
            slots: [
                (self.latest << 8 | node) as u16,
                near(self.by_two, node, 5),
                (u32::from(all) << 8 | node) as u16,
                (node << 8 | u32::from(decisions)) as u16,
            ],
            set: (self.depth.min(15) * 9 + u32::from(first_two)) as usize,
            map: node as usize,
        }
    }

    #[inline(always)]
    fn descend(&mut self, node: u8, bit: bool) {
        let guesses = self.guesses as u32;
        self.consistent &= if bit { guesses } else { !guesses };
        self.guesses >>= 3;
        self.node = node;
        self.depth += 1;
    }
}

/// The predictions of three guesses, indexed by which of them are consistent (upper three bits) and
/// their decisions (lower three). Each predicts 0 for nothing, 1 for a decision of 0, 2 for a
/// decision of 1. The first number has all three in base 3, the first guess highest; the second has
/// the first two.
static PREDICTIONS: [[u8; 2]; 64] = predictions();

const fn predictions() -> [[u8; 2]; 64] {
    let mut table = [[0; 2]; 64];
    let mut index = 0;
    while index < 64 {
        let (consistent, decided) = (index as u8 >> 3, index as u8 & 7);
        let mut all = 0;
        let mut guess = 0;
        while guess < 3 {
            all = all * 3 + (consistent >> guess & 1) * (1 + (decided >> guess & 1));
            guess += 1;
        }
        table[index] = [all, all / 3];
        index += 1;
    }
    table
}

/// Hashes two numbers to a slot.
#[inline(always)]
fn hash(a: u32, b: u32) -> u16 {
    let mixed = a.wrapping_mul(0x9E37_79B1) ^ b.wrapping_mul(0x85EB_CA6B);
    (mixed.wrapping_mul(0xC2B2_AE35) >> 16) as u16
}

/// The slot of `index` in a context: 2^`log` slots are adjacent, so that one cache line contains
/// the slots of the next decisions.
#[inline(always)]
fn near(context: u16, index: u32, log: u32) -> u16 {
    let low = (1 << log) - 1;
    let far = (index >> log) as u16;
    (context & !low | index as u16 & low) ^ far.wrapping_mul(40503) << log
}
