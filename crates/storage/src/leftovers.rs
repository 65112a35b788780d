//! Temporary files and directories to remove when the process must end immediately.
//!
//! Dropping an unpublished output removes it. A process that ends without waiting for its threads
//! drops nothing, so every temporary name is also registered here, and [`remove_leftovers`] removes
//! it. (Files without a name need neither.)

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use refrain_pool::Lock;

static REGISTERED: LazyLock<Lock<Vec<PathBuf>>> = LazyLock::new(Lock::default);

/// Registers a temporary file or directory while this value exists.
#[derive(Debug)]
pub struct Leftover(PathBuf);

impl Leftover {
    /// Registers `path`, where a file or directory exists or is about to be created.
    #[must_use]
    pub fn note(path: &Path) -> Leftover {
        // A relative path changes its meaning with the current directory.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        REGISTERED.lock().push(path.clone());
        Leftover(path)
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        let mut registered = REGISTERED.lock();
        if let Some(index) = registered.iter().position(|path| *path == self.0) {
            registered.swap_remove(index);
        }
    }
}

/// Removes everything that is registered, with its contents. A process calls it last before it ends
/// without waiting for its threads. The threads may continue to write meanwhile, so a directory is
/// tried more than once.
pub fn remove_leftovers() {
    const TRIES_MAX: usize = 10;
    let registered = std::mem::take(&mut *REGISTERED.lock());
    for path in registered {
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

    /// One test, since the registry belongs to the whole process.
    #[test]
    fn only_registered_paths_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let [released, file, tree] =
            ["released", "file", "tree"].map(|name| directory.path().join(name));
        fs::write(&released, "x").unwrap();
        fs::write(&file, "x").unwrap();
        fs::create_dir_all(tree.join("below")).unwrap();
        fs::write(tree.join("below/file"), "x").unwrap();
        drop(Leftover::note(&released));
        let notes = [&file, &tree].map(|path| Leftover::note(path));
        remove_leftovers();
        assert!(released.exists() && !file.exists() && !tree.exists());
        drop(notes);
    }
}
