//! info, list and cat.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{Case, REFRAIN, expect, incompressible, json, json_lines, mixture};

#[test]
fn info_explains_an_archive_and_its_figures_add_up() {
    let case = Case::new();
    let data = mixture(2 << 20);
    case.write("x", &data);
    case.ok("compress -q x");
    let text = String::from_utf8(case.ok("info x.rfn").stdout).unwrap();
    let rows = [
        "x.rfn",
        "  original  ",
        "  compressed  ",
        "  ratio  ",
        "  deduplicated  ",
        "  codecs         zstd 100.0 %",
        "  random access  in blocks of up to ",
        "  integrity      BLAKE3 of each member, XXH3 of each frame; not checked here",
        "  format         Refrain 1.",
        "blake3",
        &data.len().to_string(),
    ];
    for row in rows {
        assert!(text.contains(row), "no {row:?} in {text}");
    }
    let internal = ["extent", "reach", "store", "fallback"];
    assert!(internal.iter().all(|word| !text.contains(word)), "{text}");
    let text = String::from_utf8(case.ok("info -v x.rfn").stdout).unwrap();
    for word in internal {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    let document = json(&case.ok("info -vv --json x.rfn").stdout);
    let info = &document["results"][0];
    let number = |value: &Value| {
        value
            .as_u64()
            .unwrap_or_else(|| panic!("{value} in {info}"))
    };
    assert_eq!(number(&info["content_bytes"]), data.len() as u64);
    assert_eq!(
        number(&info["archive_bytes"]),
        case.read("x.rfn").len() as u64
    );
    let parts = ["store_bytes", "matched_bytes", "run_bytes"].map(|key| number(&info[key]));
    assert_eq!(
        parts.iter().sum::<u64>(),
        data.len() as u64,
        "store, matches and runs: {parts:?}"
    );
    assert!(parts[1] > 0 && parts[2] > 0, "{parts:?}");
    let sum = |list: &Value, key: &str| {
        list.as_array()
            .unwrap()
            .iter()
            .map(|item| number(&item[key]))
            .sum::<u64>()
    };
    assert_eq!(sum(&info["codecs"], "raw_bytes"), parts[0]);
    assert_eq!(sum(&info["blocks"], "raw_bytes"), parts[0]);
    assert_eq!(info["members"][0]["name"], "x");
    assert_eq!(info["members"][0]["blake3"].as_str().unwrap().len(), 64);
}

#[test]
fn cat_writes_ranges() {
    let case = Case::new();
    let data = mixture(1 << 20);
    case.write("x", &data);
    case.ok("compress -q x");
    let length = data.len();
    let cases = [
        ("0..10", 0..10),
        ("1K..3K", 1024..3072),
        ("700000..", 700_000..length),
        ("..5", 0..5),
        ("9..9", 9..9),
        ("..", 0..length),
        (&format!("..{length}"), 0..length),
        (&format!("{length}.."), length..length),
    ];
    for (range, expected) in cases {
        let output = case.ok(&format!("cat x.rfn --range {range}"));
        assert!(output.stdout == data[expected], "{range}");
    }
    for range in [
        "1T..".to_string(),
        format!("..{}", length + 1),
        format!("{}..", length + 1),
    ] {
        let output = expect(case.run(&format!("cat x.rfn --range {range}")), 1, &range);
        assert!(output.stdout.is_empty(), "{range}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(
            message.contains(&format!("has {length} bytes")),
            "{message}"
        );
    }
    case.write("tree/file", b"0123456789");
    case.write("tree/other", b"beyond the file");
    case.ok("compress -q tree");
    assert_eq!(case.ok("cat tree.rfn file --range 8..10").stdout, b"89");
    assert_eq!(case.ok("cat tree.rfn file --range 10..").stdout, b"");
    let message = case.fails("cat tree.rfn file --range 8..11", 1);
    assert!(
        message.contains("the range 8..11") && message.contains("\"file\" has 10 bytes"),
        "{message}"
    );
    assert!(case.ok("cat x.rfn").stdout == data);
    assert!(case.ok("cat x.rfn x --range 5..6").stdout == data[5..6]);
    assert!(case.fails("cat x.rfn nothing", 1).contains("nothing"));
}

#[test]
fn every_line_of_list_is_a_path_for_cat() {
    let case = Case::new();
    let deep = incompressible(9, 50_000);
    case.write("tree/a", b"aaa");
    case.write("tree/sub/deep", &deep);
    std::os::unix::fs::symlink("a", case.path("tree/soft")).unwrap();
    std::fs::hard_link(case.path("tree/a"), case.path("tree/hard")).unwrap();
    case.write("file", b"fff");
    case.ok("compress -q tree");
    case.ok("compress -q tree file -o both.rfn");
    let names = String::from_utf8(case.ok("list tree.rfn").stdout).unwrap();
    assert_eq!(names, ".\na\nhard\nsoft\nsub\nsub/deep\n");
    assert!(case.ok("cat tree.rfn sub/deep").stdout == deep);
    assert!(case.ok("cat tree.rfn sub/deep --range 40000..40010").stdout == deep[40_000..40_010]);
    assert_eq!(case.ok("cat tree.rfn hard").stdout, b"aaa");
    assert!(case.fails("cat tree.rfn soft", 1).contains("symbolic link"));
    let tar = case.ok("cat tree.rfn sub").stdout;
    assert_eq!(&tar[257..262], b"ustar", "a tar stream");
    let names = String::from_utf8(case.ok("list both.rfn").stdout).unwrap();
    assert!(names.lines().any(|name| name == "tree/sub/deep"), "{names}");
    assert!(case.ok("cat both.rfn tree/sub/deep").stdout == deep);
    assert_eq!(case.ok("cat both.rfn file").stdout, b"fff");
    assert!(case.fails("cat both.rfn", 1).contains("2 members"));
    let long = String::from_utf8(case.ok("list -v tree.rfn").stdout).unwrap();
    assert!(long.contains("soft -> a"), "{long}");
}

#[test]
fn a_long_list_and_json_lines_have_all_that_is_known() {
    let case = Case::new();
    case.write("tree/a", b"aaa");
    std::fs::set_permissions(case.path("tree/a"), Permissions::from_mode(0o4750)).unwrap();
    std::os::unix::fs::symlink("a", case.path("tree/soft")).unwrap();
    let modified = UNIX_EPOCH + Duration::new(951_782_400, 123_456_789);
    let file = std::fs::File::open(case.path("tree/a")).unwrap();
    file.set_modified(modified).unwrap();
    case.write("file", b"fff");
    case.ok("compress -q tree file -o both.rfn");
    let list = |options: &str| {
        let output = case.ok(&format!("list {options} both.rfn"));
        String::from_utf8(output.stdout).unwrap()
    };
    let metadata = file.metadata().unwrap();
    let numbers = format!("{}/{}", metadata.uid(), metadata.gid());
    let long = list("-l --numeric-owner");
    let line = long.lines().find(|line| line.ends_with(" tree/a")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let time = "2000-02-29T00:00:00Z";
    assert_eq!(words, ["-rwsr-x---", &numbers, "3", time, "tree/a"]);
    assert!(
        long.lines()
            .any(|line| line.starts_with("lrwxrwxrwx ") && line.ends_with(" tree/soft -> a"))
    );
    assert!(
        long.lines()
            .any(|line| line.starts_with("drwx") && line.ends_with(" tree")),
        "{long}"
    );
    assert_eq!(list("-v --numeric-owner"), long);
    assert_eq!(list("-0"), "tree\0tree/a\0tree/soft\0file\0");
    assert_eq!(list(""), "tree\ntree/a\ntree/soft\nfile\n");
    for line in ["list -0 -l both.rfn", "list -0 --json both.rfn"] {
        assert!(case.fails(line, 1).contains("cannot be used with"));
    }

    let lines = json_lines(&case.ok("list --json both.rfn").stdout);
    assert_eq!(lines.len(), 4);
    let entry = &lines[1];
    for (key, value) in [
        ("archive", json!("both.rfn")),
        ("member", json!("tree")),
        ("path", json!("tree/a")),
        ("kind", json!("file")),
        ("mode", json!(0o4750)),
        ("uid", json!(metadata.uid())),
        ("gid", json!(metadata.gid())),
        ("size_bytes", json!(3)),
        ("stored_bytes", json!(3)),
        ("sparse", json!(false)),
        ("modified_seconds", json!(951_782_400)),
        ("modified_nanoseconds", json!(123_456_789)),
        ("link_target", Value::Null),
        ("attributes", json!([])),
    ] {
        assert_eq!(entry[key], value, "{key} in {entry}");
    }
    assert_eq!(
        (&lines[2]["kind"], &lines[2]["link_target"]),
        (&json!("symlink"), &json!("a"))
    );
    assert_eq!(
        (&lines[3]["kind"], &lines[3]["path"]),
        (&json!("file"), &json!("file"))
    );
    // A failure is a line too, and the other archives are listed.
    let output = expect(case.run("list --json missing.rfn both.rfn"), 4, "missing");
    let lines = json_lines(&output.stdout);
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0]["error"]["exit"], 6);
}

