//! Finds the holes of a source as its segments are planned.
//!
//! A file with many holes is a sparse member: its holes are neither read nor hashed nor matched,
//! and become fills. Which ones are long enough depends only on the source.

use std::ops::Range;

use refrain_protect::{SEGMENT_BYTES, SPARSE_PIECE_BYTES};
use refrain_storage::Source;

/// Shorter holes are read as zeros. Each longer one costs a segment, and some bytes of the archive.
const HOLE_BYTES_MIN: u64 = 256 << 10;

/// A member is sparse if its holes have at least this many bytes, and an eighth of its size.
const SPARSE_BYTES_MIN: u64 = 1 << 20;
const SPARSE_SHARE: u64 = 8;

const PIECE: u64 = SPARSE_PIECE_BYTES as u64;

/// Finds what to read of a source.
#[derive(Debug, Clone)]
pub(crate) struct HoleFinder {
    size_bytes: u64,
    /// The latest data found, in whole pieces.
    data: Range<u64>,
}

impl HoleFinder {
    pub(crate) fn new(size_bytes: u64) -> HoleFinder {
        HoleFinder {
            size_bytes,
            data: 0..0,
        }
    }

    /// The next range to read at or after `offset`, a multiple of a piece before the end: at most a
    /// segment, in whole pieces. The last piece of the source is always read, so that a shortened
    /// source is noticed.
    pub(crate) fn next(&mut self, source: &dyn Source, offset: u64) -> Range<u64> {
        let data = self.data_from(source, offset);
        let start = if data.start - offset < HOLE_BYTES_MIN { offset } else { data.start };
        let end_max = (start + SEGMENT_BYTES as u64).min(self.size_bytes);
        let mut end = data.end;
        while end < end_max {
            let more = self.data_from(source, end);
            if more.start - end >= HOLE_BYTES_MIN {
                break;
            }
            end = more.end;
        }
        start..end.min(end_max)
    }

    /// The first data at or after `offset`, in whole pieces. If the system cannot tell, everything
    /// is data: reading it reveals why.
    fn data_from(&mut self, source: &dyn Source, offset: u64) -> Range<u64> {
        if offset < self.data.end {
            return self.data.start.max(offset)..self.data.end;
        }
        let size_bytes = self.size_bytes;
        let (start, end) = match source.next_data(offset) {
            Ok(found) => found.unwrap_or((size_bytes, size_bytes)),
            Err(_) => (offset, size_bytes),
        };
        let last = size_bytes.saturating_sub(1) / PIECE * PIECE;
        let start = (start / PIECE * PIECE).min(last).max(offset);
        let end = end.max(start + 1).checked_next_multiple_of(PIECE);
        self.data = start..end.unwrap_or(size_bytes).min(size_bytes);
        self.data.clone()
    }
}

/// Whether holes are a considerable part of a source.
pub(crate) fn is_sparse(source: &dyn Source, size_bytes: u64) -> bool {
    let wanted = SPARSE_BYTES_MIN.max(size_bytes.div_ceil(SPARSE_SHARE));
    let mut finder = HoleFinder::new(size_bytes);
    let (mut holes_bytes, mut offset) = (0, 0);
    // What is left may be too little.
    while holes_bytes < wanted && size_bytes - offset >= wanted - holes_bytes {
        let data = finder.next(source, offset);
        holes_bytes += data.start - offset;
        offset = data.end;
    }
    holes_bytes >= wanted
}

#[cfg(test)]
// Lists of one range are intended.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use std::io;

    use super::*;

    /// A source with data in these ranges, which is never read.
    struct Ranges(Vec<Range<u64>>, u64);

    impl Source for Ranges {
        fn size_bytes(&self) -> io::Result<u64> {
            Ok(self.1)
        }

        fn read_at(&self, _offset: u64, _buffer: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("is not read"))
        }

        fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
            let mut ranges = self.0.iter();
            let next = ranges.find(|range| range.end > offset);
            Ok(next.map(|range| (range.start.max(offset), range.end)))
        }
    }

    fn ranges(source: &Ranges) -> Vec<Range<u64>> {
        let mut finder = HoleFinder::new(source.1);
        let (mut offset, mut found) = (0, vec![]);
        while offset < source.1 {
            let next = finder.next(source, offset);
            assert!(offset <= next.start && next.start < next.end && next.end <= source.1);
            assert!(next.end - next.start <= SEGMENT_BYTES as u64);
            assert!(next.start.is_multiple_of(PIECE));
            assert!(next.end.is_multiple_of(PIECE) || next.end == source.1);
            let hole = next.start - offset;
            assert!(hole == 0 || hole >= HOLE_BYTES_MIN);
            offset = next.end;
            found.push(next);
        }
        found
    }

    #[test]
    fn only_data_and_the_last_piece_are_read() {
        const GIB: u64 = 1 << 30;
        let source = Ranges(vec![60 * GIB + 5..60 * GIB + 9], 100 * GIB + 3);
        let expected = [60 * GIB..60 * GIB + PIECE, 100 * GIB..100 * GIB + 3];
        assert_eq!(ranges(&source), expected);
        assert!(is_sparse(&source, source.1));
        let empty = Ranges(vec![], 8 * PIECE);
        assert_eq!(ranges(&empty), [7 * PIECE..8 * PIECE]);
        assert!(!is_sparse(&empty, empty.1), "too small");
    }

    #[test]
    fn short_holes_are_read() {
        let data = (0..100).map(|number| number * 3 * PIECE..number * 3 * PIECE + 9);
        let source = Ranges(data.collect(), 300 * PIECE);
        assert_eq!(ranges(&source).first(), Some(&(0..SEGMENT_BYTES as u64)));
        assert!(!is_sparse(&source, source.1));
    }

    #[test]
    fn an_eighth_of_holes_makes_a_source_sparse() {
        let size = 800 * PIECE;
        let with_hole = |pieces: u64| Ranges(vec![0..size - (pieces + 1) * PIECE], size);
        assert!(is_sparse(&with_hole(100), size));
        assert!(!is_sparse(&with_hole(99), size));
        assert!(!is_sparse(&Ranges(vec![0..u64::MAX], 0), 0));
    }

    proptest::proptest! {
        #[test]
        fn all_data_is_read(
            gaps in proptest::collection::vec((0_u64..3 << 20, 1_u64..2 << 20), 0..20),
            rest in 0_u64..2 << 20,
        ) {
            let (mut at, mut data) = (0, vec![]);
            for (gap, length) in gaps {
                data.push(at + gap..at + gap + length);
                at += gap + length;
            }
            let source = Ranges(data.clone(), at + rest);
            let read = ranges(&source);
            // A byte of data is in one of the ranges.
            for range in data {
                for byte in [range.start, (range.start + range.end) / 2, range.end - 1] {
                    proptest::prop_assert!(read.iter().any(|range| range.contains(&byte)));
                }
            }
        }
    }
}
