//! Encrypted archives that grow: every verb of generations, with the right secret only.

use std::fs;

use crate::mount::{Mounted, can_mount};
use crate::support::{Case, REFRAIN, expect, incompressible, json};

const NIGHT: &str = "add -q a.rfn tree --recipients-file key.pub --identity key --host h";

/// Three nights of a directory, encrypted for the key in `key` and `key.pub`.
fn case() -> Case {
    let case = Case::new();
    let output = case.ok("key generate key");
    case.write("key.pub", &output.stdout);
    case.write("pw", b"correct horse\n");
    let shared = incompressible(1, 300_000);
    for night in 0..3_u8 {
        case.write(
            "tree/diary",
            &[&[b'0' + night][..], b" TOP SECRET", &shared].concat(),
        );
        case.write(&format!("tree/file{night}"), b"content of a night");
        case.ok(&format!(
            "{NIGHT} --tag night{night} --time 2026-11-2{night}T03:00:00"
        ));
    }
    case
}

#[track_caller]
fn refused(case: &Case, line: &str, exit: i32, text: &str) {
    let message = case.fails(line, exit);
    assert!(message.contains(text), "{line}: {message}");
}

fn diary(case: &Case, generation: &str) -> u8 {
    let line = format!("cat --identity key a.rfn diary --generation {generation} --range 0..1");
    case.ok(&line).stdout[0]
}

#[test]
fn every_verb_of_generations_takes_a_secret() {
    let case = case();
    let archive = case.read("a.rfn");
    assert!(archive.len() < 420_000, "{}", archive.len());
    for part in [&b"TOP SECRET"[..], b"diary", b"night1", b"tree"] {
        assert!(
            !archive.windows(part.len()).any(|window| window == part),
            "in the clear"
        );
    }
    for (generation, night) in [
        ("1", b'0'),
        ("night1", b'1'),
        ("latest", b'2'),
        ("2026-11-21", b'1'),
    ] {
        assert_eq!(diary(&case, generation), night, "{generation}");
    }
    for line in [
        "test -q --identity key a.rfn",
        "test -q --fast --identity key a.rfn",
        "list --generations --identity key a.rfn",
        "map --identity key a.rfn",
        "info --identity key a.rfn",
        "decompress -q --identity key a.rfn --generation 2 -o out",
        "diff --identity key a.rfn 1 3",
    ] {
        case.ok(line);
        let locked = line.replace("--identity key", "--password-file pw");
        case.fails(&locked.replace("-o out", "-o other"), 1);
    }
    assert_eq!(case.read("out/diary")[0], b'1');
    case.ok("forget -q --identity key a.rfn 2");
    let forgotten = case.read("a.rfn");
    case.fails("compact -q a.rfn --password-file pw", 1);
    case.ok("compact -q a.rfn --identity key --dry-run");
    assert!(case.read("a.rfn") == forgotten);
    assert!(case.read("a.rfn").starts_with(&archive));
    let listed = case.ok("list --generations --identity key a.rfn").stdout;
    assert_eq!(
        String::from_utf8(listed)
            .unwrap()
            .matches("2026-11-")
            .count(),
        2
    );
    // A pipe is tested as well.
    expect(
        case.pipe(REFRAIN, "test --identity key -", &case.read("a.rfn")),
        0,
        "OK",
    );
}

#[test]
fn a_line_serves_the_first_night_and_all_others() {
    let case = Case::new();
    case.write("pw", b"correct horse\n");
    case.write("other", b"battery\n");
    let night = "add -q a.rfn file --encrypt --password-file pw";
    for content in ["first", "second", "third"] {
        case.write("file", content.as_bytes());
        case.ok(night);
    }
    for (generation, content) in [("1", "first"), ("2", "second"), ("latest", "third")] {
        let line = format!("cat --password-file pw a.rfn --generation {generation}");
        assert_eq!(case.ok(&line).stdout, content.as_bytes());
    }
    let before = case.read("a.rfn");
    let lines = [
        ("add a.rfn file --password-file other", "password is wrong"),
        (
            "add a.rfn file --encrypt --password-file other",
            "password is wrong",
        ),
    ];
    for (line, text) in lines {
        refused(&case, line, 1, text);
    }
    refused(&case, "add a.rfn file", 6, "no terminal");
    assert!(case.read("a.rfn") == before);
}

