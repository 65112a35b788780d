//! Gated logistic mixing: a weighted sum of log odds, whose weights are trained online to spend
//! fewer bits, with sets of weights selected by small contexts, and a second mixer over the outputs
//! of the sets (Mahoney 2005; two layers as in PAQ7 and later, described in "Data Compression
//! Explained", 4.3).

use super::lanes::{Lanes, Limits, PRODUCT_SHIFT};
use super::logistic::{INPUT_LIMIT, LOGIT_LIMIT, squash};

pub(crate) const WEIGHT_ONE: i32 = 1 << 16;
/// The largest magnitude of a weight. `INPUT_LIMIT * WEIGHT_LIMIT` fits in 31 bits.
const WEIGHT_LIMIT: i32 = 8 * WEIGHT_ONE - 1;
const _: () = assert!((INPUT_LIMIT as i64) * (WEIGHT_LIMIT as i64) < 1 << 31);
const _: () = assert!(64 * ((INPUT_LIMIT as i64 * WEIGHT_LIMIT as i64) >> PRODUCT_SHIFT) < 1 << 31);

/// The largest learning rate: an error of 16 bits times this times an input must fit in 31 bits.
pub(crate) const RATE_MAX: i32 = 15;
const _: () = assert!(65_535 * (RATE_MAX as i64) * (INPUT_LIMIT as i64) < 1 << 31);

/// `SETS` groups of weights over the same inputs. In each group, a context selects the weights.
pub(crate) struct Mixer<L, const INPUTS: usize, const SETS: usize> {
    lanes: L,
    weights: Vec<[i32; INPUTS]>,
    starts: [usize; SETS],
    rows: [usize; SETS],
    /// The estimate of each group, log odds.
    logits: [i32; SETS],
    shift: u32,
}

impl<L: Lanes, const INPUTS: usize, const SETS: usize> Mixer<L, INPUTS, SETS> {
    /// Groups with `contexts[i]` rows of weights, which all start at `initial`.
    pub(crate) fn new(lanes: L, contexts: [usize; SETS], initial: i32, shift: u32) -> Self {
        let mut starts = [0; SETS];
        let mut total = 0;
        for (start, count) in starts.iter_mut().zip(contexts) {
            *start = total;
            total += count;
        }
        Self {
            lanes,
            weights: vec![[initial; INPUTS]; total],
            starts,
            rows: starts,
            logits: [0; SETS],
            shift,
        }
    }

    /// Mixes with the rows that `contexts` select; returns one estimate per group, log odds.
    #[inline(always)]
    pub(crate) fn mix(&mut self, inputs: &[i16; INPUTS], contexts: [usize; SETS]) -> &[i32; SETS] {
        for (set, context) in contexts.into_iter().enumerate() {
            self.rows[set] = self.starts[set] + context;
        }
        let sums = self.lanes.dots(inputs, &self.weights, self.rows);
        let logits = sums.map(|sum| sum >> (16 - PRODUCT_SHIFT));
        self.logits = logits.map(|logit| logit.clamp(-LOGIT_LIMIT, LOGIT_LIMIT));
        &self.logits
    }

    /// The last estimate of each group, log odds.
    #[inline(always)]
    pub(crate) fn estimates(&self) -> &[i32; SETS] {
        &self.logits
    }

    /// Trains each group with the bit, for its own error.
    #[inline(always)]
    pub(crate) fn update(&mut self, inputs: &[i16; INPUTS], bit: u32, rate: i32) {
        let steps = self.logits.map(|logit| error(logit, bit) * rate);
        let limits = Limits {
            shift: self.shift,
            weight_max: WEIGHT_LIMIT,
        };
        self.lanes
            .train(inputs, &mut self.weights, self.rows, steps, limits);
    }
}

/// The error of log odds for a bit, 16 bits and a sign.
#[inline(always)]
fn error(logit: i32, bit: u32) -> i32 {
    ((bit << 16) as i32 - bit as i32) - squash(logit) as i32
}

pub(crate) struct FinalMixer<const SETS: usize> {
    weights: Vec<[i32; SETS]>,
    row: usize,
    logit: i32,
}

impl<const SETS: usize> FinalMixer<SETS> {
    pub(crate) fn new(contexts: usize) -> Self {
        Self {
            weights: vec![[WEIGHT_ONE / SETS as i32; SETS]; contexts],
            row: 0,
            logit: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn mix(&mut self, estimates: &[i32; SETS], context: usize) -> i32 {
        self.row = context;
        let weights = &self.weights[context];
        let mut sum = 0_i64;
        for (&estimate, &weight) in estimates.iter().zip(weights) {
            sum += i64::from(estimate) * i64::from(weight);
        }
        self.logit = ((sum >> 16) as i32).clamp(-LOGIT_LIMIT, LOGIT_LIMIT);
        self.logit
    }

    #[inline(always)]
    pub(crate) fn update(&mut self, estimates: &[i32; SETS], bit: u32, rate: i32) {
        let step = i64::from(error(self.logit, bit) * rate);
        for (&estimate, weight) in estimates.iter().zip(&mut self.weights[self.row]) {
            let change = (i64::from(estimate) * step + (1 << 17)) >> 18;
            *weight = (*weight + change as i32).clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs::cm::lanes::Plain;
    use crate::test_data;

    #[test]
    fn mixer_learns_which_input_predicts() {
        let mut mixer = Mixer::<Plain, 16, 1>::new(Plain, [1], WEIGHT_ONE / 16, 18);
        let random = test_data::random_bytes(4000, 1);
        let mut cost = 0.0;
        for (index, pair) in random.chunks_exact(2).enumerate() {
            let bit = u32::from(pair[0] & 1);
            let mut inputs = [0; 16];
            inputs[3] = if bit == 1 { 300 } else { -300 };
            inputs[7] = if pair[1] & 1 == 1 { 1500 } else { -1500 };
            let odds = squash(mixer.mix(&inputs, [0])[0]);
            if index > 1000 {
                let p = f64::from(if bit == 1 { odds } else { 65_536 - odds }) / 65_536.0;
                cost -= p.log2();
            }
            mixer.update(&inputs, bit, 14);
        }
        assert!(cost / 999.0 < 0.2, "{cost}");
    }
}
