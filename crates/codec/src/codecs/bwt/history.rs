//! What the run model remembers of a block so far.

use super::recency::Recency;
use super::tree::{Shape, Tree};

/// Where the mean rank of late symbols is above this, the block is close to noise: contexts tell
/// nothing there, and each byte takes some ten decisions. One counter per node then does. This keeps
/// noise at some two and a half times the time of text instead of six. Shared libraries are 2 %
/// larger with 18 here (and take three quarters of the time).
const NOISE_RANK: u32 = 25;
/// Log2 of the number of runs that the mean goes over.
const NOISE_MEAN_LOG: u32 = 6;

/// What the runs before tell about the next one.
pub(super) struct History {
    pub(super) tree: Tree,
    pub(super) recency: Recency,
    /// The last four symbols, a byte each, the latest lowest.
    pub(super) symbols: u32,
    /// The last three symbols' ranks of recency, at most 15, four bits each, the latest lowest.
    pub(super) ranks: u32,
    /// The exponents of the last three runs' lengths, likewise.
    pub(super) exponents: u32,
    /// Of each symbol's last run, at most 15.
    last_exponents: [u8; 256],
    /// Moving average of each symbol's exponents, in 1/256.
    pub(super) mean_exponents: [u16; 256],
    /// Moving average of ranks, in 1/32.
    pub(super) mean_rank: u32,
    /// Sum of ranks, each run's worth 1 / 2^`NOISE_MEAN_LOG` less than the next one's.
    noise: u32,
}

impl History {
    pub(super) fn new(shape: &Shape) -> Self {
        Self {
            tree: Tree::of(shape),
            recency: Recency::new(),
            symbols: 0,
            ranks: 0,
            exponents: 0,
            last_exponents: [0; 256],
            mean_exponents: [0; 256],
            mean_rank: 0,
            noise: 0,
        }
    }

    pub(super) fn learn_symbol(&mut self, symbol: u8) -> u32 {
        let rank = self.recency.touch(symbol);
        self.symbols = self.symbols << 8 | u32::from(symbol);
        self.ranks = pushed(self.ranks, rank);
        // Ranks are at most 32, so the average stays within 1024 and the sum does not wrap.
        self.mean_rank = self.mean_rank + rank * 4 - (self.mean_rank >> 3);
        self.noise = self.noise + rank - (self.noise >> NOISE_MEAN_LOG);
        rank
    }

    pub(super) fn is_noisy(&self) -> bool {
        self.noise > NOISE_RANK << NOISE_MEAN_LOG
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

/// Three numbers of four bits, the latest lowest, after one more came.
fn pushed(three: u32, latest: u32) -> u32 {
    three << 4 & 0xFFF | latest.min(15)
}
