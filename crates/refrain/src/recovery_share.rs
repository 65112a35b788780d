//! How much of a file its recovery data can heal.

use std::str::FromStr;

use refrain_protect::recovery::{PARITY_ROWS_MIN, SHARE_MAX, SHARE_MIN};

use crate::error::{Error, ErrorKind, Result};

/// The share of a file that its recovery data can heal, in hundredths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecoveryShare(u32);

impl Default for RecoveryShare {
    /// A tenth.
    fn default() -> Self {
        RecoveryShare(1000)
    }
}

impl RecoveryShare {
    /// The share in hundredths of a percent.
    pub fn hundredths_of_percent(self) -> u32 {
        self.0
    }

    /// A share in hundredths of a percent, or the nearest that may be asked for.
    pub(crate) fn nearest(hundredths_of_percent: u32) -> RecoveryShare {
        RecoveryShare(hundredths_of_percent.clamp(SHARE_MIN, SHARE_MAX))
    }

    /// What was asked for when recovery data with so many rows of parity for so many rows was made.
    /// Several shares give these rows: the default if it is among them, else the roundest one.
    pub(crate) fn of_rows(parity_rows: u32, data_rows: u32) -> RecoveryShare {
        let rows = u64::from(data_rows.max(1));
        let most = u64::from(parity_rows) * 10_000 / rows;
        let most = most.clamp(u64::from(SHARE_MIN), u64::from(SHARE_MAX));
        // The fewest rows of parity are those of any small share.
        let fewer = u64::from(parity_rows.saturating_sub(1));
        let least = if parity_rows <= PARITY_ROWS_MIN { 0 } else { fewer * 10_000 / rows };
        let in_range = |share: u64| share > least && share <= most;
        let default = u64::from(RecoveryShare::default().0);
        let round = ROUND.iter().map(|unit| most / unit * unit);
        let share = [default]
            .into_iter()
            .chain(round)
            .find(|share| in_range(*share));
        let share = share.unwrap_or(most);
        RecoveryShare(u32::try_from(share).unwrap_or(SHARE_MAX))
    }
}

/// Round shares are multiples of the first of these that has one, in hundredths of a percent.
const ROUND: [u64; 5] = [1000, 500, 100, 50, 10];

impl FromStr for RecoveryShare {
    type Err = Error;

    /// Parses `10%`, `2.5%`, or the same without the sign.
    fn from_str(text: &str) -> Result<RecoveryShare> {
        let number = text.strip_suffix('%').unwrap_or(text);
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |digits: &str, most: usize| {
            let is_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
            is_digits && (1..=most).contains(&digits.len())
        };
        let share = (is_number(whole, 3) && is_number(part, 2))
            .then(|| format!("{whole}{part:0<2}").parse().ok())
            .flatten();
        match share {
            Some(share) if (SHARE_MIN..=SHARE_MAX).contains(&share) => Ok(RecoveryShare(share)),
            _ => Err(Error::new(
                ErrorKind::Usage,
                format!("'{text}' is not a share from 0.1% to 100%"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_protect::recovery::RecoveryParameters;

    #[test]
    fn the_share_that_was_asked_for_is_known_from_the_rows() {
        for protected_bytes in [300_000, 5_000_000, 3 << 30, 40 << 30] {
            for asked in [10, 50, 100, 250, 500, 1000, 2000, 2500, 5000, 10_000] {
                let made = RecoveryParameters::choose(protected_bytes, asked).unwrap();
                let share = RecoveryShare::of_rows(made.parity_rows, made.data_rows);
                let again = RecoveryParameters::choose(protected_bytes, share.0).unwrap();
                assert_eq!(again, made, "{asked} of {protected_bytes}");
                let is_ambiguous = made.parity_rows == PARITY_ROWS_MIN;
                assert!(
                    share.0 == asked || is_ambiguous,
                    "{asked} of {protected_bytes}"
                );
            }
        }
        // Of a few bytes, nobody knows: the default.
        let tiny = RecoveryParameters::choose(467, 200).unwrap();
        let share = RecoveryShare::of_rows(tiny.parity_rows, tiny.data_rows);
        assert_eq!(share, RecoveryShare::default());
    }

    #[test]
    fn shares_are_percentages_with_two_decimals() {
        for (text, share) in [
            ("10%", 1000),
            ("10", 1000),
            ("2.5%", 250),
            ("0.1%", 10),
            ("99.99%", 9999),
            ("100%", 10_000),
        ] {
            let parsed: RecoveryShare = text.parse().unwrap();
            assert_eq!(parsed.hundredths_of_percent(), share, "{text}");
        }
        for wrong in [
            "", "%", "0%", "0.05%", "101%", "1e1%", "-1%", "1.%", ".5%", "1.234%", "+5",
        ] {
            let error = wrong.parse::<RecoveryShare>().unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{wrong}");
        }
    }
}
