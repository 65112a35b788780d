//! The model: predicts one bit at a time and is updated with it. Encoder and decoder run this same
//! code.
//!
//! What several places use is inlined except in WebAssembly, where a decoder that an archive
//! carries should be small.

use super::apm::Apm;
use super::bit_history::{self, STATES};
use super::byte_flag::ByteFlag;
use super::context::{ContextState, hash};
use super::counter::{Counter, FixedRateCounter};
use super::lanes::Lanes;
use super::logistic::{squash, stretch};
use super::matching::PredictedByte;
use super::matching::{LENGTH_CLASSES, MatchModel};
use super::mixer::{FinalMixer, Mixer, WEIGHT_ONE};
use super::model::Model;
use super::profile::Profile;
use super::table::{BucketOffset, Table};

/// The inputs besides hashed contexts and matches: orders 0 and 1, and a constant.
pub(crate) const OTHER_INPUTS: usize = 1 + 2 + 1;
/// The rate of the probability of a bit history, log2 of its inverse.
const MAP_SHIFT: u32 = 7;
/// The number of contexts that select the weights of each group.
const SET_CONTEXTS: [usize; 3] = [LENGTH_CLASSES * KNOWN_CLASSES, 256, 256];
/// The shortest matches of the match models.
const MATCH_MINIMUM_BYTES: [usize; 2] = [6, 20];
/// The number of classes of the number of known contexts.
const KNOWN_CLASSES: usize = 8;

/// What drives a model. Encoder and decoder make the same calls.
pub(crate) trait BitModel {
    /// The probability that the next bit is a 1, 16 bits, 1..=65535.
    fn predict(&mut self) -> u32;

    /// Updates the model with a bit other than the last one of a byte.
    fn update(&mut self, bit: u32);

    /// Updates the model with the last bit of a byte. `history` is all bytes so far, including the
    /// new one.
    fn update_byte(&mut self, bit: u32, history: &[u8]);

    /// The predicted next byte, after a long match. It is coded by one flag with the probability of
    /// `predict_flag`, followed by `accept_byte` or `reject_byte`.
    fn predicted_byte(&self) -> Option<u8>;

    fn predict_flag(&mut self) -> u32;

    /// Updates the model after a right prediction; `history` ends with the byte.
    fn accept_byte(&mut self, history: &[u8]);

    /// Updates the model after a wrong prediction: the byte has to be coded bit by bit. `history`
    /// is all bytes before it.
    fn reject_byte(&mut self, history: &[u8]);
}

/// A predictor with `CONTEXTS` hashed contexts; `INPUTS` is at least the sum of all inputs.
pub(crate) struct Predictor<
    't,
    L,
    const CONTEXTS: usize,
    const INPUTS: usize,
    const SETS: usize,
    const MATCHES: usize,
> {
    profile: Profile,
    context_state: ContextState,
    table: Table<'t>,
    hashes: [u32; CONTEXTS],
    slots: [BucketOffset; CONTEXTS],
    states: [u8; CONTEXTS],
    /// The probability of a 1 after each bit history, by context.
    maps: Box<[[FixedRateCounter; 256]; CONTEXTS]>,
    order0: Vec<Counter>,
    order1: Vec<Counter>,
    /// The match models, by rising minimum length.
    matches: [MatchModel; MATCHES],
    inputs: [i16; INPUTS],
    mixer: Mixer<L, INPUTS, SETS>,
    last_mixer: FinalMixer<SETS>,
    apms: [Apm; 2],
    /// 1 followed by the bits of this byte so far, and their number.
    partial: u32,
    count: u32,
    /// The class of the number of hashed contexts with a history.
    known_class: usize,
    /// The index of the first node of the byte in direct tables.
    order1_start: usize,
    direct_mask: usize,
    /// The first of the sixteen rows of this nibble in the second map.
    apm_row: usize,
    flag_match_bytes: u32,
    predicted_byte: Option<PredictedByte>,
    byte_flag: ByteFlag,
}

impl<
    't,
    L: Lanes,
    const CONTEXTS: usize,
    const INPUTS: usize,
    const SETS: usize,
    const MATCHES: usize,
