//! The header `Content-Range` (RFC 9110, section 14.4).

use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContentRange {
    /// The bytes in the response; `None` for `*`, the response to a range past the end.
    pub bytes: Option<Range<u64>>,
    /// The length of the object; `None` for `*`.
    pub total_bytes: Option<u64>,
}

impl ContentRange {
    /// `None` for anything but a valid byte range.
    pub(super) fn parse(value: &str) -> Option<ContentRange> {
        let (unit, rest) = value.trim().split_once(' ')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (range, total) = rest.trim().split_once('/')?;
        let total_bytes = match total {
            "*" => None,
            digits => Some(number(digits)?),
        };
        let bytes = match range {
            "*" => None,
            range => {
                let (first, last) = range.split_once('-')?;
                let (first, last) = (number(first)?, number(last)?);
                Some(first..last.checked_add(1)?)
            }
        };
        let is_valid = bytes.as_ref().is_none_or(|bytes| {
            bytes.start < bytes.end && total_bytes.is_none_or(|total| bytes.end <= total)
        });
        is_valid.then_some(ContentRange { bytes, total_bytes })
    }
}

/// Digits only: `parse` would accept a sign as well.
fn number(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(value: &str) -> Option<(Option<Range<u64>>, Option<u64>)> {
        ContentRange::parse(value).map(|range| (range.bytes, range.total_bytes))
    }

    #[test]
    fn ranges_and_totals_are_read() {
        assert_eq!(parsed("bytes 0-0/1"), Some((Some(0..1), Some(1))));
        assert_eq!(parsed(" Bytes 5-9/10 "), Some((Some(5..10), Some(10))));
        assert_eq!(parsed("bytes 5-9/*"), Some((Some(5..10), None)));
        assert_eq!(parsed("bytes */10"), Some((None, Some(10))));
    }

    #[test]
    fn nonsense_is_refused() {
        for value in [
            "",
            "bytes",
            "bytes 0-0",
            "lines 0-0/1",
            "bytes 9-5/10",
            "bytes 0-10/10",
            "bytes +1-2/10",
            "bytes -1/10",
            "bytes 0-18446744073709551615/*",
            "bytes 0-99999999999999999999/*",
            "bytes a-b/c",
        ] {
            assert_eq!(parsed(value), None, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_a_range_within_the_total(value in "(bytes )?[-0-9*/ ]{0,24}") {
            if let Some((Some(bytes), total)) = parsed(&value) {
                prop_assert!(bytes.start < bytes.end);
                prop_assert!(total.is_none_or(|total| bytes.end <= total));
            }
        }
    }
}
