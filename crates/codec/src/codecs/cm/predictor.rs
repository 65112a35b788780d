//! The model: predicts one bit at a time and learns it. Encoder and decoder run this same code.

use super::apm::Apm;
use super::byte_flag::ByteFlag;
use super::context::{Situation, hash};
use super::counter::{Counter, Follower};
use super::history::{self, STATES};
use super::lanes::Lanes;
use super::logistic::{squash, stretch};
use super::matching::PredictedByte;
use super::matching::{LENGTH_CLASSES, Match};
use super::mixer::{FinalMixer, Mixer, WEIGHT_ONE};
use super::model::Model;
use super::profile::Profile;
use super::table::{Slot, Table};

/// Inputs beside those of hashed contexts and matches: orders 0 and 1, and a constant.
pub(crate) const OTHER_INPUTS: usize = 1 + 2 + 1;
/// Rate at which the worth of a bit history is learned, log2 of its inverse.
const MAP_SHIFT: u32 = 7;
/// Contexts that choose the weights of each group.
const SET_CONTEXTS: [usize; 3] = [LENGTH_CLASSES * SEEN_CLASSES, 256, 256];
/// Shortest matches of the models.
const MATCH_MINIMUM_BYTES: [usize; 2] = [6, 20];
/// Classes of how many contexts were seen before.
const SEEN_CLASSES: usize = 8;

/// Predicts with `CONTEXTS` hashed contexts; `INPUTS` is at least that and `OTHER_INPUTS`.
pub(crate) struct Predictor<
    't,
    L,
    const CONTEXTS: usize,
    const INPUTS: usize,
    const SETS: usize,
    const MATCHES: usize,
