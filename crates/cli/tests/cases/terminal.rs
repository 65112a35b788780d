//! Progress, summaries and refusals on a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};

use crate::support::{Case, REFRAIN, incompressible, mixture};

/// Runs `refrain` on a pseudo-terminal of 80 columns. Returns the exit code and the output.
fn on_a_terminal(case: &Case, line: &str) -> (i32, String) {
    on_a_terminal_of(80, case, line, None)
}

/// As above for another width, with standard output redirected to a file.
fn on_a_terminal_of(columns: u16, case: &Case, line: &str, stdout: Option<File>) -> (i32, String) {
    let (mut child, mut controller) = spawn_on_a_terminal(columns, case, line, stdout);
    let mut output = Vec::new();
    let mut piece = [0; 4096];
    // The end of a terminal is an error (EIO) on Linux.
    while let Ok(count @ 1..) = controller.read(&mut piece) {
        output.extend_from_slice(&piece[..count]);
    }
    let code = child.wait().unwrap().code().unwrap();
    (code, String::from_utf8_lossy(&output).into_owned())
}

/// Starts it. What it writes to the terminal can be read from the file.
fn spawn_on_a_terminal(
    columns: u16,
    case: &Case,
    line: &str,
    stdout: Option<File>,
) -> (Child, File) {
    spawn_command(columns, case.command(REFRAIN, line), stdout)
}

fn spawn_command(columns: u16, mut command: Command, stdout: Option<File>) -> (Child, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let size = rustix::termios::Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&terminal, size).unwrap();
    if !command.get_envs().any(|(name, _)| name == "TERM") {
        command.env("TERM", "xterm");
    }
    command.stdin(terminal.try_clone().unwrap());
    command.stdout(stdout.unwrap_or_else(|| terminal.try_clone().unwrap()));
    command.stderr(terminal);
    // The command keeps the test's copies of the terminal until here; reading ends when the child
    // closes its own.
    (command.spawn().unwrap(), File::from(controller))
}

#[test]
fn a_dumb_terminal_gets_no_escape_sequences() {
    let case = Case::new();
    case.write("x", &letters(1, 8 << 20));
    for line in ["compress x -T1 --codec bzip2", "--help", "compress --wrong"] {
        let mut command = case.command(REFRAIN, line);
        command.env("TERM", "dumb");
        let (mut child, mut terminal) = spawn_command(80, command, None);
        let mut output = Vec::new();
        // The end of a terminal is an error (EIO) on Linux.
        let _ = terminal.read_to_end(&mut output);
        child.wait().unwrap();
        let output = String::from_utf8_lossy(&output);
        assert!(!output.is_empty(), "{line}");
        assert!(!output.contains('\u{1b}'), "{line}: {output:?}");
    }
}

