//! Signatures of requests to S3-compatible stores: Amazon's Signature Version 4.
//!
//! Reads of an object have it in the query of their URL
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html>). Other requests
//! have it in a header
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>), with the
//! SHA-256 of the body, so that a store notices other bytes.

use std::fmt;

use percent_encoding::utf8_percent_encode;
use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, Tag, sign};
use url::Url;

use super::bucket::RESERVED;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Access to a store.
#[derive(Clone)]
pub struct S3Credentials {
    /// The id of the key.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: String,
    /// The token of a session, with temporary keys.
    pub session_token: Option<String>,
}

impl fmt::Debug for S3Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Credentials").finish_non_exhaustive()
    }
}

/// The URL with a signature that is valid for some seconds from a time on. Of the headers only the
/// host is signed.
pub(super) fn signed(
    mut url: Url,
    region: &str,
    credentials: &S3Credentials,
    unix_seconds: u64,
    valid_seconds: u64,
) -> Url {
    let time = time_of_day(unix_seconds);
    let (date, _) = time.split_once('T').unwrap_or_default();
    let scope = format!("{date}/{region}/s3/aws4_request");
    let query = query(credentials, &scope, &time, valid_seconds);
    let request = format!(
        "GET\n{}\n{query}\nhost:{}\n\nhost\nUNSIGNED-PAYLOAD",
        url.path(),
        host(&url)
    );
    let signature = signature(credentials, &scope, &time, &request);
    url.set_query(Some(&format!("{query}&X-Amz-Signature={signature}")));
    url
}

/// What else the header of a signed request has.
pub(super) struct SignedHeaders<'a> {
    /// Names in small letters that begin with `x-amz-`, and their values.
    pub headers: &'a [(&'static str, String)],
    /// The SHA-256 of the body.
    pub body_digest: [u8; 32],
}

/// The headers of a request with a signature, among them those that are to be signed. The URL's
/// query is in the order of names, and encoded as [`encoded_query`] does.
pub(super) fn signed_headers(
    (method, url): (&str, &Url),
    SignedHeaders {
        headers,
        body_digest,
    }: SignedHeaders<'_>,
    region: &str,
    credentials: &S3Credentials,
    unix_seconds: u64,
) -> Vec<(&'static str, String)> {
    let time = time_of_day(unix_seconds);
    let (date, _) = time.split_once('T').unwrap_or_default();
    let scope = format!("{date}/{region}/s3/aws4_request");
    let body_digest = hexadecimal(&body_digest);
    let mut headers = headers.to_vec();
    headers.push(("x-amz-content-sha256", body_digest.clone()));
    headers.push(("x-amz-date", time.clone()));
    if let Some(token) = credentials
        .session_token
        .clone()
        .filter(|token| !token.is_empty())
    {
        headers.push(("x-amz-security-token", token));
    }
    let mut signed = headers.clone();
    signed.push(("host", host(url)));
    signed.sort_unstable();
    let lines = signed
        .iter()
        .map(|(name, value)| format!("{name}:{value}\n"));
    let lines: String = lines.collect();
    let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let names = names.join(";");
    let request = format!(
        "{method}\n{}\n{}\n{lines}\n{names}\n{body_digest}",
        url.path(),
        url.query().unwrap_or_default(),
    );
    let signature = signature(credentials, &scope, &time, &request);
    let id = &credentials.access_key_id;
    headers.push((
        "authorization",
        format!(
            "{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        ),
    ));
    headers
}

/// A query as it is signed: in the order of names.
pub(super) fn encoded_query(pairs: &[(&str, &str)]) -> String {
    let mut pairs = pairs.to_vec();
    pairs.sort_unstable();
    let encoded = |text| utf8_percent_encode(text, RESERVED);
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// The SHA-256 of a body.
pub(super) fn body_digest(body: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, body).as_ref());
    bytes
}

/// The signature of a canonical request.
fn signature(credentials: &S3Credentials, scope: &str, time: &str, request: &str) -> String {
    let request = hexadecimal(digest(&SHA256, request.as_bytes()).as_ref());
    let text = format!("{ALGORITHM}\n{time}\n{scope}\n{request}");
    let secret = format!("AWS4{}", credentials.secret_access_key);
    let key = scope.split('/').fold(key(secret.as_bytes()), |last, part| {
        key(sign(&last, part.as_bytes()).as_ref())
    });
    let signature: Tag = sign(&key, text.as_bytes());
    hexadecimal(signature.as_ref())
}

