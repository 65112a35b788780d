//! Paths from an archive that cannot leave the target.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use crate::error::refused;

/// A path inside the target: components joined by `/`, none of them `.`, `..` or empty. The target
/// itself is the empty path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct ConfinedPath {
    bytes: Box<[u8]>,
}

impl ConfinedPath {
    /// Checks a path from an archive.
    ///
    /// # Errors
    ///
    /// `InvalidData` for empty and absolute paths, paths with `..`, and paths with NUL.
    pub(crate) fn new(path: &[u8]) -> io::Result<ConfinedPath> {
        let refuse = |why: &str| Err(refused(&format!("the path {why}")));
        if path.is_empty() {
            return refuse("is empty");
        }
        if path.starts_with(b"/") {
            return refuse("is absolute");
        }
        if path.contains(&0) {
            return refuse("contains NUL");
        }
        let mut bytes = Vec::with_capacity(path.len());
        for component in path.split(|byte| *byte == b'/') {
            match component {
                b"" | b"." => {}
                b".." => return refuse("contains '..'"),
                component => {
                    if !bytes.is_empty() {
                        bytes.push(b'/');
                    }
                    bytes.extend_from_slice(component);
                }
            }
        }
        Ok(ConfinedPath {
            bytes: bytes.into_boxed_slice(),
        })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The parent directory's path and the last component; `None` for the target itself.
    pub(crate) fn split(&self) -> Option<(&[u8], &OsStr)> {
        (!self.bytes.is_empty()).then(|| split_last(&self.bytes))
    }
}

/// The parent directory's path (empty for the target) and the last component.
pub(crate) fn split_last(path: &[u8]) -> (&[u8], &OsStr) {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    let (parent, name) = match slash {
        Some(slash) => (path.get(..slash), path.get(slash + 1..)),
        None => (None, Some(path)),
    };
    let name = OsStr::from_bytes(name.unwrap_or_default());
    (parent.unwrap_or_default(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_paths_that_leave_the_target() {
        for path in ["", "/", "/etc", "..", "../a", "a/..", "a/../../b", "a\0b"] {
            let error = ConfinedPath::new(path.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{path:?}");
        }
        for (path, text) in [
            (".", ""),
            ("./", ""),
            ("a//b/./c/", "a/b/c"),
            ("..a/...", "..a/..."),
        ] {
            let confined = ConfinedPath::new(path.as_bytes()).unwrap();
            assert_eq!(confined.as_bytes(), text.as_bytes());
        }
    }

    #[test]
    fn paths_split_at_the_last_component() {
        let split = |path: &[u8]| {
            let path = ConfinedPath::new(path).unwrap();
            path.split()
                .map(|(parent, name)| (parent.to_vec(), name.to_owned()))
        };
        assert_eq!(split(b"."), None);
        assert_eq!(split(b"a"), Some((b"".to_vec(), "a".into())));
        assert_eq!(split(b"a/b/c"), Some((b"a/b".to_vec(), "c".into())));
    }
}
