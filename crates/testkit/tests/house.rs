//! The house rules as a test: which crate may depend on which, and what must not be used where.
//!
//! The test reads the source tree as text, without comments, string literals and test code.
//! Exceptions are listed in [`EXCEPTIONS`]; one that is no longer needed fails the test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may fail loudly"
)]

#[path = "house/layers.rs"]
mod layers;
#[path = "house/published.rs"]
mod published;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use layers::{
    BYTES_LAYER, DEVELOPMENT_ONLY, LAYERS, NOT_PUBLISHED, SEEN_BY_TESTS, USES_THE_SYSTEM,
};

/// The largest number of lines of a source file; a longer file should be split by topic.
const FILE_LINES_MAX: usize = 800;

/// A file with `unsafe` must give its reason within this many lines from its start.
const UNSAFE_REASON_LINES: usize = 40;

/// A rule that forbids words in the code of some crates.
struct Rule {
    name: &'static str,
    /// The forbidden words; each is matched as a whole word.
    words: &'static [&'static str],
    /// Whether the rule applies to this crate.
    applies: fn(&str) -> bool,
    instead: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        name: "only the pool and the reader of samples create threads",
        words: &["thread::spawn", "thread::scope", "thread::Builder", "rayon"],
        applies: |name| !USES_THE_SYSTEM.contains(&name),
        instead: "submit jobs to refrain_pool's crew",
    },
    Rule {
        name: "only the runtime (pool, sync, timer, trace, sampler) uses locks of the operating system",
        words: &[
            "std::sync::Mutex",
            "std::sync::RwLock",
            "std::sync::Condvar",
            "std::sync::Barrier",
            "std::sync::mpsc",
        ],
        applies: |name| !USES_THE_SYSTEM.contains(&name),
        instead: "use refrain_pool::Lock or refrain_sync, or return values from jobs",
    },
    Rule {
        name: "the crates of the bytes layer are pure functions",
        words: &[
            "std::fs",
            "std::env",
            "std::time",
            "std::net",
            "std::process",
            "std::thread",
            "Instant",
            "SystemTime",
            "RandomState",
            "HashMap",
            "HashSet",
        ],
        applies: |name| BYTES_LAYER.contains(&name),
        instead: "take bytes and numbers as arguments; for maps, BTreeMap or a sorted Vec",
    },
    Rule {
        name: "only the crate sync, the pool and the command line read clocks",
        words: &["Instant::now", "SystemTime::now"],
        applies: |name| !USES_THE_SYSTEM.contains(&name) && name != "cli",
        instead: "take a refrain_sync::clock::Clock as an argument",
    },
    Rule {
        name: "only the runtime, and the lab that measures it, let threads sleep for a time",
        words: &[
            "thread::sleep",
            "thread::park_timeout",
            "recv_timeout",
            "wait_timeout",
        ],
        applies: |name| !USES_THE_SYSTEM.contains(&name) && name != "lab",
        instead: "use Pool::after, or refrain_pool::Event::wait_for, which can end early",
    },
    Rule {
        name: "only the command line reads the environment",
        words: &[
            "env::var",
            "env::vars",
            "env::var_os",
            "env::args",
            "env::args_os",
        ],
        applies: |name| name != "cli",
        instead: "take the value as an argument",
    },
    Rule {
        name: "only the command line prints and exits",
        words: &[
            "println!",
            "eprintln!",
            "print!",
            "eprint!",
            "dbg!",
            "process::exit",
            "process::abort",
        ],
        applies: |name| name != "cli",
        instead: "return a value or an error; the command line prints it",
    },
];

/// Directories whose files must not name a module: directory, module, alternative.
const SEPARATED: &[(&str, &str, &str)] = &[
    (
        "crates/refrain/src/write",
        "crate::read",
        "move what both directions use to `store`",
    ),
    (
        "crates/refrain/src/read",
        "crate::write",
        "move what both directions use to `store`",
    ),
    (
        "crates/refrain/src/store",
        "crate::write",
        "`store` is below both directions",
    ),
    (
        "crates/refrain/src/store",
        "crate::read",
        "`store` is below both directions",
    ),
];

