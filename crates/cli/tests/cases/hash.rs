//! `refrain hash` compared with md5sum and sha256sum; further digests in archives.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Case, REFRAIN, expect, incompressible, mixture};

/// Programs to compare with, and the option of `refrain hash` that does the same.
const PEERS: [(&str, &str); 2] = [("md5sum", "--md5"), ("sha256sum", "--sha256")];

/// Writes files of many kinds and returns their names.
fn write_sample_files(case: &Case) -> Vec<&'static OsStr> {
    let names: [&[u8]; 9] = [
        b"empty",
        b"one",
        b"a block",
        b"large",
        b"larger",
        b"back\\slash",
        b"new\nline",
        b"cr\rx",
        b"latin\xe9",
    ];
    let names = names.map(OsStr::from_bytes);
    let contents = [
        vec![],
        vec![1],
        incompressible(1, 64),
        incompressible(2, 3_000_001),
        mixture(4_000_000),
        incompressible(3, 55),
        incompressible(4, 56),
        incompressible(5, 119),
        incompressible(6, 1 << 20),
    ];
    for (name, content) in names.iter().zip(contents) {
        fs::write(case.path("").join(name), content).unwrap();
    }
    names.to_vec()
}

fn run(case: &Case, program: &str, line: &str, names: &[&OsStr]) -> Output {
    let mut command = case.command(program, line);
    command.env("LC_ALL", "C").args(names).output().unwrap()
}

/// The messages on standard error, without the name of the program.
fn messages(output: &Output, program: &str) -> String {
    let name = if program == REFRAIN { "refrain: " } else { program };
    let text = String::from_utf8_lossy(&output.stderr).replace(name, "");
    text.lines()
        .map(|line| format!("{}\n", line.trim_start_matches(": ")))
        .collect()
}

/// Compares output, messages and exit codes of both programs.
fn same(case: &Case, peer: &str, ours: &str, line: &str, names: &[&OsStr]) {
    let theirs = run(case, peer, line, names);
    let output = run(case, REFRAIN, &format!("hash {ours} {line}"), names);
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text(&output), text(&theirs), "{peer} {line}");
    assert_eq!(
        messages(&output, REFRAIN),
        messages(&theirs, peer),
        "{peer} {line}"
    );
    assert_eq!(output.status.code(), theirs.status.code(), "{peer} {line}");
}

#[test]
fn lines_equal_those_of_the_system_programs() {
    let case = Case::new();
    let mut names = write_sample_files(&case);
    names.extend([
        OsStr::new("missing"),
        OsStr::new("directory"),
        OsStr::new("one"),
    ]);
    fs::create_dir(case.path("directory")).unwrap();
    for (peer, ours) in PEERS {
        for line in ["", "--tag", "-z", "-b", "--tag -z"] {
            same(&case, peer, ours, line, &names);
            same(&case, peer, &format!("-T1 {ours}"), line, &names);
        }
        same(&case, peer, ours, "", &names[4..5]);
        same(&case, peer, ours, "", &names[1..2]);
        let theirs = expect(case.pipe(peer, "-", b"from a pipe"), 0, peer);
        let output = expect(
            case.pipe(REFRAIN, &format!("hash {ours}"), b"from a pipe"),
            0,
            ours,
        );
        assert_eq!(output.stdout, theirs.stdout);
    }
}

#[test]
fn checking_reports_what_the_system_programs_report() {
    let case = Case::new();
    let names = write_sample_files(&case);
    fs::create_dir(case.path("directory")).unwrap();
    for (peer, ours) in PEERS {
        let mut sums = run(&case, peer, "", &names).stdout;
        case.write("good", &sums);
        case.write("tagged", &run(&case, peer, "--tag", &names).stdout);
        let first_digit = if sums[0] == b'0' { b'1' } else { b'0' };
        sums[0] = first_digit;
        let digits = String::from_utf8(run(&case, peer, "one", &[]).stdout).unwrap();
        let digits = digits.split(' ').next().unwrap();
        sums.extend(
            format!("# words\n\nwords\n{digits}  missing\n{digits}  directory\n").into_bytes(),
        );
        case.write("bad", &sums);
        case.write("mostly", format!("words\n{digits}  one\n").as_bytes());
        case.write("gone", format!("{digits}  missing\n").as_bytes());
        case.write("words", b"words\nmore words\n");
        case.write("old", format!("{digits} one\n{digits} empty\n").as_bytes());
        for line in [
            "-c good",
            "-c tagged",
            "-c bad",
            "-c bad good",
            "-c --quiet good bad",
            "-c --status bad",
            "-c --status good",
            "-c mostly",
            "-c --strict mostly",
            "-c -w mostly",
            "-c gone",
            "-c --ignore-missing gone",
            "-c --ignore-missing bad",
            "-c --ignore-missing --status gone",
            "-c words",
            "-c old",
            "-c absent",
            "-c absent good",
        ] {
            same(&case, peer, ours, line, &[]);
        }
    }
}

