//! Which object is read, with which credentials, and its name in messages.

use std::fmt;
use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use refrain_sync::clock::unix_seconds;
use url::Url;

use super::bucket::Bucket;
use super::signature::{S3Credentials, signed};

/// How long a signature is valid: much longer than a request, to allow for clocks that differ.
const SIGNATURE_VALID_SECONDS: u64 = 3600;

/// The region of requests if none is given.
const REGION_DEFAULT: &str = "us-east-1";

/// Where a store is, and how to sign in.
#[derive(Debug, Clone, Default)]
pub struct S3Options {
    /// The URL of the store; Amazon's for the region if `None`.
    pub endpoint: Option<String>,
    /// The region of the bucket; `us-east-1` if `None`.
    pub region: Option<String>,
    /// Whether the bucket is part of the path, not of the host. The default is yes with a custom
    /// endpoint, and for names with a dot, which TLS certificates do not cover.
    pub path_style: Option<bool>,
    /// Without credentials, requests are not signed.
    pub credentials: Option<S3Credentials>,
}

/// An object that can be read by [`RemoteSource`](super::RemoteSource).
#[derive(Clone)]
pub struct Location {
    address: Address,
    /// For messages: without secrets.
    name: String,
}

#[derive(Clone)]
enum Address {
    Http {
        url: Url,
        authorization: Option<String>,
    },
    S3 {
        bucket: Box<Bucket>,
        key: String,
        credentials: Option<S3Credentials>,
    },
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Location").field(&self.name).finish()
    }
}

impl Location {
    /// The object at an `http` or `https` URL. A user and a password in it are sent as basic
    /// authorization.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if it is not such a URL.
    pub fn http(text: &str) -> io::Result<Location> {
        let mut url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(invalid("not an http or https URL with a host"));
        }
        let authorization = authorization(&url);
        // Neither fails for a URL with a host.
        let _ = (url.set_username(""), url.set_password(None));
        url.set_fragment(None);
        Ok(Location {
            name: without_secrets(&url),
            address: Address::Http { url, authorization },
        })
    }

    /// The object `key` of a bucket.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an impossible bucket, key or endpoint.
    pub fn s3(bucket: &str, key: &str, options: &S3Options) -> io::Result<Location> {
        let name = format!("s3://{bucket}/{key}");
        check_bucket_name(bucket)?;
        if key.is_empty() || key.ends_with('/') {
            return Err(invalid("the key of an object is missing: s3://BUCKET/KEY"));
        }
        Ok(Location {
            address: Address::S3 {
                bucket: Box::new(bucket_of(bucket, options)?),
                key: key.to_owned(),
                credentials: options.credentials.clone(),
            },
            name,
        })
    }

    /// The name of the object in messages: without user, password and query.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL of the next request, signed now if requests are signed.
    pub(super) fn url(&self) -> Url {
        match &self.address {
            Address::Http { url, .. } => url.clone(),
            Address::S3 {
                bucket,
                key,
                credentials,
            } => {
                let url = bucket.object_url(key);
                let Some(credentials) = credentials else { return url };
                let now = unix_seconds().max(0).unsigned_abs();
                signed(
                    url,
                    &bucket.region,
                    credentials,
                    now,
                    SIGNATURE_VALID_SECONDS,
                )
            }
        }
    }

    /// The value of the header `Authorization` for requests to this URL: credentials go only to the
    /// host that they were given for.
    pub(super) fn authorization_for(&self, target: &Url) -> Option<&str> {
        match &self.address {
            Address::Http { url, authorization } if url.origin() == target.origin() => {
                authorization.as_deref()
            }
            _ => None,
        }
    }

    /// A suggestion for when access is denied.
    pub(super) fn access_hint(&self) -> &'static str {
        match &self.address {
            Address::S3 {
                credentials: None, ..
            } => "; the request was not signed, because there are no credentials",
            _ => "",
        }
    }
}

/// A bucket of a store.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for an impossible bucket or endpoint.
pub(super) fn bucket_of(name: &str, options: &S3Options) -> io::Result<Bucket> {
    check_bucket_name(name)?;
    let region = options.region.as_deref().unwrap_or(REGION_DEFAULT);
    let amazon = || format!("https://s3.{region}.amazonaws.com");
    let endpoint = options.endpoint.clone().unwrap_or_else(amazon);
    let endpoint = Url::parse(&endpoint)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(|| invalid("the endpoint of the store is not an http or https URL"))?;
    let is_in_path = options.path_style;
    let is_in_path = is_in_path.unwrap_or_else(|| options.endpoint.is_some() || name.contains('.'));
    let bucket = Bucket::new(&endpoint, name, region, is_in_path);
    bucket.map_err(|error| invalid(&error.to_string()))
}

