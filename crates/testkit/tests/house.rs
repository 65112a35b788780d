//! The house rules as a test: who may see whom, and what must stay absent where.
//!
//! Reads the tree as text. Comments, string literals and test code are taken away first, so that
//! a rule may be spoken about without being broken. A message names the place and what to use
//! instead. An exception is an entry in [`EXCEPTIONS`] with its reason; one that no longer applies
//! fails the test, so the list cannot rot.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may fail loudly"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Longest source file; beyond this a file holds two ideas.
const FILE_LINES_MAX: usize = 800;

/// A file with `unsafe` must say why within this many lines from its head.
const UNSAFE_REASON_LINES: usize = 40;

/// Which packages of ours a crate may depend on (folder names; the engine's folder is `refrain`).
const LAYERS: &[(&str, &[&str])] = &[
    ("longmatch", &[]),
    ("codec", &[]),
    ("lrzip-codec", &["codec"]),
    ("protect", &[]),
    ("format", &["protect", "tree"]),
    ("tree", &["pool", "storage", "timer"]),
    ("policy", &[]),
    ("timer", &[]),
    ("simulator", &["policy"]),
    ("pool", &["policy", "timer"]),
    ("storage", &["pool"]),
    (
        "refrain",
        &[
            "longmatch",
            "codec",
            "lrzip-codec",
            "protect",
            "format",
            "tree",
            "policy",
            "timer",
            "pool",
            "storage",
        ],
    ),
    ("server", &["refrain", "pool"]),
    ("cli", &["refrain", "server"]),
    ("capi", &["refrain"]),
    ("python", &["refrain"]),
    ("testkit", &["format"]),
    (
        "bench",
        &["refrain", "pool", "policy", "timer", "simulator"],
    ),
];

/// Seen from tests only.
const DEVELOPMENT_ONLY: &str = "testkit";

/// Never shipped: what must stay absent elsewhere is what it measures with.
const NOT_SHIPPED: &[&str] = &[DEVELOPMENT_ONLY, "bench"];

/// Crates of pure functions: bytes in, bytes out.
const BYTES_LAYER: &[&str] = &["longmatch", "codec", "lrzip-codec", "protect", "format"];

/// Crates that use locks of the operating system and read its clocks.
const USES_THE_SYSTEM: &[&str] = &["pool", "timer"];

/// Packages of ours that only the tests of a crate see: crate, package.
const SEEN_BY_TESTS: &[(&str, &str)] = &[
    // Decisions of the pool are made again by the same policy in the simulator.
    ("pool", "simulator"),
];

/// Something that must stay absent.
struct Rule {
    name: &'static str,
    /// Found as whole words in code.
    words: &'static [&'static str],
    /// Whether the rule speaks about this crate.
    applies: fn(&str) -> bool,
    instead: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        name: "threads are made by the pool alone",
        words: &["thread::spawn", "thread::scope", "thread::Builder", "rayon"],
        applies: |name| name != "pool",
        instead: "submit jobs to refrain_pool's crew",
    },
    Rule {
        name: "operating system locks live in the pool and the timer",
        words: &["Mutex", "RwLock", "Condvar", "Barrier", "mpsc"],
        applies: |name| !USES_THE_SYSTEM.contains(&name),
        instead: "use refrain_pool::Lock, or pass values through its crew",
    },
    Rule {
        name: "the bytes layer is pure",
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
        name: "clocks are read in the timer and the pool, and by the command line for people",
        words: &["Instant::now", "SystemTime::now"],
        applies: |name| !USES_THE_SYSTEM.contains(&name) && name != "cli",
        instead: "take a refrain_timer Clock",
    },
    Rule {
        name: "the environment belongs to the command line",
        words: &[
            "env::var",
            "env::vars",
            "env::var_os",
            "env::args",
            "env::args_os",
        ],
        applies: |name| name != "cli",
        instead: "take the value as an option",
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
        instead: "return a value or an error; the caller decides what people see",
    },
];

/// Places where a rule is knowingly not kept: file, word, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "crates/longmatch/src/reference.rs",
        "HashMap",
        "the reference implementation looks up by key only, so the order of the map does not matter",
    ),
    (
        "crates/policy/src/record/mod.rs",
        "Mutex",
        "the recorder of decisions, which tests use, is called by all workers of a pool",
    ),
];

/// One broken rule.
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
        .expect("crates/testkit lies two below the root")
        .to_path_buf()
}

/// The crates' folders, by name.
fn crates() -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(root().join("crates")).expect("there is a folder crates");
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

