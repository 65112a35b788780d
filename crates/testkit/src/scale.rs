//! The number of cases of a property test or a stress loop.
//!
//! The environment variable `REFRAIN_TEST_SCALE` multiplies all of these numbers: 1 by default, 0.2
//! for a quick run, 20 for a nightly one. Only the number of cases changes, not the seeds written
//! in tests.

/// The name of the environment variable.
pub const SCALE_VARIABLE: &str = "REFRAIN_TEST_SCALE";

/// Returns `cases` multiplied by `REFRAIN_TEST_SCALE`, rounded, and at least 1.
///
/// # Panics
/// If the variable is set to a value that is not a positive number.
#[must_use]
pub fn scaled(cases: u32) -> u32 {
    let value = std::env::var(SCALE_VARIABLE).ok();
    let factor = value.as_deref().map_or(Ok(1.0), scale_factor);
    let factor = factor.unwrap_or_else(|message| panic!("{SCALE_VARIABLE}: {message}"));
    scaled_by(cases, factor)
}

fn scale_factor(value: &str) -> Result<f64, String> {
    match value.trim().parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        _ => Err(format!("{value:?} is not a positive number")),
    }
}

fn scaled_by(cases: u32, factor: f64) -> u32 {
    // A conversion from a float saturates, so a huge factor means u32::MAX cases.
    ((f64::from(cases) * factor).round() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplies_rounds_and_keeps_at_least_one_case() {
        assert_eq!(scaled_by(256, 1.0), 256);
        assert_eq!(scaled_by(64, 0.2), 13);
        assert_eq!(scaled_by(64, 20.0), 1280);
        assert_eq!(scaled_by(3, 0.01), 1);
        assert_eq!(scaled_by(u32::MAX, 20.0), u32::MAX);
        assert!(scaled(1) >= 1);
    }

    #[test]
    fn accepts_only_positive_numbers() {
        assert_eq!(scale_factor(" 0.5 "), Ok(0.5));
        for value in ["", "0", "-1", "nan", "inf", "twenty"] {
            assert!(scale_factor(value).is_err(), "{value}");
        }
    }
}