/// Exceptions to the rules: file, word, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "crates/entries/src/entry.rs",
        "std::time",
        "a timestamp is converted into the standard library's type; no clock is read",
    ),
    (
        "crates/entries/src/entry.rs",
        "SystemTime",
        "a timestamp is converted into the standard library's type; no clock is read",
    ),
    (
        "crates/longmatch/src/reference.rs",
        "HashMap",
        "the reference implementation looks up by key only, so the order of the map does not matter",
    ),
    (
        "crates/lab/src/experiments/locks.rs",
        "std::sync::Mutex",
        "the standard library's mutex is what the experiment compares the pool's lock with",
    ),
    (
        "crates/cli/src/main.rs",
        "std::sync::mpsc",
        "the first thread waits for the one that has a larger stack, before there is a pool",
    ),
];

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    file: String,
    line: usize,
    word: String,
    message: String,
}

// ------------------------------------------------------------------------------------- the tree

fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .ancestors()
        .nth(2)
        .expect("crates/testkit is two levels below the root")
        .to_path_buf()
}

fn crates() -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(root().join("crates")).expect("the directory crates exists");
    let mut found: Vec<(String, PathBuf)> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                path,
            )
        })
        .collect();
    found.sort();
    found
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the source files of a crate that are published: files in `src` that are not tests.
fn published_files(crate_directory: &Path) -> Vec<PathBuf> {
    let is_test = |path: &PathBuf| {
        let stem = path.file_stem().unwrap().to_string_lossy();
        let in_tests_directory = path.components().any(|part| part.as_os_str() == "tests");
        // `models` are tests of concurrent code under loom.
        let is_test_name = matches!(&*stem, "tests" | "models") || stem.ends_with("_tests");
        is_test_name || in_tests_directory
    };
    let mut files = rust_files(&crate_directory.join("src"));
    files.retain(|path| !is_test(path));
    files
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

// ------------------------------------------------------------------------------ reading the code

/// Returns the code of a file: without comments and literals (line breaks remain), without the unit
/// tests at its end, and with grouped imports expanded.
fn code_of(source: &str) -> String {
    with_imports_expanded(&without_unit_tests(&without_comments_and_literals(source)))
}

/// Expands `use a::{b, c::{d, e}};` to `a::b a::c::d a::c::e`, on the line on which it starts.
fn with_imports_expanded(code: &str) -> String {
    let mut expanded = String::with_capacity(code.len());
    let mut rest = code;
    while !rest.is_empty() {
        let line_end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let line = rest[..line_end].trim_start();
        let is_import =
            line.starts_with("use ") || line.starts_with("pub") && line.contains(" use ");
        let end = rest.find(';').map_or(rest.len(), |at| at + 1);
        if !is_import || !rest[..end].contains('{') {
            expanded.push_str(&rest[..line_end]);
            rest = &rest[line_end..];
            continue;
        }
        let tree: String = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
        expanded.push_str(&import_paths("", tree.trim_end_matches(';')).join(" "));
        expanded.extend(std::iter::repeat_n('\n', rest[..end].matches('\n').count()));
        rest = &rest[end..];
    }
    expanded
}

/// Returns the full paths of an import tree.
fn import_paths(prefix: &str, tree: &str) -> Vec<String> {
    let Some(open) = tree.find('{') else {
        return vec![format!("{prefix}{}", tree.trim())];
    };
    let prefix = format!("{prefix}{}", tree[..open].trim_start());
    let body = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
    let mut depth = 0usize;
    let at_top_level = |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    let branches = body
        .split(at_top_level)
        .filter(|branch| !branch.trim().is_empty());
    branches
        .flat_map(|branch| import_paths(&prefix, branch))
        .collect()
}

fn without_unit_tests(code: &str) -> String {
    let mut remaining = String::new();
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        let opens_tests = (line == "#[cfg(test)]" || line.starts_with("#[cfg(all(test,"))
            && lines.peek().is_some_and(|next| is_module_start(next));
        if opens_tests {
            break;
        }
        remaining.push_str(line);
        remaining.push('\n');
    }
    remaining
}

fn is_module_start(line: &str) -> bool {
    let line = line.strip_prefix("pub(super) ").unwrap_or(line);
    line.starts_with("mod ") && line.ends_with('{')
}

