//! The model of `bwt2`: a run is a length and a forward rank (`forward_ranks.rs`).
//!
//! Each is a class of 16 values, whose distribution is the average of four adaptive ones; large
//! ones also have a mantissa. All contexts depend on the symbol, which is known, or on the runs
//! before, and a rank does not depend on the length of its run: so decoding the two overlaps.
//!
//! The contexts were found by a greedy search among 40 for ranks and 20 for lengths, on the
//! transforms of text, source, JSON and a disk image. Weights that adapt instead of averages make
//! source 0.2 % smaller. Three contexts each instead of four are 0.5 % larger, in 0.9 of the time.

use super::filled::filled;
use super::nibble::{Distribution, Shares, VALUES};
use super::rans::{Decoder, Encoder, NUMBER_BITS_MAX, ONE, Share};

/// The states of the coder for ranks and for lengths.
const RANK_STATE: usize = 0;
const LENGTH_STATE: usize = 1;
/// The maximum symbols of a run: three of its rank, four of its length.
pub(super) const SYMBOLS_MAX: usize = 7;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RankedRun {
    /// The number of times that the symbol is repeated, 1 to 2^30.
    pub(super) length: u32,
    /// 1 to 255.
    pub(super) rank: u8,
}

impl RankedRun {
    /// For decoders: the run is not known yet.
    pub(super) const UNKNOWN: Self = Self { length: 1, rank: 1 };
}

/// The smallest number of a class, and the number of bits of its mantissa.
#[derive(Clone, Copy)]
struct Class {
    least: u32,
    bits: u32,
}

/// The first class of ranks with a mantissa, and of lengths.
const RANK_MANTISSAS_FROM: usize = 11;
const LENGTH_MANTISSAS_FROM: usize = 10;
/// The class of the longest lengths, which state the number of their bits.
const LONG: usize = VALUES - 1;
const RANKS: [Class; VALUES] = classes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 5, 6, 7]);
const LENGTHS: [Class; VALUES] = classes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 5, 6, 30]);
static CLASSES_OF_RANKS: [u8; 256] = classes_of(&RANKS);
static CLASSES_OF_LENGTHS: [u8; 256] = classes_of(&LENGTHS);
/// The bits of a mantissa that are predicted; lower ones are nearly random.
const PREDICTED_BITS: u32 = 4;

/// The classes in eight steps, for contexts.
const STEPS: [u8; VALUES] = [0, 1, 2, 3, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 7];

const fn classes(bits: [u32; VALUES]) -> [Class; VALUES] {
    let mut classes = [Class { least: 1, bits: 0 }; VALUES];
    let mut class = 0;
    while class < VALUES {
        classes[class].bits = bits[class];
        if class + 1 < VALUES {
            classes[class + 1].least = classes[class].least + (1 << bits[class]);
        }
        class += 1;
    }
    classes
}

/// The class of each number from 1 to 255; larger ones are in the last.
const fn classes_of(classes: &[Class; VALUES]) -> [u8; 256] {
    let mut of = [0; 256];
    let (mut class, mut number) = (0, 1);
    while number < of.len() {
        while class + 1 < VALUES && classes[class + 1].least as usize <= number {
            class += 1;
        }
        of[number] = class as u8;
        number += 1;
    }
    of
}

/// One direction: an encoder writes what it is given and returns it; a decoder ignores that.
pub(super) trait SymbolCoder {
    /// A value below `VALUES`.
    fn value(&mut self, state: usize, shares: &Shares, value: usize) -> usize;
    /// A number of 1 to `NUMBER_BITS_MAX` bits.
    fn number(&mut self, state: usize, number: u32, bits: u32) -> u32;
}

impl SymbolCoder for Encoder {
    #[inline(always)]
    fn value(&mut self, state: usize, shares: &Shares, value: usize) -> usize {
        self.push(state, shares.of(value));
        value
    }

    #[inline(always)]
    fn number(&mut self, state: usize, number: u32, bits: u32) -> u32 {
        let number = number & ((1 << bits) - 1);
        self.push(state, Share::of_number(number, bits));
        number
    }
}

impl SymbolCoder for Decoder<'_> {
    #[inline(always)]
    fn value(&mut self, state: usize, shares: &Shares, _: usize) -> usize {
        let value = shares.find(self.point(state));
        self.remove(state, shares.of(value));
        value
    }

    #[inline(always)]
    fn number(&mut self, state: usize, _: u32, bits: u32) -> u32 {
        let number = self.point(state) / (ONE >> bits);
        self.remove(state, Share::of_number(number, bits));
        number
    }
}

