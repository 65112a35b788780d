//! One decision for a whole byte within long matches: whether it is the predicted byte.
//!
//! After a long match nearly every byte is the predicted one, and coding eight bits with the whole
//! model would take time for little information. One flag is coded instead; only when it is 0, the
//! byte is coded bit by bit with the model. The contexts are not updated with the bytes skipped,
//! which costs density: measured at 32 bytes and level 2, kernel source +4.6 percent for 0.55 of
//! the time, executables +0.3 percent for 0.9, HTML +6.8 percent for 0.45, JSON +3.5 percent for
//! 0.2.

use super::context::hash;
use super::counter::Counter;
use super::logistic::{squash, stretch};
use super::matching::{LENGTH_CLASSES, MATCH_CONTEXTS, PredictedByte};
use super::mixer::FinalMixer;

const ESTIMATES: usize = 4;
/// The contexts of each estimate: length and misses of the match; predicted byte and length;
/// predicted byte and previous byte; and, hashed, the previous three bytes.
fn contexts(direct_log: u32) -> [usize; ESTIMATES] {
    let direct = 1 << direct_log;
    [MATCH_CONTEXTS, 256 * LENGTH_CLASSES, direct, direct]
}

/// The number of updates after which old ones fade.
const LIMIT: u32 = 1023;

pub(crate) struct ByteFlag {
    counters: [Vec<Counter>; ESTIMATES],
    direct_mask: usize,
    indices: [usize; ESTIMATES],
    odds: [i32; ESTIMATES],
    mixer: FinalMixer<ESTIMATES>,
}

impl ByteFlag {
    /// `direct_log` is the log2 of the number of contexts of the last two estimates.
    pub(crate) fn new(direct_log: u32) -> Self {
        // Long matches usually continue.
        let likely = Counter::new(65_000, 2);
        Self {
            counters: contexts(direct_log).map(|contexts| vec![likely; contexts]),
            direct_mask: (1 << direct_log) - 1,
            indices: [0; ESTIMATES],
            odds: [0; ESTIMATES],
            mixer: FinalMixer::new(LENGTH_CLASSES),
        }
    }

    /// The probability that the prediction is right, 16 bits, 1..=65535. `last` is the last eight
    /// bytes.
    #[inline(always)]
    pub(crate) fn predict(&mut self, predicted: PredictedByte, last: u64) -> u32 {
        let byte = usize::from(predicted.byte);
        self.indices = [
            predicted.context,
            byte * LENGTH_CLASSES + predicted.class,
            ((last as usize & 0xFF) << 8 | byte) & self.direct_mask,
            hash((last & 0xFF_FFFF) << 8 | byte as u64, 0) as usize & self.direct_mask,
        ];
        for index in 0..ESTIMATES {
            let counter = self.counters[index][self.indices[index]];
            self.odds[index] = stretch(counter.probability());
        }
        squash(self.mixer.mix(&self.odds, predicted.class)).clamp(1, 65_535)
    }

    /// Updates the model after a right (1) or wrong (0) prediction.
    #[inline(always)]
    pub(crate) fn update(&mut self, right: u32) {
        self.mixer.update(&self.odds, right, 2);
        for (counters, &indices) in self.counters.iter_mut().zip(&self.indices) {
            counters[indices].update(right, LIMIT);
        }
    }
}
