//! Parts of directories: patterns, lists of paths, and operands that are paths.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::support::{Case, REFRAIN, expect, json_lines, snapshot};

/// A directory with sources, objects and a cache.
fn create_tree(case: &Case) {
    for (name, content) in [
        ("tree/a.c", "a"),
        ("tree/a.o", "object"),
        ("tree/build/x.o", "x"),
        ("tree/build/x.log", "log"),
        ("tree/docs/index.html", "index"),
        ("tree/docs/deep/page.html", "page"),
        ("tree/src/build/keep.c", "keep"),
        ("tree/src/main.c", "main"),
        (
            "tree/cache/CACHEDIR.TAG",
            "Signature: 8a477f597d28d172789f06886806bc55\n",
        ),
        ("tree/cache/big", "big"),
    ] {
        case.write(name, content.as_bytes());
    }
}

/// The paths in an archive.
fn listed(case: &Case, line: &str) -> Vec<String> {
    let output = case.ok(&format!("list {line}")).stdout;
    let text = String::from_utf8(output).unwrap();
    text.lines().map(str::to_string).collect()
}

/// The paths of the files in an archive.
fn files(case: &Case, line: &str) -> Vec<String> {
    let lines = json_lines(&case.ok(&format!("list --json {line}")).stdout).into_iter();
    let files = lines.filter(|line| line["kind"] == "file");
    files
        .map(|line| line["path"].as_str().unwrap().to_string())
        .collect()
}

#[test]
fn patterns_leave_out_parts_of_a_directory() {
    let case = Case::new();
    create_tree(&case);
    case.write("patterns", b"# objects\n*.o\n\n/build\n");
    for (options, expected) in [
        (
            "--exclude *.o --exclude /cache --exclude docs",
            &["a.c", "build/x.log", "src/build/keep.c", "src/main.c"][..],
        ),
        (
            "--exclude-from patterns --exclude cache --exclude docs/**",
            &["a.c", "src/build/keep.c", "src/main.c"],
        ),
        (
            "--exclude-from patterns --exclude !a.o --exclude cache --exclude docs/ --exclude src",
            &["a.c", "a.o"],
        ),
        (
            "--include *.html",
            &["docs/deep/page.html", "docs/index.html"],
        ),
        ("--include docs --exclude deep", &["docs/index.html"]),
        (
            "--exclude-caches --exclude docs --exclude build --exclude a.?",
            &["cache/CACHEDIR.TAG", "src/main.c"],
        ),
    ] {
        case.ok(&format!("compress -qf tree -o part.rfn {options}"));
        assert_eq!(files(&case, "part.rfn"), expected, "{options}");
        case.ok("test -q part.rfn");
    }
    // Directories above included entries are stored with their own metadata, others are not.
    case.ok("compress -qf tree -o part.rfn --include /docs/deep");
    assert_eq!(
        listed(&case, "part.rfn"),
        [".", "docs", "docs/deep", "docs/deep/page.html"]
    );
}

#[test]
fn options_about_directories_are_refused_without_one() {
    let case = Case::new();
    case.write("file", b"f");
    create_tree(&case);
    for option in [
        "--exclude x",
        "--include x",
        "--exclude-from file",
        "--exclude-caches",
        "--files-from file",
        "--one-file-system",
        "--strict",
    ] {
        let message = case.fails(&format!("compress file {option}"), 1);
        let name = option.split(' ').next().unwrap();
        assert!(message.contains(name), "{option}: {message}");
        let line = format!("compress tree {option} --format lrz");
        assert!(case.fails(&line, 1).contains("--format lrz"), "{option}");
    }
    for line in [
        "compress tree -0",
        "compress tree file --files-from file -o x.rfn",
        "compress tree --exclude [",
        "compress tree --exclude-from missing",
        "compress tree --files-from missing",
    ] {
        assert!(!case.run(line).status.success(), "{line}");
    }
    assert_eq!(case.names(), ["file", "tree"]);
    case.ok("compress -q file tree --exclude *.o -o both.rfn");
    assert!(!listed(&case, "both.rfn").contains(&"tree/a.o".to_string()));
}

