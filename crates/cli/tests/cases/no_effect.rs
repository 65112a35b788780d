//! Options without effect on what is opened are refused, and nothing is written.

use std::fs;

use crate::support::{Case, REFRAIN, expect};

/// Unencrypted files in every readable format, and a password.
fn plain_archives(case: &Case) -> Vec<&'static str> {
    case.write("secret", b"TOP SECRET\n");
    case.write("tree/secret", b"TOP SECRET\n");
    case.write("pw", b"password\n");
    case.ok("compress -q secret -o file.rfn");
    case.ok("compress -q tree -o tree.rfn");
    let gzip = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 4, 0, 0x43, 0xbe, 0xb7, 0xe8, 1, 0, 0, 0,
    ];
    case.write("a.gz", &gzip);
    let mut all = vec!["file.rfn", "tree.rfn", "a.gz"];
    if cfg!(feature = "lrzip") {
        case.ok("compress -q --format lrz secret -o file.lrz");
        all.push("file.lrz");
    }
    all
}

#[test]
fn a_password_that_would_not_be_used_is_refused() {
    let case = Case::new();
    let archives = plain_archives(&case);
    let before = case.names();
    let mut lines = vec![];
    for archive in archives {
        for verb in ["test", "info", "list", "decompress", "cat", "rfn"] {
            let path = if verb == "cat" && archive == "tree.rfn" { " secret" } else { "" };
            lines.push(format!("{verb} --password-file pw {archive}{path}"));
        }
        lines.push(format!("decompress --password-file none {archive} -o out"));
        lines.push(format!("test --password-fd 0 {archive}"));
        lines.push(format!("test --password-command true {archive}"));
    }
    lines.push("map --password-file pw file.rfn".to_string());
    lines.push("serve --password-file pw file.rfn --nbd unix:s".to_string());
    lines.push("mount --password-file pw file.rfn tree".to_string());
    lines.push("boot --password-file pw file.rfn --print".to_string());
    for line in lines {
        let output = match line.strip_prefix("rfn") {
            Some(rest) => {
                let rfn = case.path("bin/rfn");
                if !rfn.exists() {
                    case.program_link("rfn");
                }
                case.command(rfn, &format!("-d{rest}")).output().unwrap()
            }
            None => case.run(&line),
        };
        let output = expect(output, 1, &line);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            told.contains("is not encrypted, so --password-"),
            "{line}: {told}"
        );
        assert!(output.stdout.is_empty(), "{line}");
    }
    let _ = fs::remove_dir_all(case.path("bin"));
    let after = case.names();
    assert!(after.iter().all(|name| before.contains(name)), "{after:?}");
    // Through a pipe, too.
    let archive = case.read("file.rfn");
    let output = case.pipe(REFRAIN, "decompress --password-file pw -", &archive);
    let output = expect(output, 1, "from a pipe");
    assert!(output.stdout.is_empty());
}

#[test]
fn options_of_one_action_on_keys_are_refused_with_others() {
    let case = Case::new();
    case.write("file", b"content");
    for (line, flag) in [
        ("key list --post-quantum file", "--post-quantum"),
        ("key list --new-password file", "--new-password"),
        ("key list --check file", "--check"),
        (
            "key remove --slot 0 --recipient age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj file",
            "--recipient",
        ),
        (
            "key remove --recipients-file file file",
            "--recipients-file",
        ),
        (
            "key generate --new-password-file file",
            "--new-password-file",
        ),
        ("key add --slot 0 file", "--slot"),
        ("plugin check --output new file", "--output"),
        ("plugin header --output new", "--output"),
        ("key list --identity file file", "--identity"),
    ] {
        let told = case.fails(line, 1);
        assert!(
            told.contains(flag) && told.contains("no effect"),
            "{line}: {told}"
        );
    }
}

#[test]
fn a_state_of_what_is_not_encrypted_is_refused() {
    let case = Case::new();
    case.write("file", b"content");
    case.ok("add -q a.rfn file");
    let before = case.read("a.rfn");
    let told = case.fails("add a.rfn file --state dir", 1);
    assert!(told.contains("leave out --state"), "{told}");
    assert!(case.read("a.rfn") == before && !case.path("dir").exists());
    let told = case.fails("add new.rfn file --state dir", 1);
    assert!(told.contains("--state needs"), "{told}");
    assert!(!case.path("new.rfn").exists());
}

#[test]
#[cfg(feature = "lrzip")]
fn a_password_is_used_where_there_is_encryption() {
    let case = Case::new();
    case.write("secret", b"TOP SECRET\n");
    case.write("pw", b"password\n");
    case.ok("compress -q --format lrz --encrypt=gcm --password-file pw secret -o e.lrz");
    let output = case.ok("cat --password-file pw e.lrz");
    assert_eq!(output.stdout, b"TOP SECRET\n");
    case.ok("test -q --password-file pw e.lrz");
}

#[test]
fn a_scan_of_what_has_no_frames_is_refused() {
    let case = Case::new();
    for archive in plain_archives(&case) {
        for verb in ["list", "info", "cat"] {
            let line = format!("{verb} --scan {archive}");
            if archive.ends_with(".rfn") {
                if verb != "cat" {
                    case.ok(&line);
                }
                continue;
            }
            let told = case.fails(&line, 1);
            assert!(told.contains("leave --scan out"), "{line}: {told}");
        }
    }
}

#[test]
fn a_range_of_several_files_is_refused() {
    let case = Case::new();
    case.write("tree/a", b"a");
    case.write("tree/b", b"b");
    case.ok("compress -q tree");
    for line in [
        "cat tree.rfn * --range 0..1",
        "cat tree.rfn a b --range 0..1",
    ] {
        let told = case.fails(line, 1);
        assert!(
            told.contains("--range applies to one file"),
            "{line}: {told}"
        );
    }
}

#[test]
fn owners_are_refused_where_nothing_has_one() {
    let case = Case::new();
    for archive in plain_archives(&case) {
        for option in ["--numeric-owner", "--same-owner", "--no-same-owner"] {
            let line = format!("decompress -f {option} {archive} -o out-{archive}");
            match archive {
                "tree.rfn" => drop(case.run(&line)),
                _ => {
                    let told = case.fails(&line, 1);
                    assert!(told.contains(option), "{line}: {told}");
                    assert!(!case.exists(&format!("out-{archive}")), "{line}");
                }
            }
        }
    }
    assert!(case.exists("out-tree.rfn"));
}
