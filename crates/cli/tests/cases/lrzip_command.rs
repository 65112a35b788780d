//! The lrzip command, without a comparison with lrzip.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use refrain_testkit::scaled;

use crate::support::{Case, REFRAIN, expect, mixture};

/// Returns a case with links of all programs in `bin` and a file `x`, and the content of `x`.
fn case() -> (Case, Vec<u8>) {
    let case = Case::new();
    case.ok("generate lrzip-links bin");
    let content = mixture(200_000);
    case.write("x", &content);
    (case, content)
}

fn run(case: &Case, line: &str, exit: i32) -> std::process::Output {
    let (program, words) = line.split_once(' ').unwrap_or((line, ""));
    let program = case.path("bin").join(program);
    let mut command = case.command(program, words);
    let command = command.env("HOME", case.path("home"));
    expect(command.output().unwrap(), exit, line)
}

fn messages(output: &std::process::Output) -> String {
    [&output.stdout[..], &output.stderr]
        .concat()
        .escape_ascii()
        .to_string()
}

#[test]
fn links_are_created_and_no_file_is_replaced() {
    let (case, _) = case();
    let names = ["lrunzip", "lrz", "lrzcat", "lrzip", "lrztar", "lrzuntar"];
    for name in names {
        let target = fs::read_link(case.path("bin").join(name)).unwrap();
        assert_eq!(target, PathBuf::from(REFRAIN), "{name}");
    }
    case.ok("generate lrzip-links bin");
    case.write("other/lrzip", b"another program");
    case.fails("generate lrzip-links other", 6);
    assert_eq!(case.read("other/lrzip"), b"another program");
    case.ok("generate lrzip-man man");
    for name in names {
        let page = String::from_utf8(case.read(&format!("man/{name}.1"))).unwrap();
        assert!(
            page.contains("NOCONFIG") && page.contains("EXIT STATUS"),
            "{name}"
        );
    }
}

#[test]
fn every_back_end_round_trips_by_file_and_pipe() {
    let (case, content) = case();
    let program = |name: &str| case.path("bin").join(name);
    for letter in ["--lzma", "-b", "-g", "-l", "-n"] {
        run(&case, &format!("lrzip {letter} -Q -o y.lrz x"), 0);
        run(&case, "lrzip -tQ y.lrz", 0);
        let info = messages(&run(&case, "lrzip -i y.lrz", 0));
        let name = match letter {
            "--lzma" => "rzip + lzma",
            "-b" => "rzip + bzip2",
            "-g" => "rzip + gzip",
            "-l" => "rzip + lzo",
            _ => "rzip alone",
        };
        assert!(info.contains(name), "{letter}: {info}");
        run(&case, "lrunzip -Q -f -o z y.lrz", 0);
        assert!(case.read("z") == content, "{letter}");
        fs::remove_file(case.path("y.lrz")).unwrap();
        let archive = case.pipe(program("lrzip"), &format!("{letter} -Q"), &content);
        let archive = expect(archive, 0, letter).stdout;
        let output = expect(case.pipe(program("lrzcat"), "-Q", &archive), 0, letter);
        assert!(output.stdout == content, "{letter} by pipe");
    }
}

#[test]
fn mode_and_time_are_restored_in_both_directions() {
    let (case, _) = case();
    fs::set_permissions(case.path("x"), fs::Permissions::from_mode(0o750)).unwrap();
    let mode = |name: &str| fs::metadata(case.path(name)).unwrap().permissions().mode() & 0o777;
    let time = |name: &str| fs::metadata(case.path(name)).unwrap().modified().unwrap();
    run(&case, "lrzip -Q x", 0);
    run(&case, "lrzip -Qd -o y x.lrz", 0);
    for name in ["x.lrz", "y"] {
        assert_eq!(mode(name), 0o750, "{name}");
        assert_eq!(time(name), time("x"), "{name}");
    }
}

#[test]
fn no_input_is_lost() {
    let (case, content) = case();
    let assert_intact = |name: &str| assert!(case.read(name) == content, "{name}");
    // Names without the suffix, where lrzip deletes the input and then fails.
    run(&case, "lrzip -df x", 1);
    run(&case, "lrzip -dfD x", 1);
    run(&case, "lrz -df x", 1);
    run(&case, "lrzip -f -o x x", 1);
    assert_intact("x");
    // Outputs that already exist, and damaged archives.
    case.write("x.lrz", b"LRZI no archive");
    run(&case, "lrzip -D x", 1);
    run(&case, "lrz x", 1);
    assert_intact("x");
    run(&case, "lrzip -D -d -f x.lrz", 1);
    assert!(case.exists("x.lrz"));
    assert_intact("x");
    // A test creates no output, so it must not delete anything.
    run(&case, "lrzip -Q -o y.lrz x", 0);
    run(&case, "lrzip -t -D y.lrz", 0);
    run(&case, "lrz -t y.lrz", 0);
    run(&case, "lrzip -i -D y.lrz", 0);
    // Standard output is not a file that could replace the input.
    run(&case, "lrzip -Q -D -o - x", 0);
    run(&case, "lrz -c x", 0);
    assert_intact("x");
    assert!(case.exists("y.lrz"));
    // A symbolic link is not deleted.
    symlink(case.path("x"), case.path("link")).unwrap();
    run(&case, "lrzip -Q -D link", 0);
    assert!(case.exists("link"));
    assert_intact("x");
    // Deletion on request.
    run(&case, "lrzip -Q -D -f x", 0);
    assert!(!case.exists("x"));
    run(&case, "lrz -d x.lrz", 0);
    assert!(!case.exists("x.lrz"));
    assert_intact("x");
}

