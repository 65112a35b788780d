//! Opening what is read and what is written: the only file here that knows the storage layer.

use std::fs::{self, File, Metadata};
use std::io::{self, Cursor, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain::Timestamp;
use refrain::storage::{
    Durability, FileSource, OutputOptions, Overwrite, Sink, Source, StreamSink, create_output,
};

use crate::failure::{Failure, Result};
use crate::patience::PatientReader;
use crate::session::Session;

/// Where standard input can be opened anew, with an offset of its own, when it is a file.
const STDIN_PATH: &str = "/dev/stdin";

/// Whether a path stands for standard input or output.
pub fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether a path is, or is to be, a directory.
pub fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// The name of a path in messages.
pub fn label(path: &Path) -> String {
    match is_dash(path) {
        true => "standard input".to_string(),
        false => path.to_string_lossy().into_owned(),
    }
}

/// `paths`, or standard input when there are none and it is no terminal.
pub fn or_stdin(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let paths = if paths.is_empty() {
        vec![PathBuf::from("-")]
    } else {
        paths.to_vec()
    };
    match paths.iter().any(|path| is_dash(path)) && io::stdin().is_terminal() {
        true => Err(Failure::usage(
            "",
            "no FILE given and standard input is a terminal; see --help",
        )),
        false => Ok(paths),
    }
}

/// Wraps an error of the operating system.
pub fn io_failure(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Failure {
    let file = label(path);
    move |error| Failure::Io {
        file,
        action,
        error,
    }
}

/// What is at `path`, symbolic links followed.
pub fn metadata(path: &Path) -> Result<Metadata> {
    fs::metadata(path).map_err(io_failure(path, "open"))
}

/// Standard input as a stream, from where it stands.
pub fn stdin_stream(session: &Session) -> Result<Box<dyn Read + Send>> {
    let path = Path::new("-");
    let descriptor = io::stdin().as_fd().try_clone_to_owned();
    let file = File::from(descriptor.map_err(io_failure(path, "open"))?);
    Ok(Box::new(PatientReader::new(file, session)))
}

/// What standard input is, if it can be told.
pub fn stdin_metadata() -> Option<Metadata> {
    fs::metadata(STDIN_PATH).ok()
}

/// A file that can only be read forward (a FIFO, a character device).
pub fn file_stream(path: &Path, session: &Session) -> Result<Box<dyn Read + Send>> {
    let file = File::open(path).map_err(io_failure(path, "open"))?;
    Ok(Box::new(PatientReader::new(file, session)))
}

/// The first bytes of a stream, up to `count_max`, and the whole stream.
pub fn peek(
    path: &Path,
    mut stream: Box<dyn Read + Send>,
    count_max: usize,
) -> Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut first = Vec::with_capacity(count_max);
    let read = (&mut *stream)
        .take(count_max as u64)
        .read_to_end(&mut first);
    read.map_err(io_failure(path, "read"))?;
    let whole = Cursor::new(first.clone()).chain(stream);
    Ok((first, Box::new(whole)))
}

/// A file that can be read at any offset; `-` is standard input if that is a file.
pub fn source(path: &Path) -> Result<Arc<dyn Source>> {
    if !is_dash(path) {
        return open_source(path);
    }
    match fs::metadata(STDIN_PATH) {
        // Opened anew it begins at its beginning, which is what was meant only if it stands there.
        Ok(metadata) if metadata.is_file() && rustix::fs::tell(io::stdin()) != Ok(0) => {
            Err(Failure::usage(
                label(path),
                "was read from already; this verb needs an archive from its first byte on",
            ))
        }
        Ok(metadata) if metadata.is_file() => open_source(Path::new(STDIN_PATH)),
        _ => Err(Failure::usage(
            label(path),
            "is a pipe; this verb needs an archive that can be read at any offset",
        )),
    }
}

/// When a file was modified.
pub fn modified(metadata: &Metadata) -> Option<Timestamp> {
    Some(Timestamp::modified(metadata))
}

/// The permission bits of a file.
pub fn mode(metadata: &Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(metadata.mode() & 0o7777)
}

/// Refuses an output that is the file `read`: even `--force` must not replace what is being read.
pub fn check_other_than(read: &Metadata, output: &Path) -> Result<()> {
    match fs::metadata(output) {
        Ok(found) if found.is_file() && identity(&found) == identity(read) => {
            Err(Failure::usage(label(output), "is input and output at once"))
        }
        _ => Ok(()),
    }
}

/// What tells two files apart, and a file from its changed self.
pub fn identity(metadata: &Metadata) -> (u64, u64, u64, Option<Timestamp>) {
    use std::os::unix::fs::MetadataExt;
    (
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        modified(metadata),
    )
}

/// What a new file is like.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewFile {
    /// Replace what is there.
    pub overwrite: bool,
    /// Permission bits; set-user-id and the like are dropped, since owners are not restored.
    pub mode: Option<u32>,
    /// Time of modification.
    pub modified: Option<Timestamp>,
    /// Wait until it is on the disk.
    pub synced: bool,
}