fn without_comments_and_literals(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = comment_length(rest).or_else(|| literal_length(rest, &code));
        match skipped {
            Some(length) => {
                let lines = rest[..length].matches('\n').count();
                code.push(' ');
                code.extend(std::iter::repeat_n('\n', lines));
                rest = &rest[length..];
            }
            None => {
                code.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    code
}

/// Returns the length of the comment with which `text` starts.
fn comment_length(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    Some(text.len())
}

/// Returns the length of the string or character literal with which `text` starts; `before` is the
/// code so far.
fn literal_length(text: &str, before: &str) -> Option<usize> {
    if text.starts_with('"') {
        return Some(quoted_length(text, '"'));
    }
    if let Some(after_quote) = text.strip_prefix('\'') {
        // A lifetime has no closing quote after its first character.
        let mut characters = after_quote.chars();
        let first = characters.next()?;
        let closes = characters.next() == Some('\'');
        return (first == '\\' || closes).then(|| quoted_length(text, '\''));
    }
    let in_a_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let raw = text
        .strip_prefix('r')
        .filter(|_| !in_a_word || before.ends_with('b'))?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let body = raw[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = 2 + hashes;
    Some(
        body.find(&end)
            .map_or(text.len(), |at| start + at + end.len()),
    )
}

/// Returns the length of a literal with backslash escapes, both quotes included.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return at + 1;
        }
    }
    text.len()
}

fn holds_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

// ------------------------------------------------------------------------------------- the rules

fn violations(crate_name: &str, file: &str, source: &str) -> Vec<Finding> {
    let code = code_of(source);
    let rules = RULES.iter().filter(|rule| (rule.applies)(crate_name));
    let mut findings = Vec::new();
    for rule in rules {
        for (index, line) in code.lines().enumerate() {
            for word in rule.words.iter().filter(|word| holds_word(line, word)) {
                findings.push(Finding {
                    file: file.into(),
                    line: index + 1,
                    word: (*word).into(),
                    message: format!("{}. Instead: {}", rule.name, rule.instead),
                });
            }
        }
    }
    findings
}

/// Finds the lines of a file that name `module` or an item in it.
fn uses_of_module(file: &str, source: &str, module: &str, instead: &str) -> Vec<Finding> {
    let code = code_of(source);
    let lines = code.lines().enumerate();
    lines
        .filter(|(_, line)| holds_word(line, module))
        .map(|(index, _)| Finding {
            file: file.into(),
            line: index + 1,
            word: module.into(),
            message: format!("this directory must not use the module. Instead: {instead}"),
        })
        .collect()
}

/// Finds `unsafe` without a reason at the start of the file.
fn unsafe_without_reason(file: &str, source: &str) -> Option<Finding> {
    let code = code_of(source);
    let line = code.lines().position(|line| holds_word(line, "unsafe"))?;
    let explained = source
        .lines()
        .take(UNSAFE_REASON_LINES)
        .any(|line| line.starts_with("//") && line.to_lowercase().contains("unsafe"));
    (!explained).then(|| Finding {
        file: file.into(),
        line: line + 1,
        word: "unsafe".into(),
        message: "a file with unsafe code must give the reason in a comment at its start".into(),
    })
}

/// Finds characters that make code look different from what it is (Trojan Source, CVE-2021-42574).
fn deceptive_characters(file: &str, source: &str) -> Vec<Finding> {
    let deceptive = |c: char| {
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let lines = source.lines().enumerate();
    lines
        .filter(|(_, line)| line.contains(deceptive))
        .map(|(index, _)| Finding {
            file: file.into(),
            line: index + 1,
            word: "invisible character".into(),
            message: "write this character as an escape".into(),
        })
        .collect()
}

/// Returns the packages of this workspace that a manifest names, and whether only tests depend on
/// them.
fn own_dependencies(manifest: &str) -> Vec<(String, bool)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_string();
        }
        if !section.contains("dependencies") {
            continue;
        }
        // Either `[dependencies.NAME]` or a line `NAME = ...` or `NAME.workspace = true`.
        let key = match line.strip_prefix('[') {
            Some(_) => section.rsplit('.').next().unwrap_or_default(),
            None => line.split(['.', '=', ' ']).next().unwrap_or_default(),
        };
        let own = if key == "refrain" { Some("refrain") } else { key.strip_prefix("refrain-") };
        if let Some(name) = own {
            found.push((name.to_string(), section.contains("dev-dependencies")));
        }
    }
    found
}