#[test]
fn names_of_any_bytes_are_one_line_of_a_list() {
    let case = Case::new();
    let names = [
        &b"new\nline"[..],
        b"es\x1b[2Jc",
        b"back\\slash",
        b"\xff",
        "gr\u{fc}n".as_bytes(),
    ];
    std::fs::create_dir(case.path("tree")).unwrap();
    for name in names {
        std::fs::write(case.path("tree").join(OsStr::from_bytes(name)), name).unwrap();
    }
    case.ok("compress -q tree");
    let listed = case.ok("list tree.rfn").stdout;
    let lines: Vec<&str> = std::str::from_utf8(&listed).unwrap().lines().collect();
    let expected = [
        ".",
        "back\\\\slash",
        "es\\033[2Jc",
        "gr\u{fc}n",
        "new\\012line",
        "\\377",
    ];
    assert_eq!(lines, expected);
    let raw = case.ok("list -0 tree.rfn").stdout;
    let mut paths: Vec<&[u8]> = raw.split(|&byte| byte == 0).collect();
    assert_eq!(paths.pop(), Some(&b""[..]), "each path ends with NUL");
    assert_eq!(paths.len(), 1 + names.len());
    for path in &paths[1..] {
        let mut command = case.command(REFRAIN, "cat tree.rfn");
        let output = command.arg(OsStr::from_bytes(path)).output().unwrap();
        assert_eq!(expect(output, 0, "cat").stdout, *path);
    }
}

