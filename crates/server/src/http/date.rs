//! Dates of HTTP: `Sun, 06 Nov 1994 08:49:37 GMT`.

const DAY_SECONDS: i64 = 86_400;
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// 9999-12-31 23:59:59: the format has no room for later years.
const SECONDS_MAX: i64 = 253_402_300_799;

/// A point in time, in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Calendar {
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    /// 0 is Monday.
    pub weekday: i64,
}

/// The parts of a time in seconds since 1970 (UTC); `None` outside the years 1 to 9999.
pub(super) fn calendar(unix_seconds: i64) -> Option<Calendar> {
    if !(-62_135_596_800..=SECONDS_MAX).contains(&unix_seconds) {
        return None;
    }
    let (days, of_day) = (
        unix_seconds.div_euclid(DAY_SECONDS),
        unix_seconds.rem_euclid(DAY_SECONDS),
    );
    // Years that begin in March, so that the leap day is the last: 400 of them have 146,097 days.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let of_year_count = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of_year_count + of_year_count / 4 - of_year_count / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let month = (month_from_march + 2) % 12 + 1;
    Some(Calendar {
        year: era * 400 + of_year_count + i64::from(month <= 2),
        month,
        day: of_year - (153 * month_from_march + 2) / 5 + 1,
        hour: of_day / 3600,
        minute: of_day / 60 % 60,
        second: of_day % 60,
        weekday: (days + 3).rem_euclid(7),
    })
}

/// A time as HTTP writes it; `None` if it has no such form.
pub(super) fn http_date(unix_seconds: i64) -> Option<String> {
    let parts = calendar(unix_seconds)?;
    let weekday = WEEKDAYS.get(usize::try_from(parts.weekday).ok()?)?;
    let month = MONTHS.get(usize::try_from(parts.month - 1).ok()?)?;
    Some(format!(
        "{weekday}, {:02} {month} {:04} {:02}:{:02}:{:02} GMT",
        parts.day, parts.year, parts.hour, parts.minute, parts.second
    ))
}

/// The time that a field states in the form that HTTP prescribes. The obsolete forms, which no
/// client sends, are ignored like any other text.
pub(super) fn parse_http_date(text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.split(' ');
    let number = |width: usize, word: &str| -> Option<i64> {
        let is_number = word.len() == width && word.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| word.parse().ok()).flatten()
    };
    let day = number(2, words.next()?)?;
    let month_name = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month_name)? as i64 + 1;
    let year = number(4, words.next()?)?;
    let mut clock = words.next()?.split(':');
    let hour = number(2, clock.next()?)?;
    let minute = number(2, clock.next()?)?;
    let second = number(2, clock.next()?)?;
    let is_complete = words.next() == Some("GMT") && words.next().is_none();
    let fits = hour < 24 && minute < 60 && second <= 60 && year >= 1;
    if !is_complete || clock.next().is_some() || !fits {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * DAY_SECONDS
        + hour * 3600
        + minute * 60
        + second.min(59);
    // A date that does not exist, such as the 31st of June, has another form.
    http_date(seconds).filter(|date| second == 60 || date == text)?;
    Some(seconds)
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month + 9) % 12;
    let of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates_are_written_and_read() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
            (SECONDS_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(http_date(seconds).as_deref(), Some(text));
            assert_eq!(parse_http_date(text.as_bytes()), Some(seconds), "{text}");
        }
        assert_eq!(http_date(SECONDS_MAX + 1), None);
        assert_eq!(http_date(i64::MIN), None);
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "Sun, 06 Nov 1994 08:49:37",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, 31 Jun 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse_http_date(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn dates_are_read_as_they_are_written(seconds in -62_135_596_800..=SECONDS_MAX) {
            let text = http_date(seconds).unwrap();
            prop_assert_eq!(parse_http_date(text.as_bytes()), Some(seconds), "{}", text);
        }
    }
}
