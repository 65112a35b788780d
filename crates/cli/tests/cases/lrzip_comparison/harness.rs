//! Runs the same command line of two implementations in equal directories and compares the
//! outcomes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::REFRAIN;

/// The expected result of a comparison.
pub enum Expectation {
    /// Exit code, files and messages are the same.
    Same,
    /// Exit code and files are the same, messages differ for this reason.
    OtherMessages(&'static str),
    /// The reason of the difference, the exit code of this program, and the files that it creates
    /// or changes; `-` precedes the name of a file that it deletes.
    Different(&'static str, i32, &'static [&'static str]),
}

/// A command line, the file on its standard input, and the expected result.
pub type Case = (&'static str, &'static str, Expectation);

/// One implementation: its directory, and the directory of its programs (`None`: the search path).
pub struct Implementation {
    directory: tempfile::TempDir,
    pub programs: Option<PathBuf>,
}

/// The outcome of a run.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    exit: Option<i32>,
    stdout: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
}

const PAGE: &str = "\
the quick brown fox jumps over the lazy dog, and then it jumps again; 0123456789 and so on and on and on\n";

/// Creates the files with which each case begins.
pub fn prepare(directory: &Path) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/lrzip");
    for (name, from) in [
        ("p.lrz", "v06-lzma.lrz"),
        ("p.tar.lrz", "v06-gzip.lrz"),
        ("old.lrz", "v05-lzma.lrz"),
        ("none.lrz", "v06-none.lrz"),
        ("enc.lrz", "v06-enc-lzma-pw_secret.lrz"),
        ("d/in.lrz", "v06-lzo.lrz"),
        ("d/e/in2.lrz", "v06-bzip2.lrz"),
    ] {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, fs::read(golden.join(from)).unwrap()).unwrap();
    }
    let good = fs::read(directory.join("p.lrz")).unwrap();
    fs::write(directory.join("cut.lrz"), &good[..good.len() / 2]).unwrap();
    fs::write(directory.join("head.lrz"), &good[..20]).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    fs::write(directory.join("flip.lrz"), &flipped).unwrap();
    fs::write(directory.join("empty"), b"").unwrap();
    fs::write(directory.join("here"), b"was here before").unwrap();
    fs::write(directory.join("here.lrz"), &good).unwrap();
    fs::write(directory.join("text"), PAGE.repeat(400)).unwrap();
    fs::write(directory.join("pw"), b"secret\n").unwrap();
    fs::create_dir_all(directory.join("out")).unwrap();
    fs::create_dir_all(directory.join("t/s")).unwrap();
    fs::write(directory.join("t/a"), PAGE.repeat(30)).unwrap();
    fs::write(directory.join("t/s/b"), PAGE.repeat(60)).unwrap();
}

impl Implementation {
    fn lrzip() -> Implementation {
        Implementation {
            directory: tempfile::tempdir().unwrap(),
            programs: None,
        }
    }

    pub fn refrain() -> Implementation {
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("bin");
        let status = Command::new(REFRAIN)
            .args(["generate", "lrzip-links"])
            .arg(&programs)
            .status();
        assert!(status.unwrap().success());
        Implementation {
            directory,
            programs: Some(programs),
        }
    }

    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// Runs a command line in a new directory, with `config` as its `lrzip.conf`.
    fn run(&self, line: &str, stdin: &str, config: Option<&str>) -> (Outcome, Vec<String>) {
        let work = self.work();
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work).unwrap();
        prepare(&work);
        if let Some(config) = config {
            fs::write(work.join("lrzip.conf"), config).unwrap();
        }
        let arguments = shlex::split(line).unwrap();
        let program = match &self.programs {
            Some(programs) => programs.join(&arguments[0]),
            None => PathBuf::from(&arguments[0]),
        };
        let input = match stdin {
            "" => Stdio::null(),
            name => fs::File::open(work.join(name)).unwrap().into(),
        };
        let mut command = Command::new(program);
        command
            .args(&arguments[1..])
            .current_dir(&work)
            .stdin(input);
        command.env("HOME", self.directory.path());
        if config.is_none() {
            command.env("LRZIP", "NOCONFIG");
        }
        let output = command.output().unwrap();
        let is_data = is_data(line, stdin);
        let messages = messages(&output, is_data);
        let mut files = BTreeMap::new();
        collect(&work, &work, &mut files);
        let outcome = Outcome {
            exit: output.status.code(),
            stdout: if is_data { output.stdout } else { Vec::new() },
            files,
        };
        (outcome, messages)
    }
}

/// Whether standard output carries data.
fn is_data(line: &str, stdin: &str) -> bool {
    let decompresses_stdin = !stdin.is_empty() && !line.contains("-o ") && !line.contains("-t");
    let is_password = stdin == "pw";
    let is_cat = line.starts_with("lrzcat") || line.contains("-o -") || line.starts_with("lrz -dc");
    !line.contains("-i") && (is_cat || (decompresses_stdin && !is_password))
}

fn collect(root: &Path, directory: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            files.insert(name, fs::read(&path).unwrap_or_default());
        }
    }
}

