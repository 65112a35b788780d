//! Checks what the head of a response says about the requested range.

use std::io;
use std::ops::Range;
use std::time::{Duration, UNIX_EPOCH};

use refrain_sync::clock::unix_seconds;
use ureq::http::{HeaderMap, StatusCode};

use super::content_range::ContentRange;
use super::identity::Identity;
use super::request_failure::{Remedy, RequestFailure};

/// A response whose body can be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Of the response's object.
    pub identity: Identity,
    /// The length that the body must have.
    pub body_bytes: u64,
}

/// Compares the head of a response with the request for `range` and with the object being read.
///
/// # Errors
/// Everything but a part that begins at `range.start` and ends within `range`, or the whole object
/// if `range` covers it.
pub(super) fn check(
    status: StatusCode,
    headers: &HeaderMap,
    range: &Range<u64>,
    pinned: Option<&Identity>,
) -> Result<Head, RequestFailure> {
    match status {
        StatusCode::PARTIAL_CONTENT => check_part(headers, range, pinned),
        // Some servers send a part with this status.
        StatusCode::OK if headers.contains_key("content-range") => {
            check_part(headers, range, pinned)
        }
        StatusCode::OK => check_whole(headers, range, pinned),
        StatusCode::RANGE_NOT_SATISFIABLE => check_unsatisfiable(headers, range, pinned),
        StatusCode::PRECONDITION_FAILED => {
            let now = text(headers, "etag");
            let before = pinned.and_then(|pinned| pinned.etag.as_deref());
            Err(RequestFailure::replaced(&match (before, now) {
                (Some(before), Some(now)) if before != now => {
                    format!("ETag {before} before, {now} now")
                }
                (Some(before), _) => format!("ETag {before} before, another now (status 412)"),
                (None, _) => "status 412".to_owned(),
            }))
        }
        _ => Err(refusal(status, headers)),
    }
}

fn check_part(
    headers: &HeaderMap,
    range: &Range<u64>,
    pinned: Option<&Identity>,
) -> Result<Head, RequestFailure> {
    check_encoding(headers)?;
    let value = text(headers, "content-range").unwrap_or("(none)");
    let wrong = |what: &str| {
        let (start, last) = (range.start, range.end.saturating_sub(1));
        let text = format!(
            "the server sends a wrong range: {what} (Content-Range: {value}, asked for bytes \
             {start}-{last})"
        );
        Err(RequestFailure::repeat(text))
    };
    let Some(ContentRange {
        bytes: Some(bytes),
        total_bytes,
    }) = ContentRange::parse(value)
    else {
        return wrong("not one range of bytes");
    };
    let Some(total_bytes) = total_bytes else {
        let text = "the server does not state the length of the object";
        return Err(RequestFailure::permanent(io::ErrorKind::Unsupported, text));
    };
    check_length(total_bytes)?;
    let identity = Identity::new(headers, total_bytes);
    check_identity(&identity, pinned)?;
    if bytes.start != range.start || bytes.end > range.end {
        return wrong("other bytes");
    }
    let body_bytes = bytes.end - bytes.start;
    if length(headers).is_some_and(|stated| stated != body_bytes) {
        return wrong("a body of another length");
    }
    Ok(Head {
        identity,
        body_bytes,
    })
}

/// A response with the whole object, as from servers without ranges.
fn check_whole(
    headers: &HeaderMap,
    range: &Range<u64>,
    pinned: Option<&Identity>,
) -> Result<Head, RequestFailure> {
    check_encoding(headers)?;
    let total_bytes = length(headers);
    if let Some(total_bytes) = total_bytes {
        check_length(total_bytes)?;
        let identity = Identity::new(headers, total_bytes);
        check_identity(&identity, pinned)?;
        if range.start == 0 && total_bytes <= range.end {
            return Ok(Head {
                identity,
                body_bytes: total_bytes,
            });
        }
    }
    let whole = match total_bytes {
        Some(bytes) => format!("all {bytes} bytes"),
        None => "everything".to_owned(),
    };
    let text = format!(
        "the server does not send ranges: it answers with {whole} (status 200); fetch the file \
         first, or pipe it in"
    );
    Err(RequestFailure::permanent(io::ErrorKind::Unsupported, text))
}

/// The response to a range that begins past the end, as every range of an empty object does.
fn check_unsatisfiable(
    headers: &HeaderMap,
    range: &Range<u64>,
    pinned: Option<&Identity>,
) -> Result<Head, RequestFailure> {
    let value = text(headers, "content-range").unwrap_or_default();
    let total_bytes = ContentRange::parse(value).and_then(|range| range.total_bytes);
    match (total_bytes, pinned) {
        (Some(0), None) => Ok(Head {
            identity: Identity::new(headers, 0),
            body_bytes: 0,
        }),
        (Some(now), Some(pinned)) if now != pinned.length_bytes => {
            let before = pinned.length_bytes;
            let difference = format!("{before} bytes before, {now} now");
            Err(RequestFailure::replaced(&difference))
        }
        _ => {
            let (start, last) = (range.start, range.end.saturating_sub(1));
            let text = format!(
                "the server refuses the bytes {start}-{last} (status 416, Content-Range: {value:?})"
            );
            Err(RequestFailure::permanent(io::ErrorKind::Other, text))
        }
    }
}

