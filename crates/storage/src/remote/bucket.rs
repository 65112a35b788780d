//! A bucket of an S3-compatible store: the URLs of its objects.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::{ParseError, Url};

/// What RFC 3986 does not call unreserved: stores sign URLs in which it is encoded.
pub(super) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The same in a path, whose segments remain.
const RESERVED_IN_PATH: &AsciiSet = &RESERVED.remove(b'/');

/// A bucket at a store.
#[derive(Clone)]
pub(super) struct Bucket {
    /// Ends with `/`; without user, password, query and fragment.
    base: Url,
    pub(super) region: String,
}

impl Bucket {
    /// The bucket `name`, of letters, digits and `.-_`, of the store at an `http` or `https` URL.
    ///
    /// # Errors
    /// If the name has to be part of the host, and cannot be.
    pub(super) fn new(
        endpoint: &Url,
        name: &str,
        region: &str,
        is_in_path: bool,
    ) -> Result<Bucket, ParseError> {
        let mut base = endpoint.clone();
        // Neither fails for a URL with a host.
        let _ = (base.set_username(""), base.set_password(None));
        base.set_query(None);
        base.set_fragment(None);
        let path = endpoint.path().trim_end_matches('/');
        if is_in_path {
            base.set_path(&format!("{path}/{name}/"));
        } else {
            base.set_path(&format!("{path}/"));
            let host = format!("{name}.{}", endpoint.host_str().unwrap_or_default());
            base.set_host(Some(&host))?;
            // Hosts have small letters only: this would be another bucket.
            if base.host_str() != Some(&host) {
                return Err(ParseError::InvalidDomainCharacter);
            }
        }
        Ok(Bucket {
            base,
            region: region.to_owned(),
        })
    }

    /// The URL of the object `key`, not signed. Like all URLs it has no segments `.` and `..`.
    pub(super) fn object_url(&self, key: &str) -> Url {
        let key = utf8_percent_encode(key, RESERVED_IN_PATH);
        let mut url = self.base.clone();
        url.set_path(&format!("{}{key}", self.base.path()));
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(endpoint: &str, name: &str, is_in_path: bool, key: &str) -> String {
        let endpoint = Url::parse(endpoint).unwrap();
        match Bucket::new(&endpoint, name, "r", is_in_path) {
            Ok(bucket) => bucket.object_url(key).into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn keys_are_encoded_and_stay_below_their_bucket() {
        for (key, expected) in [
            ("a/b-._~/c", "a/b-._~/c"),
            ("/x", "/x"),
            ("//host/x", "//host/x"),
            ("a b+c?d#e%2F", "a%20b%2Bc%3Fd%23e%252F"),
            (
                "ü:@!$&'()*,;=",
                "%C3%BC%3A%40%21%24%26%27%28%29%2A%2C%3B%3D",
            ),
        ] {
            let found = url("http://host/", "b", true, key);
            assert_eq!(found, format!("http://host/b/{expected}"));
        }
    }

    #[test]
    fn an_endpoint_may_have_a_port_and_a_path_and_loses_the_rest() {
        let endpoint = "https://me:secret@host:9000/s3?query#part";
        assert_eq!(url(endpoint, "b", true, "k"), "https://host:9000/s3/b/k");
        assert_eq!(url(endpoint, "b", false, "k"), "https://b.host:9000/s3/k");
    }

    #[test]
    fn names_that_hosts_cannot_have_are_refused() {
        assert_eq!(
            url("http://host", "Bucket", false, "k"),
            "invalid domain character"
        );
        assert_eq!(
            url("http://127.0.0.1", "b", false, "k"),
            "invalid IPv4 address"
        );
        assert_eq!(
            url("http://127.0.0.1", "Bucket", true, "k"),
            "http://127.0.0.1/Bucket/k"
        );
    }
}
