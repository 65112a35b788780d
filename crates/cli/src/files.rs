//! Opens inputs and creates outputs, using the storage layer.

use std::fs::{self, File, Metadata};
use std::io::{self, Cursor, IsTerminal, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
#[cfg(target_os = "linux")]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain::Timestamp;
use refrain::storage::{AtomicFile, FileSource, OutputOptions, Overwrite, Sink, Source};
use refrain_pool::Cancellation;
use refrain_storage::{Checking, ConfinedDirectory, Durability, create_output, descriptor_output};
#[cfg(target_os = "linux")]
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::cancellable::CancellableReader;
use crate::failure::{Failure, Result};
#[cfg(target_os = "linux")]
use crate::machine;
use crate::memory_limit;
use crate::paths::{NewFile, identity, io_failure, is_dash, label, own_descriptor};
use crate::remote;
use crate::session::Session;
use crate::standard;
use crate::terminal::TextSink;
use crate::urls;
use crate::volumes;

// ------------------------------------------------------------------------------------- inputs

/// Standard input as a stream, from its current offset.
pub fn stdin_stream(session: &Session) -> Result<Box<dyn Read + Send>> {
    let path = Path::new("-");
    let file = standard::input().map_err(io_failure(path, "read"))?;
    enlarge_pipe(&file);
    Ok(Box::new(CancellableReader::new(file, session)))
}

/// Standard input as a source, if it is a file read from its start (`< FILE`): it can be read
/// again.
pub fn stdin_source() -> Result<Option<Arc<FileSource>>> {
    let path = Path::new("-");
    let mut file = standard::input().map_err(io_failure(path, "read"))?;
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file || file.stream_position().ok() != Some(0) {
        return Ok(None);
    }
    let source = FileSource::from_file(file, "standard input").map_err(Failure::Storage)?;
    Ok(Some(Arc::new(source)))
}

/// The capacity of pipes if the system permits, unless the machine's profile has another: with the
/// default 64 KiB, reader and writer wait for each other sixteen times as often. It is the most
/// that Linux grants ordinary users.
pub const PIPE_BYTES: usize = 1 << 20;

/// Gives a pipe more capacity. Anything else is left alone.
#[cfg(target_os = "linux")]
fn enlarge_pipe(file: &File) {
    // Fails if it is not a pipe, or the user has too many large ones.
    let Ok(present_bytes) = rustix::pipe::fcntl_getpipe_size(file) else {
        return;
    };
    let profile_bytes = machine::profile().and_then(|profile| profile.pipe_bytes);
    let wanted_bytes = profile_bytes.map_or(PIPE_BYTES, |bytes| bytes as usize);
    if present_bytes < wanted_bytes {
        let _ = rustix::pipe::fcntl_setpipe_size(file, wanted_bytes);
    }
}

#[cfg(not(target_os = "linux"))]
fn enlarge_pipe(_file: &File) {}

/// A file as a stream: a FIFO, a character device, or a file that is read once.
///
/// A FIFO is opened even before it has a writer: the reader waits for that, not the program, which
/// may have others to read.
pub fn file_stream(path: &Path, session: &Session) -> Result<Box<dyn Read + Send>> {
    let open = open_without_waiting(path);
    let file = open.map_err(io_failure(path, "open"))?;
    Ok(Box::new(CancellableReader::new(file, session)))
}

/// Opens a file; a FIFO without waiting for a writer.
// Linux reports no end of a FIFO to `poll` before the first writer has come, so a reader that polls
// first waits for it.
#[cfg(target_os = "linux")]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let mut options = File::options();
    let file = options.read(true).custom_flags(flags).open(path)?;
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Standard input for `-`, else the file, as a stream.
pub fn stream(path: &Path, session: &Session) -> Result<Box<dyn Read + Send>> {
    if is_dash(path) { stdin_stream(session) } else { file_stream(path, session) }
}

/// Reads up to `count_max` bytes of a stream. Returns them, and a stream that starts with them
/// again.
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

/// A source at a path or URL, in one file or in volumes. Fetched data that does not fit into memory
/// is kept in a file in `temporary`. Once `cancellation` is cancelled, no request to a server is
/// repeated.
pub fn file_or_url(
    path: &Path,
    temporary: Option<&Path>,
    cancellation: &Cancellation,
) -> Result<Arc<dyn Source>> {
    if urls::is_url(path) {
        remote::source(path, temporary, cancellation)
    } else if let Some(found) = volumes::at_path(path) {
        found.source(&label(path))
    } else {
        source(path)
    }
}

/// A file that can be read at any offset.
pub fn source(path: &Path) -> Result<Arc<dyn Source>> {
    Ok(file_source(path)?)
}

/// A file that can be read at any offset, with its metadata.
pub fn file_source(path: &Path) -> Result<Arc<FileSource>> {
    let source = FileSource::open(path).map_err(Failure::Storage)?;
    Ok(Arc::new(source))
}

/// As [`file_source`], for a file that is read once from front to back.
pub fn passing_source(path: &Path) -> Result<Arc<FileSource>> {
    let source = FileSource::open(path).map_err(Failure::Storage)?;
    let cache_bytes = memory_limit::for_pages();
    Ok(Arc::new(match cache_bytes {
        Some(cache_bytes) => source.passing(cache_bytes),
        None => source,
    }))
}

// ------------------------------------------------------------------------------------ outputs

/// Standard output as a sink.
pub fn stdout_sink() -> Result<Box<dyn Sink>> {
    let path = Path::new("standard output");
    let file = standard::output().map_err(io_failure(path, "write"))?;
    enlarge_pipe(&file);
    Ok(descriptor_output(file, "standard output"))
}

/// Standard output as a sink for content that may be text: a terminal gets nothing else, unless
/// `force` is set.
pub fn content_sink(force: bool) -> Result<Box<dyn Sink>> {
    let stdout = stdout_sink()?;
    if io::stdout().is_terminal() && !force {
        Ok(Box::new(TextSink::new(stdout)))
    } else {
        Ok(stdout)
    }
}

/// The bytes of a source, from first to last.
pub fn source_stream(source: Arc<dyn Source>) -> Box<dyn Read + Send> {
    Box::new(SourceReader { source, offset: 0 })
}

struct SourceReader {
    source: Arc<dyn Source>,
    offset: u64,
}

impl Read for SourceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read_at(self.offset, buffer)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// An inherited descriptor. It is written from its present offset, so that earlier output of the
/// shell stays.
fn inherited(number: u32) -> io::Result<File> {
    let descriptor = match number {
        1 => io::stdout().as_fd().try_clone_to_owned()?,
        2 => io::stderr().as_fd().try_clone_to_owned()?,
        _ => copy_of_descriptor(number)?,
    };
    Ok(File::from(descriptor))
}

/// A copy of a descriptor known only by number.
#[cfg(target_os = "linux")]
fn copy_of_descriptor(number: u32) -> io::Result<OwnedFd> {
    use rustix::process::{
        ForeignRawFd, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open,
    };
    let number = ForeignRawFd::try_from(number).map_err(|_| io::ErrorKind::NotFound)?;
    let this = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(this, number, PidfdGetfdFlags::empty())?)
}

