//! info, list and cat.

use serde_json::Value;

use crate::support::{Case, REFRAIN, expect, incompressible, json, mixture};

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
        ("1T..", length..length),
        ("..", 0..length),
    ];
    for (range, expected) in cases {
        let output = case.ok(&format!("cat x.rfn --range {range}"));
        assert!(output.stdout == data[expected], "{range}");
    }
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
    assert!(case.fails("cat tree.rfn sub", 1).contains("not a file"));
    let names = String::from_utf8(case.ok("list both.rfn").stdout).unwrap();
    assert!(names.lines().any(|name| name == "tree/sub/deep"), "{names}");
    assert!(case.ok("cat both.rfn tree/sub/deep").stdout == deep);
    assert_eq!(case.ok("cat both.rfn file").stdout, b"fff");
    assert!(case.fails("cat both.rfn", 1).contains("2 members"));
    let long = String::from_utf8(case.ok("list -v tree.rfn").stdout).unwrap();
    assert!(long.contains("soft -> a"), "{long}");
    let document = json(&case.ok("list --json tree.rfn").stdout);
    assert_eq!(
        document["results"][0]["members"][0]["entries"][5]["path"],
        "sub/deep"
    );
    assert_eq!(
        document["results"][0]["members"][0]["entries"][5]["size_bytes"],
        50_000
    );
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
    for verb in ["cat", "info", "list"] {
        assert_eq!(
            case.run(&format!("{verb} cut.rfn")).status.code(),
            Some(2),
            "{verb}"
        );
    }
    assert!(case.ok("cat --scan cut.rfn").stdout == data);
    case.ok("info --scan cut.rfn");
    case.ok("list --scan cut.rfn");
}
