//! Walks of real directories.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail loudly")]

mod files;
mod kinds;
mod large;
mod listed;
mod races;
mod random;
mod trouble;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use refrain_entries::{Entry, Selection};

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

/// A directory with these files, each containing its own path. A path that ends with `/` is a
/// directory.
fn tree(paths: &[&str]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for path in paths {
        let full = root.path().join(path);
        if path.ends_with('/') {
            fs::create_dir_all(full).unwrap();
        } else {
            fs::create_dir_all(full.parent().unwrap()).unwrap();
            fs::write(full, path).unwrap();
        }
    }
    root
}

fn selecting(edit: impl FnOnce(&mut refrain_entries::SelectionBuilder)) -> WalkOptions {
    let mut builder = Selection::builder();
    edit(&mut builder);
    WalkOptions {
        selection: builder.build().unwrap(),
        ..WalkOptions::default()
    }
}

#[test]
fn a_tree_is_listed_in_path_order() {
    let root = tree(&["b/c", "a-", "a/x", "a/y/z", "!"]);
    let (entries, problems) = walk(root.path(), WalkOptions::default());
    let expected = [".", "!", "a", "a/x", "a/y", "a/y/z", "a-", "b", "b/c"];
    assert_eq!(paths(&entries), expected);
    assert_eq!(problems, []);
    assert_eq!(entries[3].size_bytes, 3);
    assert_eq!(refrain_entries::content_order(&entries), [1, 3, 5, 6, 8]);
}

#[test]
fn paths_begin_with_the_name_and_lead_back_to_the_files() {
    let root = tree(&["a/x"]);
    for (name, expected) in [
        ("", [".", "a", "a/x"]),
        ("n/m", ["n/m", "n/m/a", "n/m/a/x"]),
    ] {
        let name = Path::new(name);
        let mut walker = Walker::open(root.path(), name, WalkOptions::default()).unwrap();
        let entries = walker.next_entries(9).unwrap();
        assert_eq!(paths(&entries), expected);
        let relative: Vec<_> = entries
            .iter()
            .map(|entry| walker.relative_path(entry))
            .collect();
        assert_eq!(relative, [&b""[..], b"a", b"a/x"]);
        assert_eq!(relative_path(name, &entries[2].path), Some(&b"a/x"[..]));
    }
    assert_eq!(relative_path(Path::new("n"), b"no/a"), None);
    assert_eq!(relative_path(Path::new("n"), b"m"), None);
}

#[test]
fn a_root_that_cannot_be_listed_is_an_error() {
    let root = tree(&["file"]);
    for path in ["file", "missing"] {
        let path = root.path().join(path);
        assert!(Walker::open(&path, Path::new(""), WalkOptions::default()).is_err());
    }
    // A link to the root is followed.
    let link = root.path().join("link");
    std::os::unix::fs::symlink(".", &link).unwrap();
    assert_eq!(
        paths(&walk(&link, WalkOptions::default()).0),
        [".", "file", "link"]
    );
}

#[test]
fn excluded_directories_are_not_entered() {
    let root = tree(&["a/x.o", "a/x.c", "target/deep/x", "b/target", "c/y.o/z"]);
    let options = selecting(|builder| {
        builder.exclude(b"*.o").exclude(b"/target/");
    });
    let (entries, problems) = walk(root.path(), options);
    assert_eq!(paths(&entries), [".", "a", "a/x.c", "b", "b/target", "c"]);
    assert_eq!(problems, []);
}

#[test]
fn directories_above_included_files_are_entries_and_others_are_not() {
    let root = tree(&["a/b/c/x.c", "a/b/y", "a/d/", "e/f/g", "h.c", "i/j.c/k"]);
    let options = selecting(|builder| {
        builder.include(b"*.c").path(b"e/f");
    });
    let (entries, _) = walk(root.path(), options);
    let expected = [
        ".",
        "a",
        "a/b",
        "a/b/c",
        "a/b/c/x.c",
        "e",
        "e/f",
        "e/f/g",
        "h.c",
        "i",
        "i/j.c",
        "i/j.c/k",
    ];
    assert_eq!(paths(&entries), expected);
    let options = selecting(|builder| {
        builder.include(b"nothing");
    });
    assert_eq!(walk(root.path(), options).0, []);
}

#[test]
fn of_a_cache_only_the_directory_and_the_tag_are_kept() {
    let root = tree(&["a/CACHEDIR.TAG", "a/x/y", "b/CACHEDIR.TAG", "b/x", "c/x"]);
    let signature = "Signature: 8a477f597d28d172789f06886806bc55\n# a comment\n";
    fs::write(root.path().join("a/CACHEDIR.TAG"), signature).unwrap();
    let options = WalkOptions {
        exclude_caches: true,
        ..WalkOptions::default()
    };
    let (entries, _) = walk(root.path(), options.clone());
    let expected = [
        ".",
        "a",
        "a/CACHEDIR.TAG",
        "b",
        "b/CACHEDIR.TAG",
        "b/x",
        "c",
        "c/x",
    ];
    assert_eq!(paths(&entries), expected);
    let (entries, _) = walk(&root.path().join("a"), options);
    assert_eq!(paths(&entries), [".", "CACHEDIR.TAG"]);
    assert_eq!(walk(root.path(), WalkOptions::default()).0.len(), 10);
}

#[test]
fn other_file_systems_are_not_entered_on_request() {
    // The only mount points that every Linux system has.
    let root = PathBuf::from("/");
    let listed = |list: &[&[u8]], one_file_system| {
        let options = WalkOptions {
            one_file_system,
            selection: selecting(|builder| {
                builder
                    .include(b"/proc/self")
                    .include(b"/proc/sys/kernel/ostype");
                builder.path(b"proc/version");
            })
            .selection,
            ..WalkOptions::default()
        };
        let list = list.iter().map(|path| path.to_vec()).collect();
        let walker = Walker::for_paths(&root, Path::new(""), list, options).unwrap();
        paths(&read_all(walker).0)
    };
    let all = [
        ".",
        "proc",
        "proc/self",
        "proc/sys",
        "proc/sys/kernel",
        "proc/sys/kernel/ostype",
        "proc/version",
    ];
    // Listed paths may be on another file system.
    assert_eq!(listed(&[b"proc"], true), all);
    assert_eq!(listed(&[b"proc"], false), all);
    let walked = |one_file_system| {
        let options = WalkOptions {
            one_file_system,
            ..selecting(|builder| {
                builder.path(b"proc/version");
            })
        };
        paths(&walk(&root, options).0)
    };
    assert_eq!(walked(false), [".", "proc", "proc/version"]);
    assert_eq!(walked(true), [""; 0]);
}
