//! Adaptive tables of frequencies.
//!
//! A table counts the symbols of one context. From time to time, its frequencies are computed anew
//! from the counts. Counted symbols share the range with an escape, which is followed by the symbol
//! in the *base* of the family, a table that contains all symbols. Computing seldom is what makes
//! decoding fast: between two computations, a symbol takes two lookups.

use super::price;
use super::rans::{Range, SCALE, State, Step, Words};

/// Symbols before the frequencies of a table are computed for the first time. Twice as many follow
/// each time.
const INTERVAL_MIN: u16 = 8;
/// The most symbols between two computations.
const INTERVAL_MAX: u16 = 512;
/// Counts are halved when their sum reaches this.
const TOTAL_MAX: u32 = 4096;

/// Frequencies of `SYMBOLS` symbols, at most 256, and of the escape. A base has no escape.
#[derive(Clone)]
pub(super) struct Table<const SYMBOLS: usize> {
    counts: [u16; SYMBOLS],
    escapes: u16,
    /// The frequency in the upper half, the start of the range in the lower.
    ranges: [u32; SYMBOLS],
    /// The start of the range of the escape, which ends at `SCALE`.
    escape_start: u32,
    /// Symbols until the next computation.
    left: u16,
    interval: u16,
    is_base: bool,
}

impl<const SYMBOLS: usize> Table<SYMBOLS> {
    fn new(is_base: bool) -> Self {
        let mut table = Self {
            counts: [u16::from(is_base); SYMBOLS],
            escapes: 0,
            ranges: [0; SYMBOLS],
            escape_start: 0,
            left: INTERVAL_MIN,
            interval: INTERVAL_MIN,
            is_base,
        };
        if is_base {
            table.set_ranges();
        }
        table
    }

    /// The range of a symbol. The frequency is 0 if the symbol is coded by an escape.
    #[inline(always)]
    fn range(&self, symbol: u8) -> Range {
        let range = self.ranges[usize::from(symbol)];
        Range {
            frequency: range >> 16,
            start: range & 0xFFFF,
        }
    }

    fn escape(&self) -> Range {
        Range {
            frequency: SCALE - self.escape_start,
            start: self.escape_start,
        }
    }

    /// Counts a symbol. Returns whether the frequencies must now be computed.
    #[inline(always)]
    #[must_use]
    fn count(&mut self, symbol: u8) -> bool {
        self.counts[usize::from(symbol)] += 1;
        self.left -= 1;
        self.left == 0
    }

    fn recompute(&mut self) {
        self.interval = (self.interval * 2).min(INTERVAL_MAX);
        self.left = self.interval;
        if self.set_ranges() >= TOTAL_MAX {
            let least = u16::from(self.is_base);
            for count in &mut self.counts {
                *count = (*count / 2).max(least);
            }
            self.escapes /= 2;
        }
    }

    /// Computes the frequencies. Returns the sum of the counts.
    fn set_ranges(&mut self) -> u32 {
        let escapes = if self.is_base { 0 } else { u32::from(self.escapes) + 1 };
        let mut total = escapes;
        let mut different = u32::from(!self.is_base);
        for &count in &self.counts {
            total += u32::from(count);
            different += u32::from(count > 0);
        }
        // Rounded down twice: the sum of the frequencies is at most `SCALE`.
        let factor = (u64::from(SCALE - different) << 32) / u64::from(total);
        let share = |count: u32| 1 + ((u64::from(count) * factor) >> 32) as u32;
        let mut most = 0;
        let mut start = 0;
        for index in 0..SYMBOLS {
            let count = self.counts[index];
            if count > self.counts[most] {
                most = index;
            }
            let frequency = if count > 0 { share(u32::from(count)) } else { 0 };
            self.ranges[index] = frequency << 16 | start;
            start += frequency;
        }
        let escape = if self.is_base { 0 } else { share(escapes) };
        self.escape_start = SCALE - escape;
        let rest = self.escape_start - start;
        self.ranges[most] += rest << 16;
        for range in &mut self.ranges[most + 1..] {
            *range += rest;
        }
        total
    }
}

/// A table of a decoder, which also finds the symbol of a slot.
#[derive(Clone)]
struct Lookup<const SYMBOLS: usize> {
    table: Table<SYMBOLS>,
    symbols: [u8; SCALE as usize],
}

impl<const SYMBOLS: usize> Lookup<SYMBOLS> {
    fn new(is_base: bool) -> Self {
        let mut lookup = Self {
            table: Table::new(is_base),
            symbols: [0; SCALE as usize],
        };
        lookup.set_symbols();
        lookup
    }