#[cfg(not(target_os = "linux"))]
fn copy_of_descriptor(_number: u32) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A file that appears complete when published, or not at all; an inherited descriptor is written
/// directly.
pub fn file_sink(path: &Path, new: NewFile) -> Result<Box<dyn Sink>> {
    if let Some(number) = own_descriptor(path) {
        if new.checking != Checking::Off {
            let text = "leads to an open descriptor, from which nothing is read back: leave out \
                        --check, or name a file";
            return Err(Failure::usage(label(path), text));
        }
        let file = inherited(number).map_err(io_failure(path, "open"))?;
        enlarge_pipe(&file);
        return Ok(descriptor_output(file, path));
    }
    create_output(path, &output_options(new)).map_err(|error| storage_failure(path, error))
}

/// As [`file_sink`], below a directory that the file cannot leave.
///
/// # Errors
/// From the storage layer; the messages name the path.
pub fn file_sink_below(
    root: &ConfinedDirectory,
    relative: &Path,
    new: NewFile,
) -> io::Result<Box<dyn Sink>> {
    let file = AtomicFile::create_below(root, relative, &output_options(new))?;
    Ok(Box::new(file))
}

fn output_options(new: NewFile) -> OutputOptions {
    OutputOptions {
        overwrite: if new.overwrite { Overwrite::Replace } else { Overwrite::Refuse },
        durability: if new.synced { Durability::Synced } else { Durability::Unsynced },
        checking: new.checking,
        sparse: true,
        mode: new.mode,
        mode_limit: new.mode_limit,
        modified: new.modified.and_then(Timestamp::to_system_time),
        cache_bytes: memory_limit::for_pages(),
        ..OutputOptions::default()
    }
}

