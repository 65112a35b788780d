//! The history of a block: the state that predictions of the run model depend on.

use super::recency::Recency;
use super::tree::{Shape, Tree};

/// Above this mean rank of recent symbols, the block is nearly incompressible: contexts do not
/// help, and each byte takes about ten decisions. One counter per node then replaces them.
/// Incompressible data then takes about 2.5 times as long as text instead of six. With 18 here,
/// shared libraries are 2 % larger (in three quarters of the time).
const INCOMPRESSIBLE_RANK: u32 = 25;
/// Log2 of the number of runs that this mean covers.
const SLOW_MEAN_LOG: u32 = 6;

pub(super) struct History {
    pub(super) tree: Tree,
    pub(super) recency: Recency,
    /// The last four symbols, a byte each, the latest lowest.
    pub(super) symbols: u32,
    /// The recency ranks of the last three symbols, at most 15, four bits each, the latest lowest.
    pub(super) ranks: u32,
    /// The exponents of the lengths of the last three runs, likewise.
    pub(super) exponents: u32,
    /// The exponent of the last run of each symbol, at most 15.
    last_exponents: [u8; 256],
    /// The moving average of the exponents of each symbol, in 1/256.
    pub(super) mean_exponents: [u16; 256],
    /// The moving average of ranks, in 1/32.
    pub(super) mean_rank: u32,
    /// A slower moving average of ranks, in 1 / 2^`SLOW_MEAN_LOG`.
    slow_mean_rank: u32,
}

impl History {
    pub(super) fn new(shape: &Shape) -> Self {
        Self {
            tree: Tree::from_shape(shape),
            recency: Recency::new(),
            symbols: 0,
            ranks: 0,
            exponents: 0,
            last_exponents: [0; 256],
            mean_exponents: [0; 256],
            mean_rank: 0,
            slow_mean_rank: 0,
        }
    }

    pub(super) fn learn_symbol(&mut self, symbol: u8) -> u32 {
        let rank = self.recency.touch(symbol);
        self.symbols = self.symbols << 8 | u32::from(symbol);
        self.ranks = pushed(self.ranks, rank);
        // Ranks are at most 32, so the average stays within 1024 and the sum does not wrap.
        self.mean_rank = self.mean_rank + rank * 4 - (self.mean_rank >> 3);
        self.slow_mean_rank = self.slow_mean_rank + rank - (self.slow_mean_rank >> SLOW_MEAN_LOG);
        rank
    }

    pub(super) fn is_incompressible(&self) -> bool {
        self.slow_mean_rank > INCOMPRESSIBLE_RANK << SLOW_MEAN_LOG
    }

    pub(super) fn learn_exponent(&mut self, symbol: u8, exponent: u32) {
        self.exponents = pushed(self.exponents, exponent);
        let symbol = usize::from(symbol);
        self.last_exponents[symbol] = exponent.min(15) as u8;
        let mean = &mut self.mean_exponents[symbol];
        *mean = *mean + exponent as u16 * 64 - (*mean >> 2);
    }

    /// At most 15.
    pub(super) fn last_exponent(&self, symbol: u8) -> u32 {
        u32::from(self.last_exponents[usize::from(symbol)])
    }
}

fn pushed(three: u32, latest: u32) -> u32 {
    three << 4 & 0xFFF | latest.min(15)
}