/// What is known about the runs of a symbol, unpacked.
struct SymbolHistory {
    /// A moving average of its ranks - 1, at most 40 each, in 1/64.
    mean_rank: u32,
    /// A moving average of its length classes, in 1/64.
    mean_length: u32,
    /// The steps of its last three length classes, three bits each, the latest lowest.
    lengths: u32,
    /// Its last length class.
    length: u32,
    /// The step of its last rank class.
    rank: u32,
}

/// A `SymbolHistory` in one number, so that it is loaded as it was stored: a processor waits where
/// a load covers several stores. And the number of runs before the last run of the symbol.
#[derive(Clone, Copy, Default)]
#[repr(align(16))]
struct PackedHistory {
    packed: u64,
    last_run: u32,
}

impl PackedHistory {
    #[inline(always)]
    fn unpacked(self) -> SymbolHistory {
        let field = |shift: u32, bits: u32| (self.packed >> shift) as u32 & ((1 << bits) - 1);
        SymbolHistory {
            mean_rank: field(0, 16),
            mean_length: field(16, 16),
            lengths: field(32, 9),
            length: field(48, 4),
            rank: field(56, 3),
        }
    }

    #[inline(always)]
    fn pack(&mut self, history: &SymbolHistory) {
        self.packed = u64::from(history.mean_rank | history.mean_length << 16)
            | u64::from(history.lengths) << 32
            | u64::from(history.length) << 48
            | u64::from(history.rank) << 56;
    }
}

type Table<const COUNT: usize> = Box<[Distribution; COUNT]>;

/// All distributions and histories; reused from block to block.
pub(super) struct RankedModel {
    ranks: RankTables,
    lengths: LengthTables,
    symbols: Box<[PackedHistory; 256]>,
    /// The number of runs so far.
    runs: u32,
    /// The step of the last rank class.
    last_rank: u32,
    /// A moving average of ranks - 1, at most 20 each, in 1/32.
    mean_rank: u32,
    /// The steps of the last four length classes, three bits each, the latest lowest.
    last_lengths: u32,
}

struct RankTables {
    by_symbol: Table<256>,
    by_distance_and_mean: Table<8192>,
    by_distance_and_last: Table<2048>,
    by_means: Table<2048>,
    mantissa_by_symbol: Table<2048>,
    mantissa_by_last: Table<64>,
}

struct LengthTables {
    by_distance: Table<1024>,
    by_symbol: Table<4096>,
    by_last: Table<4096>,
    by_own: Table<4096>,
    mantissa_by_symbol: Table<2048>,
    mantissa_by_last: Table<128>,
}

impl RankedModel {
    pub(super) const MEMORY_BYTES: usize =
        (256 + 8192 + 3 * 2048 + 64 + 1024 + 3 * 4096 + 2048 + 128) * size_of::<Distribution>()
            + 256 * size_of::<PackedHistory>();

    /// A model in its initial state. `None` when memory cannot be allocated.
    pub(super) fn new() -> Option<Self> {
        Some(Self {
            ranks: RankTables {
                by_symbol: filled(Distribution::EVEN)?,
                by_distance_and_mean: filled(Distribution::EVEN)?,
                by_distance_and_last: filled(Distribution::EVEN)?,
                by_means: filled(Distribution::EVEN)?,
                mantissa_by_symbol: filled(Distribution::EVEN)?,
                mantissa_by_last: filled(Distribution::EVEN)?,
            },
            lengths: LengthTables {
                by_distance: filled(Distribution::EVEN)?,
                by_symbol: filled(Distribution::EVEN)?,
                by_last: filled(Distribution::EVEN)?,
                by_own: filled(Distribution::EVEN)?,
                mantissa_by_symbol: filled(Distribution::EVEN)?,
                mantissa_by_last: filled(Distribution::EVEN)?,
            },
            symbols: filled(PackedHistory::default())?,
            runs: 0,
            last_rank: 0,
            mean_rank: 0,
            last_lengths: 0,
        })
    }