#[test]
fn cat_takes_every_spelling_of_a_path_and_suggests_names() {
    let case = Case::new();
    case.write("tree/src/main.rs", b"main");
    case.write("tree/src/other.rs", b"other");
    case.write("file", b"f");
    case.ok("compress -q tree");
    case.ok("compress -q tree file -o both.rfn");
    for path in [
        "src/main.rs",
        "./src/main.rs",
        "src//main.rs",
        "src/./main.rs",
        "src/main.rs/",
    ] {
        assert_eq!(
            case.ok(&format!("cat tree.rfn {path}")).stdout,
            b"main",
            "{path}"
        );
        let output = case.ok(&format!("cat both.rfn tree/{path}"));
        assert_eq!(output.stdout, b"main", "{path}");
    }
    for (path, near) in [
        ("src/mian.rs", "did you mean \"src/main.rs\"?"),
        ("main.rs", "did you mean \"src/main.rs\"?"),
        ("tree/src/main.rs", "did you mean \"src/main.rs\"?"),
        ("SRC/MAIN.RS", "did you mean \"src/main.rs\"?"),
        ("nothing-like-it", "(see `refrain list`)"),
        ("/src/main.rs", "did you mean \"src/main.rs\"?"),
        ("src/../src/main.rs", "did you mean \"src/main.rs\"?"),
    ] {
        let output = expect(case.run(&format!("cat tree.rfn {path}")), 1, path);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(near), "{path}: {message}");
        assert!(output.stdout.is_empty());
    }
    let tar = case.ok("cat both.rfn tree/src").stdout;
    assert_eq!(&tar[257..262], b"ustar", "a tar stream");
}

#[test]
fn a_redirected_archive_is_read_from_its_first_byte_or_not_at_all() {
    use std::io::Seek;
    let case = Case::new();
    case.write("x", b"content");
    case.ok("compress -q x");
    for line in ["cat -", "info -", "list -"] {
        for (skipped, exit) in [(0, 0), (1, 1)] {
            let mut file = std::fs::File::open(case.path("x.rfn")).unwrap();
            file.seek(std::io::SeekFrom::Start(skipped)).unwrap();
            let output = case.command(REFRAIN, line).stdin(file).output().unwrap();
            let output = expect(output, exit, line);
            assert_eq!(output.stdout.is_empty(), exit != 0, "{line}");
        }
        expect(case.pipe(REFRAIN, line, &case.read("x.rfn")), 1, line);
    }
}

#[test]
fn a_scan_reads_an_archive_without_an_index() {
    let case = Case::new();
    let data = mixture(300_000);
    case.write("x", &data);
    case.ok("compress -q x");
    let archive = case.read("x.rfn");
    // The End frame and a part of the index are gone.
    case.write("cut.rfn", &archive[..archive.len() - 120]);
    for verb in ["info", "list"] {
        let told = case.fails(&format!("{verb} cut.rfn"), 2);
        assert!(told.contains("--scan reads what is left"), "{verb}: {told}");
        // Shows what is there, and reports that it is not all.
        let output = expect(case.run(&format!("{verb} --scan cut.rfn")), 2, verb);
        assert!(
            !output.stdout.is_empty() && !output.stderr.is_empty(),
            "{verb}"
        );
    }
    // All of the member is there.
    for line in ["cat cut.rfn", "cat --scan cut.rfn"] {
        assert!(case.ok(line).stdout == data, "{line}");
    }
}
