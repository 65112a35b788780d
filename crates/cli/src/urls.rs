//! Operands that are URLs: how to recognize them, display them, and name what is restored from
//! them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

/// The prefixes of readable URLs.
const SCHEMES: [&str; 3] = ["https://", "http://", "s3://"];

/// A URL operand's path after the scheme and `//`, and the scheme.
fn parts(operand: &Path) -> Option<(&'static str, &str)> {
    let text = operand.to_str()?;
    SCHEMES.iter().find_map(|scheme| {
        let (start, rest) = text.split_at_checked(scheme.len())?;
        start
            .eq_ignore_ascii_case(scheme)
            .then_some((*scheme, rest))
    })
}

/// Whether an operand is a URL. Files with such names need `./` before them.
pub fn is_url(operand: &Path) -> bool {
    parts(operand).is_some()
}

/// The bucket and key of `s3://BUCKET/KEY`, as written.
#[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "for reading URLs"))]
pub fn bucket_and_key(operand: &Path) -> Option<(&str, &str)> {
    match parts(operand)? {
        ("s3://", rest) => Some(rest.split_once('/').unwrap_or((rest, ""))),
        _ => None,
    }
}

/// A URL for messages: without user, password and query, which may be a signature.
pub fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = parts(Path::new(url)) else {
        return url.to_owned();
    };
    if scheme == "s3://" {
        return url.to_owned();
    }
    let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(host_end);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let path_end = path.find(['?', '#']).unwrap_or(path.len());
    let (path, query) = path.split_at(path_end);
    let query = if query.starts_with('?') { "?..." } else { "" };
    format!("{scheme}{host}{path}{query}")
}

/// The name for what is restored from an operand: a file's path, or a URL's last part, in the
/// current directory. Empty for a URL without a file name.
pub fn local_name(operand: &Path) -> PathBuf {
    let Some((scheme, rest)) = parts(operand) else {
        return operand.to_path_buf();
    };
    let is_store = scheme == "s3://";
    let path = if is_store { rest } else { rest.split(['?', '#']).next().unwrap_or_default() };
    let name = path.split_once('/').map(|(_, path)| path);
    let name = name.and_then(|path| path.rsplit('/').next());
    let name = name.unwrap_or_default();
    let name = if is_store {
        name.as_bytes().to_vec()
    } else {
        percent_decode_str(name).collect()
    };
    let is_name = !name.iter().any(|byte| b"/\0".contains(byte));
    if is_name && !matches!(&*name, b"" | b"." | b"..") {
        PathBuf::from(OsString::from_vec(name))
    } else {
        PathBuf::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_known_schemes_are_urls() {
        for url in ["https://h/x", "HTTP://h", "s3://b/k", "http://"] {
            assert!(is_url(Path::new(url)), "{url}");
        }
        for file in [
            "./https://h/x",
            "https:/h/x",
            "ftp://h/x",
            "/s3://b/k",
            "http",
            "é://x",
        ] {
            assert!(!is_url(Path::new(file)), "{file}");
        }
    }

    #[test]
    fn messages_show_no_secrets() {
        for (url, shown) in [
            (
                "https://me:p@ss@h:8/a/x.rfn?sig=1#f",
                "https://h:8/a/x.rfn?...",
            ),
            ("http://me@h", "http://h"),
            ("http://h/a@b", "http://h/a@b"),
            ("http://h?user=a/b@c", "http://h?..."),
            ("s3://bucket/a?b@c", "s3://bucket/a?b@c"),
            ("x?y@z", "x?y@z"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }

    #[test]
    fn the_last_part_is_the_name_and_stays_in_its_directory() {
        for (url, name) in [
            ("https://h/a/x.tar.rfn?s=/y#/z", "x.tar.rfn"),
            ("http://h/a%20b.rfn", "a b.rfn"),
            ("s3://b/dir/a%20b?.rfn", "a%20b?.rfn"),
            ("http://h/..%2f..%2fetc%2fpasswd", ""),
            ("http://h/%2e%2e", ""),
            ("http://h/dir/", ""),
            ("http://h", ""),
            ("s3://bucket", ""),
            ("dir/x.rfn", "dir/x.rfn"),
        ] {
            assert_eq!(local_name(Path::new(url)), Path::new(name), "{url}");
        }
    }

    #[test]
    fn buckets_and_keys_are_taken_as_they_are() {
        let parts = |url| bucket_and_key(Path::new(url));
        assert_eq!(parts("s3://b/a/b c"), Some(("b", "a/b c")));
        assert_eq!(parts("s3://b"), Some(("b", "")));
        assert_eq!(parts("http://b/k"), None);
    }
}
