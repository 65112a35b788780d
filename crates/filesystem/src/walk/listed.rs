//! Lists of paths: which parts of a tree are walked.

use std::io;
use std::ops::Range;

use super::names::Names;
use refrain_entries::compare_paths;

/// What is walked of a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Children {
    /// Whether the path itself is listed.
    pub(crate) is_listed: bool,
    /// Whether everything below it is walked.
    pub(crate) is_everything: bool,
    /// The positions in the list of the paths below it.
    pub(crate) positions: Range<usize>,
}

impl Children {
    /// Everything below a directory that is not in a list.
    pub(crate) fn everything() -> Children {
        Children {
            is_everything: true,
            ..Children::default()
        }
    }

    /// Whether the path itself is wanted, not only something below it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_everything || self.is_listed
    }

    /// Whether the path is listed or leads to a listed path.
    pub(crate) fn is_named(&self) -> bool {
        self.is_listed || !self.positions.is_empty()
    }
}

/// Paths relative to the root, in path order, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct ListedPaths {
    paths: Vec<Vec<u8>>,
    is_recursive: bool,
}

impl ListedPaths {
    /// Sorts the paths.
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

    pub(crate) fn root(&self) -> Children {
        let is_listed = self.paths.first().is_some_and(Vec::is_empty);
        self.children_in_group(0..self.paths.len(), is_listed)
    }

    /// What is walked of a path with which all paths of `group` begin; the first is the path itself
    /// if it `is_listed`.
    fn children_in_group(&self, group: Range<usize>, is_listed: bool) -> Children {
        Children {
            is_listed,
            is_everything: is_listed && self.is_recursive,
            positions: group.start.saturating_add(is_listed.into())..group.end,
        }
    }

    pub(crate) fn get(&self, position: usize) -> Option<&[u8]> {
        self.paths.get(position).map(Vec::as_slice)
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
            children.push(self.children_in_group(first..end, is_listed));
            first = end;
        }
        (names, children)
    }
}

/// Removes `.` components and repeated slashes. The root is the empty path.
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

    /// The fields of `Children`, for comparison.
    fn shown(children: &[Children]) -> Vec<(bool, bool, Range<usize>)> {
        let shown = |c: &Children| (c.is_listed, c.is_everything, c.positions.clone());
        children.iter().map(shown).collect()
    }

    fn shown_names(names: &Names) -> Vec<&[u8]> {
        (0..names.len()).map(|i| names.get(i).unwrap()).collect()
    }

    #[test]
    fn names_lead_to_the_listed_paths() {
        let list = listed(&["b//c/./d", "a", "a/x", "./b/e", "b/c"], true);
        assert_eq!(shown(&[list.root()]), [(false, false, 0..5)]);
        let (names, children) = list.names(0..5, 0);
        assert_eq!(shown_names(&names), [b"a", b"b"]);
        assert_eq!(shown(&children), [(true, true, 1..2), (false, false, 2..5)]);
        let (names, children) = list.names(2..5, 1);
        assert_eq!(shown_names(&names), [b"c", b"e"]);
        assert_eq!(shown(&children), [(true, true, 3..4), (true, true, 5..5)]);
    }

    #[test]
    fn without_recursion_a_directory_is_itself_and_what_is_listed_below() {
        let list = listed(&["a", "a/x", "."], false);
        assert_eq!(shown(&[list.root()]), [(true, false, 1..3)]);
        let (_, children) = list.names(1..3, 0);
        assert_eq!(shown(&children), [(true, false, 2..3)]);
    }

    #[test]
    fn paths_that_lead_out_of_the_root_are_refused() {
        for path in ["", "/a", "..", "a/..", "a\0"] {
            let error = ListedPaths::new(vec![path.as_bytes().to_vec()], true).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
    }
}
