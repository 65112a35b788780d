//! `protect`, `repair` and `--recovery`: files healed on a disk, and nothing else overwritten.

use std::fs;

use crate::support::{Case, REFRAIN, expect, incompressible, json};

/// A case with the archive `x.rfn` of the file `x`, and its bytes.
fn archived(options: &str) -> (Case, Vec<u8>) {
    let case = Case::new();
    case.write("x", &incompressible(3, 400_000));
    case.ok(&format!("compress -q x {options}"));
    let archive = case.read("x.rfn");
    (case, archive)
}

/// Bytes with a range overwritten.
fn damaged(bytes: &[u8], from: usize, count: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[from..from + count].fill(0x21);
    bytes
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_archive_is_protected_damaged_and_healed_in_place() {
    let (case, plain) = archived("");
    let said = text(&case.ok("protect x.rfn").stderr);
    assert!(said.contains("x.rfn: protected, "), "{said}");
    let whole = case.read("x.rfn");
    assert!(whole.starts_with(&plain) && whole.len() > plain.len() * 11 / 10);
    let said = text(&case.ok("test x.rfn").stderr);
    assert!(said.contains("recovery data for 10"), "{said}");
    let info = text(&case.ok("info x.rfn").stdout);
    assert!(info.contains("recovery"), "{info}");
    let said = text(&case.ok("repair x.rfn").stderr);
    assert!(said.contains("x.rfn: intact"), "{said}");
    for (from, count) in [(0, 20_000), (200_000, 30_000), (whole.len() - 9000, 9000)] {
        case.write("x.rfn", &damaged(&whole, from, count));
        case.fails("test x.rfn", 2);
        let said = text(&case.ok("repair x.rfn").stderr);
        assert!(said.contains("x.rfn: healed, "), "{said}");
        assert!(case.read("x.rfn") == whole, "{count} damaged at {from}");
    }
    let cut = &whole[..whole.len() - 20_000];
    case.write("x.rfn", cut);
    case.ok("repair x.rfn -o healed.rfn");
    assert!(case.read("healed.rfn") == whole && case.read("x.rfn") == cut);
    assert_eq!(case.names(), ["healed.rfn", "x", "x.rfn"]);
}

#[test]
fn compress_appends_the_same_recovery_data_to_files_and_pipes() {
    let (case, whole) = archived("--recovery 12.5%");
    case.ok("compress -q x -o y.rfn");
    case.ok("protect -q --recovery 12.5% y.rfn");
    assert!(case.read("y.rfn") == whole);
    let piped = case
        .ok("compress -q --recovery 12.5% x -o - --temporary .")
        .stdout;
    let restored = case.pipe(REFRAIN, "decompress -q -o -", &piped);
    assert!(expect(restored, 0, "decompress").stdout == case.read("x"));
    case.write("piped.rfn", &damaged(&piped, 1000, 40_000));
    case.ok("repair -q piped.rfn");
    assert!(case.read("piped.rfn") == piped);
    let error = case.fails("compress --recovery 10% --format lrz x", 1);
    assert!(error.contains("refrain protect"), "{error}");
    for share in ["0%", "200%", "ten"] {
        case.fails(&format!("compress x -o z.rfn --recovery {share}"), 1);
    }
}

#[test]
fn too_much_damage_leaves_the_file_and_exits_2() {
    let (case, whole) = archived("--recovery 5%");
    let bad = damaged(&whole, 50_000, 100_000);
    case.write("x.rfn", &bad);
    let error = case.fails("repair x.rfn", 2);
    assert!(
        error.contains("more damage than the recovery data can heal"),
        "{error}"
    );
    case.fails("repair x.rfn -o healed.rfn", 2);
    assert!(case.read("x.rfn") == bad);
    assert_eq!(case.names(), ["x", "x.rfn"]);
    // Another copy, which is damaged elsewhere, has what is missing.
    case.write("copy", &damaged(&whole, 160_000, 100_000));
    let summary = json(&case.ok("repair x.rfn copy --json").stdout);
    let result = &summary["results"][0];
    assert!(
        result["merged_bytes"].as_u64().unwrap() > 90_000,
        "{summary}"
    );
    assert!(case.read("x.rfn") == whole);
    case.ok("compress -q x -o plain.rfn");
    let error = case.fails("repair plain.rfn", 2);
    assert!(error.contains("has no recovery data"), "{error}");
    // Copies of it that are damaged at different places need none.
    let plain = case.read("plain.rfn");
    let bad = damaged(&plain, 50_000, 1000);
    case.write("plain.rfn", &bad);
    case.write("copy", &damaged(&plain, 50_500, 1000));
    let error = case.fails("repair plain.rfn copy", 2);
    assert!(error.contains("no copy has bytes "), "{error}");
    assert!(case.read("plain.rfn") == bad);
    case.write("copy", &plain[8..]);
    case.fails("repair plain.rfn copy", 2);
    let cut = &plain[..plain.len() - 100];
    case.write("copy", cut);
    let told = text(&case.ok("repair copy plain.rfn -o healed.rfn").stderr);
    assert!(told.contains("taken from copies"), "{told}");
    assert!(case.read("healed.rfn") == plain && case.read("copy") == cut);
}

#[test]
fn what_was_damaged_before_is_not_protected_again() {
    let (case, whole) = archived("--recovery 5%");
    let bad = damaged(&whole, 50_000, 10);
    case.write("x.rfn", &bad);
    let error = case.fails("protect x.rfn --recovery 20%", 2);
    assert!(error.contains("repair it first"), "{error}");
    assert!(case.read("x.rfn") == bad);
    // An archive that was damaged when it was protected is healed to what is damaged.
    case.ok("compress -q x -o y.rfn");
    let plain = case.read("y.rfn");
    case.write("y.rfn", &damaged(&plain, 200_000, 10));
    case.ok("protect -q y.rfn");
    let protected = case.read("y.rfn");
    let worse = damaged(&protected, 100_000, 10);
    case.write("y.rfn", &worse);
    case.fails("repair y.rfn", 2);
    assert!(case.read("y.rfn") == worse);
}

#[test]
fn other_files_are_protected_beside_and_healed() {
    let case = Case::new();
    let content = incompressible(5, 300_000);
    case.write("photos.zip", &content);
    case.ok("protect -q photos.zip");
    assert_eq!(case.names(), ["photos.zip", "photos.zip.rfr"]);
    case.ok("protect -q photos.zip --recovery 20%");
    case.write("photos.zip", &damaged(&content, 1000, 50_000));
    case.ok("repair photos.zip");
    assert!(case.read("photos.zip") == content);
    let moved = [&content[..100], b"inserted", &content[100..]].concat();
    case.write("photos.zip", &moved);
    case.ok("repair photos.zip -o healed");
    assert!(case.read("healed") == content && case.read("photos.zip") == moved);
    case.fails("repair photos.zip -o healed", 6);
    // A file that is not recovery data is not replaced.
    case.write("photos.zip.rfr", b"something else");
    case.fails("protect photos.zip", 6);
    assert_eq!(case.read("photos.zip.rfr"), b"something else");
    fs::create_dir(case.path("d")).unwrap();
    case.fails("protect d", 1);
    case.fails("repair d", 1);
    case.fails("repair absent", 6);
}

#[test]
fn test_tells_how_much_of_the_recovery_data_is_intact() {
    let (case, whole) = archived("--recovery 5%");
    let state = &json(&case.ok("test --json x.rfn").stdout)["results"][0]["recovery"];
    assert_eq!(state["parts"], state["intact_parts"], "{state}");
    // In the data of a slice of parity, which readers pass over.
    let at = whole.len() - 16_000;
    case.write("x.rfn", &damaged(&whole, at, 4));
    let error = case.fails("test x.rfn", 2);
    assert!(error.contains("repair"), "{error}");
    case.ok("repair -q x.rfn");
    assert!(case.read("x.rfn") == whole);
}

#[test]
fn each_night_is_healed_by_its_own_recovery_data() {
    let case = Case::new();
    let recovery_of = |line: &str| json(&case.ok(line).stdout)["results"][0]["recovery"].clone();
    let (mut ends, mut recovery_bytes) = (Vec::new(), 0);
    for (night, option) in ["--recovery 20%", "", ""].into_iter().enumerate() {
        case.write("disk", &incompressible(night as u64, 300_000));
        let added = case.ok(&format!("add --json a.rfn disk {option}"));
        let added = &json(&added.stdout)["results"][0];
        recovery_bytes = added["recovery_bytes"].as_u64().unwrap() as usize;
        assert!(recovery_bytes > 60_000, "{added}");
        assert_eq!(added["total_bytes"], case.read("a.rfn").len());
        ends.push(case.read("a.rfn").len());
    }
    let whole = case.read("a.rfn");
    let state = recovery_of("test --json a.rfn");
    assert_eq!(state["sets"], 3);
    assert_eq!(state["unprotected_bytes"], 0);
    assert_eq!(recovery_of("info --json a.rfn")["sets"], 3);
    let mut hurt = whole.clone();
    for start in [1000, ends[0] + 1000, ends[1] + 1000] {
        hurt = damaged(&hurt, start, 20_000);
    }
    case.write("a.rfn", &hurt);
    case.fails("test a.rfn", 2);
    case.ok("repair a.rfn");
    assert!(case.read("a.rfn") == whole);
    // All recovery data of the second night is lost: it is named, and made anew.
    let start = ends[1] - recovery_bytes;
    let mut lost = damaged(&whole, start, recovery_bytes - 8);
    case.write("a.rfn", &damaged(&lost, 1000, 20_000));
    let said = case.fails("repair a.rfn", 2);
    assert!(
        said.contains(&format!("{}..{}", ends[0], ends[1])),
        "{said}"
    );
    assert!(
        said.contains("as they were") && said.contains("made anew"),
        "{said}"
    );
    assert!(case.read("a.rfn") == whole);
    // It is damaged itself as well: what can be healed still is.
    lost = damaged(&lost, ends[0] + 5000, 100);
    case.write("a.rfn", &damaged(&lost, ends[1] + 1000, 20_000));
    let said = case.fails("repair a.rfn", 2);
    assert!(said.contains("something is damaged"), "{said}");
    let healed = case.read("a.rfn");
    assert!(healed[..ends[0]] == whole[..ends[0]] && healed[ends[1]..] == whole[ends[1]..]);
    assert!(healed[ends[0]..ends[0] + 300_000] == lost[ends[0]..ends[0] + 300_000]);
    // An `add` that was killed before it wrote recovery data: nothing is damaged.
    case.write("a.rfn", &whole[..ends[2] - recovery_bytes + 100]);
    let end = case.read("a.rfn").len();
    case.ok("add -q a.rfn disk");
    assert!(case.read("a.rfn").starts_with(&whole[..end - 100]));
    let state = recovery_of("test --json a.rfn");
    assert_eq!(state["unprotected_bytes"], 0);
}