fn wrong_dependencies(crate_name: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == crate_name) else {
        return vec![format!(
            "crate '{crate_name}' has no row in LAYERS; add one with its allowed dependencies"
        )];
    };
    let is_wrong = |(name, only_tests): &(String, bool)| {
        let seen_by_tests = *only_tests
            && (name == DEVELOPMENT_ONLY
                || name == crate_name
                || SEEN_BY_TESTS.contains(&(crate_name, name)));
        !allowed.contains(&name.as_str()) && !seen_by_tests
    };
    own_dependencies(manifest)
        .into_iter()
        .filter(is_wrong)
        .map(|(name, _)| format!("{crate_name} must not depend on {name} (allowed: {allowed:?})"))
        .collect()
}

fn show(findings: &[Finding]) -> String {
    findings.iter().fold(String::new(), |mut text, finding| {
        let Finding {
            file,
            line,
            word,
            message,
        } = finding;
        let _ = write!(text, "\n  {file}:{line}: {word}: {message}");
        text
    })
}

// ------------------------------------------------------------------------------ tests of the tree

#[test]
fn dependencies_point_downwards() {
    let mut wrong = Vec::new();
    for (name, directory) in crates() {
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).expect("readable");
        wrong.extend(wrong_dependencies(&name, &manifest));
        if !manifest.contains("[lints]\nworkspace = true") {
            wrong.push(format!(
                "{name}: Cargo.toml must contain [lints] workspace = true"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_crate_uses_what_is_forbidden_to_it() {
    let mut used = vec![false; EXCEPTIONS.len()];
    let mut findings = Vec::new();
    let is_published = |name: &str| !NOT_PUBLISHED.contains(&name);
    for (name, directory) in crates().iter().filter(|(name, _)| is_published(name)) {
        for path in published_files(directory) {
            let source = fs::read_to_string(&path).expect("source files are UTF-8");
            for finding in violations(name, &relative(&path), &source) {
                let excepted = EXCEPTIONS
                    .iter()
                    .position(|(file, word, _)| *file == finding.file && *word == finding.word);
                match excepted {
                    Some(index) => used[index] = true,
                    None => findings.push(finding),
                }
            }
        }
    }
    assert!(
        findings.is_empty(),
        "house rules are violated:{}",
        show(&findings)
    );
    for (exception, used) in EXCEPTIONS.iter().zip(used) {
        assert!(
            used,
            "this exception is no longer needed; remove it: {exception:?}"
        );
    }
}

#[test]
fn writing_and_reading_are_separate() {
    let mut findings = Vec::new();
    for (directory, module, instead) in SEPARATED {
        let files = rust_files(&root().join(directory));
        assert!(!files.is_empty(), "no files in {directory}");
        for path in files {
            let source = fs::read_to_string(&path).expect("source files are UTF-8");
            findings.extend(uses_of_module(&relative(&path), &source, module, instead));
        }
    }
    assert!(findings.is_empty(), "{}", show(&findings));
}

#[test]
fn files_are_small_and_give_reasons_for_unsafe() {
    let mut findings = Vec::new();
    for (_, directory) in crates() {
        for path in rust_files(&directory) {
            let source = fs::read_to_string(&path).expect("source files are UTF-8");
            let file = relative(&path);
            findings.extend(unsafe_without_reason(&file, &source));
            findings.extend(deceptive_characters(&file, &source));
            let lines = source.lines().count();
            if lines > FILE_LINES_MAX {
                findings.push(Finding {
                    file,
                    line: lines,
                    word: format!("{lines} lines"),
                    message: format!("more than {FILE_LINES_MAX}; split the file by topic"),
                });
            }
        }
    }
    assert!(findings.is_empty(), "{}", show(&findings));
}

// ------------------------------------------------------------------------- tests of the checks

#[test]
fn every_rule_finds_each_of_its_words() {
    for rule in RULES {
        let name = LAYERS
            .iter()
            .map(|(name, _)| *name)
            .find(|name| (rule.applies)(name))
            .unwrap();
        for word in rule.words {
            let source = format!("fn f() {{\n    x = {word}(1);\n}}\n");
            let findings = violations(name, "f.rs", &source);
            let found = findings
                .iter()
                .find(|f| f.word == *word && f.message.contains(rule.name));
            assert_eq!(found.expect(word).line, 2);
        }
    }
}

#[test]
fn comments_literals_and_unit_tests_are_ignored() {
    let allowed = concat!(
        "//! println! and std::sync::Mutex\n",
        "/* Mutex /* nested */ Mutex */ fn f<'a>(x: &'a str) {\n",
        "  let a = \"println! \\\" Mutex\"; let b = r#\"Mutex \" \"#; let c = '\"';\n",
        "  let d = '\\''; let e = b\"std::sync::Mutex\"; let my_Mutex = MutexLike;\n",
        "}\n",
        "#[cfg(test)]\n",
        "mod tests {\n",
        "  use std::sync::Mutex;\n",
        "}\n",
    );
    assert_eq!(violations("storage", "f.rs", allowed), []);
    let forbidden = "let q = '\"'; let m = std::sync::Mutex::new(\"\"); // why\n";
    assert_eq!(violations("storage", "f.rs", forbidden).len(), 1);
    let after_test_import = "#[cfg(test)]\nuse x;\nlet m = std::sync::Mutex::new();\n";
    assert_eq!(violations("storage", "f.rs", after_test_import)[0].line, 3);
}

#[test]
fn grouped_imports_are_expanded() {
    let grouped = "use std::{\n    io,\n    thread::{self, spawn},\n    fs::File,\n};\nlet a;\n";
    let words: Vec<_> = violations("codec", "f.rs", grouped)
        .into_iter()
        .map(|finding| (finding.line, finding.word))
        .collect();
    let expected = [(1, "thread::spawn"), (1, "std::fs"), (1, "std::thread")];
    assert_eq!(words.len(), expected.len(), "{words:?}");
    for (line, word) in expected {
        assert!(words.contains(&(line, word.to_string())), "{words:?}");
    }
    let after = format!("{grouped}let m = std::sync::Mutex::new();\n");
    assert_eq!(
        violations("storage", "f.rs", &after)
            .last()
            .expect("found")
            .line,
        7
    );
    assert_eq!(
        violations("storage", "f.rs", "pub use a::{b};\nlet used;\n"),
        []
    );
}

#[test]
fn finds_uses_of_a_module() {
    let source = "use crate::{error::Error, read::block::Block};\n// crate::read\n\
        fn f() {\n    crate::read::open();\n    crate::ready();\n}\n";
    let lines: Vec<_> = uses_of_module("f.rs", source, "crate::read", "x")
        .into_iter()
        .map(|finding| finding.line)
        .collect();
    assert_eq!(lines, [1, 4]);
}

#[test]
fn unsafe_needs_a_reason_at_the_start() {
    let bare = "fn f() { unsafe { g() } }\n";
    assert_eq!(unsafe_without_reason("f.rs", bare).expect("found").line, 1);
    let explained = format!("//! Unsafe: the map is ours alone.\n{bare}");
    assert_eq!(unsafe_without_reason("f.rs", &explained), None);
    assert_eq!(
        unsafe_without_reason("f.rs", "#![forbid(unsafe_code)] // no unsafe\n"),
        None
    );
}

#[test]
fn finds_dependencies_in_every_notation() {
    let manifest = "[package]\nname = \"refrain-format\"\n[dependencies]\n\
        refrain-protect.workspace = true\nrefrain = { path = \"../refrain\" }\nzstd = \"1\"\n\
        [target.'cfg(unix)'.dependencies.refrain-pool]\nversion = \"1\"\n\
        [dev-dependencies]\nrefrain-testkit.workspace = true\n";
    let names: Vec<_> = own_dependencies(manifest)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["protect", "refrain", "pool", "testkit"]);
    assert_eq!(wrong_dependencies("format", manifest).len(), 2);
    assert_eq!(wrong_dependencies("nonsense", manifest).len(), 1);
    let shipped = "[dependencies]\nrefrain-testkit.workspace = true\n";
    assert_eq!(wrong_dependencies("cli", shipped).len(), 1);
}

#[test]
fn finds_invisible_characters() {
    assert_eq!(deceptive_characters("f.rs", "a\nb\u{202e}c\n")[0].line, 2);
    assert_eq!(deceptive_characters("f.rs", "fl\u{fc}ssig \u{2264}\n"), []);
}
