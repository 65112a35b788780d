//! Encrypted archives: every verb with the right secret, and none with another.

use std::fs;

use crate::support::{Case, REFRAIN, expect};

/// A key pair in the files `key` (secret) and `key.pub`, and data that is worth hiding.
fn case_with_keys() -> (Case, String) {
    let case = Case::new();
    let output = case.ok("key generate key");
    let public = String::from_utf8(output.stdout).unwrap().trim().to_string();
    case.write("key.pub", format!("# mine\n{public}\n").as_bytes());
    case.write("pw", b"correct horse\n");
    case.write("tree/diary", b"TOP SECRET\n".repeat(5_000).as_slice());
    case.write("tree/sub/empty", b"");
    (case, public)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_secret_key_opens_what_its_public_key_encrypted() {
    let (case, public) = case_with_keys();
    case.ok(&format!(
        "compress -q --codec none --recipient {public} tree -o a.rfn"
    ));
    let archive = case.read("a.rfn");
    for part in [&b"TOP SECRET"[..], b"diary", b"tree"] {
        assert!(!contains(&archive, part), "{part:?} is in the clear");
    }
    case.ok("test -q --identity key a.rfn");
    let output = case.ok("list --identity key a.rfn");
    assert!(contains(&output.stdout, b"diary"));
    let output = case.ok("cat --identity key a.rfn diary --range 4..10");
    assert_eq!(output.stdout, b"SECRET");
    case.ok("info --identity key a.rfn");
    case.ok("map --identity key a.rfn");
    case.ok("decompress -q --identity key a.rfn -o out");
    assert_eq!(case.read("out/diary"), case.read("tree/diary"));
    let output = case.pipe(REFRAIN, "decompress -q --identity key - -o -", &archive);
    let output = expect(output, 0, "from a pipe to a pipe");
    assert!(contains(&output.stdout, b"TOP SECRET"));
}

#[test]
fn whoever_has_another_secret_is_told_so_and_gets_nothing() {
    let (case, _) = case_with_keys();
    case.ok("compress -q --recipients-file key.pub tree -o a.rfn");
    case.ok("key generate other");
    for (secret, part) in [
        ("", "is needed"),
        ("--identity other", "is not encrypted for this secret key"),
        ("--password-file pw", "--identity"),
    ] {
        for verb in ["test", "list", "info", "decompress", "cat"] {
            let line = format!("{verb} {secret} a.rfn");
            let output = expect(case.run(&line), 1, &line);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(told.contains(part), "{line}: {told}");
            assert!(output.stdout.is_empty(), "{line}");
        }
    }
    assert!(!case.exists("a"));
}

#[test]
fn passwords_come_from_files_descriptors_and_commands() {
    let (case, _) = case_with_keys();
    case.ok("compress -q -M 128M --encrypt --password-file pw tree/diary -o a.rfn");
    for secret in ["--password-file pw", "--password-fd 0"] {
        let line = format!("cat {secret} a.rfn");
        let mut command = case.command(REFRAIN, &line);
        command.stdin(fs::File::open(case.path("pw")).unwrap());
        let output = expect(command.output().unwrap(), 0, &line);
        assert_eq!(output.stdout, case.read("tree/diary"));
    }
    let mut command = case.command(REFRAIN, "test -q a.rfn --password-command");
    let output = command.arg("head -c 13 pw").output().unwrap();
    expect(output, 0, "a command");
    let mut command = case.command(REFRAIN, "test -q a.rfn --password-command");
    let output = command.arg("echo wrong").output().unwrap();
    let output = expect(output, 1, "a wrong password");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("password is wrong"), "{told}");
}

#[test]
fn slots_are_added_and_removed_in_place() {
    let (case, _) = case_with_keys();
    case.ok("compress -q --recipients-file key.pub tree -o a.rfn");
    let records = case.read("a.rfn")[2056..].to_vec();
    case.ok("key generate --post-quantum second");
    let second = String::from_utf8(case.read("second")).unwrap();
    let second = second
        .lines()
        .next()
        .unwrap()
        .trim_start_matches("# public key: ");
    case.write("second.pub", second.as_bytes());
    case.ok("key add a.rfn -M 128M --identity key --new-password-file pw");
    assert_eq!(case.read("a.rfn")[2056..], records);
    let output = case.ok("key list a.rfn");
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(
        listed.contains("0  key (X25519)") && listed.contains("1  password"),
        "{listed}"
    );
    case.ok("test -q a.rfn --password-file pw");
    // A slot for which there is no room: the archive is copied.
    case.ok("key add --check a.rfn --password-file pw --recipients-file second.pub");
    for secret in ["--identity key", "--identity second", "--password-file pw"] {
        case.ok(&format!("test -q a.rfn {secret}"));
    }
    case.ok("key remove a.rfn --identity second --slot 0");
    case.fails("test -q a.rfn --identity key", 1);
    case.ok("test -q a.rfn --identity second");
    let told = case.fails("key remove a.rfn --identity second --slot 0 --slot 1", 1);
    assert!(told.contains("last slot"), "{told}");
    let told = case.fails("key remove a.rfn --identity second --slot 7", 1);
    assert!(told.contains("slots 0 to 1"), "{told}");
    let told = case.fails("key add a.rfn --identity key --recipients-file key.pub", 1);
    assert!(told.contains("not encrypted for"), "{told}");
    let told = case.fails("key generate key", 1);
    assert!(told.contains("already exists"), "{told}");
    let told = case.fails("key list tree/diary", 1);
    assert!(told.contains("is not encrypted"), "{told}");
}

