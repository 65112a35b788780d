//! Damaged archives: a clear error, exit code 2, and nothing published.

use crate::support::{Case, REFRAIN, expect, mixture};

fn archive(case: &Case) -> Vec<u8> {
    case.write("x", &mixture(300_000));
    case.ok("compress -q x -o good.rfn");
    case.read("good.rfn")
}

/// Every verb that reads all of an archive refuses `bad.rfn`, from a file and from a pipe.
fn refused(case: &Case, bytes: &[u8], what: &str) {
    case.write("bad.rfn", bytes);
    for line in [
        "test bad.rfn",
        "decompress bad.rfn -o out",
        "decompress bad.rfn -o -",
    ] {
        let message = String::from_utf8(expect(case.run(line), 2, what).stderr).unwrap();
        assert!(
            message.starts_with("refrain: bad.rfn: "),
            "{what}: {line}: {message}"
        );
        assert_eq!(message.lines().count(), 1, "{what}: {line}: {message}");
    }
    expect(case.pipe(REFRAIN, "test", bytes), 2, what);
    expect(case.pipe(REFRAIN, "decompress - -o out", bytes), 2, what);
    assert!(
        !case.exists("out"),
        "{what}: a damaged archive was published"
    );
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
            refused(&case, &bad, &what);
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
            &format!("first {length} of {} bytes", good.len()),
        );
    }
}

#[test]
fn other_files_are_refused() {
    let case = Case::new();
    refused(&case, b"This is a text and was never an archive.\n", "text");
    refused(&case, &[0; 5000], "zeros");
}

#[test]
fn the_message_names_the_archive_offset() {
    let case = Case::new();
    let mut bad = archive(&case);
    let middle = bad.len() / 2;
    bad[middle] ^= 0x10;
    case.write("bad.rfn", &bad);
    let message = case.fails("test bad.rfn", 2);
    assert!(message.contains("at archive offset "), "{message}");
}
