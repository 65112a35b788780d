//! Two directories that are alike, and what a command line leaves in each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::REFRAIN;

/// How the two sides compare.
pub enum Twin {
    /// Exit code, files and words are the same.
    Same,
    /// Exit code and files are the same; why the words are others.
    OtherWords(&'static str),
    /// Why ours does otherwise, its exit code, and the files it leaves that the case did not begin with, or `-` and the name for
    /// those that are gone.
    Otherwise(&'static str, i32, &'static [&'static str]),
}

/// A command line, what is on its standard input, and how both sides compare.
pub type Case = (&'static str, &'static str, Twin);

/// One of the two: a directory, and where its programs are.
pub struct Side {
    directory: tempfile::TempDir,
    pub programs: Option<PathBuf>,
}

/// What a run left.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    exit: Option<i32>,
    stdout: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
}

const PAGE: &str = "\
the quick brown fox jumps over the lazy dog, and then it jumps again; 0123456789 and so on and on and on\n";

/// The files that a case begins with.
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

impl Side {
    fn lrzip() -> Side {
        Side {
            directory: tempfile::tempdir().unwrap(),
            programs: None,
        }
    }

    pub fn ours() -> Side {
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("bin");
        let made = Command::new(REFRAIN)
            .args(["generate", "lrzip-links"])
            .arg(&programs)
            .status();
        assert!(made.unwrap().success());
        Side {
            directory,
            programs: Some(programs),
        }
    }

    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// Runs a line in a fresh directory, with `config` as its `lrzip.conf`.
    fn run(&self, line: &str, stdin: &str, config: Option<&str>) -> (Left, Vec<String>) {
        let work = self.work();
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work).unwrap();
        prepare(&work);
        if let Some(config) = config {
            fs::write(work.join("lrzip.conf"), config).unwrap();
        }
        let words = shlex::split(line).unwrap();
        let program = match &self.programs {
            Some(programs) => programs.join(&words[0]),
            None => PathBuf::from(&words[0]),
        };
        let input = match stdin {
            "" => Stdio::null(),
            name => fs::File::open(work.join(name)).unwrap().into(),
        };
        let mut command = Command::new(program);
        command.args(&words[1..]).current_dir(&work).stdin(input);
        command.env("HOME", self.directory.path());
        if config.is_none() {
            command.env("LRZIP", "NOCONFIG");
        }
        let output = command.output().unwrap();
        let is_data = is_data(line, stdin);
        let said = said(&output, is_data);
        let mut files = BTreeMap::new();
        collect(&work, &work, &mut files);
        let left = Left {
            exit: output.status.code(),
            stdout: if is_data { output.stdout } else { Vec::new() },
            files,
        };
        (left, said)
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

/// The lines that both sides say, in a form that can be compared: without progress, times and speeds, sorted, since nobody
/// knows how two streams mix.
fn said(output: &Output, is_data: bool) -> Vec<String> {
    let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !is_data {
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    // lrzip does not end this line.
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

/// Times and speeds are cut off.
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

/// Whether there is something to compare with; says so if not.
#[allow(
    clippy::print_stderr,
    reason = "a test that compares nothing should say so"
)]
pub fn has_lrzip() -> bool {
    let has_lrzip = Command::new("lrzip").arg("-V").output().is_ok();
    if !has_lrzip {
        eprintln!("lrzip is not installed: not compared");
    }
    has_lrzip
}

/// Runs every case on both sides.
pub fn compare(cases: &[Case], config: Option<&str>) {
    if !has_lrzip() {
        return;
    }
    let (theirs, ours) = (Side::lrzip(), Side::ours());
    let mut wrong = Vec::new();
    for (line, stdin, twin) in cases {
        let (their_left, their_words) = theirs.run(line, stdin, config);
        let (our_left, our_words) = ours.run(line, stdin, config);
        let mut faults = Vec::new();
        match twin {
            Twin::Same | Twin::OtherWords(_) => faults.extend(differences(&our_left, &their_left)),
            Twin::Otherwise(why, exit, changes) => {
                let changed = changed(&ours, &our_left);
                if our_left.exit != Some(*exit) || changed != *changes {
                    faults.push(format!("exit code {:?}, files {changed:?}", our_left.exit));
                }
                if our_left == their_left {
                    faults.push(format!("no difference ({why})"));
                }
            }
        }
        match (twin, our_words == their_words) {
            (Twin::Same, false) => faults.push("words differ".into()),
            (Twin::OtherWords(why), true) => faults.push(format!("words do not differ ({why})")),
            _ => {}
        }
        if !faults.is_empty() {
            wrong.push(format!(
                "`{line}` <{stdin}: {}\n  lrzip: {their_words:?}\n  ours:  {our_words:?}",
                faults.join("; ")
            ));
        }
    }
    assert!(wrong.is_empty(), "with {config:?}:\n{}", wrong.join("\n"));
}

/// In what two runs are not the same.
fn differences(ours: &Left, theirs: &Left) -> Vec<String> {
    let mut found = Vec::new();
    if ours.exit != theirs.exit {
        found.push(format!("exit code {:?}, not {:?}", ours.exit, theirs.exit));
    }
    if !has_same_content(&ours.stdout, &theirs.stdout) {
        found.push("standard output".into());
    }
    let names = |left: &Left| left.files.keys().cloned().collect::<Vec<_>>();
    if names(ours) != names(theirs) {
        found.push(format!("files {:?}, not {:?}", names(ours), names(theirs)));
    }
    for (name, bytes) in &ours.files {
        let same = theirs.files.get(name);
        if same.is_some_and(|theirs| !has_same_content(bytes, theirs)) {
            found.push(format!("content of {name}"));
        }
    }
    found
}

/// Whether bytes are the same, or archives of the same content: lrzip opens both.
fn has_same_content(ours: &[u8], theirs: &[u8]) -> bool {
    let both_archives = ours.starts_with(b"LRZI") && theirs.starts_with(b"LRZI");
    ours == theirs || (both_archives && opened(ours) == opened(theirs))
}

/// The content of an archive, by lrzip.
fn opened(archive: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("x.lrz"), archive).unwrap();
    let mut command = Command::new("lrzip");
    command.args(["-dQ", "x.lrz"]).current_dir(directory.path());
    let output = command.env("LRZIP", "NOCONFIG").output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "lrzip does not open it: {words}");
    fs::read(directory.path().join("x")).unwrap()
}

/// Names of files that are new or changed, and with a `-` those that are gone.
fn changed(side: &Side, left: &Left) -> Vec<String> {
    let fresh = side.directory.path().join("fresh");
    let _ = fs::remove_dir_all(&fresh);
    fs::create_dir_all(&fresh).unwrap();
    prepare(&fresh);
    let mut before = BTreeMap::new();
    collect(&fresh, &fresh, &mut before);
    let is_new = |(name, bytes): &(&String, &Vec<u8>)| before.get(*name) != Some(*bytes);
    let new = left
        .files
        .iter()
        .filter(is_new)
        .map(|(name, _)| name.clone());
    let gone = before.keys().filter(|name| !left.files.contains_key(*name));
    new.chain(gone.map(|name| format!("-{name}"))).collect()
}
