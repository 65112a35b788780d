//! The data and the holes of sparse files.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// Gaps shorter than this are data (zeros).
const GAP_BYTES_MIN: u64 = 4096;

/// The maximum number of ranges of one file. Whenever a file exceeds it, the shorter half of the
/// gaps is filled.
const RANGES_MAX: usize = 65_536;

/// The data ranges of a file of `size_bytes`; `None` if all of it is data, or the file system
/// cannot tell.
pub(crate) fn find_data_ranges(
    file: BorrowedFd<'_>,
    size_bytes: u64,
) -> io::Result<Option<Vec<Range<u64>>>> {
    let mut ranges = RangeCollector::new(RANGES_MAX);
    let mut position = 0;
    while position < size_bytes {
        let start = match rustix::fs::seek(file, SeekFrom::Data(position)) {
            Ok(start) => start,
            // No data follows.
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::NOTSUP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if start >= size_bytes {
            break;
        }
        let end = match rustix::fs::seek(file, SeekFrom::Hole(start)) {
            Ok(end) => end.min(size_bytes),
            // The file became shorter.
            Err(Errno::NXIO) => size_bytes,
            Err(error) => return Err(error.into()),
        };
        ranges.add(start..end);
        // Never loop on a file system that gives nonsense answers.
        position = end.max(position.saturating_add(1));
    }
    Ok(ranges.finish(size_bytes))
}

/// Ranges in ascending order; short gaps between them are filled.
#[derive(Debug)]
struct RangeCollector {
    ranges: Vec<Range<u64>>,
    ranges_max: usize,
}

impl RangeCollector {
    fn new(ranges_max: usize) -> RangeCollector {
        RangeCollector {
            ranges: Vec::new(),
            ranges_max,
        }
    }

    fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        match self.ranges.last_mut() {
            Some(last) if range.start < last.end.saturating_add(GAP_BYTES_MIN) => {
                last.end = last.end.max(range.end);
            }
            // The gap before the first data.
            None if range.start < GAP_BYTES_MIN => self.ranges.push(0..range.end),
            _ => self.ranges.push(range),
        }
        if self.ranges.len() > self.ranges_max {
            self.fill_short_gaps();
        }
    }

    /// Fills the shorter half of the gaps; among equal ones the first.
    fn fill_short_gaps(&mut self) {
        let pairs = self.ranges.iter().zip(self.ranges.iter().skip(1));
        let gap_bytes = pairs.map(|(last, next)| next.start.saturating_sub(last.end));
        let mut gaps: Vec<(u64, usize)> = gap_bytes.zip(0..).collect();
        let half = gaps.len() / 2;
        if half == 0 {
            return;
        }
        let (_, longest_filled, _) = gaps.select_nth_unstable(half);
        let longest_filled = *longest_filled;
        let mut number = 0;
        self.ranges.dedup_by(|next, last| {
            let gap = (next.start.saturating_sub(last.end), number);
            number += 1;
            let is_short = gap <= longest_filled;
            if is_short {
                last.end = next.end;
            }
            is_short
        });
    }

    /// The ranges; `None` if there is one that covers the file.
    fn finish(mut self, size_bytes: u64) -> Option<Vec<Range<u64>>> {
        if let Some(last) = self.ranges.last_mut()
            && size_bytes < last.end.saturating_add(GAP_BYTES_MIN)
        {
            last.end = size_bytes;
        }
        let is_dense = matches!(&self.ranges[..], [only] if *only == (0..size_bytes));
        (!is_dense).then_some(self.ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(ranges: &[Range<u64>], ranges_max: usize, size: u64) -> Option<Vec<Range<u64>>> {
        let mut collector = RangeCollector::new(ranges_max);
        for range in ranges {
            collector.add(range.clone());
        }
        collector.finish(size)
    }

    #[test]
    fn short_gaps_are_filled_and_dense_files_have_no_ranges() {
        assert_eq!(collect(std::slice::from_ref(&(0..10)), 9, 10), None);
        assert_eq!(collect(&[100..200, 4295..5000], 9, 6000), None);
        let (first, second) = (0..8192, 12_288..20_000);
        let ranges = vec![first.clone(), second.clone()];
        assert_eq!(collect(&[first, second], 9, 100_000), Some(ranges));
        assert_eq!(collect(&[], 9, 100_000), Some(vec![]));
    }

    #[test]
    fn the_number_of_ranges_is_bounded_and_no_data_is_lost() {
        // Gaps of rising length: the shortest are filled first.
        let mut input = Vec::new();
        let mut position = 0;
        for number in 1..1000_u64 {
            position += number * 8192;
            input.push(position..position + 512);
            position += 512;
        }
        let ranges = collect(&input, 100, position + (1 << 30)).unwrap();
        assert!(ranges.len() <= 100 && ranges.len() > 40, "{}", ranges.len());
        for range in &input {
            assert!(
                ranges
                    .iter()
                    .any(|r| r.start <= range.start && range.end <= r.end)
            );
        }
        for pair in ranges.windows(2) {
            assert!(pair[0].end + GAP_BYTES_MIN <= pair[1].start);
        }
    }
}