/// Standard output. Terminals are refused unless `force`: archives and contents are binary.
pub fn stdout_sink(force: bool) -> Result<Box<dyn Sink>> {
    if io::stdout().is_terminal() && !force {
        let text = "is a terminal and the output is binary: redirect it, or use -o FILE or --force";
        return Err(Failure::usage("standard output", text));
    }
    open_stdout()
}

/// Refuses early what the sink would refuse at the end, before hours of work.
pub fn check_free(path: &Path, overwrite: bool) -> Result<()> {
    match fs::metadata(path) {
        // A link that points at nothing.
        Err(_) if !overwrite && path.is_symlink() => Err(Failure::Exists { file: label(path) }),
        Ok(found) if found.is_dir() => Err(Failure::usage(
            label(path),
            "is a directory; the output must be a file",
        )),
        Ok(found) if found.is_file() && !overwrite => Err(Failure::Exists { file: label(path) }),
        _ => Ok(()),
    }
}

/// Makes the directories between `base` and `base/relative`, refusing to walk through symbolic
/// links: an earlier member of the same archive could have put them there.
pub fn make_parents(base: &Path, relative: &Path) -> Result<()> {
    let mut path = base.to_path_buf();
    if !base.as_os_str().is_empty() {
        fs::create_dir_all(base).map_err(io_failure(base, "create directory"))?;
    }
    for part in relative.parent().into_iter().flat_map(Path::components) {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                let text = "is in the way: not a directory of its own";
                return Err(Failure::usage(label(&path), text));
            }
            Err(_) => fs::create_dir(&path).map_err(io_failure(&path, "create directory"))?,
        }
    }
    Ok(())
}

/// Removes a source whose output is in place, if it is still the regular file that was read.
/// Returns why not.
pub fn remove_source(path: &Path, read: &Metadata) -> Result<Option<&'static str>> {
    let found = fs::symlink_metadata(path).map_err(io_failure(path, "remove"))?;
    if !found.is_file() {
        return Ok(Some("not removed: not a regular file"));
    }
    if identity(&found) != identity(read) {
        return Ok(Some("not removed: it changed while it was read"));
    }
    fs::remove_file(path).map_err(io_failure(path, "remove"))?;
    Ok(None)
}

/// Waits until a restored directory is on the disk. (Files wait for the disk when they are
/// published; a tree of many would take too long one by one.)
pub fn sync_tree(path: &Path) -> Result<()> {
    let directory = File::open(path).map_err(io_failure(path, "sync"))?;
    #[cfg(target_os = "linux")]
    let synced = rustix::fs::syncfs(&directory).map_err(io::Error::from);
    #[cfg(not(target_os = "linux"))]
    let synced = directory.sync_all();
    synced.map_err(io_failure(path, "sync"))
}

// ------------------------------------------------------------------------- the storage layer

fn open_source(path: &Path) -> Result<Arc<dyn Source>> {
    let source = FileSource::open(path).map_err(Failure::Storage)?;
    Ok(Arc::new(source))
}

/// Written through a descriptor of its own: the buffer of `std::io::stdout` looks for line ends,
/// of which binary data has none that matter.
fn open_stdout() -> Result<Box<dyn Sink>> {
    let descriptor = io::stdout().as_fd().try_clone_to_owned();
    let file = File::from(descriptor.map_err(io_failure(Path::new("standard output"), "open"))?);
    Ok(Box::new(StreamSink::new(file, "standard output")))
}

/// A file that appears whole, when it is published, or not at all.
pub fn file_sink(path: &Path, new: NewFile) -> Result<Box<dyn Sink>> {
    let options = OutputOptions {
        overwrite: if new.overwrite {
            Overwrite::Replace
        } else {
            Overwrite::Refuse
        },
        durability: if new.synced {
            Durability::Synced
        } else {
            Durability::Unsynced
        },
        sparse: true,
        mode: new.mode,
        modified: new.modified.and_then(Timestamp::to_system_time),
        ..OutputOptions::default()
    };
    create_output(path, &options).map_err(|error| storage_failure(path, error))
}

/// Makes the output of a sink visible.
pub fn publish(sink: &mut dyn Sink, path: &Path) -> Result<()> {
    sink.publish().map_err(|error| storage_failure(path, error))
}

/// An error of the storage layer, which names the path itself.
fn storage_failure(path: &Path, error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Exists { file: label(path) },
        _ => Failure::Storage(error),
    }
}