> Predictor<'t, L, CONTEXTS, INPUTS, SETS, MATCHES>
{
    const INPUTS_FIT: () = assert!(CONTEXTS + 2 * MATCHES + OTHER_INPUTS <= INPUTS);

    pub(crate) fn new(lanes: L, table: Table<'t>, model: Model) -> Self {
        const { Self::INPUTS_FIT };
        let half = Counter::new(1 << 15, 0);
        let positions_log = model.positions_log();
        let direct = 1 << model.direct_log();
        let sets = std::array::from_fn(|set| SET_CONTEXTS[set]);
        let mut predictor = Self {
            profile: model.profile,
            context_state: ContextState::default(),
            table,
            hashes: [0; CONTEXTS],
            slots: [BucketOffset::default(); CONTEXTS],
            states: [0; CONTEXTS],
            maps: Box::new([new_map(); CONTEXTS]),
            order0: vec![half; 256],
            order1: vec![half; direct],
            matches: std::array::from_fn(|index| {
                let minimum_bytes = MATCH_MINIMUM_BYTES[index];
                MatchModel::new(minimum_bytes, positions_log)
            }),
            inputs: [0; INPUTS],
            mixer: Mixer::new(lanes, sets, WEIGHT_ONE / 5, 18),
            last_mixer: FinalMixer::new(256),
            apms: [Apm::new(direct, 255), Apm::new(1 << 12, 255)],
            partial: 1,
            count: 0,
            known_class: 0,
            order1_start: 0,
            direct_mask: direct - 1,
            apm_row: 0,
            flag_match_bytes: model.level_settings().flag_match_bytes,
            predicted_byte: None,
            byte_flag: ByteFlag::new(model.direct_log()),
        };
        predictor.find_slots(0);
        predictor
    }

    #[inline(always)]
    fn gather_inputs(&mut self) {
        let node = nibble_node(self.partial, self.count);
        for index in 0..CONTEXTS {
            let state = self.table.state(self.slots[index], node);
            self.states[index] = state;
            let probability = self.maps[index][usize::from(state)].probability();
            // A context without history has no influence. A second input per context, the distance
            // of the probability from 1/2, saved nothing (0.04 percent) and doubled the work of the
            // mixer.
            let mask = -i32::from(state != 0);
            self.inputs[index] = (stretch(probability) & mask) as i16;
        }
        let mut at = CONTEXTS;
        for model in &mut self.matches {
            let mut predictions = [0; 2];
            model.predict(self.partial, self.count, &mut predictions);
            self.inputs[at..at + 2].copy_from_slice(&predictions);
            at += 2;
        }
        let order0 = self.order0[self.partial as usize].probability();
        let order1 = self.order1[self.order1_start | self.partial as usize].probability();
        self.inputs[at] = stretch(order0) as i16;
        self.inputs[at + 1] = stretch(order1) as i16;
        self.inputs[at + 2] = ((order1 as i32 - 32_768) >> 5) as i16;
        self.inputs[at + 3] = 256;
    }

    /// Finds the contexts of a byte after bytes that were coded by flags.
    #[inline(never)]
    fn enter_model(&mut self, history: &[u8]) {
        self.hashes = self.context_state.hashes(self.profile, history);
        self.prefetch_buckets(0);
        self.find_slots(0);
    }

    #[inline(always)]
    fn find_predicted_byte(&mut self) {
        let mut longest_first = self.matches.iter().rev();
        self.predicted_byte =
            longest_first.find_map(|model| model.predicted_byte(self.flag_match_bytes));
    }

    #[inline(always)]
    fn start_byte(&mut self) {
        self.partial = 1;
        self.count = 0;
        self.order1_start = (self.context_state.last as usize & 0xFF) << 8 & self.direct_mask;
        self.apm_row = apm_row(self.context_state.last, 1);
    }

    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    #[cfg_attr(target_family = "wasm", inline(never))]
    fn learn(&mut self, bit: u32) {
        self.last_mixer.update(self.mixer.estimates(), bit, 2);
        self.mixer.update(&self.inputs, bit, 10);
        for apm in &mut self.apms {
            apm.update(bit);
        }
        self.order0[self.partial as usize].update(bit, 255);
        self.order1[self.order1_start | self.partial as usize].update(bit, 255);
        let node = nibble_node(self.partial, self.count);
        for index in 0..CONTEXTS {
            let state = self.states[index];
            self.maps[index][usize::from(state)].update(bit, MAP_SHIFT);
            self.table
                .set_state(self.slots[index], node, bit_history::next(state, bit));
        }
    }

    #[inline(always)]
    fn prefetch_buckets(&self, nibble: u32) {
        for &hash in &self.hashes {
            self.table.prefetch(hash, nibble);
        }
    }

    /// Finds the buckets of the next nibble: `nibble` is 0 for the first, or 16 plus the first one.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    #[cfg_attr(target_family = "wasm", inline(never))]
    fn find_slots(&mut self, nibble: u32) {
        let mut known = 0;
        for index in 0..CONTEXTS {
            let slot = self.table.bucket(self.hashes[index], nibble);
            self.slots[index] = slot;
            known += usize::from(self.table.state(slot, 0) != 0);
        }
        self.known_class = known * (KNOWN_CLASSES - 1) / CONTEXTS;
    }
}

