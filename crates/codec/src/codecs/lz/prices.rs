//! The prices of everything that a command can contain, at one moment of the model.

use super::model::EncoderModel;
use super::price::BIT;
use super::symbols::{
    COMMANDS_OF_RUN, Contexts, DISTANCE_CONTEXTS, DISTANCES, LENGTH_CONTEXTS, LOW_BITS, LOWS,
    RUN_CODES, RUN_ESCAPE, RUN_LENGTH_CONTEXT, class, class_start, length_context,
};

/// Longer lengths have the price of this one.
const LENGTH_MAX: usize = 1 << 10;

pub(super) struct Prices {
    lengths: [Vec<u32>; LENGTH_CONTEXTS],
    distances: [[u32; DISTANCES]; DISTANCE_CONTEXTS],
    lows: [u32; LOWS],
    runs: Vec<[u32; RUN_CODES]>,
}

impl Prices {
    pub(super) const MEMORY_BYTES: u64 = (LENGTH_CONTEXTS * LENGTH_MAX * 4) as u64 + (16 << 10);

    pub(super) fn new(contexts: Contexts) -> Self {
        Self {
            lengths: [const { Vec::new() }; LENGTH_CONTEXTS],
            distances: [[0; DISTANCES]; DISTANCE_CONTEXTS],
            lows: [0; LOWS],
            runs: vec![[0; RUN_CODES]; contexts.commands()],
        }
    }

    /// Sets the prices to those of the model.
    pub(super) fn set(&mut self, model: &EncoderModel) {
        for (context, prices) in self.lengths.iter_mut().enumerate() {
            prices.clear();
            prices.extend((0..LENGTH_MAX).map(|number| {
                let class = class(number as u32);
                model.lengths.price(context, class.symbol) + class.bits * BIT
            }));
        }
        for (context, prices) in self.distances.iter_mut().enumerate() {
            for (symbol, price) in prices.iter_mut().enumerate() {
                let (_, bits) = class_start(symbol as u8);
                let plain = if bits < LOW_BITS { bits } else { bits - LOW_BITS };
                *price = model.distances.price(context, symbol as u8) + plain * BIT;
            }
        }
        for (low, price) in self.lows.iter_mut().enumerate() {
            *price = model.lows.price(0, low as u8);
        }
        for (context, prices) in self.runs.iter_mut().enumerate() {
            for (code, price) in prices.iter_mut().enumerate() {
                let symbols = code * COMMANDS_OF_RUN..(code + 1) * COMMANDS_OF_RUN;
                *price = model.commands.price_of_any(context, symbols);
            }
        }
    }

    /// What the next command costs at least, with a run of this length.
    #[inline(always)]
    pub(super) fn run(&self, command_context: usize, run: u32) -> u32 {
        self.runs[command_context][run.min(RUN_ESCAPE) as usize]
    }

    /// The rest of a long run.
    #[inline(always)]
    pub(super) fn long_run(&self, number: u32) -> u32 {
        self.length(RUN_LENGTH_CONTEXT, number)
    }

    /// The rest of a long match.
    #[inline(always)]
    pub(super) fn long_match(&self, kind: usize, number: u32) -> u32 {
        self.length(length_context(kind), number)
    }

    #[inline(always)]
    fn length(&self, context: usize, number: u32) -> u32 {
        self.lengths[context][(number as usize).min(LENGTH_MAX - 1)]
    }

    /// A new distance, for each context.
    #[inline(always)]
    pub(super) fn distance(&self, distance: u32) -> [u32; DISTANCE_CONTEXTS] {
        let class = class(distance - 1);
        let low = if class.bits < LOW_BITS { 0 } else { self.lows[class.plain as usize % LOWS] };
        self.distances
            .each_ref()
            .map(|prices| prices[usize::from(class.symbol)] + low)
    }
}
