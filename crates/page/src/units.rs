//! Sizes and times for people, the same on pages and in terminals.

/// Bytes with three significant digits and a decimal unit: `2.72 GB`, `195 MB`, `812 B`.
pub fn bytes_text(bytes: u64) -> String {
    whole_text(bytes, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// A time with three significant digits: `812 ns`, `91.5 µs`, `2.20 ms`.
pub fn time_text(time_ns: u64) -> String {
    whole_text(time_ns, &["ns", "µs", "ms", "s"])
}

/// A whole number; below a thousand without decimals.
fn whole_text(number: u64, units: &[&str]) -> String {
    match number {
        0..1000 => format!("{number} {}", units[0]),
        _ => decimal_text(number as f64, units),
    }
}

/// A number with three significant digits, in the first of these units that is large enough. Each
/// unit is a thousand of the one before.
pub fn decimal_text(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // 999.5 would round to four digits.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", units[unit])
}

/// Bytes with a binary unit, as accepted by options: `4 MiB`, `192 KiB`, `1.5 GiB`.
pub fn binary_text(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from((value * 10.0).round() % 10.0 != 0.0);
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// The date in UTC of a time in seconds since 1970, as year, month and day, after Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms" (civil_from_days). Local time would need the time
/// zone database.
pub fn utc_date(unix_seconds: i64) -> (i128, i128, i128) {
    let days = i128::from(unix_seconds).div_euclid(86_400);
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    (year, month, day)
}

/// A time in seconds since 1970 as `2026-11-21T20:40:00Z`.
pub fn utc_text(unix_seconds: i64) -> String {
    let (year, month, day) = utc_date(unix_seconds);
    let seconds = i128::from(unix_seconds).rem_euclid(86_400);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_calendar_dates() {
        // Expected values from `date -u -d @N`.
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(utc_text(seconds), text);
        }
        assert!(!utc_text(i64::MIN).is_empty() && !utc_text(i64::MAX).is_empty());
    }
}
