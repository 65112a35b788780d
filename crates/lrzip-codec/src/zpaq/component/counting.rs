//! Components with tables of probabilities: the direct model (CM) and secondary estimation (SSE).

use super::bit::{BitPosition, Predictions, target};
use crate::cpu::prefetch;
use crate::zpaq::table::allocate;
use crate::zpaq::tables::Tables;
use refrain_codec::Result;

/// Counters with 22 bits of probability and 10 bits of count.
struct Counters {
    counters: Vec<u32>,
    /// The largest count, which limits how far the settings rate falls.
    limit: u32,
    selected: usize,
}

impl Counters {
    #[inline(always)]
    fn mask(&self, index: usize) -> usize {
        index & (self.counters.len() - 1)
    }

    #[inline(always)]
    fn learn(&mut self, target: i32, tables: &Tables) {
        let limit = self.limit;
        let counter = &mut self.counters[self.selected];
        let count = *counter & 0x3FF;
        let error = target - (*counter >> 17) as i32;
        // With a limit of 0 the product may exceed 32 bits. It wraps, as everywhere in the
        // standard.
        let change = error.wrapping_mul(tables.rate[count as usize]) & -1024;
        *counter = counter
            .wrapping_add(change as u32)
            .wrapping_add(u32::from(count < limit));
    }
}

/// The probability of a one, indexed by a context.
pub(crate) struct Cm {
    pub(crate) index: u8,
    counters: Counters,
}

impl Cm {
    pub(crate) fn new(index: u8, size_bits: u8, limit: u8) -> Result<Cm> {
        let counters = Counters {
            counters: allocate(1 << size_bits, 0x8000_0000)?,
            limit: u32::from(limit) * 4,
            selected: 0,
        };
        Ok(Cm { index, counters })
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, context: u32, partial_row_index: u32) {
        let index = self.counters.mask((context ^ partial_row_index) as usize);
        prefetch(&self.counters.counters[index]);
    }

    #[inline(always)]
    pub(crate) fn predict(&mut self, position: BitPosition, context: u32, tables: &Tables) -> i32 {
        let counters = &mut self.counters;
        counters.selected = counters.mask((context ^ position.row_index()) as usize);
        tables.stretch(counters.counters[counters.selected] >> 17)
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, bit: usize, tables: &Tables) {
        self.counters.learn(target(bit), tables);
    }
}

/// The probability of a one, indexed by a context and a quantized prediction, with interpolation
/// between the steps of the prediction.
pub(crate) struct Sse {
    pub(crate) index: u8,
    input: u8,
    counters: Counters,
}

const STEPS: usize = 32;

impl Sse {
    pub(crate) fn new(
        index: u8,
        size_bits: u8,
        input: u8,
        (start, limit): (u8, u8),
        tables: &Tables,
    ) -> Result<Sse> {
        let row: [u32; STEPS] = std::array::from_fn(|step| {
            (tables.squash(step as i32 * 64 - 992) as u32) << 17 | u32::from(start)
        });
        let mut counters = allocate(STEPS << size_bits, 0)?;
        for counters in counters.as_chunks_mut::<STEPS>().0 {
            *counters = row;
        }
        let counters = Counters {
            counters,
            limit: u32::from(limit) * 4,
            selected: 0,
        };
        Ok(Sse {
            index,
            input,
            counters,
        })
    }

    #[inline(always)]
    pub(crate) fn predict(
        &mut self,
        position: BitPosition,
        context: u32,
        predictions: &Predictions,
        tables: &Tables,
    ) -> i32 {
        let counters = &mut self.counters;
        let row = context
            .wrapping_add(position.partial)
            .wrapping_mul(STEPS as u32) as usize;
        let position = (predictions[usize::from(self.input)] + 992).clamp(0, 1983) as usize;
        let (step, weight) = (position >> 6, (position & 63) as u32);
        let indices = [row + step, row + step + 1].map(|index| counters.mask(index));
        let [low, high] = indices.map(|index| counters.counters[index] >> 10);
        // The nearer counter is updated.
        counters.selected = indices[(weight >> 5) as usize];
        tables.stretch((low * (64 - weight) + high * weight) >> 13)
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, bit: usize, tables: &Tables) {
        self.counters.learn(target(bit), tables);
    }
}
