//! What the process inherits: closed standard streams, streams in non-blocking mode, ignored
//! signals, limits of the shell.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Case, REFRAIN, expect, incompressible, mixture};

/// Runs `refrain` with the arguments in `line` after `before`, in a shell of the test directory.
fn in_shell(case: &Case, before: &str, program: &str, line: &str) -> Command {
    let mut command = case.command("sh", "-c");
    command.arg(format!("{before} exec {program} {line}"));
    command
}

pub fn shell(case: &Case, before: &str, line: &str) -> Output {
    in_shell(case, before, REFRAIN, line).output().unwrap()
}

// ---------------------------------------------------------------------------- closed streams

#[test]
fn a_closed_stream_is_an_error_for_the_verbs_that_need_it() {
    let case = Case::new();
    case.write("f", &mixture(20_000));
    case.write("tree/a", b"a");
    case.ok("compress -q f -o f.rfn");
    case.write("sums", &case.ok("hash f").stdout);
    for (line, closed, exit) in [
        ("compress -q - -o in.rfn", "0<&-", 6),
        ("compress -q -o in.rfn", "0<&-", 6),
        ("decompress -q - -o out", "0<&-", 6),
        ("decompress -q /dev/stdin -o out", "0<&-", 6),
        ("compress -q /dev/stdin -o in.rfn", "0<&-", 6),
        ("test -q -", "0<&-", 6),
        ("list -", "0<&-", 6),
        ("compress -q tree --exclude-from - -o in.rfn", "0<&-", 6),
        ("hash -", "0<&-", 1),
        ("hash --check -", "0<&-", 1),
        ("cat f.rfn", "1>&-", 6),
        ("list f.rfn", "1>&-", 6),
        ("info f.rfn", "1>&-", 6),
        ("info --json f.rfn", "1>&-", 6),
        ("test --json f.rfn", "1>&-", 6),
        ("compress -q f -o -", "1>&-", 6),
        ("decompress -q f.rfn -o -", "1>&-", 6),
        ("hash f", "1>&-", 1),
        ("--help", "1>&-", 6),
        ("--version", "1>&-", 6),
    ] {
        let output = expect(shell(&case, "", &format!("{line} {closed}")), exit, line);
        assert!(
            !output.stderr.is_empty() || line.starts_with("--"),
            "{line}"
        );
        assert!(!case.exists("in.rfn") && !case.exists("out"), "{line}");
    }
    for (line, closed) in [
        ("compress -q f -o in.rfn", "0<&- 1>&- 2>&-"),
        ("test f.rfn", "0<&- 1>&- 2>&-"),
        ("decompress f.rfn -o out", "0<&- 2>&-"),
        ("cat f.rfn", "0<&- 2>&-"),
    ] {
        expect(shell(&case, "", &format!("{line} {closed}")), 0, line);
    }
    assert!(case.read("out") == case.read("f"));
    // Anything passed on purpose is used unchanged.
    let output = shell(&case, "", "compress -q - -o empty.rfn 0<>/dev/null");
    expect(output, 0, "an empty input");
}

#[test]
#[cfg(feature = "lrzip")]
fn closed_streams_are_errors_for_lrzip_too() {
    let case = Case::new();
    case.write("f", &mixture(20_000));
    let lrzip = case.program_link("lrzip");
    expect(case.command(&lrzip, "-q f").output().unwrap(), 0, "lrzip");
    for (line, closed) in [
        ("-q -o in.lrz", "0<&-"),
        ("-qd -o out", "0<&-"),
        ("-q -o - f", "1>&-"),
        ("-qd -o - f.lrz", "1>&-"),
    ] {
        let line = format!("{line} {closed}");
        let output = in_shell(&case, "", "bin/lrzip", &line).output().unwrap();
        assert!(!output.status.success(), "{line}");
        assert!(!case.exists("in.lrz") && !case.exists("out"), "{line}");
    }
}

// ---------------------------------------------------------------------------- non-blocking mode

fn set_non_blocking(descriptor: impl AsFd) {
    let flags = fcntl_getfl(&descriptor).unwrap();
    fcntl_setfl(descriptor, flags | OFlags::NONBLOCK).unwrap();
}