#[test]
fn the_line_is_drawn_while_nothing_happens() {
    let case = Case::new();
    let pipe = case.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let (mut child, mut terminal) = spawn_on_a_terminal(80, &case, "compress pipe -o x.rfn", None);
    let mut writer = File::options().write(true).open(&pipe).unwrap();
    let mut output = String::new();
    let mut piece = [0; 4096];
    // Nobody writes, and yet the seconds pass.
    while !output.contains("0:01") {
        let count = terminal.read(&mut piece).unwrap();
        output.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    writer.write_all(b"content").unwrap();
    drop(writer);
    while let Ok(count @ 1..) = terminal.read(&mut piece) {
        output.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    assert!(child.wait().unwrap().success(), "{output:?}");
    assert!(output.matches('\r').count() >= 3, "{output:?}");
    for text in drawn_lines(&output) {
        assert!(
            !text.contains(" left") && !text.contains("0 B/s"),
            "{text:?}"
        );
    }
    let summary = output.trim_end().rsplit('\r').next().unwrap_or_default();
    assert!(summary.starts_with("\u{1b}[Kpipe: 7 B -> "), "{summary:?}");
}

#[test]
fn a_terminal_that_cannot_erase_a_line_gets_none() {
    let case = Case::new();
    case.write("x", &letters(1, 4 << 20));
    let mut command = case.command(REFRAIN, "compress x -T1 --codec bzip2");
    command.env("TERM", "dumb");
    let (mut child, mut terminal) = spawn_command(80, command, None);
    let mut output = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = terminal.read(&mut piece) {
        output.extend_from_slice(&piece[..count]);
    }
    assert!(child.wait().unwrap().success());
    let output = String::from_utf8_lossy(&output).into_owned();
    assert!(
        !output.contains('\x1b') && output.lines().count() == 1,
        "{output:?}"
    );
}

#[test]
fn a_terminal_gets_progress_and_a_summary_and_never_binary() {
    let case = Case::new();
    // A slow codec: progress is drawn only for runs that take longer than a tenth of a second.
    case.write("x", &letters(1, 16 << 20));
    let (code, output) = on_a_terminal(&case, "compress x -T1 --codec bzip2");
    assert_eq!(code, 0, "{output}");
    assert!(
        output.contains("x  0 B of 16.8 MB  0 %  0:0") && !output.contains("0 B/s"),
        "{output:?}"
    );
    let summary = output
        .trim_end()
        .rsplit(['\r', '\n'])
        .next()
        .unwrap_or_default();
    assert!(
        summary.starts_with("\u{1b}[Kx: 16.8 MB -> "),
        "the progress line is erased before the summary: {summary:?}"
    );
    let (_, output) = on_a_terminal(&case, "test -q x.rfn");
    assert!(output.is_empty(), "{output:?}");
    case.write("binary", &incompressible(3, 100_000));
    case.ok("compress -q binary");
    for line in [
        "compress x -o -",
        "compress binary -o -",
        "decompress binary.rfn -o -",
        "cat binary.rfn",
        "cat binary.rfn --range 5000..9000",
    ] {
        let (code, output) = on_a_terminal(&case, line);
        assert_eq!(code, 1, "{line}");
        assert!(
            output.contains("is a terminal") && output.len() < 200,
            "{output}"
        );
    }
    let (code, output) = on_a_terminal(&case, "compress");
    assert_eq!(code, 1);
    assert!(output.contains("standard input is a terminal"), "{output}");
    let (code, output) = on_a_terminal(&case, "cat --force binary.rfn --range 0..1");
    assert!(code == 0 && !output.is_empty());
}

#[test]
fn text_goes_to_a_terminal() {
    let case = Case::new();
    let text = "first line\n\tGr\u{fc}\u{df}e\n";
    case.write("tree/text", text.as_bytes());
    case.write("tree/commands", b"\x1b[2J\x1b]0;title\x07");
    case.ok("compress -q tree");
    case.ok("compress -q tree/text -o text.rfn");
    for line in [
        "cat tree.rfn text",
        "cat text.rfn",
        "decompress -q text.rfn -o -",
    ] {
        let (code, output) = on_a_terminal(&case, line);
        // A terminal turns line ends into two characters.
        assert_eq!(
            (code, output.replace("\r\n", "\n").as_str()),
            (0, text),
            "{line}"
        );
    }
    let (code, output) = on_a_terminal(&case, "cat text.rfn --range 0..5");
    assert_eq!((code, output.as_str()), (0, "first"));
    // A part of a character is not text.
    let range = format!(
        "cat text.rfn --range 0..{}",
        text.find('\u{fc}').unwrap() + 1
    );
    for line in ["cat tree.rfn commands", "decompress tree.rfn -o -", &range] {
        let (code, output) = on_a_terminal(&case, line);
        assert_eq!(code, 1, "{line}");
        assert!(
            !output.contains('\x1b') && output.contains("--force"),
            "{line}: {output:?}"
        );
    }
}

/// The texts between carriage returns, without the escape sequence that erases a line.
fn drawn_lines(output: &str) -> Vec<String> {
    let lines = output.split(['\r', '\n']);
    lines.map(|line| line.replace("\u{1b}[K", "")).collect()
}

/// Bytes of 5 bits of entropy, which a slow codec has to encode.
fn letters(seed: u64, length: usize) -> Vec<u8> {
    let bytes = incompressible(seed, length).into_iter();
    bytes.map(|byte| b'@' + byte % 32).collect()
}

#[test]
fn progress_has_a_percentage_for_every_long_verb() {
    let case = Case::new();
    case.write("x", &letters(1, 16 << 20));
    case.write("tree/a", &letters(2, 8 << 20));
    case.write("tree/sub/b", &letters(3, 8 << 20));
    case.ok("compress -q --codec bzip2 x");
    case.ok("compress -q --codec bzip2 tree");
    let hash = format!("hash --sha256 -T1{}", " x".repeat(40));
    for line in [
        "compress x -T1 --codec bzip2 -o /dev/null",
        "compress tree -T1 --codec bzip2 -o /dev/null",
        "test x.rfn -T1",
        "test tree.rfn -T1",
        "decompress -f x.rfn -T1 -o out",
        "cat x.rfn -T1",
        &hash,
    ] {
        let stdout = File::create(case.path("stdout")).unwrap();
        let (code, output) = on_a_terminal_of(40, &case, line, Some(stdout));
        assert_eq!(code, 0, "{line}: {output}");
        let lines = drawn_lines(&output);
        let progress = lines.iter().filter(|text| text.contains(" %  "));
        assert!(progress.count() > 0, "{line}: {output:?}");
        for text in &lines {
            let has_rest = text.contains(" left");
            assert!(!has_rest || text.contains(" %"), "{line}: {text:?}");
            let is_summary = text.contains(" -> ") || text.contains(": OK");
            assert!(is_summary || text.chars().count() < 40, "{line}: {text:?}");
        }
    }
}

#[test]
fn standard_error_that_is_no_terminal_gets_no_progress() {
    let case = Case::new();
    case.write("x", &mixture(24 << 20));
    let output = case.ok("compress x -T1");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains('\r') && text.lines().count() == 1, "{text}");
}

#[test]
fn checksums_of_hostile_names_are_no_commands_to_a_terminal() {
    let case = Case::new();
    let name = "a\u{1b}]0;t\u{7}\u{9b}31m";
    case.write(name, b"");
    case.write(
        "list",
        format!("d41d8cd98f00b204e9800998ecf8427e  {name}\n").as_bytes(),
    );
    for line in ["hash --check list", &format!("hash {name}")] {
        let (code, output) = on_a_terminal(&case, line);
        assert_eq!(code, 0, "{output:?}");
        assert!(output.contains("a?]0;t??31m"), "{output:?}");
    }
}
