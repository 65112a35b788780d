//! Temporary files and directories of this process, and what killed processes left behind.
//!
//! Everything with a temporary name is locked (`flock`) while its process lives. If another process
//! can lock it, it is abandoned. On file systems without locks, abandoned files stay.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{AtFlags, FlockOperation};
use rustix::io::Errno;

/// The longest file name that all common file systems accept.
const NAME_BYTES_MAX: usize = 255;

/// Length of the longest numbers: a 32-bit process id, a 64-bit counter.
const NUMBERS_BYTES_MAX: usize = 31;

/// `.NAME.PROCESS-COUNTERsuffix`, with a truncated NAME.
pub(super) fn temporary_name(name: &OsStr, counter: u64, suffix: &str) -> OsString {
    let numbers = format!(".{}-{counter}", std::process::id());
    let name = truncated(name.as_bytes(), suffix);
    OsString::from_vec([b".", name, numbers.as_bytes(), suffix.as_bytes()].concat())
}

/// Whether a file name is a temporary name of any process: for `name`, or for any name.
pub(super) fn is_temporary_name(found: &[u8], name: Option<&OsStr>, suffix: &str) -> bool {
    let Some(rest) = found
        .strip_prefix(b".")
        .and_then(|rest| rest.strip_suffix(suffix.as_bytes()))
    else {
        return false;
    };
    let Some(dot) = rest.iter().rposition(|byte| *byte == b'.') else {
        return false;
    };
    let (stem, numbers) = rest.split_at(dot);
    if name.is_some_and(|name| stem != truncated(name.as_bytes(), suffix)) {
        return false;
    }
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let numbers = numbers.get(1..).unwrap_or_default();
    let parts: Vec<&[u8]> = numbers.split(|byte| *byte == b'-').collect();
    matches!(parts.as_slice(), [process, counter] if is_number(process) && is_number(counter))
}

fn truncated<'a>(name: &'a [u8], suffix: &str) -> &'a [u8] {
    let length = NAME_BYTES_MAX - 1 - NUMBERS_BYTES_MAX - suffix.len();
    name.get(..length).unwrap_or(name)
}

/// Locks what this process has just created. `false` if another process took it for abandoned in
/// between: then another name is needed.
pub(super) fn claim(parent: BorrowedFd<'_>, name: &OsStr, opened: &OwnedFd) -> bool {
    // Without support for locks, nobody can take it for abandoned either.
    lock(opened) != Err(Errno::WOULDBLOCK) && is_named(parent, name, opened)
}

/// Locks what may be abandoned. `false` if its process lives, or another user owns it.
pub(super) fn claim_abandoned(parent: BorrowedFd<'_>, name: &OsStr, opened: &OwnedFd) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let is_own = rustix::fs::fstat(opened).is_ok_and(|found| found.st_uid == user);
    is_own && lock(opened).is_ok() && is_named(parent, name, opened)
}

pub(super) fn temporary_names(
    directory: BorrowedFd<'_>,
    name: Option<&OsStr>,
    suffix: &str,
) -> Vec<OsString> {
    // After a failure something abandoned merely stays.
    let Ok(entries) = rustix::fs::Dir::read_from(directory) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_bytes().to_vec())
        .filter(|found| is_temporary_name(found, name, suffix))
        .map(OsString::from_vec)
        .collect()
}

fn lock(file: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)
}

/// Whether the name still refers to what is open.
fn is_named(parent: BorrowedFd<'_>, name: &OsStr, opened: &OwnedFd) -> bool {
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    let (Ok(found), Ok(opened)) = (found, rustix::fs::fstat(opened.as_fd())) else {
        return false;
    };
    (found.st_dev, found.st_ino) == (opened.st_dev, opened.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_recognized_and_others_are_not() {
        for length in [1, 100, 254, 255] {
            let name = OsString::from_vec(vec![b'n'; length]);
            let temporary = temporary_name(&name, u64::MAX, ".partial");
            assert!(temporary.len() <= NAME_BYTES_MAX);
            let temporary = temporary.as_bytes();
            assert!(is_temporary_name(temporary, Some(&name), ".partial"));
            assert!(is_temporary_name(temporary, None, ".partial"));
            assert!(!is_temporary_name(temporary, None, ".part"));
        }
        for other in [
            "out",
            ".out.partial",
            ".out.1-.partial",
            ".out.1-2-3.partial",
            ".outer.1-2.partial",
            ".out.1-2",
            ".out.x-2.partial",
            "out.1-2.partial",
            ".partial",
        ] {
            let found = is_temporary_name(other.as_bytes(), Some(OsStr::new("out")), ".partial");
            assert!(!found, "{other}");
        }
        let found = is_temporary_name(b".out.1-2.partial", Some(OsStr::new("out")), ".partial");
        assert!(found);
    }
}
