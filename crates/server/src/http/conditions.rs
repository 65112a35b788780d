//! Conditional requests: compares what a client has with the resource.

use super::date::parse_http_date;
use super::head::{Method, RequestHead};

/// What identifies the bytes of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Validators {
    /// The strong entity tag, with its quotes.
    pub etag: Option<String>,
    /// When the bytes were last modified, in seconds since 1970.
    pub modified: Option<i64>,
}

/// The outcome of a request's conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Respond as without conditions; tells whether the range applies.
    Proceed { with_range: bool },
    /// 304: the client has it.
    NotModified,
    /// 412: the resource is not what the client requires.
    Failed,
}

/// Compares a request's conditions with a resource, in the order of RFC 9110, section 13.2.2.
pub(super) fn judge(head: &RequestHead, validators: &Validators) -> Verdict {
    let etag = validators.etag.as_deref();
    let requires = match (&head.if_match, &head.if_unmodified_since) {
        (Some(list), _) => names_tag(list, etag, Comparison::Strong),
        (None, Some(date)) => is_unmodified_since(date, validators.modified).unwrap_or(true),
        (None, None) => true,
    };
    if !requires {
        return Verdict::Failed;
    }
    let has_it = match (&head.if_none_match, &head.if_modified_since) {
        (Some(list), _) => names_tag(list, etag, Comparison::Weak),
        (None, Some(date)) => is_unmodified_since(date, validators.modified).unwrap_or(false),
        (None, None) => false,
    };
    match (has_it, head.method) {
        (true, Method::Get | Method::Head) => return Verdict::NotModified,
        (true, _) => return Verdict::Failed,
        (false, _) => {}
    }
    let with_range = match &head.if_range {
        None => true,
        Some(tag) if tag.starts_with(b"\"") => etag.is_some_and(|etag| etag.as_bytes() == tag),
        // A weak tag does not parse as a date either.
        Some(date) => {
            let stated = parse_http_date(date);
            stated.is_some() && stated == validators.modified
        }
    };
    Verdict::Proceed { with_range }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

/// Whether a list of tags names the resource. All tags of this server are strong.
fn names_tag(list: &[u8], etag: Option<&str>, comparison: Comparison) -> bool {
    let list = list.trim_ascii();
    if list == b"*" {
        return true;
    }
    let Some(etag) = etag else {
        return false;
    };
    // Tags may contain commas, but this server's do not: no other tag is mistaken for one of them.
    list.split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
        .any(|tag| {
            let opaque = match (tag.strip_prefix(b"W/"), comparison) {
                (Some(weak), Comparison::Weak) => weak,
                _ => tag,
            };
            opaque == etag.as_bytes()
        })
}

/// Whether the resource is no newer than the date of a field; `None` if either is unknown.
fn is_unmodified_since(date: &[u8], modified: Option<i64>) -> Option<bool> {
    Some(modified? <= parse_http_date(date)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::parse_head;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn verdict(fields: &str) -> Verdict {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n");
        let (head, _) = parse_head(text.as_bytes()).unwrap().unwrap();
        let validators = Validators {
            etag: Some("\"tag\"".to_owned()),
            modified: Some(784_111_777),
        };
        judge(&head, &validators)
    }

    #[test]
    fn conditions_are_judged_in_their_order() {
        let proceed = Verdict::Proceed { with_range: true };
        let whole = Verdict::Proceed { with_range: false };
        for (fields, expected) in [
            ("A: b".to_owned(), proceed),
            ("If-None-Match: \"tag\"".into(), Verdict::NotModified),
            (
                "If-None-Match: \"x\", W/\"tag\"".into(),
                Verdict::NotModified,
            ),
            ("If-None-Match: *".into(), Verdict::NotModified),
            ("If-None-Match: \"x\"".into(), proceed),
            (
                format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {LATER}"),
                proceed,
            ),
            (format!("If-Modified-Since: {DATE}"), Verdict::NotModified),
            (format!("If-Modified-Since: {EARLIER}"), proceed),
            ("If-Modified-Since: yesterday".into(), proceed),
            ("If-Match: \"tag\"".into(), proceed),
            ("If-Match: *".into(), proceed),
            ("If-Match: W/\"tag\"".into(), Verdict::Failed),
            ("If-Match: \"x\"".into(), Verdict::Failed),
            (format!("If-Unmodified-Since: {DATE}"), proceed),
            (format!("If-Unmodified-Since: {EARLIER}"), Verdict::Failed),
            ("If-Range: \"tag\"".into(), proceed),
            ("If-Range: W/\"tag\"".into(), whole),
            ("If-Range: \"x\"".into(), whole),
            (format!("If-Range: {DATE}"), proceed),
            (format!("If-Range: {LATER}"), whole),
            ("If-Range: 0".into(), whole),
        ] {
            assert_eq!(verdict(&fields), expected, "{fields}");
        }
    }

    #[test]
    fn without_a_tag_nothing_matches_but_the_star() {
        let none = Validators::default();
        let text = "GET / HTTP/1.1\r\nHost: h\r\nIf-Range: \"\"\r\nIf-None-Match: \"\"\r\n\r\n";
        let (head, _) = parse_head(text.as_bytes()).unwrap().unwrap();
        assert_eq!(judge(&head, &none), Verdict::Proceed { with_range: false });
    }
}