> {
    profile: Profile,
    situation: Situation,
    table: Table<'t>,
    hashes: [u32; CONTEXTS],
    slots: [Slot; CONTEXTS],
    states: [u8; CONTEXTS],
    /// What a bit history is worth, by context.
    maps: Box<[[Follower; 256]; CONTEXTS]>,
    order0: Vec<Counter>,
    order1: Vec<Counter>,
    /// By rising minimum length.
    matches: [Match; MATCHES],
    inputs: [i16; INPUTS],
    mixer: Mixer<L, INPUTS, SETS>,
    last_mixer: FinalMixer<SETS>,
    apms: [Apm; 2],
    /// 1 followed by the bits of this byte so far, and their number.
    partial: u32,
    count: u32,
    /// Hashed contexts that were seen before, by class.
    seen_class: usize,
    /// Index of the byte's first node in direct tables.
    order1_start: usize,
    direct_mask: usize,
    /// First of the sixteen rows that this nibble has in the second map.
    apm_row: usize,
    /// Matches of this length make a byte all but sure.
    sure_bytes: u32,
    guess: Option<PredictedByte>,
    sure: ByteFlag,
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
    const ROOM: () = assert!(CONTEXTS + 2 * MATCHES + OTHER_INPUTS <= INPUTS);

    /// A model that knows nothing yet.
    pub(crate) fn new(lanes: L, table: Table<'t>, model: Model) -> Self {
        const { Self::ROOM };
        let half = Counter::new(1 << 15, 0);
        let positions_log = model.positions_log();
        let direct = 1 << model.direct_log();
        let sets = std::array::from_fn(|set| SET_CONTEXTS[set]);
        let mut predictor = Self {
            profile: model.profile,
            situation: Situation::default(),
            table,
            hashes: [0; CONTEXTS],
            slots: [Slot::default(); CONTEXTS],
            states: [0; CONTEXTS],
            maps: Box::new([new_map(); CONTEXTS]),
            order0: vec![half; 256],
            order1: vec![half; direct],
            matches: std::array::from_fn(|index| {
                let minimum_bytes = MATCH_MINIMUM_BYTES[index];
                Match::new(minimum_bytes, positions_log)
            }),
            inputs: [0; INPUTS],
            mixer: Mixer::new(lanes, sets, WEIGHT_ONE / 5, 18),
            last_mixer: FinalMixer::new(256),
            apms: [Apm::new(direct, 255), Apm::new(1 << 12, 255)],
            partial: 1,
            count: 0,
            seen_class: 0,
            order1_start: 0,
            direct_mask: direct - 1,
            apm_row: 0,
            sure_bytes: model.effort().sure_bytes,
            guess: None,
            sure: ByteFlag::new(model.direct_log()),
        };
        predictor.choose_slots(0);
        predictor
    }

    /// The probability that the next bit is a one, 16 bits, 1..=65535.
    #[inline(always)]
    pub(crate) fn predict(&mut self) -> u32 {
        let partial = self.partial as usize;
        self.apms[0].choose(self.order1_start | partial);
        self.apms[1].choose(self.apm_row + nibble_node(self.partial, self.count));
        self.gather_inputs();
        let class = self.matches.iter().map(Match::class).max().unwrap_or(0);
        let choices = [
            class * SEEN_CLASSES + self.seen_class,
            partial,
            (self.situation.last & 0xFF) as usize,
        ];
        let contexts = std::array::from_fn(|set| choices[set]);
        let verdicts = self.mixer.mix(&self.inputs, contexts);
        let logit = self.last_mixer.mix(verdicts, partial);
        let mixed = squash(logit);
        let refined = self.apms[0].refine(logit) + self.apms[1].refine(logit);
        ((2 * mixed + refined) >> 2).clamp(1, 65_535)
    }

    #[inline(always)]
    fn gather_inputs(&mut self) {
        let node = nibble_node(self.partial, self.count);
        for index in 0..CONTEXTS {
            let state = self.table.state(self.slots[index], node);
            self.states[index] = state;
            let probability = self.maps[index][usize::from(state)].probability();
            // What was never seen says nothing. A second input per context, the distance of the
            // probability from 1/2, gained nothing (0.04 percent) and doubled the mixer's work.
            let mask = -i32::from(state != 0);
            self.inputs[index] = (stretch(probability) & mask) as i16;
        }
        let mut at = CONTEXTS;
        for model in &mut self.matches {
            let mut said = [0; 2];
            model.predict(self.partial, self.count, &mut said);
            self.inputs[at..at + 2].copy_from_slice(&said);
            at += 2;
        }
        let order0 = self.order0[self.partial as usize].probability();
        let order1 = self.order1[self.order1_start | self.partial as usize].probability();
        self.inputs[at] = stretch(order0) as i16;
        self.inputs[at + 1] = stretch(order1) as i16;
        self.inputs[at + 2] = ((order1 as i32 - 32_768) >> 5) as i16;
        self.inputs[at + 3] = 256;
    }

    /// Learns a bit that is not the last one of a byte.
    #[inline(always)]
    pub(crate) fn update(&mut self, bit: u32) {
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
            self.choose_slots(nibble);
            self.apm_row = apm_row(self.situation.last, nibble);
        }
    }

    /// Learns the last bit of a byte. `history` is all bytes so far, the new one included.
    #[inline(always)]
    pub(crate) fn update_byte(&mut self, bit: u32, history: &[u8]) {
        self.situation.next_byte(history);
        for model in &mut self.matches {
            model.update(bit);
            model.next_byte(history);
        }
        self.find_guess();
        if self.guess.is_none() {
            self.hashes = self.situation.hashes(self.profile, history);
            self.prefetch_buckets(0);
        }
        self.learn(bit);
        self.start_byte();
        if self.guess.is_none() {
            self.choose_slots(0);
        }
    }

    /// The byte that comes next, where a long match makes it all but sure. Then it is coded by one
    /// flag, with the probability of `predict_sure`, followed by `update_sure`.
    #[inline(always)]
    pub(crate) fn guess(&self) -> Option<u8> {
        self.guess.map(|guess| guess.byte)
    }

    /// The probability that the guess is right, 16 bits, 1..=65535.
    #[inline(always)]
    pub(crate) fn predict_sure(&mut self) -> u32 {
        match self.guess {
            Some(guess) => self.sure.predict(guess, self.situation.last),
            None => 1 << 15,
        }
    }

    /// Learns that the guess was right; `history` ends with it.
    #[inline(always)]
    pub(crate) fn confirm(&mut self, history: &[u8]) {
        self.sure.update(1);
        self.situation.next_byte(history);
        for model in &mut self.matches {
            model.next_sure_byte(history);
        }
        self.find_guess();
        self.start_byte();
        if self.guess.is_none() {
            self.enter_model(history);
        }
    }

    /// Learns that the guess was wrong: the byte has to be coded bit by bit. `history` is all bytes
    /// before it.
    #[inline(always)]
    pub(crate) fn refute(&mut self, history: &[u8]) {
        self.sure.update(0);
        if let Some(guess) = self.guess.take() {
            for model in &mut self.matches {
                model.rule_out(guess.byte);
            }
        }
        self.enter_model(history);
    }

    /// Finds the contexts of a byte, behind bytes that were skipped.
    #[inline(never)]
    fn enter_model(&mut self, history: &[u8]) {
        self.hashes = self.situation.hashes(self.profile, history);
        self.prefetch_buckets(0);
        self.choose_slots(0);
    }

    #[inline(always)]
    fn find_guess(&mut self) {
        let mut longest_first = self.matches.iter().rev();
        self.guess = longest_first.find_map(|model| model.guess(self.sure_bytes));
    }

    #[inline(always)]
    fn start_byte(&mut self) {
        self.partial = 1;
        self.count = 0;
        self.order1_start = (self.situation.last as usize & 0xFF) << 8 & self.direct_mask;
        self.apm_row = apm_row(self.situation.last, 1);
    }

    /// Teaches every part the bit that came.
    #[inline(always)]
    fn learn(&mut self, bit: u32) {
        self.last_mixer.update(self.mixer.verdicts(), bit, 2);
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
                .set_state(self.slots[index], node, history::next(state, bit));
        }
    }

    /// Asks for the lines of the next nibble's buckets.
    #[inline(always)]
    fn prefetch_buckets(&self, nibble: u32) {
        for &hash in &self.hashes {
            self.table.prefetch(hash, nibble);
        }
    }

    /// Finds the buckets of the next nibble: `nibble` is 0 for the first, or 16 and the first one.
    #[inline(always)]
    fn choose_slots(&mut self, nibble: u32) {
        let mut seen = 0;
        for index in 0..CONTEXTS {
            let slot = self.table.bucket(self.hashes[index], nibble);
            self.slots[index] = slot;
            seen += usize::from(self.table.state(slot, 0) != 0);
        }
        self.seen_class = seen * (SEEN_CLASSES - 1) / CONTEXTS;
    }
}

/// First row of a nibble in the second map: sixteen rows together, chosen by the last three bytes.
#[inline(always)]
fn apm_row(last: u64, nibble: u32) -> usize {
    (hash((last & 0xFF_FFFF) << 8 | u64::from(nibble), 0) as usize >> 24) << 4
}

/// Node in a nibble's tree of bits.
#[inline(always)]
fn nibble_node(partial: u32, count: u32) -> usize {
    let bits = count & 3;
    ((1 << bits) - 1 + (partial & ((1 << bits) - 1))) as usize
}

/// A map that starts at the shares its histories tell.
fn new_map() -> [Follower; 256] {
    let mut map = [Follower::new(1 << 15); 256];
    for (state, follower) in map.iter_mut().enumerate().take(STATES) {
        let [zeros, ones] = history::seen(state).counts.map(u32::from);
        // Shares of Krichevsky and Trofimov, with less weight to what was not seen.
        let share = ((5 * ones + 1) << 16) / (5 * (zeros + ones) + 2);
        *follower = Follower::new(share.min(65_535));
    }
    map
}
