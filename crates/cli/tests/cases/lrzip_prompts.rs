//! The lrzip command on a terminal: passwords, refusals; signals.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Case, expect, incompressible, mixture};

/// Returns a case with links of all programs in `bin` and a file `x`.
fn case() -> Case {
    let case = Case::new();
    case.ok("generate lrzip-links bin");
    case.write("x", &mixture(20_000));
    case
}

fn command(case: &Case, line: &str) -> Command {
    let (program, words) = line.split_once(' ').unwrap_or((line, ""));
    let mut command = case.command(case.path("bin").join(program), words);
    command.env("LRZIP", "NOCONFIG");
    command
}

/// Runs a command line on a pseudo-terminal and types `answers` as lines: each after the next
/// prompt. Returns the exit code and what the terminal displayed.
fn on_a_terminal(case: &Case, line: &str, answers: &[&str]) -> (i32, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let mut command = command(case, line);
    command.stdin(terminal.try_clone().unwrap());
    command.stdout(terminal.try_clone().unwrap());
    command.stderr(terminal);
    let mut child = command.spawn().unwrap();
    // Closes the test's copies of the terminal, so that reading ends when the child closes its own.
    drop(command);
    let mut controller = File::from(controller);
    let (mut output, mut piece) = (Vec::new(), [0; 4096]);
    let mut answers = answers.iter();
    let mut prompts_seen = 0;
    // The end of a terminal is an error (EIO) on Linux.
    while let Ok(count @ 1..) = controller.read(&mut piece) {
        output.extend_from_slice(&piece[..count]);
        let prompts = output.windows(12).filter(|text| *text == b"passphrase: ");
        let unanswered = prompts.count() - prompts_seen;
        prompts_seen += unanswered;
        for _ in 0..unanswered {
            let answer = answers.next().expect("one prompt more than answers");
            controller
                .write_all(format!("{answer}\n").as_bytes())
                .unwrap();
        }
    }
    assert_eq!(answers.next(), None, "{line}: no prompt for this answer");
    let code = child.wait().unwrap().code().unwrap();
    (code, String::from_utf8_lossy(&output).into_owned())
}

#[test]
fn a_password_that_was_retyped_wrongly_is_asked_for_again() {
    let case = case();
    let answers = ["one", "two", "three", "four", "right", "right"];
    let (code, output) = on_a_terminal(&case, "lrzip -Q -e -n x", &answers);
    assert_eq!(code, 0, "{output}");
    assert_eq!(
        output.matches("Passwords do not match. Try again.").count(),
        2
    );
    assert_eq!(output.matches("Re-enter passphrase: ").count(), 3);
    assert!(!output.contains("right"), "nothing is displayed: {output}");
    let line = "lrzip -tQ --encrypt=right x.lrz";
    expect(command(&case, line).output().unwrap(), 0, line);
    // From a pipe, until it ends.
    let lrzip = case.path("bin/lrzip");
    let line = "-Q -e -n -f x";
    expect(case.pipe(&lrzip, line, b"a\nb\nc\nc\n"), 0, line);
    expect(case.pipe(&lrzip, "-tQ x.lrz", b"c\n"), 0, "-tQ x.lrz");
    let before = case.read("x.lrz");
    expect(case.pipe(&lrzip, line, b"a\nb\nc\n"), 1, line);
    assert!(case.read("x.lrz") == before);
}

#[test]
fn an_empty_password_ends_the_run() {
    let case = case();
    let (code, output) = on_a_terminal(&case, "lrzip -Q -e -n x", &[""]);
    assert_eq!(code, 1);
    assert!(output.contains("Empty passphrase"), "{output}");
}

#[test]
fn information_asks_for_no_password() {
    let case = case();
    let line = "lrzip -Q -n --encrypt=secret x";
    expect(command(&case, line).output().unwrap(), 0, line);
    let (code, output) = on_a_terminal(&case, "lrzip -i -e x.lrz", &[]);
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("Encrypted lrzip archive."), "{output}");
    let (code, output) = on_a_terminal(&case, "lrzip -i --encrypt=secret x.lrz", &[]);
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("Decompressed file size"), "{output}");
}

