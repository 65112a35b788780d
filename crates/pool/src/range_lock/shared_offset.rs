//! A position that several threads advance.

use std::fmt;
use std::ops::Range;

use refrain_sync::atomic::{AtomicU64, Ordering};

/// A position in a file that several threads share. Each claim yields a separate range: ranges
/// neither overlap nor leave gaps between them, and the position is never seen half changed.
///
/// A claim is final. If the following transfer fails, its range remains a gap, which the caller
/// knows: moving the position back could hand out a range twice.
#[derive(Debug)]
pub struct SharedOffset(AtomicU64);

impl SharedOffset {
    /// A position at `start`.
    pub fn new(start: u64) -> SharedOffset {
        SharedOffset(AtomicU64::new(start))
    }

    /// The current position; others may advance it at any time.
    pub fn position(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the position. Claims are entirely before or after this.
    pub fn set(&self, position: u64) {
        self.0.store(position, Ordering::Relaxed);
    }

    /// Advances by `length` and returns the range.
    ///
    /// # Errors
    /// The end does not fit in 64 bits. The position stays.
    pub fn claim(&self, length: u64) -> Result<Range<u64>, OffsetOverflow> {
        let advance = |start: u64| start.checked_add(length);
        // Relaxed: the position guards no other data; a range's lock guards its content.
        match (self.0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance) {
            Ok(start) => Ok(start..start + length),
            Err(position) => Err(OffsetOverflow { position, length }),
        }
    }

    /// Advances by `length`, but not past `limit`, and returns the range, which is empty at or past
    /// the limit.
    pub fn claim_below(&self, limit: u64, length: u64) -> Range<u64> {
        let end_of = |start: u64| start.saturating_add(length).min(limit).max(start);
        let advance = |start: u64| Some(end_of(start));
        // `advance` always returns a value.
        let start = match (self.0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance) {
            Ok(start) | Err(start) => start,
        };
        start..end_of(start)
    }
}

/// A claim that would end past the largest offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetOverflow {
    /// The position, which did not change.
    pub position: u64,
    /// The length of the claim.
    pub length: u64,
}

impl fmt::Display for OffsetOverflow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OffsetOverflow { position, length } = self;
        write!(
            formatter,
            "{length} bytes at offset {position} end past the largest offset"
        )
    }
}

impl std::error::Error for OffsetOverflow {}

#[cfg(all(test, not(loom)))]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]
mod tests {
    use super::*;

    #[test]
    fn claims_end_at_the_limit_and_at_the_largest_offset() {
        let offset = SharedOffset::new(10);
        assert_eq!(offset.claim_below(25, 10), 10..20);
        assert_eq!(offset.claim_below(25, 10), 20..25);
        assert_eq!(offset.claim_below(25, 10), 25..25);
        // A file that became shorter does not move it back.
        assert_eq!(offset.claim_below(5, 10), 25..25);
        assert_eq!(offset.claim(5), Ok(25..30));
        offset.set(u64::MAX - 1);
        let error = offset.claim(2).unwrap_err();
        assert_eq!((error.position, error.length), (u64::MAX - 1, 2));
        assert!(error.to_string().contains("18446744073709551614"));
        assert_eq!(offset.claim(1), Ok(u64::MAX - 1..u64::MAX));
        assert_eq!(offset.position(), u64::MAX);
    }

    #[test]
    fn claims_of_many_threads_cover_everything_once() {
        let offset = SharedOffset::new(0);
        let mut claims: Vec<Range<u64>> = std::thread::scope(|scope| {
            let claim = |thread: u64| {
                let offset = &offset;
                move || -> Vec<_> {
                    let length = |round: u64| 1 + (thread * 31 + round * 7) % 13;
                    let claims = (0..2_000).map(|round| offset.claim(length(round)).unwrap());
                    claims.collect()
                }
            };
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(claim(thread))).collect();
            let all = threads.into_iter().map(|thread| thread.join().unwrap());
            all.flatten().collect()
        });
        claims.sort_by_key(|range| range.start);
        let is_gapless = claims.windows(2).all(|pair| pair[0].end == pair[1].start);
        assert!(is_gapless);
        assert_eq!(claims[0].start, 0);
        assert_eq!(claims.last().unwrap().end, offset.position());
    }
}
