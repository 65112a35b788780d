//! What each verb may do with a changed archive.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::samples::{Sample, below};
use crate::support::{Case, EntryState, REFRAIN};
use wait4::Wait4;

/// The memory budget of every run, and its limit in KiB: a fifth more, plus the program's own
/// pages.
const MEMORY: &str = "128M";
const PEAK_KIB_MAX: u64 = 128 * 1024 * 6 / 5 + 24 * 1024;
/// A run that takes longer hangs.
const SECONDS_MAX: &str = "10";

/// Exit codes that are a result: not those of bugs, panics and signals.
const RESULTS: [i32; 7] = [0, 1, 2, 3, 4, 5, 6];

/// What a run did.
struct Run {
    exit: i32,
    output: Vec<u8>,
}

impl Run {
    fn is_done(&self) -> bool {
        self.exit == 0
    }
}

/// Runs every verb. Returns whether all of them took the archive for intact.
pub fn check(folder: &Case, sample: &Sample, what: &str) -> bool {
    let (name, output) = (&sample.file_name, sample.output);
    let run = |line: &str| run(folder, line, what);
    let restored = run(&format!("decompress -q -M {MEMORY} {name} -o {output}"));
    check_restored(folder, sample, &restored, what);
    let tested = run(&format!("test -q -M {MEMORY} {name}"));
    assert!(
        !tested.is_done() || restored.is_done(),
        "{what}: test calls whole what cannot be restored"
    );
    let mut runs = vec![];
    if let Some(wanted) = &sample.written {
        for input in [
            name.clone(),
            format!("- < {name}"),
            format!("<(cat {name})"),
        ] {
            let line = format!("decompress -q -M {MEMORY} -o - {input}");
            runs.push(run(&line));
            let other = runs
                .iter()
                .any(|run| run.is_done() && run.output != *wanted);
            assert!(!other, "{what}: {line}: other bytes, exit 0");
        }
    }
    let listed = run(&format!("list -M {MEMORY} {name}"));
    if listed.is_done() && sample.protects_names {
        assert!(listed.output == sample.listed, "{what}: another list");
    }
    // A scan reports what it misses; content of what it finds was compared block by block.
    run(&format!("list --scan -M {MEMORY} {name}"));
    let kept = run(&format!(
        "decompress -q --keep-broken -M {MEMORY} {name} -o kept-{output}"
    ));
    assert!(!kept.is_done() || restored.is_done(), "{what}: kept broken");
    remove(&folder.path("out"));
    remove(&folder.path("kept-out"));
    runs.extend([restored, tested, listed]);
    runs.iter().all(Run::is_done)
}

/// The peak memory of the test itself, in KiB: Linux counts it for the programs that it starts.
fn own_peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.unwrap().parse().unwrap()
}

fn remove(path: &Path) {
    let _ = fs::remove_dir_all(path);
    let _ = fs::remove_file(path);
}

/// Runs `refrain` with the arguments in `line`.
fn run(folder: &Case, line: &str, what: &str) -> Run {
    let script = format!("exec timeout -s ABRT {SECONDS_MAX} {REFRAIN} {line}");
    let child = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path(""))
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.path("stdout")).unwrap())
        .stderr(fs::File::create(folder.path("stderr")).unwrap())
        .spawn()
        .unwrap();
    let usage = child.wait4().unwrap();
    let told = String::from_utf8_lossy(&folder.read("stderr")).into_owned();
    let exit = usage.status.code().unwrap_or(-1);
    assert!(
        RESULTS.contains(&exit),
        "{what}: {line}: exit {exit}: {told}"
    );
    assert!(
        exit == 0 || !told.trim().is_empty(),
        "{what}: {line}: exit {exit} without a word"
    );
    let peak_kib = usage.rusage.maxrss / 1024;
    assert!(
        peak_kib <= PEAK_KIB_MAX.max(own_peak_kib()),
        "{what}: {line}: {peak_kib} KiB of memory"
    );
    Run {
        exit,
        output: folder.read("stdout"),
    }
}

/// What is restored is unchanged, and complete if the exit code is 0.
fn check_restored(folder: &Case, sample: &Sample, run: &Run, what: &str) {
    let found = below(&folder.path("out"));
    if run.is_done() {
        if sample.protects_names {
            assert_eq!(found, sample.restored, "{what}: restored otherwise")
        } else {
            assert_eq!(contents(&found), contents(&sample.restored), "{what}")
        }
        return;
    }
    if !sample.protects_names {
        return;
    }
    let wanted: HashMap<_, _> = (sample.restored.iter())
        .map(|entry| (&entry.path, &entry.content))
        .collect();
    for entry in &found {
        let wanted = wanted.get(&entry.path);
        // Of a single file, what precedes the damage.
        let is_beginning = sample.written.as_ref().is_some_and(|whole| {
            let only = fs::read(folder.path("out").join(&entry.path));
            sample.restored.len() == 1 && only.is_ok_and(|bytes| whole.starts_with(&bytes))
        });
        assert!(
            wanted == Some(&&entry.content) || is_beginning,
            "{what}: exit {}, and {} is not what it was: {entry:?}",
            run.exit,
            entry.path
        );
    }
}

/// Lengths and hashes, without names.
fn contents(found: &[EntryState]) -> Vec<(usize, u64)> {
    let mut contents: Vec<_> = found.iter().map(|entry| entry.content).collect();
    contents.sort_unstable();
    contents
}
