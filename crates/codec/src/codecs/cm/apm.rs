//! Adaptive probability maps (secondary symbol estimation): the observed frequency of 1s for an
//! estimate in a small context, learned per interval of log odds and interpolated (Mahoney, "Data
//! Compression Explained", 4.3.3; SSE in the ZPAQ specification).

use super::counter::Counter;
use super::lanes::prefetch;
use super::logistic::{INPUT_LIMIT, LOGIT_ONE, squash};

/// The distance of interval ends, log odds.
const STEP: i32 = LOGIT_ONE;
/// The interval ends, from -7.5 to 7.5: a row of counters is one cache line.
const ENDS: usize = 16;
const FIRST_END: i32 = -(ENDS as i32 - 1) * STEP / 2;
const LAST_END: i32 = -FIRST_END;
const _: () = assert!(LAST_END <= INPUT_LIMIT);

#[derive(Clone, Copy)]
#[repr(align(64))]
struct ContextCounters([Counter; ENDS]);

/// A map with one row of interval ends per context.
pub(crate) struct Apm {
    rows: Vec<ContextCounters>,
    row: usize,
    end: usize,
    limit: u32,
}

impl Apm {
    /// Maps that are initially the identity. `limit` as for `Counter::update`.
    pub(crate) fn new(contexts: usize, limit: u32) -> Self {
        let row = std::array::from_fn(|end| Counter::new(squash(end as i32 * STEP + FIRST_END), 6));
        Self {
            rows: vec![ContextCounters(row); contexts],
            row: 0,
            end: 0,
            limit,
        }
    }

    /// Selects the context of the next estimate, in advance: the maps are larger than caches.
    #[inline(always)]
    pub(crate) fn select(&mut self, context: usize) {
        self.row = context;
        prefetch(&self.rows[context]);
    }

    /// The refined probability, 16 bits, of an estimate in log odds.
    #[inline(always)]
    pub(crate) fn refine(&mut self, logit: i32) -> u32 {
        let offset = (logit.clamp(FIRST_END, LAST_END - 1) - FIRST_END) as u32;
        let (low, part) = ((offset / STEP as u32) as usize, offset % STEP as u32);
        let row = &self.rows[self.row].0;
        let (below, above) = (row[low].probability(), row[low + 1].probability());
        // The nearer end is updated.
        self.end = low + usize::from(part >= STEP as u32 / 2);
        (below * (STEP as u32 - part) + above * part) / STEP as u32
    }

    /// Updates the map with the bit of the last refined estimate.
    #[inline(always)]
    pub(crate) fn update(&mut self, bit: u32) {
        self.rows[self.row].0[self.end].update(bit, self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs::cm::logistic::LOGIT_LIMIT;

    #[test]
    fn new_map_changes_little() {
        let mut map = Apm::new(2, 255);
        map.select(1);
        for logit in FIRST_END..LAST_END {
            let error = map.refine(logit).abs_diff(squash(logit));
            assert!(error < 1400, "{logit}: {error}"); // chords of the logistic curve
        }
        assert!(map.refine(LOGIT_LIMIT) > 65_000);
        assert!(map.refine(-LOGIT_LIMIT) < 500);
    }

    #[test]
    fn map_learns_observed_frequencies() {
        let mut map = Apm::new(2, 255);
        let end = LAST_END - 4 * STEP;
        for index in 0..4000 {
            map.refine(end);
            map.update(u32::from(index % 2 == 0));
        }
        assert!(map.refine(end).abs_diff(32_768) < 2000);
        map.select(1);
        assert!(map.refine(end).abs_diff(squash(end)) < 20);
    }
}
