//! HTTP dates: `Sun, 06 Nov 1994 08:49:37 GMT`.

use std::time::{Duration, UNIX_EPOCH};

/// 9999-12-31 23:59:59, the last time that the format can express.
const SECONDS_MAX: u64 = 253_402_300_799;

/// Formats a time in seconds since 1970; `None` if the format cannot express it.
pub(super) fn http_date(unix_seconds: i64) -> Option<String> {
    let seconds = u64::try_from(unix_seconds).ok()?;
    let is_valid = seconds <= SECONDS_MAX;
    is_valid.then(|| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds)))
}

/// Parses any of the forms of RFC 9110, section 5.6.7.
pub(super) fn parse_http_date(text: &[u8]) -> Option<i64> {
    let time = httpdate::parse_http_date(str::from_utf8(text).ok()?).ok()?;
    let seconds = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    i64::try_from(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_outside_the_form_are_none() {
        let last = "Fri, 31 Dec 9999 23:59:59 GMT";
        assert_eq!(http_date(SECONDS_MAX as i64).as_deref(), Some(last));
        assert_eq!(parse_http_date(last.as_bytes()), Some(SECONDS_MAX as i64));
        for seconds in [SECONDS_MAX as i64 + 1, i64::MAX, -1, i64::MIN] {
            assert_eq!(http_date(seconds), None);
        }
        for text in [
            "",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 24:49:37 GMT",
        ] {
            assert_eq!(parse_http_date(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_http_date(b"\xff"), None);
    }
}