/// A full pipe whose writing end is in non-blocking mode, with as much in it as the program would
/// make room for.
fn full_pipe() -> (File, File, usize) {
    let (reader, writer) = std::io::pipe().unwrap();
    let (reader, mut writer) = (
        File::from(OwnedFd::from(reader)),
        File::from(OwnedFd::from(writer)),
    );
    let _ = rustix::pipe::fcntl_setpipe_size(&writer, 1 << 20);
    set_non_blocking(&writer);
    let mut count = 0;
    while let Ok(more) = writer.write(&[0; 4096]) {
        count += more;
    }
    (reader, writer, count)
}

/// Waits until the process waits for something, or a second.
fn wait_until_asleep(child: &Child) {
    let path = format!("/proc/{}/stat", child.id());
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(10));
        let state = std::fs::read_to_string(&path).unwrap_or_default();
        if state.contains(") S ") {
            break;
        }
    }
}

#[test]
fn a_full_pipe_in_non_blocking_mode_is_waited_for() {
    let case = Case::new();
    case.write("f", &incompressible(1, 300_000));
    case.ok("compress -q f -o f.rfn");
    let archive = case.read("f.rfn");
    let list = case.ok("list f.rfn").stdout;
    let help = case.ok("--help").stdout;
    for (line, expected) in [
        ("cat f.rfn", case.read("f")),
        ("decompress -q f.rfn -o -", case.read("f")),
        ("compress -q f -o -", archive),
        ("list f.rfn", list),
        ("--help", help),
        ("hash f", case.ok("hash f").stdout),
    ] {
        let (mut reader, writer, before) = full_pipe();
        let mut command = case.command(REFRAIN, line);
        command.stdout(writer.try_clone().unwrap());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        drop(command);
        wait_until_asleep(&child);
        let flags = fcntl_getfl(&writer).unwrap();
        assert!(flags.contains(OFlags::NONBLOCK), "{line} changed the mode");
        drop(writer);
        let mut bytes = vec![];
        reader.read_to_end(&mut bytes).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{line}");
        assert!(bytes[before..] == expected, "{line}: {}", bytes.len());
    }
}

#[test]
fn a_message_waits_for_room_on_standard_error() {
    let case = Case::new();
    let (mut reader, writer, before) = full_pipe();
    let mut command = case.command(REFRAIN, "test missing.rfn");
    let mut child = command.stderr(writer).spawn().unwrap();
    drop(command);
    wait_until_asleep(&child);
    let mut bytes = vec![];
    reader.read_to_end(&mut bytes).unwrap();
    child.wait().unwrap();
    let text = String::from_utf8_lossy(&bytes[before..]);
    assert!(text.contains("missing.rfn"), "{text:?}");
}

#[test]
fn an_empty_pipe_in_non_blocking_mode_is_no_end_of_the_input() {
    let case = Case::new();
    let content = mixture(100_000);
    case.write("f", &content);
    case.write("tree/a", b"a");
    let archive = {
        case.ok("compress -q f -o f.rfn");
        case.read("f.rfn")
    };
    let sums = case.ok("hash f").stdout;
    let patterns = b"*.none\n".to_vec();
    for (line, input) in [
        ("compress -q - -o in.rfn", content.clone()),
        ("compress -q f - -o two.rfn", content.clone()),
        ("decompress -q - -o out", archive.clone()),
        ("test -q -", archive),
        ("hash -", content),
        ("hash --check -", sums),
        (
            "compress -q tree --exclude-from - -o patterns.rfn",
            patterns,
        ),
    ] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        set_non_blocking(&reader);
        let mut command = case.command(REFRAIN, line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.stdin(reader).spawn().unwrap();
        drop(command);
        wait_until_asleep(&child);
        let (first, rest) = input.split_at(input.len() / 2);
        for part in [first, rest] {
            // If it has ended, its exit code says so.
            let _ = writer.write_all(part);
            wait_until_asleep(&child);
        }
        drop(writer);
        expect(child.wait_with_output().unwrap(), 0, line);
    }
    assert!(case.read("out") == case.read("f"));
}

// ---------------------------------------------------------------------------- signals

/// Whether the process ignores all `signals`, as the kernel says.
fn ignores(child: &Child, signals: &[Signal]) -> bool {
    let path = format!("/proc/{}/status", child.id());
    let status = std::fs::read_to_string(path).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    (signals.iter()).all(|signal| mask & (1 << (signal.as_raw() - 1)) != 0)
}