#[test]
fn a_damaged_record_costs_the_files_in_it() {
    let (case, _) = case_with_keys();
    for number in 0..40_u32 {
        let mut state = number;
        let bytes: Vec<u8> = (0..60_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        case.write(&format!("tree/file{number}"), &bytes);
    }
    case.ok("compress -q --block-size 64K --recipients-file key.pub tree -o a.rfn");
    let mut archive = case.read("a.rfn");
    let middle = archive.len() / 2;
    archive[middle] ^= 1;
    case.write("a.rfn", &archive);
    let told = case.fails("test -q --identity key a.rfn", 2);
    assert!(told.contains("a.rfn"), "{told}");
    case.fails("decompress -q --identity key a.rfn -o out", 2);
    let whole = (0..40).filter(|number| {
        let name = format!("file{number}");
        case.exists(&format!("out/{name}"))
            && case.read(&format!("out/{name}")) == case.read(&format!("tree/{name}"))
    });
    let whole = whole.count();
    assert!((35..40).contains(&whole), "{whole} of 40 files");
    // Without its end, everything before it.
    case.write("cut.rfn", &archive[..middle]);
    let told = case.fails("test -q --identity key cut.rfn", 2);
    assert!(told.contains("cut off"), "{told}");
    case.fails("decompress -q --identity key cut.rfn -o cut", 2);
}

#[test]
fn padding_hides_the_size() {
    let (case, _) = case_with_keys();
    let sizes = [299_000_usize, 301_000, 303_000, 305_000].map(|length| {
        let mut state = 1_u32;
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        case.write("data", &bytes);
        case.ok("compress -q -f --pad --recipients-file key.pub data -o p.rfn");
        let output = case.ok("cat --identity key p.rfn");
        assert!(output.stdout == bytes);
        let output = case.pipe(
            REFRAIN,
            "decompress -q --identity key -",
            &case.read("p.rfn"),
        );
        assert!(expect(output, 0, "a pipe").stdout == bytes);
        case.read("p.rfn").len()
    });
    assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
}

#[test]
fn a_plain_archive_does_not_pass_for_an_encrypted_one() {
    let (case, _) = case_with_keys();
    case.ok("compress -q tree -o plain.rfn");
    let told = case.fails("test -q --identity key plain.rfn", 1);
    assert!(told.contains("is not encrypted, so --identity"), "{told}");
}

#[test]
fn recovery_data_heals_an_encrypted_archive_without_its_key() {
    let (case, _) = case_with_keys();
    case.ok("compress -q --recovery 10% --recipients-file key.pub tree -o a.rfn");
    case.ok("compress -q --recipients-file key.pub tree -o b.rfn");
    case.ok("protect -q b.rfn");
    for archive in ["a.rfn", "b.rfn"] {
        case.ok(&format!("test -q --identity key {archive}"));
        let whole = case.read(archive);
        let output = case.pipe(REFRAIN, "test -q --identity key -", &whole);
        expect(output, 0, "recovery data behind an archive from a pipe");
        let mut damaged = whole.clone();
        damaged[5_000..5_100].fill(0);
        case.write("damaged.rfn", &damaged);
        case.fails("test -q --identity key damaged.rfn", 2);
        case.ok("repair -q damaged.rfn -o healed.rfn");
        assert!(case.read("healed.rfn") == whole);
        fs::remove_file(case.path("healed.rfn")).unwrap();
        let told = case.fails(
            "key add damaged.rfn --identity key --new-password-file pw",
            2,
        );
        assert!(told.contains("repair it first"), "{told}");
        assert!(case.read("damaged.rfn") == damaged);
    }
}

#[test]
fn recovery_data_heals_the_new_slots() {
    let (case, _) = case_with_keys();
    case.ok("compress -q --recovery 10% --recipients-file key.pub tree -o a.rfn");
    case.ok("key add a.rfn -M 128M --identity key --new-password-file pw");
    case.ok("key remove a.rfn --password-file pw --slot 0");
    let whole = case.read("a.rfn");
    let mut damaged = whole.clone();
    damaged[100..1_200].fill(0);
    case.write("damaged.rfn", &damaged);
    case.ok("repair -q damaged.rfn -o healed.rfn");
    assert!(case.read("healed.rfn") == whole);
    case.ok("test -q healed.rfn --password-file pw");
    case.fails("test -q healed.rfn --identity key", 1);
    case.ok("protect -q healed.rfn");
}
