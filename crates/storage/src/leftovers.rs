//! What has a name before it is whole, in case the process has to end at once.
//!
//! Dropping an unpublished output removes it. A process that must not wait for its threads drops nothing, so whatever has a
//! temporary name is also noted here, and [`remove_leftovers`] removes it. (Files without a name need neither.)

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use refrain_pool::Lock;

static NOTED: LazyLock<Lock<Vec<PathBuf>>> = LazyLock::new(Lock::default);

/// Notes a temporary file or directory for as long as this lives.
#[derive(Debug)]
pub struct Leftover(PathBuf);

impl Leftover {
    /// Notes what is, or is about to be, at `path`.
    #[must_use]
    pub fn note(path: &Path) -> Leftover {
        // A relative path means something else after a change of directory.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        NOTED.lock().push(path.clone());
        Leftover(path)
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        let mut noted = NOTED.lock();
        if let Some(place) = noted.iter().position(|path| *path == self.0) {
            noted.swap_remove(place);
        }
    }
}

/// Removes everything that is noted now, with all that is in it. To be called last before a process ends without waiting for its
/// threads, which may go on writing meanwhile: a directory is tried more than once.
pub fn remove_leftovers() {
    const TRIES_MAX: usize = 10;
    let noted = std::mem::take(&mut *NOTED.lock());
    for path in noted {
        if fs::remove_file(&path).is_ok() {
            continue;
        }
        let gone = |_: &usize| fs::remove_dir_all(&path).is_ok() || !path.exists();
        let _ = (0..TRIES_MAX).find(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since what is noted belongs to the whole process.
    #[test]
    fn only_what_is_still_noted_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let [kept, file, tree] = ["kept", "file", "tree"].map(|name| directory.path().join(name));
        fs::write(&kept, "x").unwrap();
        fs::write(&file, "x").unwrap();
        fs::create_dir_all(tree.join("below")).unwrap();
        fs::write(tree.join("below/file"), "x").unwrap();
        drop(Leftover::note(&kept));
        let notes = [&file, &tree].map(|path| Leftover::note(path));
        remove_leftovers();
        assert!(kept.exists() && !file.exists() && !tree.exists());
        drop(notes);
    }
}
