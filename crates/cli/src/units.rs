//! Sizes, ratios, rates and durations for people.

use std::time::Duration;

pub use refrain_page::{binary_text, bytes_text, time_text};

/// A range of bytes in the unit of its end, with enough digits to distinguish both numbers:
/// `2.36–3.60 MB`.
pub fn range_text(range: &std::ops::Range<u64>) -> String {
    let end = bytes_text(range.end);
    let Some((number, unit)) = end.split_once(' ') else {
        return end;
    };
    let power = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let power = power.iter().position(|name| *name == unit).unwrap_or(0);
    let scale = 1000_f64.powi(power as i32);
    let least = number
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    let text = |bytes: u64, decimals: usize| format!("{:.decimals$}", bytes as f64 / scale);
    let tells_apart = |decimals: &usize| text(range.start, *decimals) != text(range.end, *decimals);
    let decimals = (least..=3 * power).find(tells_apart).unwrap_or(least);
    let (start, end) = (text(range.start, decimals), text(range.end, decimals));
    format!("{start}–{end} {unit}")
}

/// How many times smaller: `14.0:1`; an empty archive has no ratio.
pub fn ratio_text(content_bytes: u64, archive_bytes: u64) -> String {
    match archive_bytes {
        0 => "-".to_string(),
        _ => format!("{:.2}:1", content_bytes as f64 / archive_bytes as f64),
    }
}

/// Bytes per second.
pub fn rate_text(bytes: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-6);
    format!("{}/s", bytes_text((bytes as f64 / seconds) as u64))
}

/// `part` of `whole` in percent with one decimal: `7.2 %`; an empty whole has no ratio.
pub fn percent_text(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_string(),
        _ => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

/// A duration for a summary: `3.9 s`, `2 min 05 s`.
pub fn duration_text(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        0..60 => format!("{:.1} s", elapsed.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// A duration for the progress line: `0:07`, `1:02:03`.
pub fn clock_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_significant_digits() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (9_994, "9.99 kB"),
            (9_996, "10.0 kB"),
            (99_960, "100 kB"),
            (999_600, "1.00 MB"),
            (2_720_000_000, "2.72 GB"),
            (195_400_000, "195 MB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(bytes_text(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn binary_sizes_have_a_decimal_only_if_needed() {
        assert_eq!(binary_text(0), "0 B");
        assert_eq!(binary_text(192 << 10), "192 KiB");
        assert_eq!(binary_text(4 << 20), "4 MiB");
        assert_eq!(binary_text(3 << 29), "1.5 GiB");
        assert_eq!(binary_text(u64::MAX), "16 EiB");
        assert_eq!(ratio_text(300, 100), "3.00:1");
        assert_eq!(ratio_text(300, 0), "-");
    }

    #[test]
    fn durations_have_the_form_of_a_clock() {
        assert_eq!(duration_text(Duration::from_millis(3_940)), "3.9 s");
        assert_eq!(duration_text(Duration::from_secs(125)), "2 min 05 s");
        assert_eq!(clock_text(Duration::from_secs(7)), "0:07");
        assert_eq!(clock_text(Duration::from_secs(3723)), "1:02:03");
        assert_eq!(rate_text(0, Duration::ZERO), "0 B/s");
        assert_eq!(percent_text(72, 1000), "7.2 %");
        assert_eq!(percent_text(72, 0), "-");
    }
}
