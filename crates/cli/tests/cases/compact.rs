//! `compact`: the space of what was forgotten.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::Duration;

use crate::lying_disk;
use crate::mount::can_mount;
use crate::support::{Case, REFRAIN, incompressible, json};

/// Three nights of an image that is another one each night; two are forgotten.
fn case() -> Case {
    let case = Case::new();
    for night in 1..=3 {
        case.write("disk", &incompressible(night, 3_000_000));
        case.ok("add -q a.rfn disk --time 2026-11-20");
    }
    case.ok("forget -q a.rfn 1 2");
    case
}

fn allocated_bytes(case: &Case) -> u64 {
    fs::metadata(case.path("a.rfn")).unwrap().blocks() * 512
}

#[test]
fn what_was_forgotten_takes_no_space() {
    let case = case();
    let (before, allocated) = (case.read("a.rfn"), allocated_bytes(&case));
    let said = case.ok("compact a.rfn --dry-run").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(
        said.contains("5.99 MB to give back, in 2 blocks that no"),
        "{said}"
    );
    assert_eq!(case.read("a.rfn"), before);
    let dry = json(&case.ok("compact a.rfn --dry-run --json").stdout);
    let done = json(&case.ok("compact a.rfn --json").stdout);
    for name in ["hole_bytes", "blocks", "record_bytes", "left_store_bytes"] {
        assert_eq!(dry["results"][0][name], done["results"][0][name], "{name}");
    }
    let freed = done["results"][0]["freed_bytes"].as_u64().unwrap();
    assert_eq!(freed, allocated - allocated_bytes(&case));
    assert!(freed > 5_900_000, "{freed}");
    assert_eq!(case.ok("cat a.rfn disk").stdout, case.read("disk"));
    case.ok("decompress -q a.rfn -o whole");
    assert_eq!(case.read("whole"), case.read("disk"));
    let said = case.ok("compact a.rfn").stderr;
    assert!(String::from_utf8_lossy(&said).contains("nothing to give back"));
    // What checks and describes it says so.
    for line in ["test a.rfn", "test --fast a.rfn"] {
        let said = case.ok(line).stderr;
        let said = String::from_utf8_lossy(&said);
        assert!(
            said.contains("6.00 MB were given back and not read"),
            "{line}: {said}"
        );
    }
    let tested = json(&case.ok("test a.rfn --json").stdout);
    let given_back = tested["results"][0]["given_back_bytes"].as_u64().unwrap();
    assert!((6_000_000..6_010_000).contains(&given_back), "{given_back}");
    let info = json(&case.ok("info a.rfn --json").stdout);
    assert_eq!(info["results"][0]["given_back_bytes"], given_back);
    let told = case.ok("info a.rfn").stdout;
    assert!(String::from_utf8_lossy(&told).contains("given back"));
    case.ok("info -vv a.rfn");
    case.ok("map a.rfn");
    case.write("b", &incompressible(3, 3_000_000));
    case.ok("compress -q b");
    let told = case.ok("map a.rfn b.rfn").stdout;
    assert!(!told.is_empty());
}

#[test]
fn archives_that_cannot_be_compacted_are_refused() {
    let case = case();
    case.write("x", b"some text");
    case.ok("compress -q x");
    assert!(case.fails("compact x.rfn", 1).contains("nothing was added"));
    case.fails("compact missing.rfn", 6);
    case.write("pw", b"secret\n");
    case.ok("compress -q x -o e.rfn --encrypt --password-file pw");
    let before = case.read("e.rfn");
    let told = case.fails("compact e.rfn --password-file pw", 1);
    assert!(told.contains("nothing was added"), "{told}");
    case.fails("compact e.rfn --password-file x", 1);
    let told = case.fails("compact a.rfn --password-file pw", 1);
    assert!(told.contains("is not encrypted"), "{told}");
    assert_eq!(case.read("e.rfn"), before);
    case.ok("compact -q a.rfn");
    // From a pipe nothing tells what is gone.
    let archive = case.read("a.rfn");
    let from_pipe = case.pipe(REFRAIN, "test -", &archive);
    assert_eq!(from_pipe.status.code(), Some(2));
    let told = String::from_utf8_lossy(&from_pipe.stderr);
    assert!(told.contains("test the file, not a pipe"), "{told}");
}

#[test]
fn a_file_system_without_holes_is_refused_before_anything_is_written() {
    if !can_mount() {
        return;
    }
    let case = case();
    fs::create_dir(case.path("disk2")).unwrap();
    let _disk = lying_disk::mount(&case.path("disk2"));
    let archive = case.read("a.rfn");
    case.write("disk2/a.rfn", &archive);
    for line in ["compact disk2/a.rfn", "compact --dry-run disk2/a.rfn"] {
        let told = case.fails(line, 3);
        assert!(told.contains("cannot take parts of a file back"), "{told}");
        assert_eq!(case.read("disk2/a.rfn").len(), archive.len());
    }
}

#[test]
fn nobody_vouches_for_a_directory_of_which_something_was_given_back() {
    let case = Case::new();
    case.write("key", refrain_testkit::signing_keys::SSH.as_bytes());
    case.write(
        "ssh.pub",
        refrain_testkit::signing_keys::SSH_PUBLIC.as_bytes(),
    );
    fs::create_dir(case.path("tree")).unwrap();
    for number in 0..20 {
        case.write(&format!("tree/f{number}"), &incompressible(number, 10_000));
    }
    thread::sleep(Duration::from_millis(2100));
    for night in 100..103 {
        case.write("tree/big", &incompressible(night, 5_000_000));
        case.ok("add -q a.rfn tree");
    }
    case.ok("forget -q a.rfn 1 2");
    case.ok("sign -q a.rfn --key key --output a.sig");
    let test = "test a.rfn --signers-file ssh.pub --signature a.sig";
    case.ok(test);
    case.ok("compact -q a.rfn");
    let told = case.fails(test, 3);
    assert!(told.contains("--force-read"), "{told}");
    case.ok("test -q a.rfn");
    case.ok("decompress -q a.rfn -o out/");
    assert_eq!(case.read("out/tree/big"), case.read("tree/big"));
    case.ok("add -q a.rfn tree --force-read");
    case.ok("forget -q a.rfn 3");
    case.ok("sign -q -f a.rfn --key key --output a.sig");
    case.ok("compact -q a.rfn");
    case.ok(test);
}
