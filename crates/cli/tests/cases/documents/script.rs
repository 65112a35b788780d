//! From fences to a script for bash.

/// The beginning of a line about commands that cannot be run here.
pub const SKIPPED: &str = "NOT TESTED: ";

/// Programs that a machine may lack. The rest of a fence is left out at the first missing one.
const PROGRAMS: &[&str] = &[
    "curl",
    "dvc",
    "fusermount3",
    "git",
    "lrzip",
    "mbuffer",
    "nbdinfo",
    "nbdkit",
    "qemu-img",
    "rsync",
    "xz",
    "zip",
];

/// Precedes the commands: shows each that fails, waits for services, and makes sure that nothing
/// outlives the script.
const HEAD: &str = r#"
set -eEuo pipefail
trap 'echo "FAILED: $shown" >&2' ERR
shown='the preparation'
finish() {
    for mounted in mnt DIR; do fusermount3 -u -z $mounted 2> /dev/null || true; done
    kill $(jobs -p) 2> /dev/null || true
    wait || true
}
trap finish EXIT
# Waits for the first line of a program behind: it is ready.
ready() {
    for _ in $(seq 1200); do
        [ ! -s "$1" ] || return 0
        kill -0 "$2" 2> /dev/null || break
        sleep 0.05
    done
    cat "$1"; return 1
}
has() {
    command -v "$1" > /dev/null && { [ "$1" != fusermount3 ] || [ -w /dev/fuse ]; }
}
"#;

/// The commands of each fence that is marked `sh`, without comments.
pub fn fences(document: &str) -> Vec<Vec<String>> {
    let mut fences = Vec::new();
    let mut open: Option<Vec<String>> = None;
    let mut in_other = false;
    for line in document.lines() {
        let is_mark = line.trim_start().starts_with("```");
        match &mut open {
            _ if is_mark && in_other => in_other = false,
            None if is_mark && line.trim() == "```sh" => open = Some(Vec::new()),
            None => in_other |= is_mark,
            Some(_) if is_mark => fences.extend(open.take()),
            Some(commands) => add_line(commands, line),
        }
    }
    fences
}

/// Adds a line of a fence: a command, or what follows a backslash.
fn add_line(commands: &mut Vec<String>, line: &str) {
    let command = match line.find(" #") {
        _ if line.starts_with('#') => "",
        Some(comment) => &line[..comment],
        None => line,
    };
    let command = command.trim();
    match commands.last_mut() {
        Some(last) if last.ends_with('\\') => {
            last.pop();
            last.push_str(command);
        }
        _ if command.is_empty() => {}
        _ => commands.push(command.to_owned()),
    }
}

/// The script that makes the inputs of a document.
pub fn inputs(parts: &[&str]) -> String {
    format!(
        "{HEAD}\n{}\n{}\n",
        super::changes::COMMON_INPUTS,
        parts.join("\n")
    )
}

/// The script that runs fences.
pub fn from_fences(fences: &[Vec<String>]) -> String {
    let mut script = format!("{HEAD}\n{}\n", super::changes::FUNCTIONS);
    let mut behind = 0;
    for fence in fences {
        let mut open = 0;
        for command in fence {
            for program in PROGRAMS.iter().filter(|program| needs(command, program)) {
                let quoted = quoted(&format!("{SKIPPED}{program} is missing for: {command}"));
                script.push_str(&format!("if ! has {program}; then echo {quoted}; else\n"));
                open += 1;
            }
            script.push_str(&format!("shown={}\n", quoted(command)));
            match command.strip_suffix('&') {
                Some(command) => {
                    behind += 1;
                    let log = format!("../behind-{behind}");
                    script.push_str(&format!("{command} > {log} 2>&1 &\nready {log} $!\n"));
                }
                None => script.push_str(&format!("{command}\n")),
            }
        }
        script.push_str(&"fi\n".repeat(open));
    }
    script
}

fn needs(command: &str, program: &str) -> bool {
    let mounts = program == "fusermount3" && command.contains("refrain mount");
    let boots = program == "qemu-img" && command.contains("refrain boot");
    let mut words = command.split(|c: char| c.is_whitespace() || "'\"();|".contains(c));
    mounts || boots || words.any(|word| word == program)
}

/// A text as one word of the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[test]
fn commands_are_found_in_fences_of_the_shell_alone() {
    let document = "```text\nno\n```\n```sh\na b  # why\n\n# alone\nc \\\n  d &\n```\n```\nno\n```";
    assert_eq!(fences(document), [["a b", "c d &"]]);
}
