//! How often and how late a request is repeated.

use std::time::Duration;

/// The delay before the first repetition; it doubles with each.
const DELAY_FIRST: Duration = Duration::from_millis(100);

/// The longest delay that the client chooses itself.
const DELAY_MAX: Duration = Duration::from_secs(5);

/// How many repetitions a source may spend at once, over all its reads.
const TOKENS_MAX: u32 = 20;

/// Successful requests that earn one repetition.
const SUCCESSES_PER_TOKEN: u32 = 5;

/// Limits repetitions. A broken server gets little more load than a working one: every repetition
/// costs a token, and only success earns new ones.
#[derive(Debug)]
pub(super) struct RetryBudget {
    /// In parts of a token.
    parts: u32,
}

impl RetryBudget {
    pub(super) const fn new() -> RetryBudget {
        RetryBudget {
            parts: TOKENS_MAX * SUCCESSES_PER_TOKEN,
        }
    }

    pub(super) fn earn(&mut self) {
        self.parts = (self.parts + 1).min(TOKENS_MAX * SUCCESSES_PER_TOKEN);
    }

    /// Takes the token for one repetition, if there is one.
    pub(super) fn spend(&mut self) -> bool {
        match self.parts.checked_sub(SUCCESSES_PER_TOKEN) {
            Some(left) => {
                self.parts = left;
                true
            }
            None => false,
        }
    }
}

/// The delay before the repetition number `repetition` (from 0). `random` spreads clients that
/// failed together: half of the delay depends on it. A delay that the server asks for is kept.
pub(super) fn delay_before(repetition: u32, asked: Option<Duration>, random: u64) -> Duration {
    let doubled = DELAY_FIRST.saturating_mul(1_u32.checked_shl(repetition).unwrap_or(u32::MAX));
    let delay = doubled.min(DELAY_MAX);
    let half_ns = u64::try_from(delay.as_nanos() / 2).unwrap_or(u64::MAX);
    let jittered = Duration::from_nanos(half_ns + random % (half_ns + 1));
    jittered.max(asked.unwrap_or_default())
}

/// Mixes a number (SplitMix64's finalizer).
pub(super) fn spread(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_are_spread_and_end_at_the_longest() {
        for repetition in 0..40 {
            let full = DELAY_FIRST
                .saturating_mul(1_u32.checked_shl(repetition).unwrap_or(u32::MAX))
                .min(DELAY_MAX);
            let delays: Vec<_> = (0..100)
                .map(|seed| delay_before(repetition, None, spread(seed)))
                .collect();
            assert!(delays.iter().all(|delay| (full / 2..=full).contains(delay)));
            let (least, most) = (delays.iter().min(), delays.iter().max());
            assert!(
                most.zip(least)
                    .is_some_and(|(most, least)| *most > *least + full / 4)
            );
        }
    }

    #[test]
    fn a_server_may_ask_for_more() {
        let asked = Some(Duration::from_secs(7));
        assert_eq!(delay_before(0, asked, 3), Duration::from_secs(7));
        assert!(delay_before(6, Some(Duration::ZERO), 3) >= DELAY_MAX / 2);
    }

    #[test]
    fn repetitions_are_a_bounded_share_of_the_requests() {
        let mut budget = RetryBudget::new();
        let at_once = (0..1000).filter(|_| budget.spend()).count();
        assert_eq!(at_once as u32, TOKENS_MAX);
        let mut repeated = 0;
        for _ in 0..1000 {
            budget.earn();
            repeated += u32::from(budget.spend());
        }
        assert_eq!(repeated, 1000 / SUCCESSES_PER_TOKEN);
        (0..1000).for_each(|_| budget.earn());
        assert_eq!(
            (0..1000).filter(|_| budget.spend()).count() as u32,
            TOKENS_MAX
        );
    }
}