/// All Rust files below `folder`, sorted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Source files of one crate that ship: `src` without files of tests.
fn shipped_files(crate_folder: &Path) -> Vec<PathBuf> {
    let is_test = |path: &PathBuf| {
        let stem = path.file_stem().unwrap().to_string_lossy();
        let in_tests_folder = path.components().any(|part| part.as_os_str() == "tests");
        stem == "tests" || stem.ends_with("_tests") || in_tests_folder
    };
    let mut files = rust_files(&crate_folder.join("src"));
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

/// The code of a file: comments and literals blanked (lines stay), unit tests at the foot cut off,
/// grouped imports spelled out.
fn code_of(source: &str) -> String {
    with_imports_spelled_out(&without_unit_tests(&without_comments_and_literals(source)))
}

/// `use a::{b, c::{d, e}};` as `a::b a::c::d a::c::e`, on the line where it begins.
fn with_imports_spelled_out(code: &str) -> String {
    let mut spelled = String::with_capacity(code.len());
    let mut rest = code;
    while !rest.is_empty() {
        let line_end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let line = rest[..line_end].trim_start();
        let is_import =
            line.starts_with("use ") || line.starts_with("pub") && line.contains(" use ");
        let end = rest.find(';').map_or(rest.len(), |at| at + 1);
        if !is_import || !rest[..end].contains('{') {
            spelled.push_str(&rest[..line_end]);
            rest = &rest[line_end..];
            continue;
        }
        let tree: String = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
        spelled.push_str(&import_paths("", tree.trim_end_matches(';')).join(" "));
        spelled.extend(std::iter::repeat_n('\n', rest[..end].matches('\n').count()));
        rest = &rest[end..];
    }
    spelled
}

/// The full paths of one import tree.
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

/// Cuts at the unit tests, which stand at the foot of a file.
fn without_unit_tests(code: &str) -> String {
    let mut kept = String::new();
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        let opens_tests = line.trim() == "#[cfg(test)]"
            && lines
                .peek()
                .is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        if opens_tests {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
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

/// Length of the comment that `text` starts with.
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

/// Length of the string or character literal that `text` starts with; `before` is the code so far.
fn literal_length(text: &str, before: &str) -> Option<usize> {
    if text.starts_with('"') {
        return Some(quoted_length(text, '"'));
    }
    if let Some(after_quote) = text.strip_prefix('\'') {
        // A lifetime has no closing quote right after its first character.
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

/// Length of a literal with backslash escapes, both quotes included.
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

/// Whether `line` holds `word` with nothing of an identifier on either side.
fn holds_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

// ------------------------------------------------------------------------------------- the rules

fn broken_rules(crate_name: &str, file: &str, source: &str) -> Vec<Finding> {
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
                    message: format!("{}; instead: {}", rule.name, rule.instead),
                });
            }
        }
    }
    findings
}

/// `unsafe` without a reason at the head of the file.
fn unexplained_unsafe(file: &str, source: &str) -> Option<Finding> {
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
        message: "a file with unsafe code says why in a comment at its head".into(),
    })
}

/// Characters that make code read differently from what it is (Trojan Source, CVE-2021-42574).
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
            message: "write it as an escape".into(),
        })
        .collect()
}

/// Packages of ours that a manifest names, with whether only tests see them.
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
        let own = if key == "refrain" {
            Some("refrain")
        } else {
            key.strip_prefix("refrain-")
        };
        if let Some(name) = own {
            found.push((name.to_string(), section.contains("dev-dependencies")));
        }
    }
    found
}

