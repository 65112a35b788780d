//! Temporary files and directories to remove when the process must end immediately.
//!
//! Dropping an unpublished output removes it, but a process that ends without waiting for its
//! threads drops nothing. So every temporary name is also registered here, and [`remove_leftovers`]
//! removes it. (Files without a name need neither.)

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use refrain_pool::Lock;
use rustix::fs::{AtFlags, statat, unlinkat};
use rustix::io::Errno;

use crate::remove_tree::remove_tree;

static REGISTERED: LazyLock<Lock<Vec<Registered>>> = LazyLock::new(Lock::default);

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A temporary name in an open directory. A path could lead elsewhere by the time it is used.
#[derive(Debug)]
struct Registered {
    number: u64,
    directory: OwnedFd,
    name: OsString,
}

/// Registers a temporary file or directory while this value exists.
#[derive(Debug)]
pub struct Leftover(u64);

impl Leftover {
    /// Registers `name` in `directory`; the file or directory may be created after the call.
    #[must_use]
    pub fn note(directory: BorrowedFd<'_>, name: &OsStr) -> Leftover {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        // If descriptors have run out it is not registered, and stays behind if the process is
        // ended.
        if let Ok(directory) = directory.try_clone_to_owned() {
            REGISTERED.lock().push(Registered {
                number,
                directory,
                name: name.to_owned(),
            });
        }
        Leftover(number)
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        let mut registered = REGISTERED.lock();
        if let Some(index) = registered.iter().position(|found| found.number == self.0) {
            registered.swap_remove(index);
        }
    }
}

/// Removes everything that is registered, with its contents. A process calls it last before it ends
/// without waiting for its threads. These may still be writing, so a directory is tried more than
/// once.
pub fn remove_leftovers() {
    let registered = std::mem::take(&mut *REGISTERED.lock());
    registered.iter().for_each(remove);
}

fn remove(leftover: &Registered) {
    const TRIES_MAX: usize = 10;
    let Registered {
        directory, name, ..
    } = leftover;
    if unlinkat(directory, name, AtFlags::empty()).is_ok() {
        return;
    }
    let is_gone = |_: &usize| {
        let removed = remove_tree(directory.as_fd(), name);
        let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        removed.is_ok() || found.is_err_and(|error| error == Errno::NOENT)
    };
    let _ = (0..TRIES_MAX).find(is_gone);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Checks only its own names: other tests run in the same process.
    #[test]
    fn only_registered_names_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let opened = fs::File::open(directory.path()).unwrap();
        let [released, file, tree] =
            ["released", "file", "tree"].map(|name| directory.path().join(name));
        fs::write(&released, "x").unwrap();
        fs::write(&file, "x").unwrap();
        fs::create_dir_all(tree.join("below")).unwrap();
        fs::write(tree.join("below/file"), "x").unwrap();
        let note = |name: &str| Leftover::note(opened.as_fd(), OsStr::new(name));
        drop(note("released"));
        let notes = ["file", "tree"].map(note);
        let of_this_test = |found: &Registered| {
            let (found, here) = (
                rustix::fs::fstat(&found.directory),
                rustix::fs::fstat(&opened),
            );
            found.unwrap().st_ino == here.unwrap().st_ino
        };
        let registered = std::mem::take(&mut *REGISTERED.lock());
        let (own, others): (Vec<_>, Vec<_>) = registered.into_iter().partition(of_this_test);
        REGISTERED.lock().extend(others);
        own.iter().for_each(remove);
        assert!(released.exists() && !file.exists() && !tree.exists());
        drop(notes);
    }
}