    /// Returns to the initial state.
    pub(super) fn reset(&mut self) {
        let RankTables {
            by_symbol,
            by_distance_and_mean,
            by_distance_and_last,
            by_means,
            mantissa_by_symbol,
            mantissa_by_last,
        } = &mut self.ranks;
        by_symbol.fill(Distribution::EVEN);
        by_distance_and_mean.fill(Distribution::EVEN);
        by_distance_and_last.fill(Distribution::EVEN);
        by_means.fill(Distribution::EVEN);
        mantissa_by_symbol.fill(Distribution::EVEN);
        mantissa_by_last.fill(Distribution::EVEN);
        let LengthTables {
            by_distance,
            by_symbol,
            by_last,
            by_own,
            mantissa_by_symbol,
            mantissa_by_last,
        } = &mut self.lengths;
        by_distance.fill(Distribution::EVEN);
        by_symbol.fill(Distribution::EVEN);
        by_last.fill(Distribution::EVEN);
        by_own.fill(Distribution::EVEN);
        mantissa_by_symbol.fill(Distribution::EVEN);
        mantissa_by_last.fill(Distribution::EVEN);
        self.symbols.fill(PackedHistory::default());
        self.runs = 0;
        self.last_rank = 0;
        self.mean_rank = 0;
        self.last_lengths = 0;
    }

    /// Codes a run of `symbol`. An encoder writes `run` and returns it; a decoder ignores `run`. A
    /// decoded length is at most 2^30 + 128, regardless of the length of the block.
    #[inline(always)]
    pub(super) fn code<C: SymbolCoder>(
        &mut self,
        coder: &mut C,
        symbol: u8,
        run: RankedRun,
    ) -> RankedRun {
        let stored = &mut self.symbols[usize::from(symbol)];
        let of = stored.unpacked();
        let distance = (self.runs - stored.last_run + 1).ilog2().min(15);
        let mean_rank = (of.mean_rank >> 4).min(63);
        let mean_length = of.mean_length >> 3;
        let length_class = self.lengths.code_class(
            coder,
            [
                distance << 6 | mean_length.min(63),
                u32::from(symbol) << 4 | of.length,
                self.last_lengths,
                of.lengths << 3 | of.rank,
            ],
            CLASSES_OF_LENGTHS[run.length.min(255) as usize].into(),
        );
        let rank_class = self.ranks.code_class(
            coder,
            [
                symbol.into(),
                distance << 9 | mean_rank << 3 | self.last_rank,
                distance << 7 | of.rank << 4 | (self.mean_rank >> 4).min(15),
                mean_length.min(31) << 6 | mean_rank,
            ],
            CLASSES_OF_RANKS[usize::from(run.rank)].into(),
        );
        let length = if length_class < LENGTH_MANTISSAS_FROM {
            length_class as u32 + 1
        } else if length_class == LONG {
            code_long_length(coder, run.length)
        } else {
            let tables = &mut self.lengths;
            tables.code_mantissa(coder, length_class, symbol, of.length, run.length)
        };
        let rank = if rank_class < RANK_MANTISSAS_FROM {
            rank_class as u32 + 1
        } else {
            let tables = &mut self.ranks;
            tables.code_mantissa(coder, rank_class, symbol, of.rank, run.rank.into())
        };
        self.learn(symbol, &of, length_class, rank_class, rank - 1);
        RankedRun {
            length,
            rank: rank as u8,
        }
    }

    #[inline(always)]
    fn learn(
        &mut self,
        symbol: u8,
        before: &SymbolHistory,
        length_class: usize,
        rank_class: usize,
        others: u32,
    ) {
        let length_step = u32::from(STEPS[length_class % VALUES]);
        let rank_step = u32::from(STEPS[rank_class % VALUES]);
        let length = length_class as u32;
        // Means of ranks stay below 64 · 40, those of lengths below 64 · 16.
        let history = SymbolHistory {
            mean_rank: before.mean_rank + 16 * others.min(40) - (before.mean_rank >> 2),
            mean_length: before.mean_length + 16 * length - (before.mean_length >> 2),
            lengths: before.lengths << 3 & 0x1FF | length_step,
            length,
            rank: rank_step,
        };
        let stored = &mut self.symbols[usize::from(symbol)];
        stored.pack(&history);
        stored.last_run = self.runs;
        self.runs += 1;
        self.last_rank = rank_step;
        self.mean_rank = self.mean_rank + 4 * others.min(20) - (self.mean_rank >> 3);
        self.last_lengths = self.last_lengths << 3 & 0xFFF | length_step;
    }
}

/// Codes a value with the average of four distributions, which learn it.
#[inline(always)]
fn code_value<C: SymbolCoder>(
    coder: &mut C,
    state: usize,
    [a, b, c, d]: [&mut Distribution; 4],
    value: usize,
) -> usize {
    let shares = Shares::of_four([a, b, c, d]);
    let value = coder.value(state, &shares, value);
    for distribution in [a, b, c, d] {
        distribution.learn(value);
    }
    value
}

