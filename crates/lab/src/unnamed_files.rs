//! Files that lose their name as soon as they are open: nothing is left behind, however the run
//! ends.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result, at};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    ReadWrite,
    Append,
}

/// Creates a file in `directory`, opens it once for each of `modes` (separate offsets), and removes
/// its name.
pub(crate) fn open(directory: &Path, modes: &[Mode]) -> Result<Vec<File>> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!(".refrain-lab-{}-{number}", std::process::id()));
    let create = OpenOptions::new().write(true).create_new(true).open(&path);
    create.map_err(at("create a file in", directory))?;
    let files = modes.iter().map(|mode| {
        let mut options = OpenOptions::new();
        match mode {
            Mode::ReadWrite => options.read(true).write(true),
            Mode::Append => options.read(true).append(true),
        };
        options.open(&path).map_err(at("open", &path))
    });
    let files = files.collect();
    fs::remove_file(&path).map_err(at("remove", &path))?;
    files
}

/// Refuses an experiment before it fills up a file system with too little space.
pub(crate) fn require_space(directory: &Path, needed_bytes: u64) -> Result<()> {
    let found =
        rustix::fs::statvfs(directory).map_err(|error| at("examine", directory)(error.into()))?;
    let available_bytes = found.f_bavail.saturating_mul(found.f_frsize);
    if available_bytes < needed_bytes {
        Err(Error::NoSpace {
            directory: directory.to_owned(),
            needed_bytes,
            available_bytes,
        })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn descriptors_share_a_file_that_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = open(directory.path(), &[Mode::Append, Mode::ReadWrite]).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        files[0].write_all(b"shared").unwrap();
        let mut read = String::new();
        files[1].read_to_string(&mut read).unwrap();
        assert_eq!(read, "shared");
    }

    #[test]
    fn what_does_not_fit_or_exist_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        require_space(directory.path(), 1).unwrap();
        let full = require_space(directory.path(), u64::MAX).unwrap_err();
        assert!(matches!(full, Error::NoSpace { .. }));
        let missing = directory.path().join("missing");
        assert!(
            open(&missing, &[])
                .unwrap_err()
                .to_string()
                .contains("missing")
        );
        assert!(require_space(&missing, 0).is_err());
    }
}
