//! Nothing is overwritten, nothing is left behind, exit codes are as documented.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use refrain_testkit::chromium::open_page;
use serde_json::Value;

use crate::support::{Case, REFRAIN, expect, incompressible, json, mixture};

#[test]
fn existing_files_are_not_overwritten_without_force() {
    let case = Case::new();
    case.write("x", b"new");
    case.write("x.rfn", b"precious");
    let message = case.fails("compress x", 6);
    assert_eq!(
        message,
        "refrain: x.rfn: already exists (--force overwrites it)\n"
    );
    assert_eq!(case.read("x.rfn"), b"precious");
    case.ok("compress x --force");
    case.write("x", b"precious");
    case.fails("decompress x.rfn", 6);
    assert_eq!(case.read("x"), b"precious");
    case.ok("decompress x.rfn -f");
    assert_eq!(case.read("x"), b"new");
    assert!(
        case.fails("compress x -o x --force", 1)
            .contains("both input and output")
    );
    assert_eq!(case.read("x"), b"new");
}

#[test]
fn sources_are_removed_only_with_rm_and_only_after_success() {
    let case = Case::new();
    case.write("x", b"data");
    case.write("x.rfn", b"exists");
    case.fails("compress --rm x", 6);
    assert!(case.exists("x"));
    case.ok("compress --rm --sync -f x");
    assert!(!case.exists("x"));
    case.fails("compress --rm x.rfn -o -", 1);
    assert!(
        case.exists("x.rfn"),
        "the reader of a pipe may have lost the data"
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
        "compress -10 x",
        "compress -19 x",
        "compress --memory x x",
        "compress --frobnicate x",
        "cat",
        "info",
        "list",
        "cat x --range 5",
        "cat x --range 9..5",
        "compress --threads -1 x",
        "compress x x -o directory/",
    ];
    for line in lines {
        let message = case.fails(line, 1);
        assert!(!message.is_empty(), "{line:?} fails without a message");
    }
    for line in ["--help", "--version", "compress --help", "help cat"] {
        assert!(!case.ok(line).stdout.is_empty(), "{line}");
    }
    assert_eq!(case.names(), ["x"]);
}

#[test]
fn missing_files_are_exit_6_and_do_not_stop_the_others() {
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
        let message = case.fails(line, 6);
        assert!(message.contains("missing"), "{line}: {message}");
    }
    let message = case.fails("compress missing x", 4);
    assert!(message.contains("missing"), "{message}");
    assert!(case.exists("x.rfn"), "one failure does not stop the others");
}

#[test]
fn quiet_prints_nothing_and_json_prints_one_document() {
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
    for line in [
        "compress -f -vv --json x",
        "test -vv --json x.rfn",
        "info -vv --json x.rfn",
    ] {
        let document: Value = serde_json::from_slice(&case.ok(line).stdout).unwrap();
        let blocks = document["results"][0]["blocks"].as_array().unwrap();
        let codec = blocks[0]["codec"].as_str();
        assert!(codec.is_some_and(|codec| !codec.is_empty()), "{line}");
    }
    let output = case.ok("decompress --json x.rfn -o -");
    assert!(output.stdout == case.read("x"));
    let document: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(document["exit"], 0);
    let output = expect(case.run("test --json x.rfn missing"), 4, "test");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["exit"], 4);
    assert_eq!(document["results"][1]["error"]["kind"], "io");
    assert_eq!(document["results"][1]["error"]["file"], "missing");
}

#[test]
fn a_reader_that_closes_the_output_is_no_failure() {
    let case = Case::new();
    case.write("x", &incompressible(1, 8 << 20));
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
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.is_empty(), "{line}: {message}");
    }
}

