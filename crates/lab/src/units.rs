//! Numbers as people read them.

use refrain_page::{binary_text, decimal_text};

use crate::outcome::Unit;

pub(crate) fn value_text(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => binary_text(value as u64),
        Unit::Nanoseconds => decimal_text(value, &["ns", "µs", "ms", "s"]),
        Unit::BytesPerSecond => {
            let text = decimal_text(value, &["B", "kB", "MB", "GB", "TB"]);
            format!("{text}/s")
        }
        Unit::PerSecond => {
            let text = decimal_text(value, &["", "k", "M", "G"]);
            format!("{}/s", text.trim_end())
        }
        Unit::Count => grouped(value),
        Unit::Times => format!("{value:.2} x"),
        Unit::Text => value.to_string(),
    }
}

/// A whole number with digits in groups of three.
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
