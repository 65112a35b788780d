//! Runs killed at random moments: the source or the result is complete, and what existed before
//! still exists, old or new.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use refrain_testkit::{Rng, scaled};

use crate::support::{Case, EntryState, REFRAIN, expect, incompressible, mixture, snapshot};

/// Kills at scale 1, for each command.
const KILLS: u32 = 3;

/// Runs a command to its end to measure its duration, then kills it at random moments. `prepare`
/// creates the state before each run, `check` examines what is left.
fn kill_often(case: &Case, line: &str, prepare: &dyn Fn(), check: &dyn Fn(&str)) {
    prepare();
    let start = Instant::now();
    expect(case.command(REFRAIN, line).output().unwrap(), 0, line);
    let whole = start.elapsed();
    check(line);
    for seed in 0..u64::from(scaled(KILLS)) {
        prepare();
        let moment = Rng::new(seed).below(whole.as_micros() as u64 * 9 / 8);
        let mut child = case.command(REFRAIN, line).spawn().unwrap();
        thread::sleep(Duration::from_micros(moment));
        let _ = child.kill();
        child.wait().unwrap();
        check(&format!("{line}, killed after {moment} µs (seed {seed})"));
    }
}

/// What is below a directory, without its root, whose time changes with every file in it.
fn below(path: &Path) -> Vec<EntryState> {
    let mut found = snapshot(path);
    found.retain(|entry| !entry.path.is_empty());
    found
}

#[test]
fn a_source_is_removed_only_when_its_archive_is_whole() {
    let case = Case::new();
    let content = mixture(2_000_000);
    let prepare = || {
        case.write("x", &content);
        let _ = fs::remove_file(case.path("x.rfn"));
    };
    kill_often(&case, "compress -q --rm x", &prepare, &|what| {
        if case.exists("x.rfn") {
            let restored = case.ok("cat x.rfn").stdout;
            assert!(restored == content, "{what}: the archive is not whole");
        } else {
            assert!(case.read("x") == content, "{what}: neither is there");
        }
    });
}

#[test]
fn an_archive_is_removed_only_when_its_content_is_whole() {
    let case = Case::new();
    let content = mixture(2_000_000);
    case.write("x", &content);
    case.ok("compress -q x -o kept");
    let archive = case.read("kept");
    let prepare = || {
        case.write("x.rfn", &archive);
        let _ = fs::remove_file(case.path("x"));
    };
    kill_often(&case, "decompress -q --rm x.rfn", &prepare, &|what| {
        if case.exists("x") {
            assert!(case.read("x") == content, "{what}: the file is not whole");
        } else {
            assert!(case.read("x.rfn") == archive, "{what}: neither is there");
        }
    });
}

#[test]
fn a_replaced_archive_is_the_old_or_the_new_one() {
    let case = Case::new();
    case.write("old", b"old content");
    case.ok("compress -q old -o old.rfn");
    let content = mixture(2_000_000);
    case.write("x", &content);
    let old = case.read("old.rfn");
    let prepare = || drop(case.write("x.rfn", &old));
    kill_often(&case, "compress -q -f x -o x.rfn", &prepare, &|what| {
        let found = case.ok("cat x.rfn").stdout;
        assert!(
            found == content || found == b"old content",
            "{what}: neither the old archive nor the new one"
        );
    });
}

#[test]
fn restored_over_a_tree_every_file_is_the_old_or_the_new_one() {
    let case = Case::new();
    for number in 0..400 {
        let name = format!("d/s{}/f{number}", number % 7);
        case.write(&name, &incompressible(number, 3_000));
    }
    case.ok("compress -q d -o d.rfn");
    let new = below(&case.path("d"));
    let prepare = || {
        for number in 0..400 {
            let name = format!("d/s{}/f{number}", number % 7);
            case.write(&name, format!("old {number}").as_bytes());
        }
    };
    prepare();
    let old = below(&case.path("d"));
    kill_often(&case, "decompress -q -f d.rfn -o d", &prepare, &|what| {
        let mut found = below(&case.path("d"));
        // Files without their final names, which the next run removes.
        found.retain(|entry| !entry.path.contains(".refrain-part"));
        assert_eq!(found.len(), old.len(), "{what}: other files");
        for (found, (old, new)) in found.iter().zip(old.iter().zip(&new)) {
            assert!(
                found.path == old.path
                    && (found.content == old.content || found.content == new.content),
                "{what}: {}",
                found.path
            );
        }
    });
}

#[test]
fn a_protected_repaired_or_signed_archive_is_as_before_or_as_after() {
    let case = Case::new();
    case.write("x", &incompressible(7, 3_000_000));
    case.ok("compress -q x");
    let plain = case.read("x.rfn");
    case.ok("protect -q x.rfn");
    let whole = case.read("x.rfn");
    let mut damaged = whole.clone();
    damaged[100_000..300_000].fill(0);
    case.write("key", refrain_testkit::signing_keys::SSH.as_bytes());
    case.ok("sign -q x.rfn --key key");
    let signed = case.read("x.rfn");
    for (line, before, after) in [
        ("protect -q x.rfn", &plain, &whole),
        ("repair -q x.rfn", &damaged, &whole),
        ("sign -q x.rfn --key key", &whole, &signed),
    ] {
        let prepare = || drop(case.write("x.rfn", before));
        kill_often(&case, line, &prepare, &|what| {
            let found = case.read("x.rfn");
            assert!(found == *before || found == *after, "{what}: neither");
        });
    }
}

#[test]
fn a_compacted_archive_has_all_that_is_kept() {
    let case = Case::new();
    for night in 1..=6 {
        case.write("x", &incompressible(night, 4_000_000));
        case.ok("add -q x.rfn x --time 2026-11-20");
    }
    case.ok("forget -q x.rfn 1 2 3 4");
    let (before, fifth) = (
        case.read("x.rfn"),
        case.ok("cat x.rfn x --generation 5").stdout,
    );
    let prepare = || drop(case.write("x.rfn", &before));
    kill_often(&case, "compact -q x.rfn", &prepare, &|what| {
        for _ in 0..2 {
            let found = case.ok("cat x.rfn x --generation 5").stdout;
            assert!(found == fifth, "{what}: generation 5 differs");
            assert!(
                case.ok("cat x.rfn x").stdout == case.read("x"),
                "{what}: the last differs"
            );
            case.ok("test -q x.rfn");
            case.ok("compact -q x.rfn");
        }
        case.ok("add -q x.rfn x");
    });
}
