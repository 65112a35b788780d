//! Paths of entries, as `list` prints them and users type them.

/// The prefix of the paths of a member's entries: empty if it is the only member of
/// `member_count`, else its name and a slash.
pub fn prefix_of(name: &[u8], member_count: usize) -> Vec<u8> {
    match member_count {
        1 => Vec::new(),
        _ => [name, b"/"].concat(),
    }
}

/// The path of an entry below `prefix`. For the directory member itself, the prefix without its
/// slash.
pub fn full_path(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    match (prefix.strip_suffix(b"/"), normalized(path).is_empty()) {
        (Some(name), true) => name.to_vec(),
        _ => [prefix, path].concat(),
    }
}

/// The part of `path` below a member with this prefix; `.` is the member itself.
pub fn inside<'a>(path: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let path = path.strip_prefix(b"./").unwrap_or(path);
    if prefix.strip_suffix(b"/") == Some(path) {
        return Some(b".");
    }
    let rest = path.strip_prefix(prefix)?;
    Some(if rest.is_empty() { b"." } else { rest })
}

/// The components of a path, without meaningless ones. An absolute path never equals a relative
/// one.
pub fn normalized(path: &[u8]) -> Vec<&[u8]> {
    let root = path.first().filter(|&&first| first == b'/');
    let components = path.split(|&byte| byte == b'/');
    let components = components.filter(|part| !part.is_empty() && *part != b".");
    root.map(|_| &b"/"[..])
        .into_iter()
        .chain(components)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_path_are_equal() {
        for path in ["a/b", "./a/b", "a/b/", "a//b", "./a/./b//"] {
            assert_eq!(normalized(path.as_bytes()), [b"a", b"b"], "{path}");
        }
        for path in ["/a/b", "a/b/c", "a/../a/b", "a\u{fffd}/b"] {
            assert_ne!(normalized(path.as_bytes()), [b"a", b"b"], "{path}");
        }
        assert_ne!(normalized(b"a\xff"), normalized(b"a\xfe"));
    }

    #[test]
    fn the_prefix_alone_is_the_member() {
        assert_eq!(inside(b"tree/", b"tree/"), Some(&b"."[..]));
        assert_eq!(inside(b"tree", b"tree/"), Some(&b"."[..]));
        assert_eq!(inside(b"./tree/a", b"tree/"), Some(&b"a"[..]));
        assert_eq!(inside(b"tree2/a", b"tree/"), None);
        assert_eq!(inside(b"a", b""), Some(&b"a"[..]));
        assert_eq!(full_path(b"tree/", b"."), b"tree");
        assert_eq!(full_path(b"tree/", b"a"), b"tree/a");
        assert_eq!(full_path(b"", b"."), b".");
    }
}
