//! `refrain manifest`: every reference followed by hand, and compared with the file.

use std::fs;

use serde_json::Value;

use crate::support::{Case, incompressible, json, mixture};

fn references(case: &Case, line: &str) -> serde_json::Map<String, Value> {
    let manifest = json(&case.ok(line).stdout);
    assert_eq!(manifest["version"], 1);
    manifest["refs"].as_object().unwrap().clone()
}

#[test]
fn stored_bytes_are_where_the_manifest_says() {
    let case = Case::new();
    let mixed = mixture(300_000);
    case.write("d/chunks/0", &incompressible(1, 200_000));
    case.write("d/chunks/1", &incompressible(2, 70_000));
    case.write("d/text é", &b"a line of text\n".repeat(10_000));
    case.write("d/mixed", &mixed);
    case.write("d/empty", b"");
    fs::hard_link(case.path("d/chunks/0"), case.path("d/same")).unwrap();
    std::os::unix::fs::symlink("mixed", case.path("d/link")).unwrap();
    case.ok("compress --codec none d -o d.rfn");
    let archive = fs::read(case.path("d.rfn")).unwrap();

    let line = "manifest d.rfn --stored file:///d.rfn --served http://h:1/";
    let all = references(&case, line);
    let names: Vec<_> = all.keys().map(String::as_str).collect();
    let expected = ["chunks/0", "chunks/1", "empty", "mixed", "same", "text é"];
    assert_eq!(names, expected);
    let mut stored = 0;
    for (name, value) in &all {
        let file = fs::read(case.path("d").join(name)).unwrap();
        if name == "empty" {
            assert_eq!(*value, "");
            continue;
        }
        assert_eq!(value[2], file.len());
        if value[0] == "file:///d.rfn" {
            let at = value[1].as_u64().unwrap() as usize;
            assert!(archive[at..at + file.len()] == file, "{name}");
            stored += 1;
        } else {
            assert_eq!(value[1], 0);
        }
    }
    assert!(stored >= 3, "{all:?}");
    assert_eq!(all["text é"][0], "http://h:1/d/text%20%C3%A9");

    let only = references(&case, "manifest d.rfn --stored file:///d.rfn");
    assert_eq!(only.len(), stored + 1);
    let served = references(&case, "manifest d.rfn --served http://h:1/x");
    assert_eq!(served.len(), 6);
    assert_eq!(served["same"][0], "http://h:1/x/d/same");

    case.ok("manifest d.rfn --served http://h:1 -o m.json");
    assert_eq!(
        json(&fs::read(case.path("m.json")).unwrap())["refs"]
            .as_object()
            .unwrap()
            .len(),
        6
    );
    case.fails("manifest d.rfn --served http://h:1 -o m.json", 6);
    case.fails("manifest d.rfn", 1);
}

#[test]
fn several_members_have_their_names_in_the_paths() {
    let case = Case::new();
    case.write("d/a", b"one");
    case.write("f", b"two");
    case.ok("compress d f -o both.rfn");
    let all = references(&case, "manifest both.rfn --served http://h:1");
    assert_eq!(all["d/a"][0], "http://h:1/d/a");
    assert_eq!(all["f"], serde_json::json!(["http://h:1/f", 0, 3]));
}

/// Extents go on over the edges of blocks; only a file on an edge is in two pieces.
#[test]
fn files_of_an_archive_of_several_blocks_have_references() {
    let case = Case::new();
    for number in 0..8 {
        case.write(&format!("d/{number}"), &incompressible(number, 50_000));
    }
    case.ok("compress --codec none --block-size 128K d -o d.rfn");
    let archive = fs::read(case.path("d.rfn")).unwrap();
    let all = references(&case, "manifest d.rfn --stored file:///d.rfn -o -");
    assert!((5..8).contains(&all.len()), "{all:?}");
    for (name, value) in &all {
        let offset = value[1].as_u64().unwrap() as usize;
        let file = fs::read(case.path("d").join(name)).unwrap();
        assert!(archive[offset..offset + 50_000] == file[..], "{name}");
    }
}
