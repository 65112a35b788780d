//! Numbers as people read them.

use crate::outcome::Unit;

/// A value with its unit.
pub(crate) fn value_text(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => size_text(value),
        Unit::Nanoseconds => scaled(value, 1000.0, &["ns", "µs", "ms", "s"]),
        Unit::BytesPerSecond => {
            let text = scaled(value, 1000.0, &["B", "kB", "MB", "GB", "TB"]);
            format!("{text}/s")
        }
        Unit::PerSecond => {
            let text = scaled(value, 1000.0, &["", "k", "M", "G"]);
            format!("{}/s", text.trim_end())
        }
        Unit::Count => grouped(value),
        Unit::Times => format!("{value:.2} x"),
        Unit::Text => value.to_string(),
    }
}

/// Sizes of memory: `64 KiB`.
pub(crate) fn size_text(bytes: f64) -> String {
    let (mut value, mut unit) = (bytes, 0);
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    let (mut value, mut unit) = (value, 0);
    while value >= base * 0.9995 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", units[unit])
}

/// A whole number with its digits in groups of three.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        let is_group = index > 0 && (digits.len() - index).is_multiple_of(3);
        if is_group && digit.is_ascii_digit() && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits_and_a_unit() {
        let text = |value, unit| value_text(value, unit);
        assert_eq!(text(65_536.0, Unit::Bytes), "64 KiB");
        assert_eq!(text(1.5 * 1024.0, Unit::Bytes), "1.5 KiB");
        assert_eq!(text(1.234, Unit::Nanoseconds), "1.23 ns");
        assert_eq!(text(12_345.0, Unit::Nanoseconds), "12.3 µs");
        assert_eq!(text(3.2e9, Unit::BytesPerSecond), "3.20 GB/s");
        assert_eq!(text(150_000.0, Unit::PerSecond), "150 k/s");
        assert_eq!(text(12.0, Unit::PerSecond), "12.0/s");
        assert_eq!(text(1_234_567.0, Unit::Count), "1,234,567");
        assert_eq!(text(12.0, Unit::Count), "12");
        assert_eq!(text(2.0, Unit::Times), "2.00 x");
    }
}