    fn set_symbols(&mut self) {
        for symbol in 0..SYMBOLS {
            let Range { frequency, start } = self.table.range(symbol as u8);
            if frequency > 0 {
                let slots = &mut self.symbols[start as usize..][..frequency as usize];
                slots.fill(symbol as u8);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn recompute(&mut self) {
        self.table.recompute();
        self.set_symbols();
    }

    /// Reads a symbol; not an escape.
    #[inline(always)]
    fn decode(&mut self, state: &mut State, words: &mut Words<'_>) -> u8 {
        let symbol = self.symbols[state.slot() as usize];
        state.advance(self.table.range(symbol), words);
        self.count(symbol);
        symbol
    }

    #[inline(always)]
    fn count(&mut self, symbol: u8) {
        if self.table.count(symbol) {
            self.recompute();
        }
    }
}

/// The tables of all contexts of a family in a decoder.
pub(super) struct DecoderFamily<const SYMBOLS: usize> {
    base: Box<Lookup<SYMBOLS>>,
    contexts: Vec<Lookup<SYMBOLS>>,
}

impl<const SYMBOLS: usize> DecoderFamily<SYMBOLS> {
    pub(super) fn new(contexts: usize) -> Self {
        Self {
            base: Box::new(Lookup::new(true)),
            contexts: vec![Lookup::new(false); contexts],
        }
    }

    #[inline(always)]
    pub(super) fn decode(
        &mut self,
        context: usize,
        state: &mut State,
        words: &mut Words<'_>,
    ) -> u8 {
        let lookup = &mut self.contexts[context];
        if state.slot() < lookup.table.escape_start {
            lookup.decode(state, words)
        } else {
            self.decode_escape(context, state, words)
        }
    }

    #[cold]
    #[inline(never)]
    fn decode_escape(&mut self, context: usize, state: &mut State, words: &mut Words<'_>) -> u8 {
        let lookup = &mut self.contexts[context];
        state.advance(lookup.table.escape(), words);
        lookup.table.escapes += 1;
        let symbol = self.base.decode(state, words);
        lookup.count(symbol);
        symbol
    }
}

/// The tables of all contexts of a family in an encoder, with the prices of the symbols.
pub(super) struct EncoderFamily<const SYMBOLS: usize> {
    base: Box<Table<SYMBOLS>>,
    contexts: Vec<Table<SYMBOLS>>,
    prices: Vec<[u16; SYMBOLS]>,
}

impl<const SYMBOLS: usize> EncoderFamily<SYMBOLS> {
    pub(super) fn new(contexts: usize) -> Self {
        let any = price::of_frequency(SCALE / SYMBOLS as u32);
        Self {
            base: Box::new(Table::new(true)),
            contexts: vec![Table::new(false); contexts],
            prices: vec![[any; SYMBOLS]; contexts],
        }
    }

    /// The price of a symbol.
    #[inline(always)]
    pub(super) fn price(&self, context: usize, symbol: u8) -> u32 {
        u32::from(self.prices[context][usize::from(symbol)])
    }

    /// The price of the information that the symbol is one of these.
    pub(super) fn price_of_any(&self, context: usize, symbols: std::ops::Range<usize>) -> u32 {
        let table = &self.contexts[context];
        let sum = |table: &Table<SYMBOLS>| -> u32 {
            let ranges = &table.ranges[symbols.clone()];
            ranges.iter().map(|range| range >> 16).sum()
        };
        let frequency = sum(table) + table.escape().frequency * sum(&self.base) / SCALE;
        u32::from(price::of_frequency(frequency.max(1)))
    }

    /// Passes the steps that code a symbol to `emit`, and adapts.
    #[inline(always)]
    pub(super) fn encode(&mut self, context: usize, symbol: u8, mut emit: impl FnMut(Step)) {
        let table = &mut self.contexts[context];
        let range = table.range(symbol);
        if range.frequency > 0 {
            emit(Step::symbol(range));
        } else {
            emit(Step::symbol(table.escape()));
            emit(Step::symbol(self.base.range(symbol)));
            table.escapes += 1;
            if self.base.count(symbol) {
                self.base.recompute();
            }
        }
        if table.count(symbol) {
            table.recompute();
            self.set_prices(context);
        }
    }

    fn set_prices(&mut self, context: usize) {
        let table = &self.contexts[context];
        let escape = price::of_frequency(table.escape().frequency);
        for (symbol, price) in self.prices[context].iter_mut().enumerate() {
            *price = match table.range(symbol as u8).frequency {
                0 => escape + price::of_frequency(self.base.range(symbol as u8).frequency),
                frequency => price::of_frequency(frequency),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_partition(table: &Table<80>) {
        let mut end = 0;
        for symbol in 0..80 {
            let Range { frequency, start } = table.range(symbol);
            assert!(start == end);
            end += frequency;
        }
        assert!(end == table.escape_start);
        assert!(table.is_base == (end == SCALE));
    }

    #[test]
    fn ranges_are_a_partition_for_any_counts() {
        for is_base in [false, true] {
            let mut table = Table::<80>::new(is_base);
            for index in 0..100_000_u32 {
                let symbol = (index.wrapping_mul(index) >> 7) % (1 + index / 1000 % 80);
                if table.count(symbol as u8) {
                    table.recompute();
                    is_partition(&table);
                }
            }
        }
    }
}