/// Codes a number of a class with a mantissa, whose highest bits have the average of two
/// distributions.
#[inline(always)]
fn code_with_mantissa<C: SymbolCoder>(
    coder: &mut C,
    state: usize,
    Class { least, bits }: Class,
    [a, b]: [&mut Distribution; 2],
    number: u32,
) -> u32 {
    let mantissa = number.wrapping_sub(least);
    let predicted = bits.min(PREDICTED_BITS);
    let low_bits = bits - predicted;
    let high = (mantissa >> low_bits & (VALUES as u32 - 1)) as usize;
    let high = coder.value(state, &Shares::of_two([a, b]), high);
    a.learn(high);
    b.learn(high);
    let low = if low_bits > 0 { coder.number(state, mantissa, low_bits) } else { 0 };
    // Only damaged data has larger values than the bits that are predicted.
    least + ((high as u32 & ((1 << predicted) - 1)) << low_bits | low)
}

/// Codes a length of the last class: the number of pairs of bits, then these.
#[inline(always)]
fn code_long_length<C: SymbolCoder>(coder: &mut C, length: u32) -> u32 {
    let least = LENGTHS[LONG].least;
    let mantissa = length.wrapping_sub(least);
    let pairs = (u32::BITS - mantissa.leading_zeros()).div_ceil(2);
    let bits = 2 * coder.number(LENGTH_STATE, pairs, 4);
    let high_bits = bits.saturating_sub(NUMBER_BITS_MAX);
    let low_bits = bits - high_bits;
    let mut decoded = 0;
    if high_bits > 0 {
        decoded = coder.number(LENGTH_STATE, mantissa >> low_bits, high_bits) << low_bits;
    }
    if low_bits > 0 {
        decoded |= coder.number(LENGTH_STATE, mantissa, low_bits);
    }
    least + decoded
}

impl RankTables {
    #[inline(always)]
    fn code_class<C: SymbolCoder>(
        &mut self,
        coder: &mut C,
        [a, b, c, d]: [u32; 4],
        class: usize,
    ) -> usize {
        let distributions = [
            &mut self.by_symbol[a as usize % 256],
            &mut self.by_distance_and_mean[b as usize % 8192],
            &mut self.by_distance_and_last[c as usize % 2048],
            &mut self.by_means[d as usize % 2048],
        ];
        code_value(coder, RANK_STATE, distributions, class)
    }

    #[inline(always)]
    fn code_mantissa<C: SymbolCoder>(
        &mut self,
        coder: &mut C,
        class: usize,
        symbol: u8,
        last_step: u32,
        rank: u32,
    ) -> u32 {
        let row = class - RANK_MANTISSAS_FROM;
        let distributions = [
            &mut self.mantissa_by_symbol[(row << 8 | usize::from(symbol)) % 2048],
            &mut self.mantissa_by_last[(row << 3 | last_step as usize) % 64],
        ];
        code_with_mantissa(
            coder,
            RANK_STATE,
            RANKS[class % VALUES],
            distributions,
            rank,
        )
    }
}

impl LengthTables {
    #[inline(always)]
    fn code_class<C: SymbolCoder>(
        &mut self,
        coder: &mut C,
        [a, b, c, d]: [u32; 4],
        class: usize,
    ) -> usize {
        let distributions = [
            &mut self.by_distance[a as usize % 1024],
            &mut self.by_symbol[b as usize % 4096],
            &mut self.by_last[c as usize % 4096],
            &mut self.by_own[d as usize % 4096],
        ];
        code_value(coder, LENGTH_STATE, distributions, class)
    }

    #[inline(always)]
    fn code_mantissa<C: SymbolCoder>(
        &mut self,
        coder: &mut C,
        class: usize,
        symbol: u8,
        last_class: u32,
        length: u32,
    ) -> u32 {
        let row = class - LENGTH_MANTISSAS_FROM;
        let distributions = [
            &mut self.mantissa_by_symbol[(row << 8 | usize::from(symbol)) % 2048],
            &mut self.mantissa_by_last[(row << 4 | last_class as usize) % 128],
        ];
        code_with_mantissa(
            coder,
            LENGTH_STATE,
            LENGTHS[class % VALUES],
            distributions,
            length,
        )
    }
}
