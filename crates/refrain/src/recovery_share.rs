//! How much of a file its recovery data can heal.

use std::str::FromStr;

use refrain_protect::recovery::{SHARE_MAX, SHARE_MIN};

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
}

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
