//! Runs one command line once and measures its cost.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4 as _;

use super::contender::{Output, PlaceholderPaths, Template};
use super::error::BenchError;

/// How much of a failed program's standard error is shown.
const STDERR_TAIL_BYTES: u64 = 2048;

/// What one run cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// Wall-clock time from start to exit.
    pub(super) elapsed: Duration,
    /// User and system time of the process and the children it waited for.
    pub(super) cpu: Duration,
    /// Maximum resident memory. The kernel starts a child's maximum at its parent's, so the parent
    /// (this program) must stay small: it never holds the measured files in memory.
    pub(super) peak_memory_bytes: u64,
}

/// Runs `template` to its end. Its standard output goes to `paths.out`, or to /dev/null with
/// `discard`; a command that names its output always gets `paths.out`.
///
/// # Errors
///
/// [`BenchError::Io`] if the program cannot be started, [`BenchError::Failed`] with the end of its
/// standard error if it does not exit successfully.
pub(super) fn run(
    name: &str,
    template: &Template,
    paths: &PlaceholderPaths<'_>,
    discard: bool,
) -> Result<Cost, BenchError> {
    let mut stderr = tempfile::tempfile().map_err(io_error("make a temporary file"))?;
    let mut command = Command::new(template.program());
    command
        .args(template.arguments(paths))
        .stdin(stdin(template, paths.input)?)
        .stdout(stdout(template, paths.out, discard)?)
        .stderr(
            stderr
                .try_clone()
                .map_err(io_error("share a temporary file"))?,
        );

    let start = Instant::now();
    let child = command
        .spawn()
        .map_err(io_error(&format!("start {}", template.program())))?;
    let used = child
        .wait4()
        .map_err(io_error(&format!("wait for {}", template.program())))?;
    let elapsed = start.elapsed();

    if !used.status.success() {
        return Err(BenchError::Failed {
            contender: name.into(),
            reason: format!("{}: {}", used.status, tail(&mut stderr)),
        });
    }
    Ok(Cost {
        elapsed,
        cpu: used.rusage.utime + used.rusage.stime,
        peak_memory_bytes: used.rusage.maxrss,
    })
}

fn stdin(template: &Template, input: &Path) -> Result<Stdio, BenchError> {
    if !template.stdin {
        return Ok(Stdio::null());
    }
    let file = File::open(input).map_err(io_error(&format!("open {}", input.display())))?;
    Ok(file.into())
}

fn stdout(template: &Template, out: &Path, discard: bool) -> Result<Stdio, BenchError> {
    if discard || template.output == Output::Named {
        return Ok(Stdio::null());
    }
    let file = File::create(out).map_err(io_error(&format!("create {}", out.display())))?;
    Ok(file.into())
}

/// The end of a failed program's standard error.
fn tail(stderr: &mut File) -> String {
    let mut text = Vec::new();
    let mut read = |text: &mut Vec<u8>| -> io::Result<()> {
        let length = stderr.seek(SeekFrom::End(0))?;
        stderr.seek(SeekFrom::Start(length.saturating_sub(STDERR_TAIL_BYTES)))?;
        stderr.take(STDERR_TAIL_BYTES).read_to_end(text)?;
        Ok(())
    };
    match read(&mut text) {
        Ok(()) => String::from_utf8_lossy(&text).trim().to_string(),
        Err(error) => format!("(its standard error cannot be read: {error})"),
    }
}

/// Wraps an I/O error with the attempted action.
pub(super) fn io_error(what: &str) -> impl FnOnce(io::Error) -> BenchError + use<> {
    let what = what.to_string();
    move |cause| BenchError::Io { what, cause }
}
