//! Lists of paths: what of a tree is walked.

use std::io;
use std::ops::Range;

use super::names::Names;
use crate::path_order::compare_paths;

/// What is walked below a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Children {
    /// Everything.
    All,
    /// The paths at these positions of the list; the directory itself only if `is_listed` or if
    /// one of them exists.
    Listed {
        positions: Range<usize>,
        is_listed: bool,
    },
}

impl Children {
    /// Whether the path itself is wanted, not only something below it.
    pub(crate) fn is_wanted(&self) -> bool {
        match self {
            Self::All => true,
            Self::Listed { is_listed, .. } => *is_listed,
        }
    }
}

/// Paths relative to the root, in path order, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct ListedPaths {
    paths: Vec<Vec<u8>>,
    is_recursive: bool,
}

impl ListedPaths {
    /// Puts the paths into order.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for empty and absolute paths, paths with `..`, and paths with NUL.
    pub(crate) fn new(paths: Vec<Vec<u8>>, is_recursive: bool) -> io::Result<ListedPaths> {
        let mut paths: Vec<_> = paths
            .iter()
            .map(|path| normalized(path))
            .collect::<Result<_, _>>()?;
        paths.sort_unstable_by(|a, b| compare_paths(a, b));
        paths.dedup();
        Ok(ListedPaths {
            paths,
            is_recursive,
        })
    }

    /// What is walked of the root. The list is empty for an empty list of paths.
    pub(crate) fn root(&self) -> Children {
        match self.paths.first() {
            Some(first) if first.is_empty() => self.of_listed(0..self.paths.len()),
            _ => Children::Listed {
                positions: 0..self.paths.len(),
                is_listed: false,
            },
        }
    }

    /// The children of a path whose own position in the list is the first of `group`.
    fn of_listed(&self, group: Range<usize>) -> Children {
        match self.is_recursive {
            true => Children::All,
            false => Children::Listed {
                positions: group.start.saturating_add(1)..group.end,
                is_listed: true,
            },
        }
    }

    /// The listed paths at `positions`.
    pub(crate) fn at(&self, positions: Range<usize>) -> &[Vec<u8>] {
        self.paths.get(positions).unwrap_or_default()
    }

    /// The names in a directory that lead to the paths at `positions`, and what is walked below
    /// each. `path_length` is the length of the directory's path.
    pub(crate) fn names(
        &self,
        positions: Range<usize>,
        path_length: usize,
    ) -> (Names, Vec<Children>) {
        let start = if path_length == 0 { 0 } else { path_length + 1 };
        let name_of = |position: usize| {
            let rest = self.paths.get(position).and_then(|path| path.get(start..));
            let rest = rest.unwrap_or_default();
            let end = rest.iter().position(|byte| *byte == b'/');
            (
                rest.get(..end.unwrap_or(rest.len())).unwrap_or_default(),
                end.is_none(),
            )
        };
        let (mut names, mut children) = (Names::default(), Vec::new());
        let mut first = positions.start;
        while first < positions.end {
            let (name, is_listed) = name_of(first);
            let mut end = first + 1;
            while end < positions.end && name_of(end).0 == name {
                end += 1;
            }
            names.push(name);
            children.push(match is_listed {
                true => self.of_listed(first..end),
                false => Children::Listed {
                    positions: first..end,
                    is_listed: false,
                },
            });
            first = end;
        }
        (names, children)
    }
}

/// Removes what does not change the meaning of a path: `.` components and repeated slashes. The
/// root is the empty path.
fn normalized(path: &[u8]) -> io::Result<Vec<u8>> {
    let refuse = |why: &str| {
        let text = String::from_utf8_lossy(path);
        let text = format!("listed path {text:?} {why}");
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    };
    if path.is_empty() {
        return refuse("is empty");
    }
    if path.starts_with(b"/") {
        return refuse("is absolute; listed paths are relative to the directory");
    }
    if path.contains(&0) {
        return refuse("contains NUL");
    }
    let mut result = Vec::with_capacity(path.len());
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => return refuse("contains '..'"),
            component => {
                if !result.is_empty() {
                    result.push(b'/');
                }
                result.extend_from_slice(component);
            }
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(paths: &[&str], is_recursive: bool) -> ListedPaths {
        let paths = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        ListedPaths::new(paths, is_recursive).unwrap()
    }

    fn part(positions: Range<usize>, is_listed: bool) -> Children {
        Children::Listed {
            positions,
            is_listed,
        }
    }

    #[test]
    fn names_lead_to_the_listed_paths() {
        let list = listed(&["b//c/./d", "a", "a/x", "./b/e", "b/c"], true);
        assert_eq!(list.root(), part(0..5, false));
        let (names, children) = list.names(0..5, 0);
        assert_eq!(
            (names.get(0), names.get(1)),
            (Some(&b"a"[..]), Some(&b"b"[..]))
        );
        assert_eq!(children, [Children::All, part(2..5, false)]);
        let (names, children) = list.names(2..5, 1);
        assert_eq!(
            (names.get(0), names.get(1)),
            (Some(&b"c"[..]), Some(&b"e"[..]))
        );
        assert_eq!(children, [Children::All, Children::All]);
    }

    #[test]
    fn without_recursion_a_directory_is_itself_and_what_is_listed_below() {
        let list = listed(&["a", "a/x", "."], false);
        assert_eq!(list.root(), part(1..3, true));
        let (_, children) = list.names(1..3, 0);
        assert_eq!(children, [part(2..3, true)]);
    }

    #[test]
    fn paths_that_lead_out_of_the_root_are_refused() {
        for path in ["", "/a", "..", "a/..", "a\0"] {
            let error = ListedPaths::new(vec![path.as_bytes().to_vec()], true).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
    }
}