#[test]
fn what_is_plain_and_what_is_encrypted_stay_apart() {
    let case = Case::new();
    let key = case.ok("key generate key").stdout;
    case.write("key.pub", &key);
    case.ok("key generate other");
    case.write("pw", b"correct horse\n");
    case.write("file", &incompressible(1, 100_000));
    case.ok("add -q plain.rfn file");
    for flags in [
        "--encrypt",
        "--recipients-file key.pub",
        "--identity key",
        "--password-file pw",
        "--pad",
    ] {
        refused(
            &case,
            &format!("add plain.rfn file {flags}"),
            1,
            "is not encrypted",
        );
    }
    refused(
        &case,
        "add new.rfn file --identity key",
        1,
        "does not exist",
    );
    refused(
        &case,
        "add new.rfn file --password-file pw",
        1,
        "add --encrypt",
    );
    case.ok("add -q sealed.rfn file --recipients-file key.pub");
    let line = "add sealed.rfn file --recipients-file key.pub --identity other";
    refused(&case, line, 1, "refrain key add");
    refused(
        &case,
        "add sealed.rfn file --identity other",
        1,
        "not encrypted for",
    );
    // A public key alone is not enough.
    refused(
        &case,
        "add sealed.rfn file --recipients-file key.pub",
        1,
        "--identity",
    );
    case.ok("key add sealed.rfn --identity key --new-password-file pw");
    case.ok("add -q sealed.rfn file --password-file pw");
    case.ok("key remove sealed.rfn --password-file pw --slot 0");
    refused(&case, "test sealed.rfn --identity key", 1, "password");
    case.ok("test -q sealed.rfn --password-file pw");
}

#[test]
fn an_add_that_was_ended_is_no_damage() {
    let case = case();
    let archive = case.read("a.rfn");
    let two = case
        .ok("list --generations --json --identity key a.rfn")
        .stdout;
    case.write("a.rfn", &archive[..archive.len() - 3]);
    let output = case.ok("test --identity key a.rfn");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("an incomplete generation"), "{said}");
    assert_eq!(diary(&case, "latest"), b'1');
    case.ok(&format!("{NIGHT} --time 2026-11-25T03:00:00"));
    assert_eq!(diary(&case, "latest"), b'2');
    assert_ne!(
        two,
        case.ok("list --generations --json --identity key a.rfn")
            .stdout
    );
    // One whose end is damaged is.
    let mut damaged = archive;
    let at = damaged.len() - 20;
    damaged[at] ^= 1;
    case.write("a.rfn", &damaged);
    refused(&case, "test --identity key a.rfn", 2, "damaged");
    let output = case.run("decompress --identity key a.rfn -o out");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn encrypted_generations_are_mounted() {
    if !can_mount() {
        return;
    }
    let case = case();
    let _mounted = Mounted::new(&case, "mount a.rfn --generations --identity key");
    for (name, night) in [("00001", b'0'), ("00003", b'2')] {
        let names = fs::read_dir(case.path("mnt")).unwrap();
        let named = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let directory = named
            .into_iter()
            .find(|found| found.starts_with(name))
            .expect(name);
        let diary = fs::read(case.path("mnt").join(directory).join("tree/diary")).unwrap();
        assert_eq!(diary[0], night);
    }
}

/// Adds a directory each night without a secret, to an archive named like this.
fn nights_without_a_secret(archive: &str, options: &str) {
    let case = Case::new();
    let output = case.ok("key generate key");
    case.write("key.pub", &output.stdout);
    // The machine has no secret.
    let key = case.read("key");
    fs::remove_file(case.path("key")).unwrap();
    let disk = incompressible(9, 3_000_000);
    for night in 0..4_u8 {
        let at = 500_000 * usize::from(night);
        case.write(
            "disk",
            &[&disk[..at], &[night; 100], &disk[at + 100..]].concat(),
        );
        case.write("tree/diary", &[b'0' + night]);
        case.write(
            &format!("tree/file{night}"),
            &incompressible(20 + u64::from(night), 50_000),
        );
        let line = format!(
            "add {archive} tree disk --recipients-file key.pub --state notes --host h {options}"
        );
        let summary = json(&case.ok(&format!("{line} --json")).stdout);
        let added_bytes = summary["results"][0]["archive_bytes"].as_u64().unwrap();
        assert!(night == 0 || added_bytes < 400_000, "{summary}");
    }
    refused(&case, &format!("list {archive}"), 1, "secret key");
    case.write("key", &key);
    for night in 0..4_u8 {
        let generation = night + 1;
        let of = format!("--identity key --generation {generation}");
        let diary = case.ok(&format!("cat {archive} tree/diary {of}"));
        assert_eq!(diary.stdout, [b'0' + night]);
        let disk = case.ok(&format!("cat {archive} disk {of}"));
        assert_eq!(
            disk.stdout[500_000 * usize::from(night)..][..100],
            [night; 100]
        );
    }
    case.ok(&format!("test -q {archive} --identity key"));
    // What a secret forgets, a state follows; what it adds, only one that the secret renews.
    case.ok(&format!("forget -q {archive} 1 --identity key"));
    let line = format!("add -q {archive} tree disk --state notes --host h");
    case.ok(&line);
    case.ok(&format!("add -q {archive} disk --identity key"));
    refused(&case, &line, 1, "renews the state");
    case.ok(&format!("{line} --identity key"));
    case.ok(&line);
    case.ok(&format!("test -q {archive} --identity key"));
}

#[test]
fn a_machine_without_a_secret_adds_every_night() {
    nights_without_a_secret("a.rfn", "");
}

#[test]
fn a_machine_without_a_secret_adds_to_volumes() {
    nights_without_a_secret("volumes", "--volume 1M");
}