fn check_identity(now: &Identity, pinned: Option<&Identity>) -> Result<(), RequestFailure> {
    match pinned.and_then(|pinned| pinned.difference(now)) {
        Some(difference) => Err(RequestFailure::replaced(&difference)),
        None => Ok(()),
    }
}

/// No file is longer than 2^63-1 bytes, and offsets computed from such a length would overflow.
fn check_length(total_bytes: u64) -> Result<(), RequestFailure> {
    if i64::try_from(total_bytes).is_ok() {
        return Ok(());
    }
    let text = format!("the server states an impossible length of {total_bytes} bytes");
    Err(RequestFailure::permanent(io::ErrorKind::InvalidData, text))
}

/// Ranges of an encoded body are ranges of other bytes.
fn check_encoding(headers: &HeaderMap) -> Result<(), RequestFailure> {
    for value in headers.get_all("content-encoding") {
        let value = String::from_utf8_lossy(value.as_bytes());
        if !value.split(',').all(is_plain_coding) {
            let text = format!(
                "the server sends the object encoded (Content-Encoding: {value}), although it was \
                 asked not to"
            );
            return Err(RequestFailure::permanent(io::ErrorKind::Unsupported, text));
        }
    }
    Ok(())
}

/// Whether bytes in this coding are the object's. `aws-chunked` is how an upload was sent: some
/// stores keep it by mistake.
fn is_plain_coding(coding: &str) -> bool {
    let coding = coding.trim();
    let is = |name: &str| coding.eq_ignore_ascii_case(name);
    is("") || is("identity") || is("aws-chunked")
}

pub(super) fn refusal(status: StatusCode, headers: &HeaderMap) -> RequestFailure {
    let reason = status.canonical_reason().unwrap_or("unknown");
    let mut text = format!("status {} {reason}", status.as_u16());
    if let Some(region) = self::text(headers, "x-amz-bucket-region") {
        text.push_str(&format!(" (the bucket is in region {region})"));
    }
    match status.as_u16() {
        408 | 425 | 429 | 500 | 502..=504 | 506..=599 => RequestFailure {
            remedy: Remedy::Repeat(retry_after(headers)),
            text,
        },
        401 | 403 | 407 => RequestFailure::permanent(io::ErrorKind::PermissionDenied, text),
        404 | 410 => RequestFailure::permanent(io::ErrorKind::NotFound, text),
        _ => RequestFailure::permanent(io::ErrorKind::Other, text),
    }
}

/// The delay that the server asks for, in seconds or with a date. A date is compared with that of
/// the response, if there is one: the clocks of server and client may differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let asked = text(headers, "retry-after")?.trim();
    if !asked.is_empty() && asked.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(asked.parse().unwrap_or(u64::MAX)));
    }
    let until = httpdate::parse_http_date(asked).ok()?;
    let sent = text(headers, "date").and_then(|date| httpdate::parse_http_date(date).ok());
    let now = sent.unwrap_or_else(|| {
        let seconds = unix_seconds().max(0).unsigned_abs();
        UNIX_EPOCH + Duration::from_secs(seconds)
    });
    Some(until.duration_since(now).unwrap_or_default())
}

