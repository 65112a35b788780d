//! The field `Range`: which part of a resource a request wants.
//!
//! A single range is served. A request for several gets the whole resource, as the standard allows:
//! the bytes between ranges cost less than multipart bodies.

use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All bytes: no range, several ranges, or a field that is not understood.
    Whole,
    /// These bytes, which are inside the resource.
    Part(Range<u64>),
    /// Bytes past the end.
    Unsatisfiable,
}

/// What a Range field means for a resource of `length_bytes`.
pub(super) fn wanted(field: Option<&[u8]>, length_bytes: u64) -> Wanted {
    let Some(spec) = field.and_then(single_range) else {
        return Wanted::Whole;
    };
    let found = match spec {
        Spec::From(first, last) if first < length_bytes => {
            let end = last.map_or(length_bytes, |last| {
                last.saturating_add(1).min(length_bytes)
            });
            first..end
        }
        Spec::Last(count) if count > 0 && length_bytes > 0 => {
            length_bytes.saturating_sub(count)..length_bytes
        }
        Spec::From(..) | Spec::Last(_) => return Wanted::Unsatisfiable,
    };
    Wanted::Part(found)
}

/// A range as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spec {
    /// From a first byte to a last byte, or to the end.
    From(u64, Option<u64>),
    /// This many bytes at the end.
    Last(u64),
}

/// The range of a field that has exactly one.
fn single_range(field: &[u8]) -> Option<Spec> {
    let text = str::from_utf8(field).ok()?;
    let (unit, ranges) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    // Elements of a list may be empty.
    let mut ranges = ranges
        .split(',')
        .map(str::trim)
        .filter(|range| !range.is_empty());
    let range = ranges.next()?;
    if ranges.next().is_some() {
        return None;
    }
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.trim(), last.trim());
    match (first.is_empty(), last.is_empty()) {
        (true, true) => None,
        (true, false) => Some(Spec::Last(number(last)?)),
        (false, true) => Some(Spec::From(number(first)?, None)),
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Spec::From(first, Some(last)))
        }
    }
}

/// A decimal number. More than 64 bits count as the maximum, which is past every end.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_ranges_are_cut_to_the_length() {
        let of = |field: &str| wanted(Some(field.as_bytes()), 100);
        assert_eq!(wanted(None, 100), Wanted::Whole);
        for (field, range) in [
            ("bytes=0-0", 0..1),
            ("bytes=10-19", 10..20),
            ("BYTES = 10 - 19", 10..20),
            ("bytes=90-", 90..100),
            ("bytes=90-1000", 90..100),
            ("bytes=99-18446744073709551615", 99..100),
            ("bytes=0-99999999999999999999999999", 0..100),
            ("bytes=-1", 99..100),
            ("bytes=-1000", 0..100),
            ("bytes=,,5-6,", 5..7),
        ] {
            assert_eq!(of(field), Wanted::Part(range), "{field}");
        }
        for field in [
            "bytes=100-",
            "bytes=18446744073709551615-",
            "bytes=99999999999999999999-",
            "bytes=-0",
            "bytes=100-200",
        ] {
            assert_eq!(of(field), Wanted::Unsatisfiable, "{field}");
        }
        for field in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=5-4",
            "bytes=0-1,5-6",
            "lines=1-2",
            "bytes=+1-2",
            "bytes=1--2",
            "bytes=0x1-2",
            "bytes==1-2",
        ] {
            assert_eq!(of(field), Wanted::Whole, "{field}");
        }
        assert_eq!(wanted(Some(b"bytes=0-"), 0), Wanted::Unsatisfiable);
        assert_eq!(wanted(Some(b"bytes=-5"), 0), Wanted::Unsatisfiable);
    }
}
