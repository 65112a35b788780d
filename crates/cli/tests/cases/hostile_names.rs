//! Names are data: neither terminals nor readers of JSON get a control character from them, and
//! names are never options.

use std::process::Output;

use crate::support::{Case, REFRAIN, expect};

/// C0, DEL and C1, as a terminal would take them for commands, and a line break.
const HOSTILE: &str = "a\u{1b}]0;title\u{7}\u{9b}31m\u{7f}\r\u{8}b\nc";

fn is_command(c: char) -> bool {
    c.is_control() && c != '\n'
}

/// The output of a run. None of its streams has commands for a terminal.
fn checked(case: &Case, words: &[&str]) -> Output {
    let mut command = case.command(REFRAIN, "");
    let output = command.args(words).output().unwrap();
    for stream in [&output.stdout, &output.stderr] {
        let text = str::from_utf8(stream).unwrap();
        assert!(!text.contains(is_command), "{words:?}: {text:?}");
        assert!(
            !text.contains("b\nc"),
            "one name is one line: {words:?}: {text}"
        );
    }
    output
}

#[test]
fn no_verb_prints_the_control_characters_of_names() {
    let case = Case::new();
    let file = format!("tree/{HOSTILE}");
    case.write(&file, b"content of a file with a hostile name");
    std::os::unix::fs::symlink(HOSTILE, case.path("tree/link")).unwrap();
    std::os::unix::fs::symlink(HOSTILE, case.path(&format!("tree/l{HOSTILE}"))).unwrap();
    let archive = format!("{HOSTILE}.rfn");
    let done = checked(&case, &["compress", "-v", "tree", &file, "-o", &archive]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let missing = format!("missing{HOSTILE}");
    let selected = format!("tree/{HOSTILE}");
    let runs: &[&[&str]] = &[
        &["list", &archive],
        &["list", "-l", &archive],
        &["list", "--json", &archive],
        &["info", &archive],
        &["info", "-vv", &archive],
        &["info", "--json", &archive],
        &["info", "--table", &archive],
        &["test", "-v", &archive],
        &["test", "--json", &archive],
        &["map", &archive],
        &["map", "--json", &archive],
        &["decompress", "-v", &archive, "-o", "out"],
        &["decompress", "-v", "--json", &archive, "-o", "out"],
        &["decompress", &archive, "-o", &file],
    ];
    for words in runs {
        checked(&case, words);
    }
    // The parser repeats arguments as they are, in lines.
    let argument = missing.replace('\n', "");
    let failing: &[&[&str]] = &[
        &["cat", &archive, &missing],
        &["cat", &missing],
        &["list", "--json", &missing],
        &["compress", &missing, "-o", "m.rfn"],
        &["serve", &missing, "--nbd", "unix:s"],
        &["serve", &archive, "--nbd", &argument],
        &["boot", "--print", &archive, &missing],
        &["map", &missing],
        &["mount", &missing, "."],
        &["top", "--once", &format!("unix:{missing}")],
        &["hash", &missing],
        &[&argument],
        &["list", &format!("--{argument}")],
    ];
    for words in failing {
        assert_ne!(checked(&case, words).status.code(), Some(0), "{words:?}");
    }
    let content = checked(&case, &["cat", &archive, &selected]).stdout;
    assert_eq!(content, b"content of a file with a hostile name");
}

#[test]
fn json_keeps_the_names_that_it_escapes() {
    let case = Case::new();
    case.write(HOSTILE, b"content");
    let mut command = case.command(REFRAIN, "compress -o a.rfn");
    expect(command.arg(HOSTILE).output().unwrap(), 0, "compress");
    let line = checked(&case, &["list", "--json", "a.rfn"]).stdout;
    let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(line["path"], HOSTILE);
    let info = checked(&case, &["info", "--json", "a.rfn"]).stdout;
    let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
    assert!(info.to_string().contains(r"\u001b"), "{info}");
}
