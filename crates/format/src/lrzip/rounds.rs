//! The rounds of the first cipher's key derivation.
//!
//! The first two bytes of the salt state them, as a shift and the number that is shifted. lrzip
//! derives the number from the date of writing: a million in 2011, and 1.835 times as many every
//! four years, so that trying a password on the hardware of the day stays expensive. A reader uses
//! what the salt states.

use crate::check::check_limit;
use crate::error::Result;

/// The accepted number of rounds: some tens of seconds on one core. lrzip arrives there in 2047.
const ROUNDS_MAX: u64 = 1 << 28;

/// lrzip's rounds at its epoch, the beginning of 2011, in seconds since 1970.
const FIRST_ROUNDS: f64 = 1_000_000.0;
const FIRST_UNIX_SECONDS: u64 = 1_293_840_000;

/// Rounds grow by this factor within this time, four years of 365 days.
const GROWTH: f64 = 1.835;
const GROWTH_SECONDS: f64 = 4.0 * 365.0 * 86_400.0;

/// A clock before this time is wrong: the end of November 2026, when this was written. Many
/// machines without a battery for their clock start in 1970, which would mean few rounds.
const CLOCK_UNIX_SECONDS_MIN: u64 = 1_795_000_000;

/// The first bytes of the salt of an archive that is written at this time (in seconds since 1970):
/// lrzip's number of rounds, at most the number that readers accept.
pub(super) fn salt_start_at(unix_seconds: u64) -> [u8; 2] {
    let rounds = rounds_at(unix_seconds.max(CLOCK_UNIX_SECONDS_MIN));
    let (mut rest, mut shift) = (rounds.min(ROUNDS_MAX), 0);
    loop {
        match u8::try_from(rest) {
            Ok(mantissa) => return [shift, mantissa],
            Err(_) => (rest, shift) = (rest >> 1, shift + 1),
        }
    }
}

/// lrzip's number of rounds at this time. Numbers beyond `u64` become its maximum.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
fn rounds_at(unix_seconds: u64) -> u64 {
    let elapsed_seconds = unix_seconds.saturating_sub(FIRST_UNIX_SECONDS) as f64;
    (FIRST_ROUNDS * GROWTH.powf(elapsed_seconds / GROWTH_SECONDS)) as u64
}

/// The number of rounds that the first bytes of a salt state.
///
/// # Errors
/// `OverLimit` if it is larger than readers accept.
pub(super) fn stated_rounds([shift, mantissa]: [u8; 2]) -> Result<u64> {
    // A shift by more than 55 bits would lose some.
    let rounds = match shift {
        0..=55 => u64::from(mantissa) << shift,
        _ => u64::MAX,
    };
    check_limit("rounds of the key derivation", rounds, ROUNDS_MAX)?;
    Ok(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds_written_at(unix_seconds: u64) -> u64 {
        stated_rounds(salt_start_at(unix_seconds)).unwrap()
    }

    #[test]
    fn rounds_grow_with_the_date_as_lrzips_do() {
        // What the salts of lrzip 0.651 state at these times.
        for (unix_seconds, expected) in [
            (1_796_000_000, [0x10, 0xAB]),
            (1_893_456_000, [0x11, 0x88]),
            (2_000_000_000, [0x11, 0xE4]),
            (2_145_916_800, [0x12, 0xE6]),
            (2_400_000_000, [0x14, 0xC3]),
        ] {
            assert_eq!(salt_start_at(unix_seconds), expected, "{unix_seconds}");
            let [shift, mantissa] = expected;
            assert_eq!(
                rounds_written_at(unix_seconds),
                u64::from(mantissa) << shift
            );
        }
    }

    #[test]
    fn no_clock_gives_few_rounds_or_more_than_are_read() {
        assert_eq!(salt_start_at(0), salt_start_at(CLOCK_UNIX_SECONDS_MIN));
        for unix_seconds in [3_000_000_000, 1 << 40, u64::MAX] {
            assert_eq!(
                rounds_written_at(unix_seconds),
                ROUNDS_MAX,
                "{unix_seconds}"
            );
        }
    }
}