#[test]
fn a_list_of_paths_can_be_compressed_and_fed_back() {
    let case = Case::new();
    create_tree(&case);
    let odd = [
        &b"new\nline"[..],
        b"back\\slash",
        b"octal\\101",
        b"\xff",
        b"-dash",
    ];
    for name in odd {
        fs::write(case.path("tree").join(OsStr::from_bytes(name)), name).unwrap();
    }
    case.ok("compress -q tree");
    for (list, options) in [("list -0", "-0"), ("list", "")] {
        let paths = case.ok(&format!("{list} tree.rfn")).stdout;
        let line = format!("compress -qf tree --files-from - {options} -o again.rfn");
        expect(case.pipe(REFRAIN, &line, &paths), 0, &line);
        assert_eq!(
            case.ok(&format!("{list} again.rfn")).stdout,
            paths,
            "{list}"
        );
        case.ok("decompress -q again.rfn -o again");
        assert_eq!(snapshot(&case.path("tree")), snapshot(&case.path("again")));
        fs::remove_dir_all(case.path("again")).unwrap();
    }
    // A part of a list, from the directory itself; a directory does not include what is below it.
    let paths = case.ok("list -0 tree.rfn *.html docs/deep").stdout;
    let mut command = case.command(REFRAIN, "compress -q --files-from paths -0 -o ../part.rfn");
    case.write("tree/paths", &paths);
    let output = command.current_dir(case.path("tree")).output().unwrap();
    expect(output, 0, "--files-from");
    let expected = [
        ".",
        "docs",
        "docs/deep",
        "docs/deep/page.html",
        "docs/index.html",
    ];
    assert_eq!(listed(&case, "part.rfn"), expected);
    expect(
        case.pipe(
            REFRAIN,
            "compress -qf tree --files-from - -o part.rfn",
            b"docs\n./src/main.c\n",
        ),
        0,
        "lines",
    );
    assert_eq!(
        listed(&case, "part.rfn"),
        [".", "docs", "src", "src/main.c"]
    );
    // Listed paths that do not exist are reported.
    let line = "compress -qf tree --files-from - -o part.rfn";
    let output = expect(case.pipe(REFRAIN, line, b"a.c\nmissing\n"), 4, line);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("tree/missing: "), "{message}");
    assert_eq!(listed(&case, "part.rfn"), [".", "a.c"]);
    for path in ["/etc/passwd", "../tree/a.c"] {
        let output = case.pipe(REFRAIN, line, path.as_bytes());
        assert!(!output.status.success(), "{path}");
    }
}

#[test]
fn a_list_shows_what_patterns_match() {
    let case = Case::new();
    create_tree(&case);
    case.write("tree/odd[1].c", b"odd");
    case.write("file.c", b"f");
    case.ok("compress -q tree");
    case.ok("compress -q tree file.c -o both.rfn");
    for (line, expected) in [
        (
            "tree.rfn *.html",
            &["docs/deep/page.html", "docs/index.html"][..],
        ),
        (
            "tree.rfn src",
            &["src", "src/build", "src/build/keep.c", "src/main.c"],
        ),
        ("tree.rfn /build", &["build", "build/x.log", "build/x.o"]),
        ("tree.rfn ./src/main.c", &["src/main.c"]),
        ("tree.rfn odd[1].c", &["odd[1].c"]),
        ("tree.rfn *.o --exclude build", &["a.o"]),
        ("tree.rfn -- *.log", &["build/x.log"]),
        (
            "both.rfn *.c --exclude tree",
            &[
                "tree/a.c",
                "tree/odd[1].c",
                "tree/src/build/keep.c",
                "tree/src/main.c",
                "file.c",
            ],
        ),
        (
            "both.rfn tree/src/*.c file.c",
            &["tree/src/main.c", "file.c"],
        ),
        (
            "both.rfn tree/docs/deep",
            &["tree/docs/deep", "tree/docs/deep/page.html"],
        ),
    ] {
        assert_eq!(listed(&case, line), expected, "{line}");
    }
    let output = expect(
        case.run("list tree.rfn *.html none* nothing"),
        1,
        "unmatched",
    );
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("\"none*\", \"nothing\"") && !message.contains("html"),
        "{message}"
    );
    assert_eq!(output.stdout, b"docs/deep/page.html\ndocs/index.html\n");
}