#[test]
fn ignored_signals_stay_ignored() {
    let case = Case::new();
    let ignored = [Signal::HUP, Signal::INT];
    let mut programs = vec![(REFRAIN.to_owned(), "compress -q - -o one.rfn")];
    if cfg!(feature = "lrzip") {
        case.program_link("lrzip");
        programs.push(("bin/lrzip".to_owned(), "-q -o two.lrz"));
    }
    for (program, line) in programs {
        let mut command = in_shell(&case, "trap '' HUP INT;", &program, line);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // More than a pipe holds: it reads, so it has its handlers.
        stdin.write_all(&incompressible(1, 3 << 20)).unwrap();
        assert!(ignores(&child, &ignored), "{program}");
        for signal in ignored {
            kill_process(Pid::from_child(&child), signal).unwrap();
        }
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{program}");
    }
    assert!(case.exists("one.rfn"));
}

#[test]
fn a_service_ignores_what_it_was_told_to_ignore_and_ends_by_sigterm() {
    let case = Case::new();
    case.write("f", &mixture(20_000));
    case.ok("compress -q f -o f.rfn");
    let before = "trap '' HUP INT;";
    let mut command = in_shell(&case, before, REFRAIN, "serve f.rfn --nbd unix:nbd.socket");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    assert!(ignores(&child, &[Signal::HUP, Signal::INT]));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
}

#[test]
fn the_end_of_a_child_is_known_where_sigchld_is_ignored() {
    let case = Case::new();
    let line = "serve --daemon missing.rfn --nbd unix:nbd.socket";
    let expected = case.run(line);
    let output = shell(&case, "trap '' CHLD;", line);
    assert_eq!(output.status.code(), expected.status.code());
    assert_eq!(output.stderr, expected.stderr);
}

// ---------------------------------------------------------------------------- limits

#[test]
fn a_file_that_may_not_grow_is_an_error_and_leaves_nothing() {
    let case = Case::new();
    case.write("f", &incompressible(3, 400_000));
    case.ok("compress -q f -o f.rfn");
    case.write("tree/a", &incompressible(4, 300_000));
    let names = case.names();
    for line in [
        "compress -q f -o out",
        "compress -q tree -o out",
        "decompress -q f.rfn -o out",
        "cat f.rfn > stdout",
        "compress -q f -o - > stdout",
    ] {
        let output = shell(&case, "ulimit -f 100;", line);
        let output = expect(output, 6, line);
        assert!(!output.stderr.is_empty(), "{line}");
        let _ = std::fs::remove_file(case.path("stdout"));
        assert_eq!(case.names(), names, "{line}");
    }
}

#[test]
fn a_default_budget_fits_the_limit_of_addresses() {
    let case = Case::new();
    case.write("f", &mixture(3 << 20));
    case.ok("compress -q f -o f.rfn");
    for (kib, budget) in [(600_000, Some("MiB instead of")), (4_000_000, None)] {
        let before = format!("ulimit -v {kib};");
        let output = shell(&case, &before, "compress f -T2 -o small.rfn");
        let stderr = String::from_utf8(expect(output, 0, "compress").stderr).unwrap();
        assert_eq!(stderr.contains("ulimit -v"), budget.is_some(), "{stderr}");
        assert!(budget.is_none_or(|text| stderr.contains(text)), "{stderr}");
        std::fs::remove_file(case.path("small.rfn")).unwrap();
    }
}

#[test]
fn a_small_stack_or_few_descriptors_are_enough_or_an_error() {
    let case = Case::new();
    case.write("f", &mixture(300_000));
    case.ok("compress -q f -o f.rfn");
    for (before, codes) in [
        ("ulimit -s 64;", &[0][..]),
        ("ulimit -n 5;", &[0, 6]),
        ("ulimit -n 8;", &[0]),
    ] {
        for line in [
            "compress -q f -o out",
            "decompress -q f.rfn -o out",
            "test -q f.rfn",
            "list f.rfn",
            "cat f.rfn",
        ] {
            let output = shell(&case, before, line);
            let code = output.status.code().unwrap_or(-1);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(codes.contains(&code), "{before} {line}: {code}: {stderr}");
            assert!(code == 0 || !stderr.is_empty(), "{before} {line}");
            let _ = std::fs::remove_file(case.path("out"));
        }
    }
}