#[test]
fn long_passwords_are_those_of_lrzip() {
    let case = case();
    let (long, used) = ("p".repeat(600), "p".repeat(503));
    let line = format!("lrzip -n -E --encrypt={long} x");
    let output = expect(command(&case, &line).output().unwrap(), 0, &line);
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(messages.contains("only the first 503"), "{messages}");
    for password in [&long, &used] {
        let line = format!("lrzip -tQ --encrypt={password} x.lrz");
        expect(command(&case, &line).output().unwrap(), 0, &line);
    }
    if let Ok(output) = command_of_lrzip(&case, &format!("-tQ --encrypt={long} x.lrz")) {
        expect(output, 0, "lrzip");
    }
    // lrzip refuses this from a prompt, without a reason.
    let (code, output) = on_a_terminal(&case, "lrzip -Q -e -n -f x", &[&long]);
    assert_eq!(code, 1);
    assert!(output.contains("600") && output.contains("503"), "{output}");
}

/// Runs lrzip itself.
fn command_of_lrzip(case: &Case, words: &str) -> std::io::Result<std::process::Output> {
    let mut command = case.command("lrzip", words);
    command.env("LRZIP", "NOCONFIG").output()
}

#[test]
fn lrz_writes_to_a_terminal_and_lrzip_does_not() {
    let case = case();
    case.write("h", b"hello from an archive");
    let line = "lrzip -Q h";
    expect(command(&case, line).output().unwrap(), 0, line);
    for line in [
        "lrz -dc h.lrz",
        "lrz -d -o - h.lrz",
        "lrzip -dQf -o - h.lrz",
    ] {
        let (code, output) = on_a_terminal(&case, line, &[]);
        assert_eq!(code, 0, "{line}: {output}");
        assert!(output.contains("hello from an archive"), "{line}: {output}");
    }
    let (code, output) = on_a_terminal(&case, "lrz -c h", &[]);
    assert!(code == 0 && output.starts_with("LRZI"), "{output}");
    for line in ["lrzcat h.lrz", "lrzip -o - h", "lrzip -dc -o - h.lrz"] {
        let (code, output) = on_a_terminal(&case, line, &[]);
        assert_eq!(code, 1, "{line}");
        let refusal = "Will not write stdout to a terminal. Use -f to override.";
        assert!(
            output.contains(refusal) && !output.contains("hello"),
            "{line}: {output}"
        );
    }
    for line in ["lrz", "lrz -dc", "lrzip"] {
        let (code, output) = on_a_terminal(&case, line, &[]);
        assert_eq!(code, 1, "{line}");
        assert!(
            output.contains("Will not read stdin from a terminal."),
            "{output}"
        );
    }
}

#[test]
fn signals_end_a_run_as_they_end_lrzip() {
    let case = case();
    for (signal, code) in [(Signal::INT, 1), (Signal::TERM, 1), (Signal::HUP, 129)] {
        let mut command = command(&case, "lrzip -v -n -o y.lrz");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&mixture(100_000)).unwrap();
        // Signals are handled before the first message.
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{signal:?}: {messages}");
        let words = "Interrupted\nFatal error - exiting\n";
        assert_eq!(
            messages.ends_with(words),
            code == 1,
            "{signal:?}: {messages}"
        );
        assert!(!case.exists("y.lrz"), "nothing is left behind");
        drop(stdin);
    }
}

#[test]
fn two_verbose_options_print_the_blocks() {
    let case = case();
    case.write("big", &incompressible(5, 18 << 20));
    let blocks = |line: &str| -> Vec<String> {
        let output = expect(command(&case, line).output().unwrap(), 0, line);
        let text =
            String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
        let lines = text.lines().filter(|line| line.starts_with("block "));
        lines.map(str::to_owned).collect()
    };
    let written = blocks("lrzip -vv -n big");
    assert!(written.len() > 1, "{written:?}");
    assert_eq!(written, blocks("lrzip -vv -t big.lrz"));
    assert!(blocks("lrzip -v -f -n big").is_empty());
    let encrypted = blocks("lrzip -vv -n --encrypt=secret -o enc.lrz big");
    assert_eq!(encrypted.len(), written.len());
    assert_eq!(encrypted, blocks("lrzip -vv -t --encrypt=secret enc.lrz"));
}
