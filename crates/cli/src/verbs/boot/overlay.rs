//! The overlay that holds what the guest writes.

use std::env;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::failure::{Failure, Result};
use crate::overlay::{OVERLAY_HEAD_BYTES, Origin, origin, with_origin};
use crate::report::Report;
use crate::temporary;

/// A file without a name for an overlay that is discarded, even if this program is killed. Child
/// processes inherit it.
pub(super) struct Scratch(File);

impl Scratch {
    /// A file in the directory given with `--temporary`, or in the system's.
    ///
    /// # Errors
    /// `Usage` if temporary files are forbidden; `Io`.
    pub(super) fn new(given: Option<&Path>) -> Result<Scratch> {
        let space = temporary::space(given, None);
        if given.is_some() && space.is_none() {
            let text = "what the guest writes needs a temporary file, or `--overlay FILE`";
            return Err(Failure::usage("--temporary none", text));
        }
        let directory = space.map_or_else(env::temp_dir, |space| space.directory);
        let made = tempfile::tempfile_in(&directory).and_then(|file| {
            fcntl_setfd(&file, FdFlags::empty())?;
            Ok(Scratch(file))
        });
        made.map_err(failure(&directory, "make a temporary file in"))
    }

    /// The path by which this process and its children open the file.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/fd/{}", self.0.as_raw_fd()))
    }
}

/// Checks that an overlay lies on the content that is recorded in it, and reports if nothing is.
///
/// # Errors
/// `Refused` if it lies on something else, or is not an overlay; `Io`.
pub(super) fn check(path: &Path, expected: Option<&[u8]>, report: &Report) -> Result<()> {
    let head = match File::open(path) {
        Ok(file) => read_head(&file),
        // It is created.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
    };
    let shown = path.display().to_string();
    let found = origin(&head.map_err(failure(path, "read"))?);
    match (found, expected) {
        (None, _) => Err(Failure::refused(shown, "this is not an overlay (qcow2)")),
        (Some(Origin::Recorded(recorded)), Some(expected)) if recorded != expected => {
            let text = "this overlay lies on another image, or the image is opened in another \
                        format: the guest would see a mixture of two disks";
            Err(Failure::refused(shown, text))
        }
        (Some(Origin::Unknown), _) | (_, None) => {
            let text = "nothing tells whether this overlay lies on this image";
            report.remark(&format!("{shown}: {text}"));
            Ok(())
        }
        (Some(Origin::Recorded(_)), Some(_)) => Ok(()),
    }
}

/// Records in a new overlay what it lies on.
///
/// # Errors
/// `Io`. A header without room is left as it is.
pub(super) fn record(path: &Path, origin: &[u8]) -> Result<()> {
    let recorded = OpenOptions::new().read(true).write(true).open(path);
    let recorded = recorded.and_then(|file| match with_origin(&read_head(&file)?, origin) {
        Some(head) => file.write_all_at(&head, 0),
        None => Ok(()),
    });
    recorded.map_err(failure(path, "write"))
}

/// The beginning of an overlay, with zeros after its end.
fn read_head(file: &File) -> io::Result<Vec<u8>> {
    let mut head = vec![0; OVERLAY_HEAD_BYTES];
    let mut filled = 0;
    while filled < head.len() {
        match file.read_at(&mut head[filled..], filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(head)
}

fn failure(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Failure {
    let file = path.display().to_string();
    move |error| Failure::Io {
        file,
        action,
        error,
    }
}
