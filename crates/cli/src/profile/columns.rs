//! Tables of text.

use std::fmt::Write as _;
use std::time::Duration;

/// The rows, one a line, with columns as wide as their widest cell: the first to the left.
pub(super) fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a string cannot fail.
            let _ = match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

/// Three digits and a unit: `2.35 s`, `12.0 ms`, `850 us`.
pub(super) fn time_text(time: Duration) -> String {
    let (value, unit) = match time.as_nanos() {
        0..1_000_000 => (time.as_secs_f64() * 1e6, "us"),
        1_000_000..1_000_000_000 => (time.as_secs_f64() * 1e3, "ms"),
        _ => (time.as_secs_f64(), "s"),
    };
    let decimals = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let text = |nanoseconds| time_text(Duration::from_nanos(nanoseconds));
        assert_eq!(text(850_000), "850 us");
        assert_eq!(text(12_000_000), "12.0 ms");
        assert_eq!(text(2_350_000_000), "2.35 s");
    }
}
