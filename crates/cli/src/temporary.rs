//! Where temporary content goes: a directory on a disk.

use std::env;
use std::path::{Path, PathBuf};

use refrain::TemporarySpace;
use refrain_storage::is_in_memory;
use rustix::fs::{Access, access};

/// The value of `--temporary` that forbids temporary files.
const NONE: &str = "none";

/// The system's directory for large temporary files, which survive a restart; `/tmp` is often in
/// memory.
const SYSTEM_DIRECTORY: &str = "/var/tmp";

/// The space for a run's temporary content: in the given directory, otherwise in the first writable
/// one on a disk of `TMPDIR`, `/var/tmp` and the output's directory.
pub fn space(given: Option<&Path>, output: Option<&Path>) -> Option<TemporarySpace> {
    if let Some(given) = given {
        return (given != Path::new(NONE)).then(|| TemporarySpace::new(given));
    }
    let tmpdir = env::var_os("TMPDIR").map(PathBuf::from);
    let beside = output.map(|output| match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    });
    let candidates = [tmpdir, Some(PathBuf::from(SYSTEM_DIRECTORY)), beside];
    let found = candidates
        .into_iter()
        .flatten()
        .find(|path| is_usable(path));
    found.map(TemporarySpace::new)
}

fn is_usable(path: &Path) -> bool {
    !is_in_memory(path) && access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_directory_prevails_and_none_is_none() {
        let given = Path::new("/given");
        let output = Some(Path::new("out"));
        let expected = Some(TemporarySpace::new("/given"));
        assert_eq!(space(Some(given), output), expected);
        assert_eq!(space(Some(Path::new("none")), output), None);
    }

    #[test]
    fn memory_and_missing_directories_are_of_no_use() {
        assert!(!is_usable(Path::new("/dev/shm")));
        assert!(!is_usable(Path::new("/a directory that does not exist")));
    }
}
