//! Properties of the parsers for arbitrary bytes, for property tests and fuzz targets.

use super::conditions::{Validators, judge};
use super::date::{http_date, parse_http_date};
use super::head::{HEAD_BYTES_MAX, parse_head};
use super::listing::link_to;
use super::range::{Wanted, wanted};
use super::target::parse_target;

/// The same head is found whether the bytes come at once or in parts, and no part of them causes a
/// panic.
///
/// # Panics
/// If the property does not hold.
pub fn request_head(bytes: &[u8], cut: usize) {
    let whole = parse_head(bytes);
    let part = &bytes[..cut.min(bytes.len())];
    // More bytes do not change a result or an error.
    match parse_head(part) {
        Ok(None) => {}
        Ok(Some(found)) => assert_eq!(whole, Ok(Some(found))),
        Err(_) => assert!(whole.is_err(), "{:?}", whole),
    }
    let Ok(Some((head, length))) = whole else {
        return;
    };
    assert!(length <= bytes.len() && length <= HEAD_BYTES_MAX);
    if let Ok(target) = parse_target(&head.target) {
        let again = parse_target(link_to(&target.path).as_bytes());
        assert_eq!(again.map(|again| again.path), Ok(target.path));
    }
    let date = head.if_modified_since.as_deref().and_then(parse_http_date);
    if let Some(date) = date {
        assert!(http_date(date).is_some());
    }
    let validators = Validators {
        etag: Some("\"0\"".to_owned()),
        modified: date,
    };
    judge(&head, &validators);
    for length_bytes in [0, 1, 1000, u64::MAX] {
        range(head.range.as_deref().unwrap_or_default(), length_bytes);
    }
}

/// Any parsed range is inside the resource.
///
/// # Panics
/// If the property does not hold.
pub fn range(field: &[u8], length_bytes: u64) {
    if let Wanted::Part(part) = wanted(Some(field), length_bytes) {
        assert!(
            part.start < part.end && part.end <= length_bytes,
            "{part:?}"
        );
    }
}

/// Text in a page contains no markup, whatever it was.
///
/// # Panics
/// If the property does not hold.
pub fn escaped_name(name: &[u8]) {
    let escaped = refrain_page::escaped(&String::from_utf8_lossy(name));
    assert!(!escaped.contains(['<', '>', '"', '\'']) && !escaped.contains(char::is_control));
    assert!(!link_to(name)[1..].starts_with('/'));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// Bytes that often look like a request.
    fn request() -> impl Strategy<Value = Vec<u8>> {
        let part = proptest::sample::select(
            &[
                "GET /a%20b?tar HTTP/1.1\r\n",
                "HEAD / HTTP/1.0\r\n",
                "Host: a\r\n",
                "Range: bytes=",
                "18446744073709551615-",
                "If-Range: \"0\"\r\n",
                "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
                "Content-Length: 1",
                "\r\n",
                "-1,",
                "\n",
                "\0",
            ][..],
        );
        let noise = proptest::collection::vec(any::<u8>(), 0..4);
        let parts = (part, proptest::option::weighted(0.1, noise));
        proptest::collection::vec(parts, 0..8).prop_map(|parts| {
            let bytes = |(part, noise): (&str, Option<Vec<u8>>)| {
                [part.as_bytes(), noise.as_deref().unwrap_or_default()].concat()
            };
            parts.into_iter().flat_map(bytes).collect()
        })
    }

    proptest! {
        #[test]
        fn heads_of_any_bytes(bytes in request(), cut in 0usize..300) {
            super::request_head(&bytes, cut);
        }

        #[test]
        fn ranges_of_any_text(field in "(bytes=)?[-0-9, ]{0,30}", length_bytes: u64) {
            super::range(field.as_bytes(), length_bytes);
        }

        #[test]
        fn names_of_any_bytes(name in proptest::collection::vec(any::<u8>(), 0..40)) {
            super::escaped_name(&name);
        }
    }
}