fn wrong_dependencies(crate_name: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == crate_name) else {
        return vec![format!(
            "crate '{crate_name}' has no row in LAYERS: decide what it may see"
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
        .map(|(name, _)| format!("{crate_name} must not see {name} (allowed: {allowed:?})"))
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
fn dependencies_point_down_the_layers() {
    let mut wrong = Vec::new();
    for (name, folder) in crates() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("readable");
        wrong.extend(wrong_dependencies(&name, &manifest));
        if !manifest.contains("[lints]\nworkspace = true") {
            wrong.push(format!(
                "{name}: Cargo.toml must say [lints] workspace = true"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_must_stay_absent_is_absent() {
    let mut used = vec![false; EXCEPTIONS.len()];
    let mut findings = Vec::new();
    let is_shipped = |name: &str| !NOT_SHIPPED.contains(&name);
    for (name, folder) in crates().iter().filter(|(name, _)| is_shipped(name)) {
        for path in shipped_files(folder) {
            let source = fs::read_to_string(&path).expect("sources are UTF-8");
            for finding in broken_rules(name, &relative(&path), &source) {
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
        "house rules are broken:{}",
        show(&findings)
    );
    for (exception, used) in EXCEPTIONS.iter().zip(used) {
        assert!(used, "this exception is not needed any more: {exception:?}");
    }
}

#[test]
fn files_are_small_honest_and_explain_their_unsafe() {
    let mut findings = Vec::new();
    for (_, folder) in crates() {
        for path in rust_files(&folder) {
            let source = fs::read_to_string(&path).expect("sources are UTF-8");
            let file = relative(&path);
            findings.extend(unexplained_unsafe(&file, &source));
            findings.extend(deceptive_characters(&file, &source));
            let lines = source.lines().count();
            if lines > FILE_LINES_MAX {
                findings.push(Finding {
                    file,
                    line: lines,
                    word: format!("{lines} lines"),
                    message: format!("more than {FILE_LINES_MAX}: split by idea"),
                });
            }
        }
    }
    assert!(findings.is_empty(), "{}", show(&findings));
}

// ------------------------------------------------------------------------- tests of the checks

#[test]
fn every_rule_sees_each_of_its_words() {
    for rule in RULES {
        let name = LAYERS
            .iter()
            .map(|(name, _)| *name)
            .find(|name| (rule.applies)(name))
            .unwrap();
        for word in rule.words {
            let source = format!("fn f() {{\n    x = {word}(1);\n}}\n");
            let findings = broken_rules(name, "f.rs", &source);
            let found = findings
                .iter()
                .find(|f| f.word == *word && f.message.contains(rule.name));
            assert_eq!(found.expect(word).line, 2);
        }
    }
}

#[test]
fn comments_literals_and_unit_tests_do_not_count() {
    let quiet = concat!(
        "//! println! and Mutex\n",
        "/* Mutex /* nested */ Mutex */ fn f<'a>(x: &'a str) {\n",
        "  let a = \"println! \\\" Mutex\"; let b = r#\"Mutex \" \"#; let c = '\"';\n",
        "  let d = '\\''; let e = b\"Mutex\"; let my_Mutex = MutexLike;\n",
        "}\n",
        "#[cfg(test)]\n",
        "mod tests {\n",
        "  use std::sync::Mutex;\n",
        "}\n",
    );
    assert_eq!(broken_rules("storage", "f.rs", quiet), []);
    let loud = "let q = '\"'; let m = Mutex::new(\"\"); // why\n";
    assert_eq!(broken_rules("storage", "f.rs", loud).len(), 1);
    let after_test_import = "#[cfg(test)]\nuse x;\nlet m = Mutex::new();\n";
    assert_eq!(
        broken_rules("storage", "f.rs", after_test_import)[0].line,
        3
    );
}

#[test]
fn grouped_imports_do_not_hide_anything() {
    let grouped = "use std::{\n    io,\n    thread::{self, spawn},\n    fs::File,\n};\nlet a;\n";
    let words: Vec<_> = broken_rules("codec", "f.rs", grouped)
        .into_iter()
        .map(|finding| (finding.line, finding.word))
        .collect();
    let expected = [(1, "thread::spawn"), (1, "std::fs"), (1, "std::thread")];
    assert_eq!(words.len(), expected.len(), "{words:?}");
    for (line, word) in expected {
        assert!(words.contains(&(line, word.to_string())), "{words:?}");
    }
    let after = format!("{grouped}let m = Mutex::new();\n");
    assert_eq!(
        broken_rules("storage", "f.rs", &after)
            .last()
            .expect("found")
            .line,
        7
    );
    assert_eq!(
        broken_rules("storage", "f.rs", "pub use a::{b};\nlet used;\n"),
        []
    );
}

#[test]
fn unsafe_needs_a_reason_at_the_head() {
    let bare = "fn f() { unsafe { g() } }\n";
    assert_eq!(unexplained_unsafe("f.rs", bare).expect("found").line, 1);
    let explained = format!("//! Unsafe: the map is ours alone.\n{bare}");
    assert_eq!(unexplained_unsafe("f.rs", &explained), None);
    assert_eq!(
        unexplained_unsafe("f.rs", "#![forbid(unsafe_code)] // no unsafe\n"),
        None
    );
}

#[test]
fn dependencies_are_found_in_every_spelling() {
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
fn invisible_characters_are_found() {
    assert_eq!(deceptive_characters("f.rs", "a\nb\u{202e}c\n")[0].line, 2);
    assert_eq!(deceptive_characters("f.rs", "fl\u{fc}ssig \u{2264}\n"), []);
}