/// Returns the messages in a comparable form: without progress, times and speeds, and sorted,
/// because the order of two streams is undefined.
fn messages(output: &Output, is_data: bool) -> Vec<String> {
    let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !is_data {
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    // lrzip does not terminate this line.
    let text = text.replace("Fatal error - exiting", "\nFatal error - exiting\n");
    let text = text.replace("Enter passphrase: ", "Enter passphrase: \n");
    let lines = text.split(['\n', '\r']).map(str::trim);
    let mut lines: Vec<String> = lines
        .filter(|line| is_compared(line))
        .map(without_numbers)
        .collect();
    lines.sort();
    lines
}

fn is_compared(line: &str) -> bool {
    let is_progress = line.contains('%') && (line.contains(" / ") || line.starts_with("Total:"));
    let is_table = line.contains('\t');
    let is_machine = [
        "Warning, low memory",
        "Will take",
        "File size",
        "Beginning",
        "ZPAQ",
    ];
    !line.is_empty()
        && (!is_progress || is_table)
        && !line.contains("bytes ram")
        && !is_machine.iter().any(|start| line.starts_with(start))
}

/// Removes times and speeds.
fn without_numbers(line: &str) -> String {
    for start in ["Total time:", "Average DeCompression Speed:"] {
        if line.starts_with(start) {
            return start.to_string();
        }
    }
    match line.split_once(" Average Compression Speed:") {
        Some((ratio, _)) => ratio.split(" Ratio: ").next().unwrap().to_string(),
        None => line.to_string(),
    }
}

/// Whether lrzip is installed. Prints a message if it is not.
#[allow(
    clippy::print_stderr,
    reason = "a test that compares nothing must report it"
)]
pub fn has_lrzip() -> bool {
    let has_lrzip = Command::new("lrzip").arg("-V").output().is_ok();
    if !has_lrzip {
        eprintln!("lrzip is not installed: not compared");
    }
    has_lrzip
}

/// Runs all cases with both implementations.
pub fn compare(cases: &[Case], config: Option<&str>) {
    if !has_lrzip() {
        return;
    }
    let (lrzip, refrain) = (Implementation::lrzip(), Implementation::refrain());
    let mut wrong = Vec::new();
    for (line, stdin, expectation) in cases {
        let (lrzip_outcome, lrzip_messages) = lrzip.run(line, stdin, config);
        let (outcome, messages) = refrain.run(line, stdin, config);
        let mut faults = Vec::new();
        match expectation {
            Expectation::Same | Expectation::OtherMessages(_) => {
                faults.extend(differences(&outcome, &lrzip_outcome));
            }
            Expectation::Different(reason, exit, changes) => {
                let changed = changed_files(&refrain, &outcome);
                if outcome.exit != Some(*exit) || changed != *changes {
                    faults.push(format!("exit code {:?}, files {changed:?}", outcome.exit));
                }
                if outcome == lrzip_outcome {
                    faults.push(format!("no difference ({reason})"));
                }
            }
        }
        match (expectation, messages == lrzip_messages) {
            (Expectation::Same, false) => faults.push("messages differ".into()),
            (Expectation::OtherMessages(reason), true) => {
                faults.push(format!("messages do not differ ({reason})"));
            }
            _ => {}
        }
        if !faults.is_empty() {
            wrong.push(format!(
                "`{line}` <{stdin}: {}\n  lrzip:   {lrzip_messages:?}\n  refrain: {messages:?}",
                faults.join("; ")
            ));
        }
    }
    assert!(wrong.is_empty(), "with {config:?}:\n{}", wrong.join("\n"));
}

fn differences(outcome: &Outcome, lrzip: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    if outcome.exit != lrzip.exit {
        found.push(format!(
            "exit code {:?}, not {:?}",
            outcome.exit, lrzip.exit
        ));
    }
    if !has_same_content(&outcome.stdout, &lrzip.stdout) {
        found.push("standard output".into());
    }
    let names = |outcome: &Outcome| outcome.files.keys().cloned().collect::<Vec<_>>();
    if names(outcome) != names(lrzip) {
        found.push(format!(
            "files {:?}, not {:?}",
            names(outcome),
            names(lrzip)
        ));
    }
    for (name, bytes) in &outcome.files {
        let expected = lrzip.files.get(name);
        if expected.is_some_and(|expected| !has_same_content(bytes, expected)) {
            found.push(format!("content of {name}"));
        }
    }
    found
}

/// Whether both are equal, or archives that lrzip decompresses to the same content.
fn has_same_content(a: &[u8], b: &[u8]) -> bool {
    let both_archives = a.starts_with(b"LRZI") && b.starts_with(b"LRZI");
    a == b || (both_archives && content_by_lrzip(a) == content_by_lrzip(b))
}

/// Returns the content of an archive as lrzip decompresses it.
fn content_by_lrzip(archive: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("x.lrz"), archive).unwrap();
    let mut command = Command::new("lrzip");
    command.args(["-dQ", "x.lrz"]).current_dir(directory.path());
    let output = command.env("LRZIP", "NOCONFIG").output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "lrzip fails: {messages}");
    fs::read(directory.path().join("x")).unwrap()
}

/// Returns the names of files that are new or changed, and after a `-` those that are deleted.
fn changed_files(implementation: &Implementation, outcome: &Outcome) -> Vec<String> {
    let initial = implementation.directory.path().join("fresh");
    let _ = fs::remove_dir_all(&initial);
    fs::create_dir_all(&initial).unwrap();
    prepare(&initial);
    let mut before = BTreeMap::new();
    collect(&initial, &initial, &mut before);
    let is_new = |(name, bytes): &(&String, &Vec<u8>)| before.get(*name) != Some(*bytes);
    let new = outcome
        .files
        .iter()
        .filter(is_new)
        .map(|(name, _)| name.clone());
    let deleted = before
        .keys()
        .filter(|name| !outcome.files.contains_key(*name));
    new.chain(deleted.map(|name| format!("-{name}"))).collect()
}
