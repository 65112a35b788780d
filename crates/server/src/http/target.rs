//! The target of a request: a path as bytes, and a query.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The decoded path without its leading slash.
    pub path: Vec<u8>,
    /// The query as sent; empty if there is none.
    pub query: Vec<u8>,
}

/// Decodes a target. Also accepts the form used by proxies, with scheme and host.
///
/// # Errors
/// Why it is refused.
pub(super) fn parse_target(target: &[u8]) -> Result<Target, &'static str> {
    let target = match strip_scheme(target) {
        None => target,
        Some(rest) => {
            let path = rest.iter().position(|&byte| byte == b'/');
            path.map_or(&b"/"[..], |at| &rest[at..])
        }
    };
    let target = target
        .split(|&byte| byte == b'#')
        .next()
        .unwrap_or_default();
    let (path, query) = match target.iter().position(|&byte| byte == b'?') {
        None => (target, &b""[..]),
        Some(at) => (&target[..at], &target[at + 1..]),
    };
    let path = path
        .strip_prefix(b"/")
        .ok_or("the path must begin with a slash")?;
    let path = percent_decoded(path)?;
    if path.contains(&0) {
        return Err("the path must not contain NUL bytes");
    }
    let mut components = path.split(|&byte| byte == b'/');
    if components.any(|component| component == b"..") {
        return Err("the path must not contain \"..\": clients resolve it");
    }
    Ok(Target {
        path,
        query: query.to_vec(),
    })
}

/// The host, with its port if any, of a target in the form used by proxies.
pub(super) fn authority(target: &[u8]) -> Option<&[u8]> {
    let is_end = |byte: &u8| matches!(byte, b'/' | b'?' | b'#');
    strip_scheme(target)?.split(is_end).next()
}

fn strip_scheme(target: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = target.split_at_checked(b"http://".len())?;
    if scheme.eq_ignore_ascii_case(b"http://") {
        return Some(rest);
    }
    let (scheme, rest) = target.split_at_checked(b"https://".len())?;
    scheme.eq_ignore_ascii_case(b"https://").then_some(rest)
}

fn percent_decoded(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            decoded.push(first);
            continue;
        }
        let digit = |at: usize| {
            after
                .get(at)
                .and_then(|&byte| char::from(byte).to_digit(16))
        };
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err("a percent sign must be followed by two hexadecimal digits");
        };
        decoded.push((high * 16 + low) as u8);
        rest = &after[2..];
    }
    Ok(decoded)
}

/// The value of a query's parameter, empty if it has no value; `None` without the parameter.
pub(super) fn parameter<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    query.split(|&byte| byte == b'&').find_map(|pair| {
        let rest = pair.strip_prefix(name)?;
        match rest.split_first() {
            None => Some(rest),
            Some((b'=', value)) => Some(value),
            Some(_) => None,
        }
    })
}

/// The value of a numeric parameter.
pub(super) fn number(query: &[u8], name: &[u8]) -> Option<u64> {
    str::from_utf8(parameter(query, name)?).ok()?.parse().ok()
}

/// Encodes a path for a link: every byte with another meaning there is encoded. Slashes separate
/// components and stay.
pub(super) fn percent_encoded(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for &byte in path {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn targets_are_decoded() {
        let path = |target: &str| parse_target(target.as_bytes()).map(|found| found.path);
        assert_eq!(path("/a%20b/%ff?x#y"), Ok(b"a b/\xff".to_vec()));
        assert_eq!(path("http://host:1/a"), Ok(b"a".to_vec()));
        assert_eq!(path("HTTPS://host"), Ok(vec![]));
        assert_eq!(path("/a%2Fb/"), Ok(b"a/b/".to_vec()));
        assert_eq!(path("/a/.../b"), Ok(b"a/.../b".to_vec()));
        for target in [
            "",
            "*",
            "a",
            "/%",
            "/%4",
            "/%zz",
            "/a%00",
            "/..",
            "/a/../b",
            "/a/%2e%2E",
        ] {
            assert!(path(target).is_err(), "{target}");
        }
        assert!(parse_target("/\u{e9}%".as_bytes()).is_err());
    }

    #[test]
    fn parameters_are_found_by_their_whole_name() {
        assert_eq!(parameter(b"tart&tar", b"tar"), Some(&b""[..]));
        assert_eq!(parameter(b"a=1&from=20", b"from"), Some(&b"20"[..]));
        assert_eq!(parameter(b"x", b"tar"), None);
        assert_eq!(number(b"from=20", b"from"), Some(20));
        assert_eq!(number(b"from=-1", b"from"), None);
    }

    proptest! {
        #[test]
        fn encoded_paths_decode_to_themselves(path in proptest::collection::vec(1u8.., 0..50)) {
            let target = format!("/{}", percent_encoded(&path));
            match parse_target(target.as_bytes()) {
                Ok(found) => prop_assert_eq!(found.path, path),
                Err(_) => prop_assert!(path.split(|&byte| byte == b'/').any(|part| part == b"..")),
            }
        }
    }
}
