//! Helpers of the engine's tests: inputs, ways of reading, and a watchdog.
// Every test binary uses a part of this module.
#![allow(dead_code)]

use std::io::{self, Cursor, Read, Write};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use refrain::directory::{RestoreOptions, TreeRestore};
use refrain::storage::{MemorySink, MemorySource, Sink, Source, StreamSink};
use refrain::{
    Archive, CodecChoice, CompressOptions, CompressSummary, Content, Error, Level, Member,
    MemberInput, MemberStart, ReadOptions, Result, Target, Targets, TreeTarget, Unwatched, Watch,
};

pub mod appendix;
pub mod heap;
pub mod holes;
pub mod one_block;
pub mod recovery;

pub const MIB: usize = 1 << 20;

/// Options of a level, with that many threads.
pub fn options(level: u8, threads: usize) -> CompressOptions {
    CompressOptions {
        level: Level(level),
        threads,
        ..CompressOptions::default()
    }
}

/// The fast level with a codec of this name, and the smallest budget.
pub fn small_options(codec: &str) -> CompressOptions {
    CompressOptions {
        codec: Some(CodecChoice {
            name: codec.into(),
            level: None,
        }),
        memory_bytes: Some(refrain::MEMORY_BYTES_MIN),
        ..options(1, 2)
    }
}

pub fn source(bytes: &[u8]) -> Arc<dyn Source> {
    Arc::new(MemorySource::new(bytes.to_vec()))
}

pub fn member(name: &str, content: Content) -> MemberInput {
    MemberInput {
        name: name.into(),
        mode: None,
        modified: None,
        content,
    }
}

/// A member that is read as a file.
pub fn file(name: &str, bytes: &[u8]) -> MemberInput {
    member(name, Content::Source(source(bytes)))
}

/// A member that is read as a stream.
pub fn pipe(name: &str, bytes: &[u8]) -> MemberInput {
    member(name, Content::Stream(Box::new(Cursor::new(bytes.to_vec()))))
}

/// The archive, written to a sink that can be read back, like a file.
pub fn archive_of(
    members: Vec<MemberInput>,
    options: &CompressOptions,
) -> (Vec<u8>, CompressSummary) {
    let mut sink = MemorySink::new();
    let output = sink.output();
    let summary =
        refrain::compress(members, &mut sink, options, &Unwatched).expect("it compresses");
    (output.published().expect("it is published"), summary)
}

/// A writer whose bytes are accessible while a sink owns it.
#[derive(Clone, Default)]
pub struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl SharedBytes {
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().expect("no writer panicked"))
    }
}

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().expect("no writer panicked");
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The archive, written to a sink that cannot be read back.
pub fn piped_archive_of(
    members: Vec<MemberInput>,
    options: &CompressOptions,
) -> (Vec<u8>, CompressSummary) {
    let bytes = SharedBytes::default();
    let mut sink = StreamSink::new(bytes.clone(), "pipe");
    let summary =
        refrain::compress(members, &mut sink, options, &Unwatched).expect("it compresses");
    (bytes.take(), summary)
}

/// A published member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub name: String,
    pub content: Vec<u8>,
}

pub fn as_published(name: &str, content: &[u8]) -> Published {
    Published {
        name: name.into(),
        content: content.to_vec(),
    }
}

/// Collects members in memory. A member is published when it is closed.
#[derive(Default)]
pub struct Collect {
    pub published: Vec<Published>,
    /// The longest member that is accepted: a forged fill can be endless.
    pub limit_bytes: Option<u64>,
    pub open: Option<refrain::storage::MemoryOutput>,
}

impl Targets for Collect {
    fn open(&mut self, _member: &MemberStart) -> Result<Target> {
        let sink = MemorySink::with_limit(self.limit_bytes.unwrap_or(u64::MAX));
        self.open = Some(sink.output());
        Ok(Target::Sink(Box::new(sink)))
    }

    fn spill(&mut self) -> Result<Box<dyn Sink>> {
        Ok(Box::new(MemorySink::new()))
    }

    fn close(&mut self, member: &Member, sink: Target) -> Result<()> {
        sink.into_sink()
            .expect("the sink that was opened")
            .publish()?;
        let output = self.open.take().expect("the member that was opened");
        self.published.push(Published {
            name: String::from_utf8_lossy(&member.name).into_owned(),
            content: output.published().expect("it is published"),
        });
        Ok(())
    }
}

/// Restores trees below a directory.
pub struct Below<'a>(pub &'a Path);

impl Targets for Below<'_> {
    fn open(&mut self, _member: &MemberStart) -> Result<Target> {
        Ok(Target::Tree(Box::new(TreeTarget {
            restore: TreeRestore::create(self.0, RestoreOptions::default())?,
            selection: None,
        })))
    }

    fn close(&mut self, _member: &Member, target: Target) -> Result<()> {
        let Target::Tree(tree) = target else {
            panic!("the tree target comes back");
        };
        let summary = tree.restore.finish()?;
        assert_eq!(summary.problem_count, 0, "{:?}", summary.problems);
        Ok(())
    }

    fn spill(&mut self) -> Result<Box<dyn Sink>> {
        Ok(Box::new(MemorySink::new()))
    }
}

