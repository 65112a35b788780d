//! Tables of text.

use std::fmt::Write as _;
use std::time::Duration;

use crate::units;

/// Lines of cells in columns as wide as their widest cell, the first left-aligned.
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

/// Three digits and a unit: `2.35 s`, `12.0 ms`, `850 µs`.
pub(super) fn time_text(time: Duration) -> String {
    units::time_text(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let text = |nanoseconds| time_text(Duration::from_nanos(nanoseconds));
        assert_eq!(text(850_000), "850 µs");
        assert_eq!(text(12_000_000), "12.0 ms");
        assert_eq!(text(2_350_000_000), "2.35 s");
    }
}
