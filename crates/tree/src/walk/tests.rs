//! Walks of real directories, compared with a naive reference.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail loudly")]

use std::fs;
use std::path::Path;

use super::*;
use crate::entry::Entry;

fn walk(root: &Path, options: WalkOptions) -> (Vec<Entry>, Vec<Problem>) {
    read_all(Walker::open(root, Path::new(""), options).unwrap())
}

fn read_all(mut walker: Walker) -> (Vec<Entry>, Vec<Problem>) {
    let mut entries = Vec::new();
    loop {
        let next = walker.next_entries(7).unwrap();
        assert!(next.len() <= 7);
        if next.is_empty() {
            return (entries, walker.take_problems());
        }
        entries.extend(next);
    }
}

fn paths(entries: &[Entry]) -> Vec<String> {
    let paths = entries.iter().map(|entry| &entry.path);
    paths
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect()
}

#[test]
fn a_tree_is_listed_in_path_order() {
    let root = tempfile::tempdir().unwrap();
    for path in ["b/c", "a-", "a/x", "a/y/z"] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "data").unwrap();
    }
    let (entries, problems) = walk(root.path(), WalkOptions::default());
    let expected = [".", "a", "a/x", "a/y", "a/y/z", "a-", "b", "b/c"];
    assert_eq!(paths(&entries), expected);
    assert_eq!(problems, []);
    assert_eq!(entries[2].size_bytes, 4);
    assert_eq!(content_order(&entries), [2, 4, 5, 7]);
}