fn check_bucket_name(name: &str) -> io::Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err(invalid(&format!("{name:?} is not a bucket name")));
    }
    Ok(())
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

fn authorization(url: &Url) -> Option<String> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decoded = |text| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let mut pair = decoded(url.username());
    pair.push(b':');
    pair.extend(decoded(url.password().unwrap_or_default()));
    Some(format!("Basic {}", BASE64.encode(pair)))
}

/// A URL for messages.
pub(super) fn without_secrets(url: &Url) -> String {
    let mut shown = url.clone();
    let _ = (shown.set_username(""), shown.set_password(None));
    shown.set_fragment(None);
    if shown.query().is_some() {
        shown.set_query(Some("..."));
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(endpoint: Option<&str>) -> S3Options {
        S3Options {
            endpoint: endpoint.map(str::to_owned),
            credentials: Some(S3Credentials {
                access_key_id: "KEYID".into(),
                secret_access_key: "hush".into(),
                session_token: Some("token".into()),
            }),
            ..S3Options::default()
        }
    }

    #[test]
    fn secrets_of_urls_are_sent_and_not_shown() {
        let text = "https://me:p%40ss@host.test:8443/a%20b/x.rfn?signature=abc#part";
        let location = Location::http(text).unwrap();
        assert_eq!(location.name(), "https://host.test:8443/a%20b/x.rfn?...");
        assert!(!format!("{location:?}").contains("abc"));
        let url = location.url();
        assert_eq!(
            url.as_str(),
            "https://host.test:8443/a%20b/x.rfn?signature=abc"
        );
        // "me:p@ss"
        let value = location.authorization_for(&url);
        assert_eq!(value, Some("Basic bWU6cEBzcw=="));
        for other in [
            "https://host.test/x",
            "http://host.test:8443/x",
            "https://evil.test:8443/",
        ] {
            let other = Url::parse(other).unwrap();
            assert_eq!(location.authorization_for(&other), None);
        }
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in [
            "",
            "x.rfn",
            "ftp://host/x",
            "http://",
            "http:///x y",
            "https://ho st/",
        ] {
            match Location::http(text) {
                // The standard takes the first part of the path as the host.
                Ok(location) => assert_eq!(location.name(), "http://x%20y/", "{text}"),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::InvalidInput),
            }
        }
        for (bucket, key) in [
            ("", "k"),
            ("b", ""),
            ("b", "k/"),
            ("b@c", "k"),
            ("a/b", "k"),
        ] {
            assert!(
                Location::s3(bucket, key, &S3Options::default()).is_err(),
                "{bucket} {key}"
            );
        }
        assert!(Location::s3("b", "k", &store(Some("ftp://host"))).is_err());
    }

    #[test]
    fn buckets_are_in_the_host_or_in_the_path() {
        let url = |bucket: &str, options: &S3Options| {
            let location = Location::s3(bucket, "a b/x?.rfn", options).unwrap();
            assert_eq!(location.name(), format!("s3://{bucket}/a b/x?.rfn"));
            location.url().to_string()
        };
        let signed = url("bucket", &store(None));
        let start = "https://bucket.s3.us-east-1.amazonaws.com/a%20b/x%3F.rfn?";
        assert!(signed.starts_with(start), "{signed}");
        assert!(
            signed.contains("X-Amz-Signature=") && signed.contains("KEYID"),
            "{signed}"
        );
        assert!(!signed.contains("hush"), "{signed}");
        let dotted = url("my.bucket", &store(None));
        assert!(
            dotted.starts_with("https://s3.us-east-1.amazonaws.com/my.bucket/"),
            "{dotted}"
        );
        let own = url("bucket", &store(Some("http://localhost:5000")));
        assert!(
            own.starts_with("http://localhost:5000/bucket/a%20b/"),
            "{own}"
        );
        let anonymous = S3Options {
            endpoint: Some("http://localhost:5000".into()),
            path_style: Some(false),
            ..S3Options::default()
        };
        let plain = url("bucket", &anonymous);
        assert_eq!(plain, "http://bucket.localhost:5000/a%20b/x%3F.rfn");
    }
}
