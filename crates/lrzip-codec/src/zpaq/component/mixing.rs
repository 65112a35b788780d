//! Components that combine the predictions of others: AVG, MIX2 and MIX.

use super::bit::{BitPosition, LANES, PREDICTIONS, Predictions, target};
use crate::cpu::prefetch;
use crate::zpaq::table::allocate;
use crate::zpaq::tables::{Tables, clamp_stretched, clamp_weight};
use refrain_codec::Result;

/// The average of two predictions with a fixed weight.
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

/// The settings rate of a mixer, and the mask of the known bits that select its weights.
#[derive(Clone, Copy)]
pub(crate) struct MixerSettings {
    pub(crate) rate: u8,
    pub(crate) mask: u8,
}

impl MixerSettings {
    /// Returns the index of the set of weights, before it is masked into the table.
    #[inline(always)]
    fn set_index(self, context: u32, partial: u32) -> usize {
        context.wrapping_add(partial & u32::from(self.mask)) as usize
    }
}

/// The average of two predictions with a learned weight.
pub(crate) struct Mix2 {
    pub(crate) index: u8,
    inputs: [u8; 2],
    settings: MixerSettings,
    weights: Vec<u16>,
    selected: usize,
}

impl Mix2 {
    pub(crate) fn new(
        index: u8,
        size_bits: u8,
        inputs: [u8; 2],
        settings: MixerSettings,
    ) -> Result<Mix2> {
        Ok(Mix2 {
            index,
            inputs,
            settings,
            weights: allocate(1 << size_bits, 32768)?,
            selected: 0,
        })
    }

    #[inline(always)]
    pub(crate) fn predict(
        &mut self,
        position: BitPosition,
        context: u32,
        predictions: &Predictions,
    ) -> i32 {
        self.selected =
            self.settings.set_index(context, position.partial) & (self.weights.len() - 1);
        let weight = i32::from(self.weights[self.selected]);
        let [a, b] = self.inputs.map(|input| predictions[usize::from(input)]);
        (weight * a + (65536 - weight) * b) >> 16
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, bit: usize, predictions: &Predictions, tables: &Tables) {
        let error = target(bit) - tables.squash(predictions[usize::from(self.index)]);
        let error = (error * i32::from(self.settings.rate)) >> 5;
        let [a, b] = self.inputs.map(|input| predictions[usize::from(input)]);
        let change = (error * (a - b) + (1 << 12)) >> 13;
        let weight = &mut self.weights[self.selected];
        *weight = (i32::from(*weight) + change).clamp(0, 65535) as u16;
    }
}

/// The sum of any number of predictions with learned weights.
pub(crate) struct Mix {
    pub(crate) index: u8,
    first: u8,
    count: usize,
    settings: MixerSettings,
    mask: usize,
    /// Sets of `count` weights. Padding follows the last set, because the last group of lanes may
    /// exceed it.
    weights: Vec<i32>,
    selected: usize,
    /// All ones in the lanes of the last group that have an input, else zeros.
    last_mask: [i32; LANES],
}

impl Mix {
    pub(crate) fn new(
        index: u8,
        size_bits: u8,
        (first, count): (u8, usize),
        settings: MixerSettings,
    ) -> Result<Mix> {
        let length = (count << size_bits) + LANES - 1;
        let last_inputs = count - (count - 1) / LANES * LANES;
        Ok(Mix {
            index,
            first,
            count,
            settings,
            mask: (1 << size_bits) - 1,
            weights: allocate(length, 65536 / count as i32)?,
            selected: 0,
            last_mask: std::array::from_fn(|lane| if lane < last_inputs { -1 } else { 0 }),
        })
    }

    #[inline(always)]
    fn prefetch(&self, position: BitPosition, context: u32) {
        let next = self.settings.set_index(context, position.partial * 2) & self.mask;
        prefetch(&self.weights[next * self.count]);
    }

    #[inline(always)]
    pub(crate) fn predict(
        &mut self,
        position: BitPosition,
        context: u32,
        predictions: &Predictions,
    ) -> i32 {
        self.prefetch(position, context);
        self.selected =
            (self.settings.set_index(context, position.partial) & self.mask) * self.count;
        let first = usize::from(self.first);
        let weights = &self.weights[self.selected..self.selected + self.count];
        let pairs = weights.iter().zip(&predictions[first..first + self.count]);
        // Inputs are loaded individually: a vector load would wait until the last predictions have
        // left the store buffer.
        let sum: i32 = pairs
            .map(|(&weight, &input)| (weight >> 8) * std::hint::black_box(input))
            .sum();
        clamp_stretched(sum >> 8)
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, bit: usize, predictions: &Predictions, tables: &Tables) {
        let error = target(bit) - tables.squash(predictions[usize::from(self.index)]);
        let error = (error * i32::from(self.settings.rate)) >> 4;
        let first = usize::from(self.first);
        let mut done = 0;
        while done < self.count {
            let is_last = done + LANES >= self.count;
            let inputs = &predictions[first + done..][..LANES];
            let weights = &mut self.weights[self.selected + done..][..LANES];
            for lane in 0..LANES {
                // A lane without an input must not change its weight, which belongs to the next
                // set.
                let input =
                    if is_last { inputs[lane] & self.last_mask[lane] } else { inputs[lane] };
                let change = (error * input + (1 << 12)) >> 13;
                weights[lane] = clamp_weight(weights[lane] + change);
            }
            done += LANES;
        }
    }
}

// The last group of lanes of a mixer stays within the predictions.
const _: () = assert!(PREDICTIONS >= 255 + LANES);