#[test]
fn a_part_of_an_archive_is_restored_with_its_metadata() {
    let case = Case::new();
    create_tree(&case);
    for (name, seconds) in [
        ("tree/src", 1_000_000),
        ("tree/src/main.c", 2_000_000),
        ("tree/src/build", 3_000_000),
        ("tree", 4_000_000),
    ] {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::open(case.path(name))
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    case.ok("compress -q tree");
    let expected = |names: &[&str]| {
        let mut states = snapshot(&case.path("tree"));
        states.retain(|state| names.contains(&state.path.as_str()));
        states
    };
    let check = |line: &str, place: &str, names: &[&str]| {
        case.ok(&format!("decompress -q {line}"));
        assert_eq!(snapshot(&case.path(place)), expected(names), "{line}");
        fs::remove_dir_all(case.path(place)).unwrap();
    };
    check(
        "tree.rfn src/main.c -o out",
        "out",
        &["", "src", "src/main.c"],
    );
    check(
        "tree.rfn src -o out",
        "out",
        &["", "src", "src/main.c", "src/build", "src/build/keep.c"],
    );
    check(
        "tree.rfn ./src/main.c a.c -o out",
        "out",
        &["", "a.c", "src", "src/main.c"],
    );
    check(
        "tree.rfn -o by-name/ -- src/main.c",
        "by-name/tree",
        &["", "src", "src/main.c"],
    );
    check(
        "tree.rfn --include *.c --exclude build -o out",
        "out",
        &["", "a.c", "src", "src/main.c"],
    );
    // Without -o: where all of it would go, added to what exists.
    fs::remove_dir_all(case.path("tree/src")).unwrap();
    let message = case.fails("decompress -q tree.rfn a.c src/main.c", 4);
    assert!(message.contains("a.c"), "{message}");
    let output = case.ok("decompress -f tree.rfn src/main.c");
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(
        summary.starts_with("tree.rfn: 3 entries restored, "),
        "{summary}"
    );
    assert_eq!(case.read("tree/src/main.c"), b"main");
    assert!(!case.exists("tree/src/build"));
    let message = case.fails("decompress -q tree.rfn src/mian.c a.c -o out", 1);
    assert!(
        message.contains("did you mean \"src/main.c\"?"),
        "{message}"
    );
    assert_eq!(case.read("out/a.c"), b"a", "what exists is restored");
    let part = case.ok("decompress -q tree.rfn src -o -").stdout;
    assert_eq!(&part[257..262], b"ustar", "a tar stream of the part");
    // From a pipe.
    let archive = case.read("tree.rfn");
    let line = "decompress -q - src/main.c -o piped";
    expect(case.pipe(REFRAIN, line, &archive), 0, line);
    assert_eq!(case.read("piped/src/main.c"), b"main");
    assert!(!case.exists("piped/a.c"));
}

#[test]
fn paths_select_members_and_parts_of_them() {
    let case = Case::new();
    create_tree(&case);
    case.write("other/src/x", b"other x");
    case.write("file", b"file");
    case.ok("compress -q tree other file -o all.rfn");
    case.ok("decompress -q all.rfn tree/src/main.c file -o one");
    assert_eq!(
        snapshot(&case.path("one")).len(),
        5,
        "one, tree, src, main.c, file"
    );
    assert_eq!(case.read("one/tree/src/main.c"), b"main");
    assert_eq!(case.read("one/file"), b"file");
    case.ok("decompress -q all.rfn other -o two");
    assert_eq!(case.read("two/other/src/x"), b"other x");
    assert!(!case.exists("two/tree") && !case.exists("two/file"));
    case.fails("decompress -q all.rfn src/main.c -o three", 1);
    assert!(!case.exists("three"));
}

#[test]
fn operands_are_archives_or_paths_and_never_both() {
    let case = Case::new();
    case.write("one", b"1");
    case.write("two", b"2");
    create_tree(&case);
    case.ok("compress -q one two");
    case.write("tree/two.rfn", b"an entry");
    case.write("tree/gone.rfn", b"another entry");
    case.ok("compress -q tree");
    // Several archives.
    fs::remove_file(case.path("one")).unwrap();
    fs::remove_file(case.path("two")).unwrap();
    case.ok("decompress -q one.rfn two.rfn");
    assert_eq!(
        (case.read("one"), case.read("two")),
        (b"1".to_vec(), b"2".to_vec())
    );
    assert_eq!(listed(&case, "one.rfn two.rfn"), ["one", "two"]);
    // A file that is an archive, whose name is a path in the first one.
    let message = case.fails("decompress -q tree.rfn two.rfn -o out", 1);
    assert!(message.contains("write `tree.rfn -- two.rfn`"), "{message}");
    assert!(case.fails("list tree.rfn two.rfn", 1).contains("--"));
    case.ok("decompress -q tree.rfn -o out -- two.rfn");
    assert_eq!(case.read("out/two.rfn"), b"an entry");
    // A path with an archive's name that is not a file.
    case.ok("decompress -q tree.rfn gone.rfn -o out");
    assert_eq!(case.read("out/gone.rfn"), b"another entry");
    // A missing archive is reported; the others are restored.
    case.ok("decompress -qf one.rfn two.rfn");
    let message = case.fails("decompress -qf one.rfn missing.rfn two.rfn", 4);
    assert!(message.contains("missing.rfn"), "{message}");
    // A plain file with that name is not an archive.
    case.write("a.c", b"in the way of nothing");
    case.ok("decompress -q tree.rfn a.c -o plain");
    assert_eq!(case.read("plain/a.c"), b"a");
    let message = case.fails("decompress -qf one.rfn two.rfn a.c", 1);
    assert!(message.contains("one archive only"), "{message}");
    assert!(
        case.fails("list one.rfn two.rfn -- x", 1)
            .contains("one archive only")
    );
    // rfn takes archives only, as gzip does.
    let rfn = case.program_link("rfn");
    let output = case.command(&rfn, "-dqf one.rfn a.c").output().unwrap();
    let message = String::from_utf8(expect(output, 2, "rfn -d").stderr).unwrap();
    assert!(message.contains("a.c: unknown format"), "{message}");
}