fn length(headers: &HeaderMap) -> Option<u64> {
    text(headers, "content-length")?.trim().parse().ok()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = lines
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        pairs.collect()
    }

    fn checked(
        status: u16,
        lines: &[(&'static str, &str)],
        pinned: Option<&Identity>,
    ) -> Result<u64, RequestFailure> {
        let status = StatusCode::from_u16(status).unwrap();
        check(status, &headers(lines), &(10..20), pinned).map(|head| head.body_bytes)
    }

    fn pinned(length_bytes: u64) -> Identity {
        Identity::new(&headers(&[("etag", "\"a\"")]), length_bytes)
    }

    #[test]
    fn a_part_that_begins_where_it_was_asked_for_is_taken() {
        let tag = ("etag", "\"a\"");
        for (value, length) in [("bytes 10-19/99", 10), ("bytes 10-14/99", 5)] {
            let found = checked(206, &[("content-range", value), tag], Some(&pinned(99)));
            assert_eq!(found, Ok(length));
        }
    }

    #[test]
    fn other_parts_are_refused_and_asked_for_again() {
        for value in [
            "bytes 9-19/99",
            "bytes 11-19/99",
            "bytes 10-20/99",
            "bytes */99",
            "x",
        ] {
            let found = checked(206, &[("content-range", value)], None).unwrap_err();
            assert_eq!(found.remedy, Remedy::Repeat(None), "{value}");
            assert!(found.text.contains(value), "{}", found.text);
        }
        let lines = [
            ("content-range", "bytes 10-19/99"),
            ("content-length", "11"),
        ];
        assert!(checked(206, &lines, None).is_err());
        assert!(checked(206, &[], None).is_err());
    }

    #[test]
    fn another_object_is_never_mixed_in() {
        for lines in [
            [("content-range", "bytes 10-19/99"), ("etag", "\"b\"")],
            [("content-range", "bytes 10-19/98"), ("etag", "\"a\"")],
        ] {
            let found = checked(206, &lines, Some(&pinned(99))).unwrap_err();
            assert_eq!(found.remedy, Remedy::Replaced);
        }
        for (status, lines) in [
            (412, ("etag", "\"b\"")),
            (412, ("x", "y")),
            (416, ("content-range", "bytes */5")),
            (200, ("content-length", "5")),
        ] {
            let found = checked(status, &[lines], Some(&pinned(99))).unwrap_err();
            assert_eq!(found.remedy, Remedy::Replaced, "{status}");
        }
    }

    #[test]
    fn all_of_an_object_is_taken_only_where_it_was_asked_for() {
        let status = StatusCode::OK;
        let small = headers(&[("content-length", "5")]);
        let found = check(status, &small, &(0..10), None).map(|head| head.body_bytes);
        assert_eq!(found, Ok(5));
        let large = headers(&[("content-length", "11")]);
        let text = check(status, &large, &(0..10), None).unwrap_err().text;
        assert!(
            text.contains("does not send ranges") && text.contains("11 bytes"),
            "{text}"
        );
        assert!(check(status, &headers(&[]), &(0..10), None).is_err());
        assert!(check(status, &small, &(1..10), None).is_err());
    }

    #[test]
    fn a_part_with_the_status_of_the_whole_is_a_part() {
        let right = [
            ("content-range", "bytes 10-19/99"),
            ("content-length", "10"),
        ];
        assert_eq!(checked(200, &right, None), Ok(10));
        let wrong = [("content-range", "bytes 0-98/99"), ("content-length", "99")];
        let text = checked(200, &wrong, None).unwrap_err().text;
        assert!(text.contains("wrong range"), "{text}");
    }

    #[test]
    fn an_empty_object_is_no_failure() {
        let range = ("content-range", "bytes */0");
        assert_eq!(checked(416, &[range], None), Ok(0));
        assert!(checked(416, &[("content-range", "bytes */9")], None).is_err());
        assert!(checked(416, &[], None).is_err());
    }

    #[test]
    fn statuses_and_encodings_are_named() {
        let encoded = [
            ("content-range", "bytes 10-19/99"),
            ("content-encoding", "gzip"),
        ];
        let text = checked(206, &encoded, None).unwrap_err().text;
        assert!(text.contains("Content-Encoding: gzip"), "{text}");
        let remedy = |status, lines: &[_]| checked(status, lines, None).unwrap_err().remedy;
        assert_eq!(remedy(404, &[]), Remedy::None(io::ErrorKind::NotFound));
        assert_eq!(
            remedy(403, &[]),
            Remedy::None(io::ErrorKind::PermissionDenied)
        );
        assert_eq!(remedy(500, &[]), Remedy::Repeat(None));
        let asked = Some(Duration::from_secs(3));
        assert_eq!(remedy(503, &[("retry-after", "3")]), Remedy::Repeat(asked));
        let endless = [("retry-after", "99999999999999999999999")];
        let asked = Some(Duration::from_secs(u64::MAX));
        assert_eq!(remedy(503, &endless), Remedy::Repeat(asked));
        let until = ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
        let asked = |date| remedy(503, &[until, ("date", date)]);
        let sent = "Wed, 21 Oct 2015 07:27:00 GMT";
        let minute = Some(Duration::from_secs(60));
        assert_eq!(asked(sent), Remedy::Repeat(minute));
        let past = Remedy::Repeat(Some(Duration::ZERO));
        assert_eq!(asked("Wed, 21 Oct 2015 07:29:00 GMT"), past);
        // Without a date of the response, our clock is asked.
        assert_eq!(remedy(503, &[until]), past);
        let wrong = [("retry-after", "Wed, 21 Oct"), ("date", sent)];
        assert_eq!(remedy(503, &wrong), Remedy::Repeat(None));
        let region = checked(301, &[("x-amz-bucket-region", "eu-west-1")], None);
        let text = region.unwrap_err().text;
        assert!(
            text.contains("301 Moved") && text.contains("eu-west-1"),
            "{text}"
        );
    }
}
