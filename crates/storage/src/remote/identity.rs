//! What distinguishes an object from one that replaces it.

use ureq::http::HeaderMap;

/// What the first response said about the object; all later ones must agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// The ETag as it was sent: quoted, with `W/` if it is weak.
    pub etag: Option<String>,
    /// The time of modification as it was sent.
    pub last_modified: Option<String>,
    /// The length of the whole object.
    pub length_bytes: u64,
}

impl Identity {
    pub(super) fn new(headers: &HeaderMap, length_bytes: u64) -> Identity {
        let text = |name| Some(headers.get(name)?.to_str().ok()?.to_owned());
        Identity {
            etag: text("etag"),
            last_modified: text("last-modified"),
            length_bytes,
        }
    }

    /// The ETag, if it stands for exactly these bytes. A weak one may not.
    fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| etag.starts_with('"'))
    }

    /// The header that makes a server refuse the request when it has another object.
    pub(super) fn condition(&self) -> Option<(&'static str, &str)> {
        match (self.strong_etag(), &self.last_modified) {
            (Some(etag), _) => Some(("If-Match", etag)),
            (None, Some(date)) => Some(("If-Unmodified-Since", date)),
            (None, None) => None,
        }
    }

    /// How the object of a later response differs from this one. A response may omit what the first
    /// one had, except the ETag.
    pub(super) fn difference(&self, now: &Identity) -> Option<String> {
        if self.length_bytes != now.length_bytes {
            let (before, now) = (self.length_bytes, now.length_bytes);
            return Some(format!("{before} bytes before, {now} now"));
        }
        if self.etag != now.etag {
            return Some(match (&self.etag, &now.etag) {
                (Some(before), Some(now)) => format!("ETag {before} before, {now} now"),
                (Some(before), None) => format!("ETag {before} before, none now"),
                (None, _) => return None,
            });
        }
        match (&self.last_modified, &now.last_modified) {
            (Some(before), Some(now)) if self.etag.is_none() && before != now => {
                Some(format!("modified {before} before, {now} now"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(etag: &str, date: &str, length_bytes: u64) -> Identity {
        let text = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        Identity {
            etag: text(etag),
            last_modified: text(date),
            length_bytes,
        }
    }

    #[test]
    fn another_etag_length_or_date_is_a_difference() {
        let pinned = identity("\"a\"", "Mon", 7);
        assert_eq!(pinned.difference(&pinned), None);
        let text = |now: Identity| pinned.difference(&now).unwrap_or_default();
        assert_eq!(
            text(identity("\"b\"", "Mon", 7)),
            "ETag \"a\" before, \"b\" now"
        );
        assert_eq!(text(identity("", "Mon", 7)), "ETag \"a\" before, none now");
        assert_eq!(text(identity("\"a\"", "Mon", 8)), "7 bytes before, 8 now");
        // The ETag decides: a copy on another server of a cluster may have another date.
        assert_eq!(text(identity("\"a\"", "Tue", 7)), "");
        let dated = identity("", "Mon", 7);
        let difference = dated.difference(&identity("", "Tue", 7));
        assert_eq!(difference.as_deref(), Some("modified Mon before, Tue now"));
        assert_eq!(dated.difference(&identity("\"new\"", "Mon", 7)), None);
    }

    #[test]
    fn only_a_strong_etag_is_a_condition() {
        let condition = |etag, date| {
            let identity = identity(etag, date, 1);
            identity
                .condition()
                .map(|(name, value)| format!("{name}: {value}"))
        };
        let text = |etag, date| condition(etag, date).unwrap_or_default();
        assert_eq!(text("\"a\"", "Mon"), "If-Match: \"a\"");
        assert_eq!(text("W/\"a\"", "Mon"), "If-Unmodified-Since: Mon");
        assert_eq!(text("W/\"a\"", ""), "");
    }
}