#[test]
fn mixed_lists_are_checked_and_blake3_is_the_default() {
    let case = Case::new();
    case.write("x", b"abc");
    let blake3 = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
    let plain = expect(case.run("hash x"), 0, "hash").stdout;
    assert_eq!(
        String::from_utf8(plain.clone()).unwrap(),
        format!("{blake3}  x\n")
    );
    let tagged = expect(case.run("hash --b3 --tag x"), 0, "hash").stdout;
    assert_eq!(
        String::from_utf8(tagged).unwrap(),
        format!("BLAKE3 (x) = {blake3}\n")
    );
    let others = [
        case.run("hash --md5 x").stdout,
        case.run("hash --sha256 --tag x").stdout,
    ];
    case.write("list", &[plain, others.concat()].concat());
    let checked = expect(case.run("hash -c list"), 0, "hash -c");
    assert_eq!(checked.stdout, b"x: OK\nx: OK\nx: OK\n");
    let output = expect(case.run("hash --json --md5 x missing"), 1, "hash --json");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["exit"], 1);
    assert_eq!(
        document["results"][0]["md5"],
        "900150983cd24fb0d6963f7d28e17f72"
    );
    assert_eq!(document["results"][1]["error"], "No such file or directory");
}

#[test]
fn an_overlong_line_takes_no_memory_and_is_malformed() {
    let case = Case::new();
    case.write("x", b"abc");
    let mut list = incompressible(1, 40 << 20);
    list.retain(|&byte| byte != b'\n');
    list.extend(b"\n900150983cd24fb0d6963f7d28e17f72  x\n");
    case.write("list", &list);
    let output = expect(case.run("hash -c list"), 0, "hash -c");
    assert_eq!(output.stdout, b"x: OK\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 line is improperly formatted"));
}

#[test]
fn a_reader_that_closes_the_output_ends_the_run_without_a_message() {
    let case = Case::new();
    let name = "n".repeat(200);
    case.write(&name, b"x");
    let mut command = case.command(REFRAIN, "hash");
    let mut child = command
        .args(std::iter::repeat_n(&name, 2000))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = expect(child.wait_with_output().unwrap(), 0, "hash");
    assert_eq!(output.stderr, b"");
}

#[test]
fn archives_store_further_digests_equal_to_those_of_the_system_programs() {
    let case = Case::new();
    case.write("x", &mixture(3_000_000));
    case.write("zeros", &vec![0; 5 << 20]);
    case.write("empty", b"");
    case.ok("compress x zeros empty -o plain.rfn");
    case.ok("compress --hash sha256,md5,b3 x zeros empty -o digests.rfn");
    let extra = case.read("digests.rfn").len() - case.read("plain.rfn").len();
    assert!(
        (2 * 3 * (16 + 32 + 4)..2 * 3 * 64).contains(&extra),
        "{extra} bytes more"
    );
    let info: Value = serde_json::from_slice(&case.ok("info --json digests.rfn").stdout).unwrap();
    let shown = String::from_utf8(case.ok("info digests.rfn").stdout).unwrap();
    let members = info["results"][0]["members"].as_array().unwrap();
    assert_eq!(members.len(), 3);
    for member in members {
        for (peer, name) in [("md5sum", "md5"), ("sha256sum", "sha256")] {
            let file = member["name"].as_str().unwrap();
            let theirs = case.command(peer, file).output().unwrap().stdout;
            let digest = member["digests"][name].as_str().unwrap();
            assert!(theirs.starts_with(digest.as_bytes()), "{file} {name}");
            assert!(shown.contains(&format!("{name} {digest}")), "{shown}");
        }
    }
    case.ok("test digests.rfn");
    case.ok("decompress digests.rfn -o there/");
    assert_eq!(case.read("there/x"), case.read("x"));
    let pipe = Command::new(REFRAIN)
        .arg("test")
        .stdin(fs::File::open(case.path("digests.rfn")).unwrap())
        .output()
        .unwrap();
    expect(pipe, 0, "test < digests.rfn");
}