impl<L: Lanes, const CONTEXTS: usize, const INPUTS: usize, const SETS: usize, const MATCHES: usize>
    BitModel for Predictor<'_, L, CONTEXTS, INPUTS, SETS, MATCHES>
{
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    #[cfg_attr(target_family = "wasm", inline(never))]
    fn predict(&mut self) -> u32 {
        let partial = self.partial as usize;
        self.apms[0].select(self.order1_start | partial);
        self.apms[1].select(self.apm_row + nibble_node(self.partial, self.count));
        self.gather_inputs();
        let class = self
            .matches
            .iter()
            .map(MatchModel::class)
            .max()
            .unwrap_or(0);
        let set_contexts = [
            class * KNOWN_CLASSES + self.known_class,
            partial,
            (self.context_state.last & 0xFF) as usize,
        ];
        let contexts = std::array::from_fn(|set| set_contexts[set]);
        let estimates = self.mixer.mix(&self.inputs, contexts);
        let logit = self.last_mixer.mix(estimates, partial);
        let mixed = squash(logit);
        let refined = self.apms[0].refine(logit) + self.apms[1].refine(logit);
        ((2 * mixed + refined) >> 2).clamp(1, 65_535)
    }

    #[inline(always)]
    fn update(&mut self, bit: u32) {
        let nibble = self.partial << 1 | bit;
        let is_nibble = self.count == 3;
        if is_nibble {
            self.prefetch_buckets(nibble);
        }
        for model in &mut self.matches {
            model.update(bit);
        }
        self.learn(bit);
        self.partial = nibble;
        self.count += 1;
        if is_nibble {
            self.find_slots(nibble);
            self.apm_row = apm_row(self.context_state.last, nibble);
        }
    }

    #[inline(always)]
    fn update_byte(&mut self, bit: u32, history: &[u8]) {
        self.context_state.next_byte(history);
        for model in &mut self.matches {
            model.update(bit);
            model.next_byte(history);
        }
        self.find_predicted_byte();
        if self.predicted_byte.is_none() {
            self.hashes = self.context_state.hashes(self.profile, history);
            self.prefetch_buckets(0);
        }
        self.learn(bit);
        self.start_byte();
        if self.predicted_byte.is_none() {
            self.find_slots(0);
        }
    }

    #[inline(always)]
    fn predicted_byte(&self) -> Option<u8> {
        self.predicted_byte.map(|predicted| predicted.byte)
    }

    #[inline(always)]
    fn predict_flag(&mut self) -> u32 {
        match self.predicted_byte {
            Some(predicted) => self.byte_flag.predict(predicted, self.context_state.last),
            None => 1 << 15,
        }
    }

    #[inline(always)]
    fn accept_byte(&mut self, history: &[u8]) {
        self.byte_flag.update(1);
        self.context_state.next_byte(history);
        for model in &mut self.matches {
            model.next_flagged_byte(history);
        }
        self.find_predicted_byte();
        self.start_byte();
        if self.predicted_byte.is_none() {
            self.enter_model(history);
        }
    }

    #[inline(always)]
    fn reject_byte(&mut self, history: &[u8]) {
        self.byte_flag.update(0);
        if let Some(predicted) = self.predicted_byte.take() {
            for model in &mut self.matches {
                model.rule_out(predicted.byte);
            }
        }
        self.enter_model(history);
    }
}

/// The first row of a nibble in the second map: sixteen adjacent rows, selected by the last three
/// bytes.
#[inline(always)]
fn apm_row(last: u64, nibble: u32) -> usize {
    (hash((last & 0xFF_FFFF) << 8 | u64::from(nibble), 0) as usize >> 24) << 4
}

#[inline(always)]
fn nibble_node(partial: u32, count: u32) -> usize {
    let bits = count & 3;
    ((1 << bits) - 1 + (partial & ((1 << bits) - 1))) as usize
}

/// A map with initial probabilities from the counts of each history.
fn new_map() -> [FixedRateCounter; 256] {
    let mut map = [FixedRateCounter::new(1 << 15); 256];
    for (state, counter) in map.iter_mut().enumerate().take(STATES) {
        let [zeros, ones] = bit_history::history_of(state).counts.map(u32::from);
        // The estimator of Krichevsky and Trofimov, with less weight to the bit that did not occur.
        let share = ((5 * ones + 1) << 16) / (5 * (zeros + ones) + 2);
        *counter = FixedRateCounter::new(share.min(65_535));
    }
    map
}
