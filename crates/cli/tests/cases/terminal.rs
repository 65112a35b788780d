//! Progress, summaries and refusals on a terminal.

use std::fs::File;
use std::io::Read;

use crate::support::{Case, REFRAIN, incompressible, mixture};

/// Runs `refrain` on a pseudo-terminal of 80 columns. Returns the exit code and the output.
fn on_a_terminal(case: &Case, line: &str) -> (i32, String) {
    on_a_terminal_of(80, case, line, None)
}

/// The same for another width, with standard output redirected to a file.
fn on_a_terminal_of(columns: u16, case: &Case, line: &str, stdout: Option<File>) -> (i32, String) {
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
    let mut command = case.command(REFRAIN, line);
    command.stdin(terminal.try_clone().unwrap());
    command.stdout(stdout.unwrap_or_else(|| terminal.try_clone().unwrap()));
    command.stderr(terminal);
    let mut child = command.spawn().unwrap();
    // Closes the test's copies of the terminal, so that reading ends when the child closes its own.
    drop(command);
    let mut controller = std::fs::File::from(controller);
    let mut output = Vec::new();
    let mut piece = [0; 4096];
    // The end of a terminal is an error (EIO) on Linux.
    while let Ok(count @ 1..) = controller.read(&mut piece) {
        output.extend_from_slice(&piece[..count]);
    }
    let code = child.wait().unwrap().code().unwrap();
    (code, String::from_utf8_lossy(&output).into_owned())
}

#[test]
fn a_terminal_gets_progress_and_a_summary_and_never_binary() {
    let case = Case::new();
    // A slow codec: progress is drawn only for runs that take longer than a tenth of a second.
    case.write("x", &letters(1, 32 << 20));
    let (code, output) = on_a_terminal(&case, "compress x -T1 --codec bzip2");
    assert_eq!(code, 0, "{output}");
    assert!(
        output.contains("of 33.6 MB") && output.contains(" left"),
        "{output:?}"
    );
    let summary = output
        .trim_end()
        .rsplit(['\r', '\n'])
        .next()
        .unwrap_or_default();
    assert!(
        summary.starts_with("\u{1b}[Kx: 33.6 MB -> "),
        "the progress line is erased before the summary: {summary:?}"
    );
    let (_, output) = on_a_terminal(&case, "test -q x.rfn");
    assert!(output.is_empty(), "{output:?}");
    for line in ["compress x -o -", "decompress x.rfn -o -", "cat x.rfn"] {
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
    let (code, output) = on_a_terminal(&case, "cat --force x.rfn --range 0..1");
    assert!(code == 0 && !output.is_empty());
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
fn progress_has_percentage_rate_and_time_left_for_every_long_verb() {
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
        let progress = lines.iter().filter(|text| text.contains(" left"));
        let progress: Vec<&String> = progress.collect();
        assert!(!progress.is_empty(), "{line}: {output:?}");
        for text in progress {
            assert!(
                text.contains(" %") && text.contains("/s"),
                "{line}: {text:?}"
            );
            assert!(text.chars().count() < 40, "{line}: {text:?}");
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
