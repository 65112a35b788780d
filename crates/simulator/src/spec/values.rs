//! Parses values in a specification: times and distributions.

use crate::random::Distribution;

/// Parses `300ns`, `2.5us`, `6ms` or `10s` as nanoseconds.
pub(super) fn time_ns(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let factor: u64 = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    // Fractions of a nanosecond are ignored.
    let mut fraction = 0u64;
    let mut digit_value = factor;
    for digit in part.bytes() {
        digit_value /= 10;
        fraction += u64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?) * digit_value;
    }
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(factor)?
        .checked_add(fraction)
}

/// Parses `1ms`, `1ms..3ms` (uniform), `exp:1ms` (exponential, this mean), `8us~60us` (log-normal:
/// median and 99th percentile), or nine times with slashes between them (measured quantiles).
pub(super) fn distribution(text: &str) -> Option<Distribution> {
    if let Some(mean) = text.strip_prefix("exp:") {
        return time_ns(mean).map(Distribution::Exponential);
    }
    if let Some((first, last)) = text.split_once("..") {
        let (first_ns, last_ns) = (time_ns(first)?, time_ns(last)?);
        return (first_ns <= last_ns).then_some(Distribution::Uniform(first_ns, last_ns));
    }
    if let Some((median, p99)) = text.split_once('~') {
        let (median_ns, p99_ns) = (time_ns(median)?, time_ns(p99)?);
        return (median_ns <= p99_ns).then_some(Distribution::Skewed { median_ns, p99_ns });
    }
    if text.contains('/') {
        let values: Vec<u64> = text.split('/').map(time_ns).collect::<Option<_>>()?;
        let is_ascending = values.is_sorted();
        return values
            .try_into()
            .ok()
            .filter(|_| is_ascending)
            .map(Distribution::Measured);
    }
    time_ns(text).map(Distribution::Fixed)
}

pub(super) fn format_ns(time_ns: u64) -> String {
    let units = [
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let fits = units
        .iter()
        .find(|(factor, _)| time_ns.is_multiple_of(*factor));
    let (factor, unit) = fits.copied().unwrap_or((1, "ns"));
    format!("{}{unit}", time_ns / factor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parses_times_with_units() {
        let times = ["300ns", "2.5us", "6ms", "10s", "0.001s", "0.0001ns"].map(time_ns);
        assert_eq!(
            times,
            [300, 2_500, 6_000_000, 10_000_000_000, 1_000_000, 0].map(Some)
        );
        for text in [
            "",
            "5",
            "ms",
            "1.2.3ms",
            "1m",
            "-1ms",
            "99999999999999999999s",
            "20000000000s",
            "1.ms5",
        ] {
            assert_eq!(time_ns(text), None, "{text}");
        }
    }

    #[test]
    fn parses_each_form_of_distributions() {
        assert_eq!(distribution("1ms"), Some(Distribution::Fixed(1_000_000)));
        assert_eq!(
            distribution("1us..3us"),
            Some(Distribution::Uniform(1_000, 3_000))
        );
        assert_eq!(
            distribution("exp:5ms"),
            Some(Distribution::Exponential(5_000_000))
        );
        let skewed = Distribution::Skewed {
            median_ns: 8_000,
            p99_ns: 60_000,
        };
        assert_eq!(distribution("8us~60us"), Some(skewed));
        assert_eq!(
            [
                distribution("3us..1us"),
                distribution("60us~8us"),
                distribution("exp:")
            ],
            [None; 3]
        );
    }

    proptest! {

        #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(256)))]

        #[test]
        fn formatted_times_parse_back(time: u64) {
            prop_assert_eq!(time_ns(&format_ns(time)), Some(time));
        }

        #[test]
        fn any_text_parses_or_fails_cleanly(text in "[0-9.nmus~expk:]{0,16}") {
            let _ = distribution(&text);
        }
    }
}
