//! A killed run leaves the old file complete and nothing of the new one.
//!
//! The test runs itself as a child that compresses or extracts forever, and kills it with
//! `SIGKILL`, so that no cleanup can run.

// Helpers of tests may panic.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::*;
use refrain::storage::{AtomicFile, OutputOptions, Overwrite};
use refrain::{Content, Member, MemberStart, Result, Target, Targets, Unwatched};
use refrain_testkit::data;

const PATH: &str = "REFRAIN_KILLED_TEST_PATH";
const VERB: &str = "REFRAIN_KILLED_TEST_VERB";

fn atomic(path: &Path) -> AtomicFile {
    let options = OutputOptions {
        overwrite: Overwrite::Replace,
        ..OutputOptions::default()
    };
    AtomicFile::create(path, &options).unwrap()
}

/// Not a test: the work of the child.
#[test]
fn child() {
    let Some(path) = std::env::var_os(PATH).map(PathBuf::from) else {
        return;
    };
    if std::env::var(VERB).unwrap() == "compress" {
        let stream = Generated::new(|number| {
            if number == 80 {
                println!("\nunder way");
            }
            Some(data::random(MIB, number))
        });
        let members = vec![member("endless", Content::Stream(Box::new(stream)))];
        refrain::compress(
            members,
            &mut atomic(&path),
            &small_options("none"),
            &Unwatched,
        )
        .unwrap();
    } else {
        let bytes = data::text(3 * MIB, 1);
        let (archive, _) = archive_of(vec![file("m", &bytes)], &small_options("lz4"));
        let mut targets = Endless(path);
        refrain::extract(source(&archive), &mut targets, &read_options(1), &Unwatched).unwrap();
    }
}

/// Writes the member except its end, and then waits to be killed.
struct Endless(PathBuf);

impl Targets for Endless {
    fn open(&mut self, _member: &MemberStart) -> Result<Target> {
        Ok(Target::Sink(Box::new(atomic(&self.0))))
    }

    fn close(&mut self, _member: &Member, _sink: Target) -> Result<()> {
        println!("\nunder way");
        loop {
            std::thread::park();
        }
    }
}

#[test]
fn a_killed_run_leaves_the_old_file() {
    for verb in ["compress", "extract"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, b"what was there").unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(PATH, &path)
            .env(VERB, verb)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let is_under_way = output.lines().any(|line| line.unwrap() == "under way");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_under_way, "{verb} ended by itself");
        assert_eq!(std::fs::read(&path).unwrap(), b"what was there", "{verb}");
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            // On file systems without unnamed files a hidden file remains.
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(name == "out" || name.starts_with(".out."), "{verb}: {name}");
        }
    }
}
