//! Paths from the command line and their metadata. Nothing here opens a file.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use refrain::Timestamp;
use refrain_storage::Checking;

use crate::failure::{Failure, Result};
use crate::urls;

/// The path by which a standard input that is a file can be opened again, with its own offset.
pub const STDIN_PATH: &str = "/dev/stdin";

/// Whether a path means standard input or output.
pub fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// How many symbolic links may lead to a descriptor.
const LINKS_MAX: usize = 40;

/// The descriptor of this process named by a path: `/dev/stdout`, `/dev/fd/3`, `/proc/self/fd/1`,
/// or a symbolic link to such a path.
pub fn own_descriptor(path: &Path) -> Option<u32> {
    let tables = ["/proc/self/fd", "/proc/thread-self/fd"].map(|path| fs::canonicalize(path).ok());
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let parent = path.parent()?;
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let directory = fs::canonicalize(parent).ok()?;
        let name = path.file_name()?.to_owned();
        if tables.iter().flatten().any(|table| *table == directory) {
            return name.to_str()?.parse().ok();
        }
        let target = fs::read_link(directory.join(&name)).ok()?;
        path = directory.join(target);
    }
    None
}

/// An output as given; other names of standard output, such as `/dev/stdout`, become `-`.
pub fn dash_for_stdout(output: PathBuf) -> PathBuf {
    match own_descriptor(&output) {
        Some(1) => PathBuf::from("-"),
        _ => output,
    }
}

/// Whether a path is spelled as a directory, with a trailing slash.
pub fn ends_with_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Whether a path is, or is to become, a directory.
pub fn is_directory(path: &Path) -> bool {
    path.is_dir() || ends_with_slash(path)
}

/// The name of an input in messages.
pub fn label(path: &Path) -> String {
    match is_dash(path) {
        true => "standard input".to_string(),
        false if urls::is_url(path) => urls::without_secrets(&path.to_string_lossy()),
        false => path.to_string_lossy().into_owned(),
    }
}

/// Wraps an error of the operating system with the attempted action.
pub fn io_failure(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Failure {
    let file = label(path);
    move |error| Failure::Io {
        file,
        action,
        error,
    }
}

/// The metadata of `path`, following symbolic links.
pub fn metadata(path: &Path) -> Result<Metadata> {
    if urls::is_url(path) {
        let text = "is a URL, and only verbs that read archives take these: fetch the file first, or \
                    pipe it in; write ./ before the name of a file";
        return Err(Failure::usage(label(path), text));
    }
    fs::metadata(path).map_err(io_failure(path, "open"))
}

/// The metadata of standard input, if available.
pub fn stdin_metadata() -> Option<Metadata> {
    fs::metadata(STDIN_PATH).ok()
}

/// Whether the content can be read at any offset: regular files and block devices.
pub fn can_seek(metadata: &Metadata) -> bool {
    metadata.is_file() || metadata.file_type().is_block_device()
}

/// The time of the last modification.
pub fn modified(metadata: &Metadata) -> Option<Timestamp> {
    // Kernels return a value in range; other values are clamped.
    let nanoseconds = metadata.mtime_nsec().clamp(0, 999_999_999) as u32;
    Some(Timestamp {
        seconds: metadata.mtime(),
        nanoseconds,
    })
}

/// The permission bits.
pub fn mode(metadata: &Metadata) -> Option<u32> {
    Some(metadata.mode() & 0o7777)
}

/// The permission bits that a file with the content of these sources may have: those that all of
/// them have. Pipes are ignored.
pub fn mode_limit<'a>(sources: impl IntoIterator<Item = &'a Metadata>) -> Option<u32> {
    const READ_AND_WRITE: u32 = 0o666;
    let is_stored = |found: &&Metadata| {
        found.is_file() || found.is_dir() || found.file_type().is_block_device()
    };
    let modes = sources.into_iter().filter(is_stored).map(Metadata::mode);
    modes
        .reduce(|one, other| one & other)
        .map(|mode| mode & READ_AND_WRITE)
}

/// Whether both are the same file, changed or not.
pub fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Distinguishes a file from other files, and from itself after a change. The last two numbers are
/// the time of the last status change, which nobody can set back.
pub fn identity(metadata: &Metadata) -> (u64, u64, u64, Option<Timestamp>, i64, i64) {
    (
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        modified(metadata),
        metadata.ctime(),
        metadata.ctime_nsec(),
    )
}

/// Refuses an output that is the input `read`: `--force` must not replace a file that is being
/// read.
pub fn check_other_than(read: &Metadata, output: &Path) -> Result<()> {
    match fs::metadata(output) {
        Ok(found) if found.is_file() && is_same_file(&found, read) => Err(Failure::usage(
            label(output),
            "is both input and output: name another output with -o",
        )),
        _ => Ok(()),
    }
}

/// Refuses an output that is a URL.
pub fn check_no_url(output: &Path) -> Result<()> {
    if urls::is_url(output) {
        let text = "is a URL, which cannot be written to; write ./ before the name of a file";
        Err(Failure::usage(label(output), text))
    } else {
        Ok(())
    }
}

/// Refuses an output that cannot be created, before any work is done for it.
pub fn check_free(path: &Path, overwrite: bool) -> Result<()> {
    check_no_url(path)?;
    if own_descriptor(path).is_some() {
        return Ok(());
    }
    match fs::metadata(path) {
        // A dangling symbolic link.
        Err(_) if !overwrite && path.is_symlink() => Err(Failure::Exists { file: label(path) }),
        Ok(found) if found.is_dir() => Err(is_a_directory(path)),
        Ok(found) if found.is_file() && !overwrite => Err(Failure::Exists { file: label(path) }),
        _ => Ok(()),
    }
}

/// The failure for an output that is a directory.
pub fn is_a_directory(path: &Path) -> Failure {
    Failure::usage(label(path), "is a directory; the output must be a file")
}

/// How outputs are checked with `--check`, and without.
pub fn checking(is_checked: bool) -> Checking {
    if is_checked { Checking::ReadBack } else { Checking::Off }
}

/// The attributes of a new file.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewFile {
    /// Whether to replace an existing file.
    pub overwrite: bool,
    /// Permission bits; set-user-id and the like are dropped, since owners are not restored.
    pub mode: Option<u32>,
    /// An upper bound on the permission bits if `mode` is `None`.
    pub mode_limit: Option<u32>,
    /// The modification time.
    pub modified: Option<Timestamp>,
    /// Whether to wait until the file is on disk.
    pub synced: bool,
    /// Whether to compare what the disk has with what was written.
    pub checking: Checking,
}
