//! `refrain lab`: what it prints and writes, what it refuses, and the profile that later runs use.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Case, REFRAIN, expect};

/// A command whose configuration is in the directory of the case.
fn configured(case: &Case, line: &str) -> Command {
    let mut command = case.command(REFRAIN, line);
    command.env("XDG_CONFIG_HOME", case.path("config"));
    command
}

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn experiments_are_listed_and_printed_as_tables_and_json() {
    let case = Case::new();
    let listed = stdout(&case.ok("lab --list"));
    for name in ["cache", "pages", "ring", "pipe", "atomicity"] {
        assert!(
            listed.lines().any(|line| line.starts_with(name)),
            "{listed}"
        );
    }
    let text = stdout(&case.ok("lab matrix --quick"));
    assert!(
        text.contains("per number") && text.contains("times as long as its rows"),
        "{text}"
    );
    let json = stdout(&case.ok("lab matrix timers --quick --json"));
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["quick"], true);
    let names: Vec<&Value> = document["experiments"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 2);
    assert_eq!(names[0]["name"], "matrix");
    let rows = names[0]["sections"][0]["rows"].as_array().unwrap();
    assert!(
        rows.len() == 8 && rows[0][2].as_f64().unwrap() > 0.0,
        "{rows:?}"
    );
}

#[test]
fn a_page_is_written_once_and_only_as_html() {
    let case = Case::new();
    case.ok("lab matrix --quick -q -o page.html");
    let page = String::from_utf8(case.read("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("id=\"matrix\""));
    let refused = expect(case.run("lab matrix -o page.html"), 6, "exists");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("already exists"));
    assert!(
        refused.stdout.is_empty(),
        "refused before anything is measured"
    );
    case.ok("lab matrix --quick -q -f -o page.html");
    expect(case.run("lab matrix -o page.txt"), 1, "not html");
    expect(case.run("lab cash"), 1, "no such experiment");
    expect(case.run("lab cache --memory 1M"), 1, "too little memory");
    assert_eq!(case.names(), ["page.html"]);
}

#[test]
fn a_directory_of_no_use_is_an_error_with_its_name() {
    let case = Case::new();
    for directory in ["missing", "/proc/self"] {
        let line = format!("lab atomicity --quick --directory {directory}");
        let failed = expect(case.run(&line), 6, &line);
        let text = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert!(text.contains(directory), "{text}");
    }
}

#[test]
fn a_signal_ends_it_and_nothing_is_left() {
    let case = Case::new();
    fs::create_dir(case.path("files")).unwrap();
    let child = case
        .command(REFRAIN, "lab atomicity disk --directory files")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(800));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(fs::read_dir(case.path("files")).unwrap().count(), 0);
}

/// The capacity of the pipe that is the standard output of `compress`, after its run, and what it
/// wrote on standard error.
#[cfg(target_os = "linux")]
fn pipe_bytes_of_a_run(case: &Case) -> (usize, String) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let output = configured(case, "compress -q -o - input")
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let mut archive = Vec::new();
    reader.read_to_end(&mut archive).unwrap();
    assert!(!archive.is_empty());
    let bytes = rustix::pipe::fcntl_getpipe_size(&reader).unwrap();
    (bytes, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
#[cfg(target_os = "linux")]
fn later_runs_use_the_profile_of_this_machine_alone() {
    let case = Case::new();
    case.write("input", b"some content");
    assert_eq!(pipe_bytes_of_a_run(&case).0, 1 << 20);
    let without = configured(&case, "lab --compare").output().unwrap();
    let refused = expect(without, 1, "no profile");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--save"));

    let saved = configured(&case, "lab pipe --quick --save --compare")
        .output()
        .unwrap();
    let text = stdout(&expect(saved, 0, "save"));
    assert!(
        text.contains("compare: ") && text.contains("saved as"),
        "{text}"
    );
    let path = "config/refrain/machine.json";
    let mut profile: Value = serde_json::from_slice(&case.read(path)).unwrap();
    assert!(
        profile["pipe_bytes"].as_u64().unwrap() >= 65_536,
        "{profile}"
    );

    let mut put = |name: &str, value: Value| {
        profile[name] = value;
        case.write(path, profile.to_string().as_bytes());
    };
    put("pipe_bytes", json!(256 << 10));
    put("huge_pages", json!(false));
    assert_eq!(pipe_bytes_of_a_run(&case), (256 << 10, String::new()));
    put("model", json!("another machine"));
    assert_eq!(pipe_bytes_of_a_run(&case), (1 << 20, String::new()));
    let other = configured(&case, "lab --compare").output().unwrap();
    let refused = expect(other, 1, "of another machine");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("another machine"));
    case.write(path, b"{ broken");
    let (bytes, said) = pipe_bytes_of_a_run(&case);
    assert_eq!(bytes, 1 << 20);
    assert!(
        said.contains("machine.json") && said.contains("defaults"),
        "{said}"
    );
}
