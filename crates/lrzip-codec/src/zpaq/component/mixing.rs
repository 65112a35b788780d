//! Components that combine predictions of others: AVG, MIX2 and MIX.

use super::bit::{At, LANES, PREDICTIONS, Predictions, target};
use crate::cpu::prefetch;
use crate::zpaq::table::table;
use crate::zpaq::tables::{Tables, clamp_stretched, clamp_weight};
use refrain_codec::Result;

/// The average of two, with a fixed weight.
pub(crate) struct Avg {
    pub(crate) index: u8,
    pub(crate) inputs: [u8; 2],
    pub(crate) weight: u8,
}

impl Avg {
    #[inline(always)]
    pub(crate) fn predict(&self, predictions: &Predictions) -> i32 {
        let [a, b] = self.inputs.map(|input| predictions[usize::from(input)]);
        let weight = i32::from(self.weight);
        (a * weight + b * (256 - weight)) >> 8
    }
}

/// How a mixer learns, and which of the known bits select its weights.
#[derive(Clone, Copy)]
pub(crate) struct Learning {
    pub(crate) rate: u8,
    pub(crate) mask: u8,
}

impl Learning {
    /// The set of weights, before it is wrapped into the table.
    #[inline(always)]
    fn set(self, context: u32, partial: u32) -> usize {
        context.wrapping_add(partial & u32::from(self.mask)) as usize
    }
}

/// The average of two, with a weight that is learnt.
pub(crate) struct Mix2 {
    pub(crate) index: u8,
    inputs: [u8; 2],
    learning: Learning,
    weights: Vec<u16>,
    used: usize,
}

impl Mix2 {
    pub(crate) fn new(
        index: u8,
        size_bits: u8,
        inputs: [u8; 2],
        learning: Learning,
    ) -> Result<Mix2> {
        Ok(Mix2 {
            index,
            inputs,
            learning,
            weights: table(1 << size_bits, 32768)?,
            used: 0,
        })
    }

    #[inline(always)]
    pub(crate) fn predict(&mut self, at: At, context: u32, predictions: &Predictions) -> i32 {
        self.used = self.learning.set(context, at.partial) & (self.weights.len() - 1);
        let weight = i32::from(self.weights[self.used]);
        let [a, b] = self.inputs.map(|input| predictions[usize::from(input)]);
        (weight * a + (65536 - weight) * b) >> 16
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, bit: usize, predictions: &Predictions, tables: &Tables) {
        let error = target(bit) - tables.squash(predictions[usize::from(self.index)]);
        let error = (error * i32::from(self.learning.rate)) >> 5;
        let [a, b] = self.inputs.map(|input| predictions[usize::from(input)]);
        let change = (error * (a - b) + (1 << 12)) >> 13;
        let weight = &mut self.weights[self.used];
        *weight = (i32::from(*weight) + change).clamp(0, 65535) as u16;
    }
}

/// The sum of many, with weights that are learnt.
pub(crate) struct Mix {
    pub(crate) index: u8,
    first: u8,
    count: usize,
    learning: Learning,
    /// Of the number of a set.
    mask: usize,
    /// Sets of `count`, and behind the last one some that nobody reads: lanes beyond the last input get there.
    weights: Vec<i32>,
    /// The first weight of the set.
    used: usize,
    /// All ones in lanes of the last group that are inputs.
    last: [i32; LANES],
}

impl Mix {
    pub(crate) fn new(
        index: u8,
        size_bits: u8,
        (first, count): (u8, usize),
        learning: Learning,
    ) -> Result<Mix> {
        let length = (count << size_bits) + LANES - 1;
        let left = count - (count - 1) / LANES * LANES;
        Ok(Mix {
            index,
            first,
            count,
            learning,
            mask: (1 << size_bits) - 1,
            weights: table(length, 65536 / count as i32)?,
            used: 0,
            last: std::array::from_fn(|lane| if lane < left { -1 } else { 0 }),
        })
    }

    /// Asks for the weights of the next bit.
    #[inline(always)]
    fn prefetch(&self, at: At, context: u32) {
        let next = self.learning.set(context, at.partial * 2) & self.mask;
        prefetch(&self.weights[next * self.count]);
    }

    #[inline(always)]
    pub(crate) fn predict(&mut self, at: At, context: u32, predictions: &Predictions) -> i32 {
        self.prefetch(at, context);
        self.used = (self.learning.set(context, at.partial) & self.mask) * self.count;
        let first = usize::from(self.first);
        let weights = &self.weights[self.used..self.used + self.count];
        let pairs = weights.iter().zip(&predictions[first..first + self.count]);
        // Each input by itself: a vector of them would wait until the last predictions have left the store buffer.
        let sum: i32 = pairs
            .map(|(&weight, &input)| (weight >> 8) * std::hint::black_box(input))
            .sum();
        clamp_stretched(sum >> 8)
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, bit: usize, predictions: &Predictions, tables: &Tables) {
        let error = target(bit) - tables.squash(predictions[usize::from(self.index)]);
        let error = (error * i32::from(self.learning.rate)) >> 4;
        let first = usize::from(self.first);
        let mut done = 0;
        while done < self.count {
            let is_last = done + LANES >= self.count;
            let inputs = &predictions[first + done..][..LANES];
            let weights = &mut self.weights[self.used + done..][..LANES];
            for lane in 0..LANES {
                // Where there is no input nothing changes: the next set begins there.
                let input = match is_last {
                    true => inputs[lane] & self.last[lane],
                    false => inputs[lane],
                };
                let change = (error * input + (1 << 12)) >> 13;
                weights[lane] = clamp_weight(weights[lane] + change);
            }
            done += LANES;
        }
    }
}

// The last group of the last mixer stays within the predictions.
const _: () = assert!(PREDICTIONS >= 255 + LANES);
