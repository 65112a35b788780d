//! Answers queries about holes.

use std::ops::Range;

use refrain::Result;

use super::protocol::STATE_HOLE_ZERO;
use crate::block_source::BlockSource;

/// Holes start and end at multiples of this, in bytes, as in file systems.
const GRANULARITY_BYTES: u64 = 4096;

/// The maximum number of extents in an answer: the client asks again for the rest.
const EXTENTS_MAX: usize = 8192;

/// The extents of a range, as length and state, each different from the next. The last one ends
/// with the range, unless there are too many.
pub(super) fn extents(
    source: &dyn BlockSource,
    range: Range<u64>,
    only_one: bool,
) -> Result<Vec<(u32, u32)>> {
    let size_bytes = source.size_bytes();
    let most = if only_one { 1 } else { EXTENTS_MAX };
    let mut extents: Vec<(u32, u32)> = vec![];
    let mut at = range.start;
    // A run of zeros ends only when other bytes follow.
    let mut zeros: Option<Range<u64>> = None;
    source.runs(range.clone(), &mut |run| {
        let run_range = at..at + run.length_bytes;
        at = run_range.end;
        if run.is_zero {
            zeros.get_or_insert(run_range.start..run_range.start).end = run_range.end;
            return true;
        }
        if let Some(zeros) = zeros.take() {
            add_zeros(&mut extents, zeros, size_bytes);
        }
        add(&mut extents, run.length_bytes, 0);
        extents.len() <= most
    })?;
    if let Some(zeros) = zeros {
        add_zeros(&mut extents, zeros, size_bytes);
    }
    extents.truncate(most);
    Ok(extents)
}

/// Adds zeros: a hole between multiples of the granularity, data at its edges.
fn add_zeros(extents: &mut Vec<(u32, u32)>, zeros: Range<u64>, size_bytes: u64) {
    let start = zeros.start.next_multiple_of(GRANULARITY_BYTES);
    let end = if zeros.end == size_bytes {
        zeros.end
    } else {
        zeros.end / GRANULARITY_BYTES * GRANULARITY_BYTES
    };
    if start >= end {
        return add(extents, zeros.end - zeros.start, 0);
    }
    add(extents, start - zeros.start, 0);
    add(extents, end - start, STATE_HOLE_ZERO);
    add(extents, zeros.end - end, 0);
}

/// Appends an extent, or extends the last one. Together they are no longer than a request, whose
/// length has 32 bits.
fn add(extents: &mut Vec<(u32, u32)>, length_bytes: u64, state: u32) {
    if length_bytes == 0 {
        return;
    }
    match extents.last_mut() {
        Some((last, last_state)) if *last_state == state => *last += length_bytes as u32,
        _ => extents.push((length_bytes as u32, state)),
    }
}

#[cfg(test)]
mod tests {
    use refrain::{ReadControl, Run};

    use super::*;

    struct Runs(Vec<(u64, bool)>);

    impl BlockSource for Runs {
        fn size_bytes(&self) -> u64 {
            self.0.iter().map(|(length, _)| length).sum()
        }

        fn read(&self, _: u64, _: &mut [u8], _: &ReadControl) -> Result<()> {
            Ok(())
        }

        fn runs(&self, range: Range<u64>, each: &mut dyn FnMut(Run) -> bool) -> Result<()> {
            let mut start = 0;
            for &(length, is_zero) in &self.0 {
                let part = start.max(range.start)..(start + length).min(range.end);
                start += length;
                let length_bytes = part.end.saturating_sub(part.start);
                if length_bytes > 0
                    && !each(Run {
                        length_bytes,
                        is_zero,
                    })
                {
                    break;
                }
            }
            Ok(())
        }

        fn prefetch(&self, _: Range<u64>, _: &ReadControl) -> Result<()> {
            Ok(())
        }
    }

    const HOLE: u32 = STATE_HOLE_ZERO;

    #[test]
    fn holes_are_aligned_and_short_zeros_are_data() {
        let source = Runs(vec![
            (5000, false),
            (10_000, true),
            (100, false),
            (3000, true),
            (5000, true),
            (1, false),
            (50, true),
        ]);
        let all = extents(&source, 0..source.size_bytes(), false).unwrap();
        let expected = [
            (8192, 0),
            (4096, HOLE),
            (4096, 0),
            (4096, HOLE),
            (23_151 - 20_480, 0),
        ];
        assert_eq!(all, expected);
        assert_eq!(extents(&source, 0..23_151, true).unwrap(), [(8192, 0)]);
        let part = extents(&source, 9000..10_000, false).unwrap();
        assert_eq!(part, [(1000, 0)], "not a whole multiple");
    }

    #[test]
    fn the_hole_at_the_end_need_not_be_aligned() {
        let source = Runs(vec![(4096, false), (5000, true)]);
        let all = extents(&source, 0..9096, false).unwrap();
        assert_eq!(all, [(4096, 0), (5000, HOLE)]);
        let sparse = Runs(vec![(9, true)]);
        assert_eq!(extents(&sparse, 0..9, false).unwrap(), [(9, HOLE)]);
    }

    #[test]
    fn an_answer_has_a_limit() {
        let source = Runs((0..40_000).map(|number| (4096, number % 2 == 0)).collect());
        let some = extents(&source, 0..source.size_bytes(), false).unwrap();
        assert_eq!(some.len(), EXTENTS_MAX);
        assert!(some.iter().all(|&(length, _)| length == 4096));
    }
}
