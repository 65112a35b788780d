//! Killed in the middle of writing: nothing under the final name, ever.
//!
//! The test runs itself as a child that writes forever, and kills it with `SIGKILL`, which leaves
//! no chance to clean up.

// Helpers of tests may fail loudly.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use refrain_storage::{AtomicFile, Durability, OutputOptions, Overwrite, Sink, Temporary};

const DIRECTORY: &str = "REFRAIN_CRASH_TEST_DIRECTORY";
const TEMPORARY: &str = "REFRAIN_CRASH_TEST_TEMPORARY";

/// Not a test: run by the child.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let temporary = match std::env::var(TEMPORARY).unwrap().as_str() {
        "hidden" => Temporary::Hidden,
        _ => Temporary::Unnamed,
    };
    let options = OutputOptions {
        temporary,
        overwrite: Overwrite::Replace,
        durability: Durability::Unsynced,
        ..OutputOptions::default()
    };
    let path = PathBuf::from(directory).join("out");
    // Starts over with whole files, so that the kill hits any step.
    for round in 0u64.. {
        let mut file = AtomicFile::create(&path, &options).unwrap();
        if round == 0 {
            println!("\nwriting unnamed={}", file.is_unnamed());
        }
        for _ in 0..4 {
            file.write_all(&vec![round as u8; 100_000]).unwrap();
            file.write_zeros(10_000).unwrap();
        }
        let stop_before_publishing = std::env::var_os("REFRAIN_CRASH_TEST_ROUNDS").is_none();
        if stop_before_publishing {
            println!("\nwritten");
            std::thread::park();
        }
        file.publish().unwrap();
    }
}

/// Kills its child even if the test fails.
struct Writer {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Writer {
    fn kill(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(directory: &Path, temporary: &str, publishes: bool) -> Writer {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(TEMPORARY, temporary)
        .stdout(Stdio::piped());
    if publishes {
        command.env("REFRAIN_CRASH_TEST_ROUNDS", "all");
    }
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    Writer { child, output }
}

/// Reads the child's output up to the line that begins with `start`.
fn wait_for(output: &mut impl BufRead, start: &str) -> String {
    let mut lines = output.lines().map(Result::unwrap);
    lines.find(|line| line.starts_with(start)).unwrap()
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn killed_before_publishing_leaves_nothing_under_the_name() {
    for temporary in ["unnamed", "hidden"] {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = spawn(directory.path(), temporary, false);
        let unnamed = wait_for(&mut writer.output, "writing").ends_with("true");
        wait_for(&mut writer.output, "written");
        writer.kill();
        let left = entries(directory.path());
        if unnamed {
            assert!(left.is_empty(), "{left:?}");
        } else {
            assert_eq!(left.len(), 1);
            assert!(left[0].starts_with(".out."), "{left:?}");
        }
    }
}

#[test]
fn killed_at_any_time_leaves_a_whole_file_or_none() {
    for round in 0..12u64 {
        let directory = tempfile::tempdir().unwrap();
        let temporary = ["unnamed", "hidden"][round as usize % 2];
        let mut writer = spawn(directory.path(), temporary, true);
        wait_for(&mut writer.output, "writing");
        std::thread::sleep(std::time::Duration::from_micros(1000 + 700 * round));
        writer.kill();
        if let Ok(bytes) = std::fs::read(directory.path().join("out")) {
            assert_eq!(bytes.len(), 440_000);
            for part in bytes.chunks(110_000) {
                assert!(part[..100_000].iter().all(|byte| *byte == bytes[0]));
                assert!(part[100_000..].iter().all(|byte| *byte == 0));
            }
        }
    }
}
