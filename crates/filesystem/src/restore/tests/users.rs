//! Test bodies that run as another user, in a separate process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The ids of nobody.
pub(super) const NOBODY: u32 = 65534;

/// The variable with the directory in which a test body works.
const DIRECTORY_VARIABLE: &str = "REFRAIN_TEST_DIRECTORY";

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says why part of a test does not run.
pub(super) fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// The directory given by [`run`], if it started this process.
pub(super) fn directory_of_body() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from)
}

/// Runs the test with this full name as `user` in a separate process, in a new directory that the
/// user owns, then passes the directory to `check`.
pub(super) fn run(test: &str, user: u32, check: impl FnOnce(&Path)) {
    let temporary = tempfile::tempdir().unwrap();
    let open = |path: &Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(temporary.path());
    // Other users may lack access to the program's directory.
    let program = temporary.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    open(&program);
    let directory = temporary.path().join("work");
    fs::create_dir(&directory).unwrap();
    std::os::unix::fs::chown(&directory, Some(user), Some(user)).unwrap();
    let mut command = Command::new(&program);
    command
        .args(["--exact", test, "--nocapture"])
        .env(DIRECTORY_VARIABLE, &directory)
        .current_dir(&directory)
        .uid(user)
        .gid(user);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "as user {user}: {text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    check(&directory);
}
