//! Damaged archives: exit code 2, intact data is restored, the rest is reported.

use std::collections::BTreeMap;

use crate::support::{Case, REFRAIN, expect, incompressible, json, mixture};

fn archive(case: &Case) -> Vec<u8> {
    case.write("x", &mixture(300_000));
    case.ok("compress -q x -o good.rfn");
    case.read("good.rfn")
}

/// Every verb that reads a whole archive reports `bad.rfn` as damaged, from a file and from a pipe,
/// and delivers nothing but the beginning of `content`.
fn refused(case: &Case, bytes: &[u8], content: &[u8], what: &str) {
    case.write("bad.rfn", bytes);
    let check_output = |line: &str| {
        if case.exists("out") {
            assert!(content.starts_with(&case.read("out")), "{what}: {line}");
            std::fs::remove_file(case.path("out")).unwrap();
        }
    };
    for line in [
        "test bad.rfn",
        "test --fast bad.rfn",
        "decompress bad.rfn -o out",
        "decompress bad.rfn -o -",
    ] {
        let output = expect(case.run(line), 2, what);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(
            message.contains("refrain: bad.rfn: "),
            "{what}: {line}: {message}"
        );
        assert!(content.starts_with(&output.stdout), "{what}: {line}");
        check_output(line);
    }
    expect(case.pipe(REFRAIN, "test", bytes), 2, what);
    expect(case.pipe(REFRAIN, "decompress - -o out", bytes), 2, what);
    check_output("from a pipe");
}

#[test]
fn checksums_are_compared_without_decoding() {
    let case = Case::new();
    let good = archive(&case);
    case.ok("protect -q good.rfn");
    let told = String::from_utf8(case.ok("test --fast good.rfn").stderr).unwrap();
    assert!(
        told.contains("checksums OK, ") && told.contains(" recovery data for "),
        "{told}"
    );
    expect(case.pipe(REFRAIN, "test --fast", &good), 0, "from a pipe");
    let twice = [&good[..], &good[..]].concat();
    case.write("twice.rfn", &twice);
    let value = json(&case.ok("test --fast --json twice.rfn").stdout);
    assert_eq!(value["results"][0]["archive_bytes"], twice.len());
    case.ok("compress -q --format lrz x -o x.lrz");
    let told = case.fails("test --fast x.lrz", 1);
    assert!(told.contains("only decoding tests it"), "{told}");
}

#[test]
fn flipped_bits_are_found() {
    let case = Case::new();
    let good = archive(&case);
    for step in 0..24 {
        let at = good.len() * step / 24 + step % 3;
        let mut bad = good.clone();
        bad[at] ^= 1 << (step % 8);
        case.write("bad.rfn", &bad);
        let what = format!("bit {} of byte {at} of {}", step % 8, good.len());
        // The first bytes hold the version of the format: with another one it is "unsupported".
        let exit = expect_one_of(&case, "test bad.rfn", &[2, 3], &what);
        if exit == 2 {
            refused(&case, &bad, &mixture(300_000), &what);
        }
    }
}

fn expect_one_of(case: &Case, line: &str, exits: &[i32], what: &str) -> i32 {
    let output = case.run(line);
    let code = output.status.code().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        exits.contains(&code),
        "{what}: exit {code}, expected one of {exits:?}: {stderr}"
    );
    code
}

#[test]
fn truncated_archives_are_refused() {
    let case = Case::new();
    let good = archive(&case);
    for length in [
        0,
        1,
        7,
        8,
        good.len() / 3,
        good.len() / 2,
        good.len() - 9,
        good.len() - 1,
    ] {
        refused(
            &case,
            &good[..length],
            &mixture(300_000),
            &format!("first {length} of {} bytes", good.len()),
        );
    }
}

#[test]
fn other_files_are_refused() {
    let case = Case::new();
    let text = b"This is a text and was never an archive.\n";
    refused(&case, text, b"", "text");
    refused(&case, &[0; 5000], b"", "zeros");
}

/// A directory of 60 files, compressed in blocks of 256 KiB, and its files.
fn tree(case: &Case) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for number in 0..60 {
        let content = incompressible(number, 20_000);
        case.write(&format!("d/f{number}"), &content);
        files.insert(format!("f{number}"), content);
    }
    case.ok("compress -q --block-size 256K d");
    files
}

/// Overwrites eight bytes of a file in the middle.
fn overwrite(case: &Case, from: &str, to: &str) {
    let mut bytes = case.read(from);
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8].fill(0x5a);
    case.write(to, &bytes);
}