fn key(bytes: &[u8]) -> Key {
    Key::new(HMAC_SHA256, bytes)
}

/// The query without the signature, in the order of names.
fn query(credentials: &S3Credentials, scope: &str, time: &str, valid_seconds: u64) -> String {
    let credential = format!("{}/{scope}", credentials.access_key_id);
    let encoded = |text| utf8_percent_encode(text, RESERVED);
    let token = credentials.session_token.as_deref().unwrap_or_default();
    let token = match token {
        "" => String::new(),
        token => format!("&X-Amz-Security-Token={}", encoded(token)),
    };
    format!(
        "X-Amz-Algorithm={ALGORITHM}&X-Amz-Credential={}&X-Amz-Date={time}\
         &X-Amz-Expires={valid_seconds}{token}&X-Amz-SignedHeaders=host",
        encoded(&credential)
    )
}

/// The header `Host`: a port is left out if it is the scheme's own.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        None => host.to_owned(),
        Some(port) => format!("{host}:{port}"),
    }
}

/// `20130524T000000Z`, of the seconds since 1970.
fn time_of_day(unix_seconds: u64) -> String {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Years begin in March, so that the day that is not in all of them is the last.
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Amazon's documentation.
    fn example(session_token: Option<&str>) -> String {
        let credentials = S3Credentials {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            session_token: session_token.map(str::to_owned),
        };
        let url = Url::parse("https://examplebucket.s3.amazonaws.com/test.txt").unwrap();
        signed(url, "us-east-1", &credentials, 1_369_353_600, 86_400).into()
    }

    #[test]
    fn amazons_example_has_amazons_signature() {
        let expected = "https://examplebucket.s3.amazonaws.com/test.txt\
            ?X-Amz-Algorithm=AWS4-HMAC-SHA256\
            &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
            &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
            &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        assert_eq!(example(None), expected);
        assert_eq!(example(Some("")), expected);
    }

    /// The example "GET Bucket (List Objects)" of Amazon's documentation.
    #[test]
    fn headers_are_signed_with_the_query_and_the_body() {
        let credentials = S3Credentials {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
        };
        let mut url = Url::parse("https://examplebucket.s3.amazonaws.com/").unwrap();
        url.set_query(Some(&encoded_query(&[("prefix", "J"), ("max-keys", "2")])));
        let headers = SignedHeaders {
            headers: &[],
            body_digest: body_digest(b""),
        };
        let found = signed_headers(
            ("GET", &url),
            headers,
            "us-east-1",
            &credentials,
            1_369_353_600,
        );
        let (_, authorization) = found.last().unwrap();
        assert_eq!(
            authorization,
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders=host;x-amz-content-sha256;x-amz-date, \
             Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
        assert_eq!(
            encoded_query(&[("uploads", ""), ("a", "b/c d")]),
            "a=b%2Fc%20d&uploads="
        );
    }

    #[test]
    fn the_token_of_a_session_is_signed() {
        let url = example(Some("oej5cie4uctureturdtuc5dctd"));
        assert!(
            url.ends_with(
                "&X-Amz-Security-Token=oej5cie4uctureturdtuc5dctd&X-Amz-SignedHeaders=host\
                 &X-Amz-Signature=bf77b83a7135594046c90a7e7e10cf1a4c8f8ecc1d541d0f42bea6b7670870c7"
            ),
            "{url}"
        );
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_868_799, "20000229T235959Z"),
            (951_868_800, "20000301T000000Z"),
            (1_709_164_800, "20240229T000000Z"),
            (1_735_689_599, "20241231T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(time_of_day(seconds), expected);
        }
    }

    #[test]
    fn the_host_has_the_port_unless_it_is_the_schemes() {
        for (url, expected) in [
            ("https://h/x", "h"),
            ("https://h:443/x", "h"),
            ("http://h:443/x", "h:443"),
            ("http://[::1]:9000/x", "[::1]:9000"),
        ] {
            assert_eq!(host(&Url::parse(url).unwrap()), expected);
        }
    }
}
