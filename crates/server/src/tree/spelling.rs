//! Normalizes the paths of tar streams, which may be spelled in several ways.

/// The path without empty components and `.`; `.` for the root. `None` if it is absolute, empty, or
/// leads through `..`: extraction refuses such paths too.
pub(super) fn normal_form(path: &[u8]) -> Option<Vec<u8>> {
    if path.is_empty() || path.starts_with(b"/") || path.contains(&0) {
        return None;
    }
    let components = path.split(|byte| *byte == b'/');
    let named: Vec<&[u8]> = components
        .filter(|part| !part.is_empty() && *part != b".")
        .collect();
    match named.as_slice() {
        [] => Some(b".".to_vec()),
        named if named.contains(&&b".."[..]) => None,
        named => Some(named.join(&b'/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_path_are_equal_and_others_are_refused() {
        for path in ["a/b", "./a/b", "a//b/", "a/./b", "././/a/b//."] {
            assert_eq!(normal_form(path.as_bytes()).unwrap(), b"a/b", "{path}");
        }
        for path in [".", "./", "./."] {
            assert_eq!(normal_form(path.as_bytes()).unwrap(), b".", "{path}");
        }
        for path in ["", "/", "/a", "..", "a/..", "../a", "a/../b", "a\0"] {
            assert_eq!(normal_form(path.as_bytes()), None, "{path:?}");
        }
        assert_eq!(normal_form(b"...").unwrap(), b"...");
    }
}