#[test]
fn one_damage_costs_the_files_that_need_it() {
    let case = Case::new();
    let files = tree(&case);
    overwrite(&case, "d.rfn", "bad.rfn");
    let message = case.fails("decompress bad.rfn -o out/", 2);
    assert!(message.contains("block 2 damaged (bytes "), "{message}");
    assert!(message.contains("--keep-broken"), "{message}");
    let mut lost = vec![];
    for (name, content) in &files {
        if case.exists(&format!("out/d/{name}")) {
            assert!(case.read(&format!("out/d/{name}")) == *content, "{name}")
        } else {
            lost.push(name.clone())
        }
    }
    // One piece of 64 KiB of an uncoded block.
    assert!((1..=5).contains(&lost.len()), "{lost:?}");
    for name in &lost {
        assert!(message.contains(&format!("refrain: {name}: ")), "{message}");
    }

    let output = expect(
        case.run("decompress --json --salvage bad.rfn -o kept/"),
        2,
        "",
    );
    let result = json(&output.stdout)["results"][0].clone();
    assert_eq!(result["complete"], false);
    let named = result["damage"]["files"].as_array().unwrap().clone();
    assert_eq!(named.len(), lost.len());
    for file in &named {
        let name = file["path"].as_str().unwrap();
        let (kept, right) = (case.read(&format!("kept/d/{name}")), &files[name]);
        let (mut kept, mut right) = (kept, right.clone());
        for range in file["missing"].as_array().unwrap() {
            let at = |number: usize| range[number].as_u64().unwrap() as usize;
            assert!(kept[at(0)..at(1)].iter().all(|byte| *byte == 0));
            kept[at(0)..at(1)].fill(1);
            right[at(0)..at(1)].fill(1);
        }
        assert!(kept == right, "{name}: all but the ranges named is whole");
    }

    // Intact files are read without a word about the rest.
    let whole = files.keys().find(|name| !lost.contains(name)).unwrap();
    for line in [
        format!("decompress -q bad.rfn {whole} -o one/"),
        format!("cat bad.rfn {whole}"),
    ] {
        let output = case.ok(&line);
        assert!(output.stderr.is_empty(), "{line}");
        assert!(output.stdout.is_empty() || output.stdout == files[whole]);
    }
    let lost = &lost[0];
    case.fails(&format!("decompress -q bad.rfn {lost} -o two/"), 2);
    let output = expect(case.run(&format!("cat bad.rfn {lost}")), 2, "cat");
    assert!(files[lost].starts_with(&output.stdout));
}

#[test]
fn a_cut_archive_says_where_it_is_cut() {
    let case = Case::new();
    case.write("a", &incompressible(1, 300_000));
    case.write("b", &incompressible(2, 300_000));
    case.ok("compress -q --block-size 64K a b -o x.rfn");
    let archive = case.read("x.rfn");
    case.write("cut.rfn", &archive[..500_000]);
    let cut = "cut.rfn: archive is cut off at 500 kB";
    for line in [
        "list cut.rfn",
        "info cut.rfn",
        "test cut.rfn",
        "map cut.rfn",
    ] {
        let message = case.fails(line, 2);
        assert!(message.contains(cut), "{line}: {message}");
    }
    let output = expect(case.run("list --scan cut.rfn"), 2, "list");
    assert_eq!(output.stdout, b"a\nb\n");
    assert!(String::from_utf8(output.stderr).unwrap().contains(cut));
    let message = case.fails("decompress cut.rfn -o out/", 2);
    assert!(message.contains(cut), "{message}");
    assert!(case.read("out/a") == case.read("a") && !case.exists("out/b"));
    let output = case.ok("cat cut.rfn a");
    assert!(output.stdout == case.read("a"));
    assert!(String::from_utf8(output.stderr).unwrap().contains(cut));
    let output = expect(case.run("cat cut.rfn b"), 2, "cat b");
    assert!(case.read("b").starts_with(&output.stdout) && output.stdout.len() > 100_000);
    let output = expect(
        case.pipe(REFRAIN, "decompress - -o piped/", &archive[..500_000]),
        2,
        "",
    );
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("cut off at 500 kB")
    );
    assert!(case.read("piped/a") == case.read("a") && !case.exists("piped/b"));
}

#[test]
fn a_single_file_is_restored_up_to_the_damage_and_replaces_nothing() {
    let case = Case::new();
    let content = incompressible(5, 3_000_000);
    case.write("x", &content);
    case.ok("compress -q --block-size 1M x");
    overwrite(&case, "x.rfn", "bad.rfn");
    let message = case.fails("decompress bad.rfn -o out", 2);
    let prefix = case.read("out");
    assert!(
        !prefix.is_empty() && content.starts_with(&prefix),
        "{message}"
    );
    case.write("old", b"an old file");
    case.fails("decompress -f bad.rfn -o old", 2);
    assert_eq!(case.read("old"), b"an old file");
    case.fails("decompress -f --keep-broken bad.rfn -o old", 2);
    let kept = case.read("old");
    assert_eq!(kept.len(), content.len());
    let differing = kept
        .iter()
        .zip(&content)
        .filter(|(kept, right)| kept != right);
    assert!((1..=65_536).contains(&differing.count()));
}

#[test]
fn a_scan_says_that_a_member_is_missing() {
    let case = Case::new();
    for (number, name) in ["first", "second", "third"].into_iter().enumerate() {
        case.write(name, &incompressible(number as u64, 70_000));
    }
    case.ok("compress -q first second third -o a.rfn");
    let mut archive = case.read("a.rfn");
    let at = archive
        .windows(6)
        .position(|part| part == b"second")
        .unwrap();
    archive[at] ^= 1;
    case.write("bad.rfn", &archive);
    for line in ["list --scan bad.rfn", "info --scan bad.rfn", "test bad.rfn"] {
        let message = case.fails(line, 2);
        assert!(
            message.contains("the start or end of a member damaged"),
            "{line}: {message}"
        );
    }
    // The index has a copy.
    assert_eq!(case.ok("list bad.rfn").stdout, b"first\nsecond\nthird\n");
}