/// The devices and inodes of the file behind a sink, and of the files at `paths`, which it replaces
/// or which another part of the run writes.
pub fn own_outputs<'a>(
    sink: &dyn Sink,
    paths: impl IntoIterator<Item = &'a PathBuf>,
) -> Vec<(u64, u64)> {
    let found = paths
        .into_iter()
        .flat_map(|path| [fs::metadata(path), fs::symlink_metadata(path)]);
    let files = found.flatten().filter(|found| !found.is_dir());
    let files = files.map(|found| (found.dev(), found.ino()));
    sink.file_id().into_iter().chain(files).collect()
}

/// Writes a file that appears complete or not at all.
pub fn write_file(path: &Path, overwrite: bool, bytes: &[u8]) -> Result<()> {
    let new = NewFile {
        overwrite,
        ..NewFile::default()
    };
    let mut sink = file_sink(path, new)?;
    sink.write_all(bytes).map_err(Failure::Storage)?;
    publish(sink.as_mut(), path)
}

/// Makes the output of a sink visible.
pub fn publish(sink: &mut dyn Sink, path: &Path) -> Result<()> {
    sink.publish().map_err(|error| {
        if path.is_dir() {
            Failure::Storage(error)
        } else {
            storage_failure(path, error)
        }
    })
}

/// Wraps an error of the storage layer, whose message names the path.
fn storage_failure(path: &Path, error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Exists { file: label(path) },
        _ => Failure::Storage(error),
    }
}

/// Why a source was not removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// There is a reason against it.
    Because(&'static str),
    /// It changed after it was read.
    Changed,
}

impl Kept {
    /// The reason.
    #[cfg(feature = "lrzip")]
    pub fn text(self) -> &'static str {
        match self {
            Kept::Because(why) => why,
            Kept::Changed => "it changed while it was read",
        }
    }
}

/// Removes a source if it is still the regular file that was read. Otherwise returns the reason.
pub fn remove_source(path: &Path, read: &Metadata) -> Result<Option<Kept>> {
    let found = fs::symlink_metadata(path).map_err(io_failure(path, "remove"))?;
    if !found.is_file() {
        return Ok(Some(Kept::Because("not a regular file")));
    }
    if identity(&found) != identity(read) {
        return Ok(Some(Kept::Changed));
    }
    fs::remove_file(path).map_err(io_failure(path, "remove"))?;
    Ok(None)
}

/// Waits until a restored directory is on disk. Single files are synced when published; for a tree
/// of many files one `syncfs` takes far less time.
pub fn sync_tree(path: &Path) -> Result<()> {
    let directory = File::open(path).map_err(io_failure(path, "sync"))?;
    #[cfg(target_os = "linux")]
    let synced = rustix::fs::syncfs(&directory).map_err(io::Error::from);
    #[cfg(not(target_os = "linux"))]
    let synced = directory.sync_all();
    synced.map_err(io_failure(path, "sync"))
}
