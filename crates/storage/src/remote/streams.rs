//! Which reads follow each other, and how far to read ahead of them.

use std::ops::Range;

use super::runs::PAGE_BYTES;

const STREAMS_MAX: usize = 8;

/// A reader that skips less than this is still sequential.
const GAP_BYTES_MAX: u64 = 128 << 10;

#[derive(Debug, Default)]
pub(super) struct Streams {
    recent: Vec<Stream>,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    /// Where the last read ended.
    end: u64,
    /// How far to read ahead.
    window_bytes: u64,
}

impl Streams {
    /// Records a read of `range`. Returns how far past its end to read ahead, at most `window_max`:
    /// 0 for a single read, doubling with each page that follows the one before.
    pub(super) fn note(&mut self, range: &Range<u64>, window_max: u64) -> u64 {
        let follows = |stream: &Stream| {
            let from = stream.end.saturating_sub(PAGE_BYTES);
            (from..=stream.end + GAP_BYTES_MAX).contains(&range.start) && range.end >= stream.end
        };
        let found = self.recent.iter().rposition(follows);
        let mut stream = match found {
            Some(at) => self.recent.remove(at),
            None => {
                if self.recent.len() == STREAMS_MAX {
                    self.recent.remove(0);
                }
                Stream {
                    end: range.end,
                    window_bytes: 0,
                }
            }
        };
        let entered = (range.end - 1) / PAGE_BYTES > (stream.end.max(1) - 1) / PAGE_BYTES;
        if found.is_some() && entered {
            let grown = (stream.window_bytes * 2).max(range.end - stream.end);
            stream.window_bytes = grown.max(2 * PAGE_BYTES);
        }
        stream.window_bytes = stream.window_bytes.min(window_max);
        stream.end = range.end;
        self.recent.push(stream);
        stream.window_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = PAGE_BYTES;

    #[test]
    fn a_sequential_reader_gets_a_growing_window() {
        let mut streams = Streams::default();
        let windows: Vec<_> = (0..8)
            .map(|page| streams.note(&(page * PAGE..(page + 1) * PAGE), 32 * PAGE))
            .collect();
        assert_eq!(windows[0], 0);
        assert!(windows.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(windows[7], 32 * PAGE);
        // Small gaps do not end it.
        assert_eq!(
            streams.note(&(8 * PAGE + 100..9 * PAGE), 32 * PAGE),
            32 * PAGE
        );
    }

    #[test]
    fn random_reads_and_reads_within_a_page_get_none() {
        let mut streams = Streams::default();
        for number in 0..1000u64 {
            let start = (number * 7919 + 13) % 997 * 10 * PAGE;
            assert_eq!(streams.note(&(start..start + 4096), 32 * PAGE), 0);
        }
        for start in 0..15 {
            assert_eq!(
                streams.note(&(start * 4096..(start + 1) * 4096), 32 * PAGE),
                0
            );
        }
    }

    #[test]
    fn several_readers_are_told_apart() {
        let mut streams = Streams::default();
        let mut last = [0; STREAMS_MAX];
        for page in 0..8 {
            for (reader, last) in last.iter_mut().enumerate() {
                let start = reader as u64 * 1000 * PAGE + page * PAGE;
                *last = streams.note(&(start..start + PAGE), 32 * PAGE);
            }
        }
        assert_eq!(last, [32 * PAGE; STREAMS_MAX]);
    }
}