/// Sends a signal to a running command, and expects it to end with 128 plus the signal number.
fn interrupt(mut child: std::process::Child, signal: &str, what: &str) {
    std::thread::sleep(Duration::from_millis(300));
    let kill = Command::new("kill")
        .args(["-s", signal, &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let sent = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if sent.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("{what}: {signal} did not end the run");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let exit = match signal {
        "HUP" => 129,
        "INT" => 130,
        "TERM" => 143,
        other => panic!("the exit code for {other} is not listed here"),
    };
    expect(child.wait_with_output().unwrap(), exit, what);
}

#[test]
fn a_signal_ends_the_run_and_leaves_nothing() {
    for signal in ["HUP", "INT", "TERM"] {
        let case = Case::new();
        // An endless input: the run cannot end before the signal.
        let line = "compress /dev/zero -o out.rfn";
        let mut command = case.command(REFRAIN, line);
        interrupt(
            command.stderr(Stdio::piped()).spawn().unwrap(),
            signal,
            line,
        );
        assert!(case.names().is_empty(), "left behind: {:?}", case.names());
    }
}

/// Neither a block that takes a minute nor a named pipe without a writer delays the reaction to a
/// signal.
#[test]
fn a_signal_does_not_wait_for_long_work() {
    let case = Case::new();
    case.write("x", &mixture(32 << 20));
    let mkfifo = Command::new("mkfifo").arg(case.path("pipe")).status();
    assert!(mkfifo.unwrap().success());
    for line in ["compress -9 x", "compress pipe", "test pipe", "hash pipe"] {
        let mut command = case.command(REFRAIN, line);
        interrupt(
            command.stderr(Stdio::piped()).spawn().unwrap(),
            "TERM",
            line,
        );
        assert_eq!(case.names(), ["pipe", "x"], "{line}");
    }
}

/// A pipe without data and without an end must not delay the reaction to a signal.
#[test]
fn a_signal_ends_a_run_that_waits_for_a_silent_pipe() {
    let case = Case::new();
    for line in ["compress - -o out", "decompress - -o out", "test -"] {
        let mut command = case.command(REFRAIN, line);
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let silent = child.stdin.take();
        interrupt(child, "INT", line);
        assert!(case.names().is_empty(), "left behind: {:?}", case.names());
        drop(silent);
    }
}

/// Even `--force` does not replace the archive that is being read.
#[test]
fn an_archive_is_not_replaced_by_its_content() {
    let case = Case::new();
    case.write("x", b"content");
    case.write("y.rfn", b"will be a member called like its archive");
    case.ok("compress -q x");
    std::os::unix::fs::symlink("x.rfn", case.path("link")).unwrap();
    for output in ["x.rfn", "link", "./x.rfn"] {
        let message = case.fails(&format!("decompress --force x.rfn -o {output}"), 1);
        assert!(message.contains("is both input and output"), "{message}");
    }
    case.ok("compress -q x y.rfn -o z.rfn");
    std::fs::rename(case.path("z.rfn"), case.path("y.rfn")).unwrap();
    let archive = case.read("y.rfn");
    case.fails("decompress --force y.rfn -o .", 1);
    case.fails("decompress --force y.rfn", 1);
    assert!(case.read("y.rfn") == archive);
}

/// Another user may have created the link.
#[test]
fn a_dangling_link_is_not_written_through() {
    let case = Case::new();
    case.write("x", b"content");
    std::os::unix::fs::symlink("victim", case.path("x.rfn")).unwrap();
    let message = case.fails("compress x", 6);
    assert!(message.contains("already exists"), "{message}");
    assert!(!case.exists("victim"));
    case.ok("compress -q --force x");
    assert!(case.exists("victim"));
}

#[test]
fn joined_archives_are_read_and_truncated_ones_named_as_such() {
    let case = Case::new();
    case.write("x", &incompressible(3, 100_000));
    case.ok("compress -q x");
    let archive = case.read("x.rfn");
    case.write("joined", &archive.repeat(2));
    case.write("cut", &archive[..50_000]);
    case.ok("test joined");
    let listed = case.ok("list joined").stdout;
    assert_eq!(listed, b"x\nx\n");
    assert!(
        case.fails("list cut", 2)
            .contains("archive is cut off at 50.0 kB; --scan reads what is left")
    );
}

#[test]
fn a_full_disk_is_an_error_and_no_file_is_lost() {
    let case = Case::new();
    case.write("x", &incompressible(1, 1 << 20));
    case.ok("compress -q x");
    for line in [
        "compress x -o /dev/full",
        "decompress -f x.rfn -o /dev/full",
    ] {
        let message = case.fails(line, 6);
        assert!(message.contains("/dev/full"), "{message}");
    }
    for line in [
        "cat x.rfn",
        "info x.rfn",
        "list x.rfn",
        "test --json x.rfn",
        "--help",
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let output = case.command(REFRAIN, line).stdout(full.unwrap()).output();
        expect(output.unwrap(), 6, line);
    }
    assert_eq!(case.names(), ["x", "x.rfn"]);
}

#[test]
fn manuals_and_completions_are_generated() {
    let case = Case::new();
    case.ok("generate man manual");
    case.ok("generate completions complete");
    for page in ["refrain", "refrain-compress", "refrain-hash", "rfn"] {
        let text = String::from_utf8(case.read(&format!("manual/{page}.1"))).unwrap();
        for section in ["EXIT STATUS", "EXAMPLES", "SEE ALSO"] {
            assert!(text.contains(section), "{page}.1 has no {section}");
        }
    }
    assert!(case.exists("complete/refrain.bash") && case.exists("complete/_rfn"));
}

#[test]
fn special_outputs_are_written_not_replaced() {
    let case = Case::new();
    case.write("x", &incompressible(4, 10_000));
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

#[test]
fn a_profile_can_be_written_to_a_file() {
    let case = Case::new();
    case.write("x", &mixture(3_000_000));
    let line = "compress x --profile=p.json --profile-locks";
    let messages = String::from_utf8(case.ok(line).stderr).unwrap();
    assert!(!messages.contains("whole program"), "{messages}");
    let profile = json(&fs::read(case.path("p.json")).unwrap());
    let stages = profile["stages"].as_array().unwrap();
    let encode = stages.iter().find(|row| row["stage"] == "encode");
    assert!(encode.unwrap()["bytes"].as_u64() > Some(0), "{profile}");
    let locks = profile["locks"].as_array().unwrap();
    let sum = |name: &str| -> u64 { locks.iter().map(|row| row[name].as_u64().unwrap()).sum() };
    assert!(sum("acquired") > 10 && sum("hold_ns") > 0, "{profile}");
    assert!(sum("contended") <= sum("acquired"), "{profile}");
    // An earlier one is replaced, and a failure to write is one of the run.
    case.ok("test x.rfn --profile=p.json");
    let profile = json(&fs::read(case.path("p.json")).unwrap());
    for lock in profile["locks"].as_array().unwrap() {
        assert_eq!(lock["acquired"], lock["contended"], "{profile}");
    }
    let message = case.fails("test x.rfn --profile=missing/p.json", 4);
    assert!(message.contains("missing/p.json"), "{message}");
    case.fails("test x.rfn --profile-locks", 1);
}

#[test]
fn a_trace_says_what_every_thread_did() {
    let case = Case::new();
    case.write("x", &mixture(3_000_000));
    let output = case.ok("compress x --trace t.json --threads 2");
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("2 workers over "), "{words}");
    let trace = json(&fs::read(case.path("t.json")).unwrap());
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    for stage in ["scan", "match", "encode", "write"] {
        assert!(named(stage) > 0, "{stage}: {trace}");
    }
    let threads = events.iter().filter(|event| event["ph"] == "M");
    assert!(threads.count() >= 2, "{trace}");
    let of = |event: &Value, name: &str| event["args"][name].as_u64().unwrap_or(0);
    let read = events.iter().filter(|event| event["name"] == "read disk");
    let read_bytes = read.map(|event| of(event, "bytes")).sum::<u64>();
    assert!(read_bytes >= 3_000_000, "{read_bytes}");
    let ends = events.iter().filter(|event| event["cat"] == "run");
    assert!(ends.clone().count() > 0 && ends.clone().all(|event| event["args"]["end"].is_string()));
    // Every arrow has two ends.
    let arrows = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert!(arrows("s") > 0 && arrows("s") == arrows("f"));
    assert!(named("jobs queued") > 0);
    let message = case.fails("compress x -o other.rfn --trace t.txt", 1);
    assert!(message.contains(".json"), "{message}");
    assert!(!case.path("other.rfn").exists(), "before anything runs");
    let message = case.fails("test x.rfn --trace missing/t.json", 4);
    assert!(message.contains("missing/t.json"), "{message}");
}

#[test]
fn the_page_of_a_trace_shows_the_run() {
    let case = Case::new();
    case.write("x", &mixture(3_000_000));
    let output = case.ok("compress x --trace <t>.html --threads 2");
    let words = String::from_utf8(output.stderr).unwrap();
    let words = words
        .lines()
        .last()
        .unwrap()
        .trim_start_matches("refrain: ");
    let Some(opened) = open_page(&case.path("<t>.html"), (400, 800), None) else {
        eprintln!("NOT TESTED: there is no Chromium");
        return;
    };
    assert_eq!(opened.console, Vec::<String>::new());
    let has = |text: &str| assert!(opened.elements.contains(text), "{text}");
    has("Timeline &lt;t&gt;");
    // The page tells the same in the same words.
    let verdict = words.split("; try ").next().unwrap();
    has(&format!("<p id=\"verdict\">{verdict}."));
    // The table of what the visible part took has the stages, and so has the legend.
    for stage in ["scan", "encode", "match", "read disk"] {
        has(&format!("<td>{stage}</td>"));
    }
    has("a flow runs, outside of stages");
}

#[test]
fn every_verb_reports_its_stages_with_profile() {
    let case = Case::new();
    let content = mixture(3 << 20);
    case.write("x", &content);
    let runs: [(&str, &[&str]); 8] = [
        ("compress x", &["scan", "match", "encode", "write"]),
        ("test x.rfn", &["decode", "assemble"]),
        ("decompress -f x.rfn", &["decode", "deliver"]),
        ("cat x.rfn", &["read", "decode"]),
        ("hash x", &["hash"]),
        ("info x.rfn", &[]),
        ("list x.rfn", &[]),
        ("generate completions .", &[]),
    ];
    for (line, stages) in runs {
        let output = case.ok(&format!("{line} --profile"));
        let profile = String::from_utf8(output.stderr).unwrap();
        let lines = profile
            .lines()
            .skip_while(|line| !line.starts_with("stage "));
        let lines: Vec<&str> = lines.collect();
        assert!(
            lines.last().unwrap().starts_with("whole program "),
            "{line}: {profile}"
        );
        for stage in stages {
            let named = lines
                .iter()
                .filter(|line| line.split("  ").next() == Some(stage));
            assert_eq!(named.count(), 1, "{line}, {stage}: {profile}");
        }
        if line == "cat x.rfn" {
            assert!(output.stdout == content);
        }
    }
    let profile = String::from_utf8(case.ok("--profile test x.rfn").stderr).unwrap();
    assert!(profile.contains("whole program "), "before the verb too");
    let quiet = String::from_utf8(case.ok("test x.rfn").stderr).unwrap();
    assert!(!quiet.contains("whole program "));
}

/// Scheduling policies of the threads of a process (`proc(5)`: the 41st number of `stat`); 5 is
/// `SCHED_IDLE`.
#[cfg(target_os = "linux")]
fn policies(process: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let policy = |thread: std::io::Result<std::fs::DirEntry>| {
        let stat = std::fs::read_to_string(thread.ok()?.path().join("stat")).ok()?;
        // The second is the name in brackets, which may hold anything.
        let (_, after_name) = stat.rsplit_once(')')?;
        Some(after_name.split_whitespace().nth(38)?.to_owned())
    };
    threads.filter_map(policy).collect()
}

#[test]
fn archives_do_not_depend_on_the_latency_class() {
    let case = Case::new();
    case.write("x", &mixture(3 << 20));
    case.ok("compress x -o usual");
    for class in 0..=3 {
        case.ok(&format!("compress x -f -o a --latency {class}"));
        assert!(case.read("a") == case.read("usual"), "class {class}");
        case.ok(&format!("--latency {class} test -q a"));
    }
    case.fails("compress x -o b --latency 4", 1);
    case.fails("compress x -o b --latency 2 --background", 1);
}

#[cfg(target_os = "linux")]
#[test]
fn in_the_background_every_thread_is_of_the_idle_class() {
    use std::io::Write;
    let case = Case::new();
    let content = mixture(3 << 20);
    for (line, expected) in [
        ("compress - -o out --background -T 2", "5"),
        ("compress - -o out -T 2 -f", "0"),
    ] {
        let mut command = case.command(REFRAIN, line);
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // Its threads work on what was read so far; the end of the input follows later.
        pipe.write_all(&content).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while policies(child.id()).len() < 3 {
            assert!(
                Instant::now() < deadline,
                "{line}: its threads did not start"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let policies = policies(child.id());
        assert!(
            policies.iter().all(|policy| policy == expected),
            "{line}: {policies:?}"
        );
        drop(pipe);
        expect(child.wait_with_output().unwrap(), 0, line);
    }
    case.ok("--background decompress out -o copy");
    assert!(case.read("copy") == content);
}
