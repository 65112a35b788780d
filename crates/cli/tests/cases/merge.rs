//! `merge`: one archive of several.

use crate::support::{Case, incompressible, json};

/// Two archives with two nights each, by turns, of trees and images that have much in common.
fn case() -> Case {
    let case = Case::new();
    let shared = incompressible(1, 400_000);
    for night in 0..4_u8 {
        let archive = ["a", "b"][usize::from(night % 2)];
        case.write("disk", &[&[night][..], &shared].concat());
        case.write("tree/shared", &shared);
        case.write(&format!("tree/{night}"), b"of a night");
        case.ok(&format!(
            "add -q {archive}.rfn disk tree --host {archive} --tag night{night} --comment c{night} \
             --time 2026-11-2{night}T03:00:00"
        ));
    }
    case
}

#[track_caller]
fn refused(case: &Case, line: &str, exit: i32, text: &str) {
    let message = case.fails(line, exit);
    assert!(message.contains(text), "{line}: {message}");
    assert!(!case.path("out.rfn").exists(), "{line}");
}

#[test]
fn generations_of_two_archives_are_in_one() {
    let case = case();
    let before = (case.read("a.rfn"), case.read("b.rfn"));
    let dry = case.ok("merge a.rfn b.rfn -o out.rfn --dry-run").stdout;
    let dry = String::from_utf8(dry).unwrap();
    assert!(
        dry.contains("< a.rfn 1") && dry.contains("< b.rfn 2"),
        "{dry}"
    );
    assert_eq!(dry.lines().count(), 4);
    assert!(!case.path("out.rfn").exists());
    let done = json(&case.ok("merge a.rfn b.rfn -o out.rfn --json").stdout);
    let done = &done["results"][0];
    let rows = done["generations"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row["generation"], number + 1);
        assert_eq!(row["tags"][0], format!("night{number}"));
        assert_eq!(row["archive"], ["a.rfn", "b.rfn"][number % 2]);
    }
    assert!(done["archive_bytes"].as_u64().unwrap() < 450_000, "{done}");
    assert_eq!((case.read("a.rfn"), case.read("b.rfn")), before);
    case.ok("test -q out.rfn");
    case.ok("test -q --fast out.rfn");
    for night in 0..4 {
        let disk = case.ok(&format!("cat out.rfn disk --generation night{night}"));
        assert_eq!(disk.stdout[0], night);
        assert_eq!(disk.stdout.len(), 400_001);
        let of = ["a", "b"][usize::from(night % 2)];
        let there = night / 2 + 1;
        let listed = |line: String| String::from_utf8(case.ok(&line).stdout).unwrap();
        let merged = listed(format!("list -l out.rfn --generation {}", night + 1));
        assert_eq!(
            merged,
            listed(format!("list -l {of}.rfn --generation {there}"))
        );
    }
    case.ok("decompress -q out.rfn --generation 3 -o restored");
    assert_eq!(case.read("restored/tree/2"), b"of a night");
    // It grows, and its files are known: nothing is read again.
    let line = "add --json out.rfn tree --host b --time 2026-11-27";
    let added = json(&case.ok(line).stdout);
    assert_eq!(added["results"][0]["store_bytes"], 0, "{added}");
}

#[test]
fn what_cannot_be_merged_says_why() {
    let case = case();
    case.write("text", b"no archive");
    refused(&case, "merge -o out.rfn", 1, "ARCHIVE");
    refused(&case, "merge a.rfn b.rfn", 1, "--output");
    refused(
        &case,
        "merge a.rfn a.rfn -o out.rfn",
        1,
        "a.rfn: is given twice",
    );
    refused(&case, "merge a.rfn ./a.rfn -o out.rfn", 1, "is given twice");
    refused(
        &case,
        "merge a.rfn b.rfn -o a.rfn -f",
        1,
        "is both input and output",
    );
    refused(&case, "merge a.rfn b.rfn -o -", 1, "must be a file");
    refused(&case, "merge a.rfn none.rfn -o out.rfn", 6, "none.rfn");
    refused(&case, "merge a.rfn text -o out.rfn", 2, "text");
    refused(&case, "merge a.rfn b.rfn -o text", 6, "text");
    let mut bytes = case.read("b.rfn");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    case.write("bad.rfn", &bytes);
    refused(&case, "merge a.rfn bad.rfn -o out.rfn", 2, "bad.rfn");
    case.ok("forget -q b.rfn 1");
    case.ok("merge -q b.rfn -o kept.rfn");
    let kept = json(&case.ok("merge kept.rfn -o x --dry-run --json").stdout);
    assert_eq!(kept["results"][0]["generations"][0]["tags"][0], "night3");
    case.ok("merge -q -f a.rfn b.rfn -o text");
    case.ok("test -q text");
}

#[test]
fn secrets_open_archives_and_seal_the_new_one() {
    let case = case();
    case.write("pw", b"correct horse\n");
    case.write("wrong", b"battery staple\n");
    case.ok("add -q s.rfn disk --encrypt --password-file pw");
    let line = "merge a.rfn s.rfn -o out.rfn";
    refused(
        &case,
        &format!("{line} --password-file pw"),
        1,
        "s.rfn: is encrypted",
    );
    refused(
        &case,
        &format!("{line} --decrypt --password-file wrong"),
        1,
        "s.rfn",
    );
    refused(
        &case,
        &format!("{line} --decrypt --encrypt"),
        1,
        "--decrypt",
    );
    let plain = "merge a.rfn b.rfn -o out.rfn --password-file pw";
    refused(&case, plain, 1, "none of the archives is encrypted");
    case.ok(&format!("{line} -q --decrypt --password-file pw"));
    case.ok("test -q out.rfn");
    case.ok("merge -q a.rfn s.rfn -o sealed.rfn --encrypt --password-file pw");
    case.fails("test -q sealed.rfn --password-file wrong", 1);
    let listed = case
        .ok("list --generations sealed.rfn --password-file pw")
        .stdout;
    assert_eq!(String::from_utf8(listed).unwrap().lines().count(), 3);
}

#[test]
fn a_wrong_password_is_told_of_the_archive() {
    let case = Case::new();
    case.write("pw", b"correct horse\n");
    case.write("wrong", b"battery staple\n");
    case.write("file", b"content");
    case.ok("add -q s.rfn file --encrypt --password-file pw");
    let message = case.fails("add s.rfn file --password-file wrong", 1);
    assert!(message.contains("s.rfn: "), "{message}");
}
