//! Nothing overwritten, nothing left behind, predictable endings.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Case, REFRAIN, expect, mixture, noise};

#[test]
fn what_exists_is_not_overwritten_without_force() {
    let case = Case::new();
    case.write("x", b"new");
    case.write("x.rfn", b"precious");
    let message = case.fails("compress x", 4);
    assert_eq!(
        message,
        "refrain: x.rfn: exists already (--force overwrites)\n"
    );
    assert_eq!(case.read("x.rfn"), b"precious");
    case.ok("compress x --force");
    case.write("x", b"precious");
    case.fails("decompress x.rfn", 4);
    assert_eq!(case.read("x"), b"precious");
    case.ok("decompress x.rfn -f");
    assert_eq!(case.read("x"), b"new");
    assert!(
        case.fails("compress x -o x --force", 1)
            .contains("input and output")
    );
    assert_eq!(case.read("x"), b"new");
}

#[test]
fn sources_go_only_with_rm_and_only_when_all_went_well() {
    let case = Case::new();
    case.write("x", b"data");
    case.write("x.rfn", b"in the way");
    case.fails("compress --rm x", 4);
    assert!(case.exists("x"));
    case.ok("compress --rm -f x");
    assert!(!case.exists("x"));
    case.ok("compress --rm x.rfn -o -");
    assert!(
        case.exists("x.rfn"),
        "what goes to a pipe may be lost there"
    );
    case.ok("decompress --rm x.rfn");
    assert!(!case.exists("x.rfn"));
    std::os::unix::fs::symlink("x", case.path("link")).unwrap();
    case.ok("compress --rm link");
    assert!(
        case.exists("link") && case.exists("x"),
        "links are not removed"
    );
}

#[test]
fn usage_errors_are_exit_1() {
    let case = Case::new();
    case.write("x", b"data");
    let lines = [
        "",
        "frobnicate",
        "compress --level 0 x",
        "compress --level 10 x",
        "compress --memory x x",
        "compress --frobnicate x",
        "cat",
        "info",
        "list",
        "cat x --range 5",
        "cat x --range 9..5",
        "compress --threads -1 x",
    ];
    for line in lines {
        let message = case.fails(line, 1);
        assert!(!message.is_empty(), "{line:?} fails without a word");
    }
    for line in ["--help", "--version", "compress --help", "help cat"] {
        assert!(!case.ok(line).stdout.is_empty(), "{line}");
    }
    assert_eq!(case.names(), ["x"]);
}

#[test]
fn missing_files_are_exit_4_and_others_go_on() {
    let case = Case::new();
    case.write("x", b"data");
    for line in [
        "compress missing",
        "decompress missing.rfn",
        "test missing.rfn",
        "info missing.rfn",
        "list missing.rfn",
        "cat missing.rfn",
    ] {
        let message = case.fails(line, 4);
        assert!(message.contains("missing"), "{line}: {message}");
    }
    let message = case.fails("compress missing x", 4);
    assert!(message.contains("missing"), "{message}");
    assert!(
        case.exists("x.rfn"),
        "one failure does not keep the others from being done"
    );
}

#[test]
fn quiet_is_quiet_and_json_is_json() {
    let case = Case::new();
    case.write("x", &mixture(100_000));
    let output = case.ok("compress -q x");
    assert!(output.stderr.is_empty() && output.stdout.is_empty());
    let output = case.ok("compress -f --json x");
    assert!(output.stderr.is_empty());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["verb"], "compress");
    let archive_bytes = case.read("x.rfn").len();
    assert_eq!(document["results"][0]["archive_bytes"], archive_bytes);
    assert_eq!(
        document["results"][0]["content_bytes"],
        case.read("x").len()
    );
    let output = case.ok("decompress --json x.rfn -o -");
    assert!(output.stdout == case.read("x"));
    let document: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(document["exit"], 0);
    let output = expect(case.run("test --json x.rfn missing"), 4, "test");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["exit"], 4);
    assert_eq!(document["results"][1]["error"]["kind"], "io");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let case = Case::new();
    case.write("x", &noise(1, 8 << 20));
    case.ok("compress -q x");
    for line in ["decompress x.rfn -o -", "compress x -o -", "cat x.rfn"] {
        let mut command = case.command(REFRAIN, line);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut few = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut few).unwrap();
        let output = expect(child.wait_with_output().unwrap(), 0, line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.is_empty(), "{line}: {said}");
    }
}

#[test]
fn a_signal_ends_the_run_and_leaves_nothing() {
    for signal in ["INT", "TERM"] {
        let case = Case::new();
        // Zeros without end: the run cannot be over before the signal comes.
        let mut command = case.command(REFRAIN, "compress /dev/zero -o out.rfn");
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let kill = Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        let asked = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if asked.elapsed() > Duration::from_secs(20) {
                child.kill().unwrap();
                panic!("{signal} did not end the run");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        expect(child.wait_with_output().unwrap(), 130, signal);
        assert!(case.names().is_empty(), "left behind: {:?}", case.names());
    }
}

#[test]
fn manuals_and_completions_are_generated() {
    let case = Case::new();
    case.ok("generate man manual");
    case.ok("generate completions complete");
    assert!(case.exists("manual/refrain-compress.1") && case.exists("manual/rfn.1"));
    assert!(case.exists("complete/refrain.bash") && case.exists("complete/_rfn"));
}

#[test]
fn special_outputs_are_written_not_replaced() {
    let case = Case::new();
    case.write("x", &noise(4, 10_000));
    case.ok("compress x -o /dev/null --force");
    use std::os::unix::fs::FileTypeExt;
    assert!(
        std::fs::metadata("/dev/null")
            .unwrap()
            .file_type()
            .is_char_device()
    );
    case.ok("compress x -o /dev/null");
}
