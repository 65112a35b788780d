//! The test directory, the commands, and data to compress.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The binary under test.
pub const REFRAIN: &str = env!("CARGO_BIN_EXE_refrain");

/// A fresh directory, removed at the end.
pub struct Case {
    directory: tempfile::TempDir,
}

impl Case {
    pub fn new() -> Case {
        Case {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn exists(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok()
    }

    /// Names in the directory, hidden ones too.
    pub fn names(&self) -> Vec<String> {
        names_in(self.directory.path())
    }

    /// A link to the binary under another name.
    pub fn program_link(&self, name: &str) -> PathBuf {
        let path = self.path(&format!("bin/{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(REFRAIN, &path).unwrap();
        path
    }

    pub fn command(&self, program: impl AsRef<OsStr>, line: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        command.args(line.split_whitespace());
        command
    }

    /// Runs `refrain` with the arguments in `line`, separated by spaces.
    pub fn run(&self, line: &str) -> Output {
        self.command(REFRAIN, line).output().unwrap()
    }

    /// Runs `refrain` and expects it to succeed.
    pub fn ok(&self, line: &str) -> Output {
        expect(self.run(line), 0, line)
    }

    /// Runs `refrain` and expects an exit code.
    pub fn fails(&self, line: &str, exit: i32) -> String {
        let output = expect(self.run(line), exit, line);
        String::from_utf8(output.stderr).unwrap()
    }

    /// Runs a program with `input` on its standard input.
    pub fn pipe(&self, program: impl AsRef<OsStr>, line: &str, input: &[u8]) -> Output {
        let mut command = self.command(program, line);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // A thread, because the child may fill its output before it has read its input.
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    }
}

/// Names in a directory, hidden ones too.
pub fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Parses what a verb prints with `--json`.
pub fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).unwrap()
}

/// Parses the lines that `list --json` prints.
pub fn json_lines(bytes: &[u8]) -> Vec<serde_json::Value> {
    let lines = bytes.split(|&byte| byte == b'\n');
    lines.filter(|line| !line.is_empty()).map(json).collect()
}

/// Checks the exit code; a failure shows standard error.
pub fn expect(output: Output, exit: i32, what: &str) -> Output {
    let code = output.status.code();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        code,
        Some(exit),
        "{what}: expected exit {exit}, got {code:?}; stderr: {stderr}"
    );
    output
}

/// Incompressible bytes, the same for the same seed.
pub fn incompressible(seed: u64, length: usize) -> Vec<u8> {
    refrain_testkit::data::random(length, seed)
}

/// Data with everything the engine searches for: text, incompressible data, far repeats, zeros, a
/// short period.
pub fn mixture(length: usize) -> Vec<u8> {
    let passage = incompressible(7, length / 5);
    let mut bytes = Vec::with_capacity(length * 2);
    bytes.extend_from_slice(&passage);
    (0..length / 60)
        .for_each(|i| bytes.extend_from_slice(format!("line {i} of text\n").as_bytes()));
    bytes.resize(bytes.len() + length / 5, 0);
    bytes.extend_from_slice(&passage);
    bytes.extend(b"abcde".iter().cycle().take(length / 10));
    bytes.extend_from_slice(&passage[..passage.len() / 2]);
    bytes
}

/// The compared properties of a file, link or directory.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryState {
    pub path: String,
    pub mode: u32,
    pub seconds: i64,
    pub nanoseconds: i64,
    /// Length and hash of the content; the whole content would drown a failure's message.
    pub content: (usize, u64),
}

/// Everything below a directory.
pub fn snapshot(root: &Path) -> Vec<EntryState> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        found.push(EntryState {
            path: path
                .strip_prefix(root)
                .unwrap()
                .to_string_lossy()
                .into_owned(),
            mode: metadata.mode(),
            seconds: metadata.mtime(),
            nanoseconds: metadata.mtime_nsec(),
            content: digest(&content(&path, &metadata)),
        });
    }
    found.sort();
    found
}

/// The bytes of a file, the target of a link, nothing for others.
fn content(path: &Path, metadata: &fs::Metadata) -> Vec<u8> {
    if metadata.is_symlink() {
        fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec()
    } else if metadata.is_file() {
        fs::read(path).unwrap()
    } else {
        Vec::new()
    }
}

/// Length and FNV-1a hash.
fn digest(bytes: &[u8]) -> (usize, u64) {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    (bytes.len(), bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}