#[test]
fn a_configuration_file_in_the_current_directory_causes_no_data_loss() {
    let (case, content) = case();
    case.write(
        "lrzip.conf",
        b"DELETEFILES = YES\nREPLACEFILE = YES\nCOMPRESSIONMETHOD = gzip\n",
    );
    let text = messages(&run(&case, "lrzip x", 0));
    assert!(
        text.contains("Using configuration file ./lrzip.conf"),
        "{text}"
    );
    assert!(text.contains("DELETEFILES is ignored"), "{text}");
    assert!(case.read("x") == content);
    let info = messages(&run(&case, "lrzip -i x.lrz", 0));
    assert!(
        info.contains("rzip + gzip"),
        "the rest of it is applied: {info}"
    );
    run(&case, "lrzip x", 1);
    // The file of the user is trusted.
    fs::remove_file(case.path("lrzip.conf")).unwrap();
    case.write(
        "home/.lrzip/lrzip.conf",
        b"DELETEFILES = YES\nREPLACEFILE = YES\n",
    );
    run(&case, "lrzip x", 0);
    assert!(!case.exists("x"));
    // NOCONFIG disables it.
    let mut command = case.command(case.path("bin").join("lrzip"), "-dQ x.lrz");
    command
        .env("HOME", case.path("home"))
        .env("LRZIP", "NOCONFIG");
    expect(command.output().unwrap(), 0, "NOCONFIG");
    assert!(case.exists("x.lrz") && case.read("x") == content);
}

#[test]
fn both_ciphers_accept_passwords() {
    let (case, content) = case();
    case.write("pw", b"secret\n");
    for (cipher, version, number) in [("-E", 6, 1), ("", 7, 3)] {
        run(
            &case,
            &format!("lrzip -Q -f {cipher} --encrypt=secret -n x"),
            0,
        );
        let archive = case.read("x.lrz");
        assert_eq!((archive[5], archive[22]), (version, number));
        let info = messages(&run(&case, "lrzip -i x.lrz", 0));
        assert!(info.contains("Encrypted lrzip archive"), "{info}");
        run(&case, "lrzip -dQ -f --password-file pw -o y x.lrz", 0);
        assert!(case.read("y") == content);
    }
    let text = messages(&run(&case, "lrzip -t --encrypt=wrong x.lrz", 1));
    assert!(text.contains("password is wrong"), "{text}");
    let line = "-tq x.lrz";
    let by_stdin = case.pipe(case.path("bin").join("lrzip"), line, b"secret\n");
    expect(by_stdin, 0, line);
    let by_stdin = case.pipe(case.path("bin").join("lrzip"), line, b"");
    expect(by_stdin, 1, line);
    run(&case, "lrzip --encrypt= -o z x", 1);
    let twice = "-e -Q -n -o z.lrz x";
    let differ = case.pipe(case.path("bin").join("lrzip"), twice, b"secret\nother\n");
    expect(differ, 1, twice);
    assert!(!case.exists("z.lrz"));
    // Each key takes a second.
    if scaled(1) > 1 {
        run(&case, "lrzip -d -o - --encrypt=secret x.lrz", 0);
        let same = case.pipe(case.path("bin").join("lrzip"), twice, b"secret\nsecret\n");
        expect(same, 0, twice);
        assert!(case.exists("z.lrz"));
    }
}

#[test]
fn incomplete_output_is_kept_only_on_request() {
    let (case, content) = case();
    run(&case, "lrzip -Q -n x", 0);
    let mut bad = case.read("x.lrz");
    *bad.last_mut().unwrap() ^= 1;
    case.write("bad.lrz", &bad);
    let text = messages(&run(&case, "lrzip -d bad.lrz", 1));
    assert!(text.contains("MD5"), "{text}");
    assert!(!case.exists("bad"));
    run(&case, "lrzip -d -K bad.lrz", 1);
    assert!(case.read("bad") == content, "the content is complete");
    let cut = bad.len() / 2;
    case.write("cut.lrz", &bad[..cut]);
    run(&case, "lrzip -dK cut.lrz", 1);
    let partial = case.read("cut");
    assert!(partial.len() < content.len() && content.starts_with(&partial));
}

#[test]
fn directories_round_trip() {
    let (case, content) = case();
    case.write("t/a", b"first");
    case.write("t/s/b", &content);
    symlink("s/b", case.path("t/link")).unwrap();
    run(&case, "lrztar -Q -n t", 0);
    run(&case, "lrztar -Q -n t", 1);
    fs::create_dir(case.path("out")).unwrap();
    run(&case, "lrzuntar -Q -O out t.tar.lrz", 0);
    assert!(case.read("out/t/s/b") == content);
    assert_eq!(
        fs::read_link(case.path("out/t/link")).unwrap(),
        PathBuf::from("s/b")
    );
    run(&case, "lrzuntar -Q -O out t.tar.lrz", 1);
    run(&case, "lrztar -d -Q -f -O out t.tar.lrz", 0);
    run(&case, "lrzuntar -Q -O nowhere t.tar.lrz", 1);
    run(&case, "lrztar -Q -o - t", 0);
    run(&case, "lrztar", 1);
}
