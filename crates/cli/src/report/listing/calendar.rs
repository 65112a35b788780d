//! Points in time as dates.

use refrain::Timestamp;

/// `2026-11-21T20:40:00Z`. The calendar follows Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms" (civil_from_days). Local time would need the time zone database.
pub fn utc_text(time: Timestamp) -> String {
    let days = i128::from(time.seconds).div_euclid(86_400);
    let seconds = i128::from(time.seconds).rem_euclid(86_400);
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
            assert_eq!(
                utc_text(Timestamp {
                    seconds,
                    nanoseconds: 0
                }),
                text
            );
        }
        for seconds in [i64::MIN, i64::MAX] {
            assert!(
                !utc_text(Timestamp {
                    seconds,
                    nanoseconds: 0
                })
                .is_empty()
            );
        }
    }
}
