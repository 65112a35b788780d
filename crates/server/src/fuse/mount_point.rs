//! Checks of the directory on which a file system is to be mounted.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use rustix::io::Errno;

use crate::error::{Error, Result};

/// The device for the kernel's requests.
const DEVICE: &str = "/dev/fuse";

/// Checks that the directory exists and nothing is mounted there. Returns its absolute path.
///
/// # Errors
/// `Refused`, with advice.
pub(super) fn check(directory: &Path) -> Result<PathBuf> {
    let shown = directory.display();
    let refuse = |why: String| Err(Error::Refused(why));
    let abandoned = format!(
        "{shown} is the mount point of a server that has ended: `fusermount3 -u {shown}` frees it"
    );
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) if error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {
            return refuse(abandoned);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return refuse(format!(
                "{shown} does not exist: create the directory first"
            ));
        }
        Err(error) => return Err(Error::system(shown.to_string(), error)),
    };
    if !metadata.is_dir() {
        return refuse(format!("{shown} is not a directory"));
    }
    let absolute = fs::canonicalize(directory);
    let absolute = absolute.map_err(|error| Error::system(shown.to_string(), error))?;
    let parent = absolute
        .parent()
        .and_then(|parent| fs::metadata(parent).ok());
    if parent.is_none_or(|parent| parent.dev() != metadata.dev()) {
        // The kernel may still have the attributes of an abandoned mount cached.
        return match statfs(&absolute) {
            Err(Errno::NOTCONN) => refuse(abandoned),
            _ => refuse(format!("something is already mounted on {shown}")),
        };
    }
    Ok(absolute)
}

/// Checks that the device for the kernel's requests exists.
///
/// # Errors
/// `Refused`, with advice.
pub(super) fn check_device() -> Result<()> {
    let opened = fs::OpenOptions::new().read(true).write(true).open(DEVICE);
    let why = match opened {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => format!(
            "this system has no {DEVICE}, so nothing can be mounted: load the module `fuse`, or \
             give the container the device"
        ),
        Err(error) => format!("{DEVICE} cannot be used: {error}"),
    };
    Err(Error::Refused(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_accepted_and_all_else_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(
            check(scratch.path()).unwrap(),
            scratch.path().canonicalize().unwrap()
        );
        let refusal = |path: &Path| check(path).unwrap_err().to_string();
        let missing = refusal(&scratch.path().join("missing"));
        assert!(missing.contains("does not exist"), "{missing}");
        let file = scratch.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(refusal(&file).contains("is not a directory"));
        for mounted in ["/", "/proc"] {
            let text = refusal(Path::new(mounted));
            assert!(text.contains("something is already mounted on"), "{text}");
        }
    }
}
