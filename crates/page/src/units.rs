//! Sizes and times for people, the same on pages and in terminals.

/// Bytes with three significant digits and a decimal unit: `2.72 GB`, `195 MB`, `812 B`.
pub fn bytes_text(bytes: u64) -> String {
    decimal_text(bytes, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// A time with three significant digits: `812 ns`, `91.5 µs`, `2.20 ms`.
pub fn time_text(time_ns: u64) -> String {
    decimal_text(time_ns, &["ns", "µs", "ms", "s"])
}

/// A number with three significant digits in the first of these units that is large enough; each is
/// a thousand of the one before.
fn decimal_text(number: u64, units: &[&str]) -> String {
    let mut value = number as f64;
    let mut unit = 0;
    // 999.5 and more would round to four digits.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = match value {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", units[unit])
}