/// Extracts everything from a file.
pub fn extracted(archive: &[u8], options: &ReadOptions) -> Result<Vec<Published>> {
    let (published, archive_bytes) = extracted_of(archive, options)?;
    assert_eq!(archive_bytes, archive.len() as u64);
    Ok(published)
}

/// Extracts everything from a file. Also returns the size of the archive, which may be encrypted.
pub fn extracted_of(archive: &[u8], options: &ReadOptions) -> Result<(Vec<Published>, u64)> {
    let mut targets = Collect::default();
    let summary = refrain::extract(source(archive), &mut targets, options, &Unwatched)?;
    assert_eq!(summary.members, targets.published.len());
    Ok((targets.published, summary.archive_bytes))
}

/// Extracts everything from a stream.
pub fn extracted_from_pipe(archive: &[u8], options: &ReadOptions) -> Result<Vec<Published>> {
    let mut targets = Collect::default();
    let stream = Box::new(Cursor::new(archive.to_vec()));
    let summary = refrain::extract(stream, &mut targets, options, &Unwatched)?;
    assert_eq!(summary.members, targets.published.len());
    assert_eq!(summary.archive_bytes, archive.len() as u64);
    Ok(targets.published)
}

/// Reads everything by the index, each member with one read.
pub fn read_by_index(archive: &[u8], options: &ReadOptions) -> Result<Vec<Published>> {
    let archive = Archive::open(source(archive), options)?;
    let members = archive.members()?;
    let read = |(index, member): (usize, &Member)| {
        let mut content = vec![0; member.content_bytes as usize];
        assert_eq!(
            archive.read_at(index, 0, &mut content)? as u64,
            member.content_bytes
        );
        Ok(Published {
            name: String::from_utf8_lossy(&member.name).into_owned(),
            content,
        })
    };
    members.iter().enumerate().map(read).collect()
}

/// Fails unless every way of reading the archive returns `expected`.
#[track_caller]
pub fn assert_reads(archive: &[u8], expected: &[Published], what: &str) {
    let options = read_options(2);
    let ways = [
        ("file", extracted(archive, &options)),
        ("pipe", extracted_from_pipe(archive, &options)),
        ("index", read_by_index(archive, &options)),
    ];
    for (way, read) in ways {
        let read = read.unwrap_or_else(|error| panic!("{what}, by {way}: {error}"));
        assert_eq!(read.len(), expected.len(), "{what}, by {way}: members");
        for (read, expected) in read.iter().zip(expected) {
            assert_eq!(read.name, expected.name, "{what}, by {way}");
            // Not assert_eq, which would print the bytes.
            assert!(
                read.content == expected.content,
                "{what}, by {way}: content of {} differs from byte {:?} on; {} bytes, expected {}",
                read.name,
                first_difference(&read.content, &expected.content),
                read.content.len(),
                expected.content.len()
            );
        }
    }
}

pub fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    one.iter().zip(other).position(|(one, other)| one != other)
}

pub fn read_options(threads: usize) -> ReadOptions {
    ReadOptions {
        threads,
        ..ReadOptions::default()
    }
}

/// Collects the notices.
#[derive(Default)]
pub struct Notices(pub Mutex<Vec<String>>);

impl Watch for Notices {
    fn notice(&self, notice: &str) {
        let mut notices = self.0.lock().expect("nobody panicked");
        notices.push(notice.into());
    }
}

/// Runs `case` on a thread of its own and returns its result. Fails if it panics or exceeds its
/// time.
#[track_caller]
pub fn within<R: Send + 'static>(
    seconds: u64,
    what: &str,
    case: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (done, wait) = channel();
    let thread = std::thread::spawn(move || {
        // The receiver is dropped only after a timeout, and then the test has failed.
        let _ = done.send(case());
    });
    match wait.recv_timeout(Duration::from_secs(seconds)) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("{what}: not done after {seconds} seconds"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => panic!("{what}: no result"),
        },
    }
}

/// A stream generated while it is read: `piece(n)` yields the n-th piece, `None` the end.
pub struct Generated<F> {
    piece: F,
    number: u64,
    left: Cursor<Vec<u8>>,
}

impl<F: FnMut(u64) -> Option<Vec<u8>>> Generated<F> {
    pub fn new(piece: F) -> Self {
        Generated {
            piece,
            number: 0,
            left: Cursor::default(),
        }
    }
}

impl<F: FnMut(u64) -> Option<Vec<u8>>> Read for Generated<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.left.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(piece) = (self.piece)(self.number) else {
                return Ok(0);
            };
            self.number += 1;
            self.left = Cursor::new(piece);
        }
    }
}

/// Fails unless the error has a location.
#[track_caller]
pub fn assert_has_location(error: &Error, what: &str) {
    let location = &error.location;
    let known = location.archive_offset.is_some()
        || location.block.is_some()
        || location.content_offset.is_some()
        || location.file.is_some();
    assert!(known, "{what}: no location in: {error}");
}
