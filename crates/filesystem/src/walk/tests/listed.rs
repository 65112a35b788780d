//! Lists of paths.

use super::*;

fn of_paths(root: &Path, list: &[&str], options: WalkOptions) -> (Vec<Entry>, Vec<Problem>) {
    let list = list.iter().map(|path| path.as_bytes().to_vec()).collect();
    read_all(Walker::for_paths(root, Path::new(""), list, options).unwrap())
}

#[test]
fn listed_paths_come_in_path_order_with_the_directories_above() {
    let root = tree(&["a/b/c/x", "a/b/y", "a/z", "d/e", "f"]);
    let (entries, problems) = of_paths(
        root.path(),
        &["f", "a/b/c", "./d//e", "a/b/c/x", "f"],
        WalkOptions::default(),
    );
    let expected = [".", "a", "a/b", "a/b/c", "a/b/c/x", "d", "d/e", "f"];
    assert_eq!(paths(&entries), expected);
    assert_eq!(problems, []);
    assert_eq!(of_paths(root.path(), &[], WalkOptions::default()).0, []);
    let whole = of_paths(root.path(), &["f", "."], WalkOptions::default());
    assert_eq!(whole, walk(root.path(), WalkOptions::default()));
}

#[test]
fn without_recursion_directories_stand_for_themselves() {
    let root = tree(&["a/b/c/x", "a/b/y", "a/z", "d/e"]);
    let options = WalkOptions {
        no_recursion: true,
        ..WalkOptions::default()
    };
    let (entries, _) = of_paths(root.path(), &["a", "a/b", "a/b/c/x", "d"], options.clone());
    assert_eq!(paths(&entries), [".", "a", "a/b", "a/b/c", "a/b/c/x", "d"]);
    let (entries, _) = of_paths(root.path(), &["."], options);
    assert_eq!(paths(&entries), ["."]);
}

#[test]
fn listed_paths_that_do_not_exist_are_problems() {
    let root = tree(&["a/x", "b/c/e", "file"]);
    std::os::unix::fs::symlink("a", root.path().join("link")).unwrap();
    let list = [
        "a/missing",
        "a/no/deep",
        "file/below",
        "gone",
        "link/x",
        "link",
        "b",
        "b/c/d",
        "b/no",
    ];
    let (entries, problems) = of_paths(root.path(), &list, WalkOptions::default());
    assert_eq!(paths(&entries), [".", "b", "b/c", "b/c/e", "link"]);
    let mut missing: Vec<_> = problems.iter().map(|p| (&p.path[..], p.kind)).collect();
    missing.sort();
    let expected = [
        "a/missing",
        "a/no/deep",
        "b/c/d",
        "b/no",
        "file/below",
        "gone",
        "link/x",
    ];
    assert_eq!(
        missing,
        expected.map(|path| (path.as_bytes(), ProblemKind::Vanished))
    );

    let options = WalkOptions {
        is_strict: true,
        ..WalkOptions::default()
    };
    let mut walker =
        Walker::for_paths(root.path(), Path::new(""), vec![b"gone".to_vec()], options).unwrap();
    let error = walker.next_entries(1).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(error.to_string().contains("gone"), "{error}");
}

#[test]
fn excluded_paths_stay_excluded_when_they_are_listed() {
    let root = tree(&["a/x.o", "a/x.c", "b/c/d"]);
    let options = selecting(|builder| {
        builder.exclude(b"*.o").exclude(b"/b/");
    });
    let (entries, problems) = of_paths(root.path(), &["a/x.o", "a", "b/c/d"], options);
    assert_eq!(paths(&entries), [".", "a", "a/x.c"]);
    assert_eq!(problems, []);
}
