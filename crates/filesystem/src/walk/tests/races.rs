//! Trees that change while they are walked.

use std::os::unix::fs::symlink;

use super::*;
use refrain_entries::EntryKind;

#[test]
fn a_directory_that_becomes_a_link_leads_nowhere() {
    let outside = tree(&["secret/deep", "secret/file"]);
    let root = tree(&["a/file", "dir/deep", "dir/file", "z"]);
    let (directory, aside) = (root.path().join("dir"), root.path().join("aside"));
    let link = root.path().join("link");
    symlink(outside.path().join("secret"), &link).unwrap();
    let mut links = 0;
    std::thread::scope(|scope| {
        let renames = scope.spawn(|| {
            for _ in 0..3000 {
                fs::rename(&directory, &aside).unwrap();
                fs::rename(&link, &directory).unwrap();
                fs::rename(&directory, &link).unwrap();
                fs::rename(&aside, &directory).unwrap();
            }
        });
        let files = FileRoot::open(root.path()).unwrap();
        while !renames.is_finished() {
            let (entries, problems) = walk(root.path(), WalkOptions::default());
            for entry in &entries {
                let name = entry.path.strip_prefix(b"dir/").unwrap_or_default();
                assert!(matches!(name, b"" | b"deep" | b"file"), "{entry:?}");
                // Nothing in the link's directory is listed: its files have longer contents.
                assert!(
                    entry.kind != EntryKind::File || entry.size_bytes <= 8,
                    "{entry:?}"
                );
                links += usize::from(entry.path == b"dir" && entry.kind == EntryKind::Symlink);
            }
            for problem in problems {
                let kinds = [ProblemKind::Changed, ProblemKind::Vanished];
                assert!(kinds.contains(&problem.kind), "{problem:?}");
            }
            if let Ok(file) = files.open_file(b"dir/file") {
                assert_eq!(file.size_bytes(), 8, "not the file behind the link");
            }
        }
    });
    assert!(links > 0, "the other thread never ran");
}

#[test]
fn a_directory_that_is_moved_away_below_the_walk_is_named() {
    // Deeper than the number of directories that stay open.
    let deep = "d/".repeat(100);
    let root = tree(&[&format!("{deep}x"), "d/e", "d/d/e", "z"]);
    let mut walker = Walker::open(root.path(), Path::new(""), WalkOptions::default()).unwrap();
    let mut entries = walker.next_entries(95).unwrap();
    fs::create_dir(root.path().join("new")).unwrap();
    fs::rename(root.path().join("d/d"), root.path().join("new/d")).unwrap();
    loop {
        let next = walker.next_entries(100).unwrap();
        if next.is_empty() {
            break;
        }
        entries.extend(next);
    }
    // Descriptors lead back to the moved directory; only its parent differs now.
    let paths = paths(&entries);
    assert!(paths.contains(&format!("{deep}x")), "{paths:?}");
    assert!(
        paths.contains(&"d/e".to_string()) && paths.contains(&"z".to_string()),
        "{paths:?}"
    );
    assert!(
        entries
            .windows(2)
            .all(|pair| { refrain_entries::compare_paths(&pair[0].path, &pair[1].path).is_lt() })
    );
}

#[test]
fn a_walk_that_cannot_come_back_to_a_directory_names_it_and_goes_on() {
    let deep = "d/".repeat(100);
    let root = tree(&[&format!("{deep}x"), "d/e", "z"]);
    let mut walker = Walker::open(root.path(), Path::new(""), WalkOptions::default()).unwrap();
    let mut entries = walker.next_entries(95).unwrap();
    // The way back leads elsewhere, and the path leads to another directory.
    fs::create_dir_all(root.path().join("new")).unwrap();
    fs::rename(root.path().join("d/d"), root.path().join("new/d")).unwrap();
    fs::rename(root.path().join("d"), root.path().join("other")).unwrap();
    fs::create_dir_all(root.path().join("d/not-this")).unwrap();
    entries.extend(walker.next_entries(100).unwrap());
    let paths = paths(&entries);
    assert_eq!(paths.len(), 103);
    assert_eq!(paths[101..], [format!("{deep}x"), "z".to_string()]);
    let problems = walker.take_problems();
    let named: Vec<_> = problems.iter().map(|p| (&p.path[..], p.kind)).collect();
    assert_eq!(named, [(&b"d"[..], ProblemKind::Changed)]);
}

#[test]
fn files_that_vanish_before_they_are_reached_are_named() {
    let root = tree(&["a", "b", "dir/x", "z"]);
    let mut walker = Walker::open(root.path(), Path::new(""), WalkOptions::default()).unwrap();
    assert_eq!(paths(&walker.next_entries(2).unwrap()), [".", "a"]);
    fs::remove_file(root.path().join("b")).unwrap();
    fs::remove_dir_all(root.path().join("dir")).unwrap();
    assert_eq!(paths(&walker.next_entries(9).unwrap()), ["z"]);
    let problems = walker.take_problems();
    let named: Vec<_> = problems.iter().map(|p| (&p.path[..], p.kind)).collect();
    assert_eq!(
        named,
        [
            (&b"b"[..], ProblemKind::Vanished),
            (b"dir", ProblemKind::Vanished)
        ]
    );
    assert_eq!(walker.take_problems(), []);
}
