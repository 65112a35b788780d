//! Failing and full disks, and sources that change: nothing incomplete or wrong is published, and
//! the error states the cause.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::*;
use refrain::directory::Problem;
use refrain::storage::{MemoryOutput, MemorySink, MemorySource, Sink, Source};
use refrain::{
    CompressOptions, Content, Entry, ErrorKind, Member, MemberStart, Result, TarSink, Target,
    Targets, Unwatched, Watch, extract,
};
use refrain_entries::tar::TarView;
use refrain_storage::faulty::{FaultPlan, FaultySink, FaultySource, FaultyStream};
use refrain_testkit::data;

/// Enough for several segments and a block of more than one page.
fn content() -> Vec<u8> {
    data::far_duplicates(2 * MIB + 4321, 9_000, 8)
}

fn faulty(bytes: &[u8], plan: FaultPlan) -> Arc<FaultySource<MemorySource<Vec<u8>>>> {
    Arc::new(FaultySource::new(MemorySource::new(bytes.to_vec()), plan))
}

/// Compresses the only member into a faulty sink. Returns the result and what was published.
fn compressed(content: Content, plan: FaultPlan) -> (Result<()>, Option<Vec<u8>>) {
    let inner = MemorySink::new();
    let output = inner.output();
    let mut sink = FaultySink::new(inner, plan);
    let options = small_options("zstd");
    let members = vec![member("m", content)];
    let result = refrain::compress(members, &mut sink, &options, &Unwatched);
    (result.map(|_| ()), output.published())
}

#[track_caller]
fn assert_io(result: &Result<()>, kind: io::ErrorKind, what: &str) {
    let error = result.as_ref().expect_err(what);
    assert_eq!(error.kind, ErrorKind::Io, "{what}: {error}");
    let cause = error.cause.downcast_ref::<io::Error>();
    assert_eq!(cause.map(io::Error::kind), Some(kind), "{what}: {error}");
}

#[test]
fn a_failed_read_of_a_file_ends_the_compression() {
    let bytes = content();
    let sound = faulty(&bytes, FaultPlan::new(1));
    let (result, published) = compressed(Content::Source(sound.clone()), FaultPlan::new(1));
    result.unwrap();
    let expected = [as_published("m", &bytes)];
    assert_reads(&published.unwrap(), &expected, "without faults");
    assert!(sound.calls() >= 6);
    for call in 0..sound.calls() {
        let what = format!("read {call}");
        let plan = FaultPlan::new(1).fail_read(call, io::ErrorKind::TimedOut);
        let source = faulty(&bytes, plan);
        let (result, published) = within(20, &what, || {
            compressed(Content::Source(source), FaultPlan::new(1))
        });
        match result {
            // Reading again to compare may fail; then the repeat is not used.
            Ok(()) => assert_reads(&published.unwrap(), &expected, &what),
            Err(_) => {
                assert_io(&result, io::ErrorKind::TimedOut, &what);
                assert_eq!(published, None, "{what}");
            }
        }
    }
}

#[test]
fn a_failed_read_of_a_stream_ends_the_compression() {
    let bytes = content();
    let mut failures = 0;
    for call in 0..6 {
        let what = format!("read {call}");
        let plan = FaultPlan::new(1).fail_read(call, io::ErrorKind::ConnectionReset);
        let stream = FaultyStream::new(io::Cursor::new(bytes.clone()), plan);
        let (result, published) = within(20, &what, || {
            compressed(Content::Stream(Box::new(stream)), FaultPlan::new(1))
        });
        match result {
            Ok(()) => assert!(published.is_some()),
            Err(_) => {
                failures += 1;
                assert_io(&result, io::ErrorKind::ConnectionReset, &what);
                assert_eq!(published, None, "{what}");
            }
        }
    }
    assert!((3..6).contains(&failures), "{failures} reads failed");
}

#[test]
fn of_several_members_one_that_cannot_be_read_ends_early_and_is_named() {
    let bytes = content();
    let mut named = 0;
    for call in 0..12 {
        for is_stream in [false, true] {
            let what = format!("read {call}, a stream: {is_stream}");
            let plan = FaultPlan::new(1).fail_read(call, io::ErrorKind::TimedOut);
            let content = if is_stream {
                Content::Stream(Box::new(FaultyStream::new(
                    io::Cursor::new(bytes.clone()),
                    plan,
                )))
            } else {
                Content::Source(faulty(&bytes, plan))
            };
            let members = vec![
                file("first", b"1"),
                member("m", content),
                file("last", b"2"),
            ];
            let (archive, problems) = within(20, &what, || {
                let mut sink = MemorySink::new();
                let output = sink.output();
                let watch = FileProblems::default();
                let summary = refrain::compress(members, &mut sink, &small_options("zstd"), &watch);
                let problems = watch.0.into_inner().unwrap();
                assert_eq!(summary.unwrap().problems, problems.len() as u64);
                (output.published().unwrap(), problems)
            });
            let read = extracted(&archive, &read_options(1)).unwrap();
            let stored = &read[1].content;
            assert!(*stored == bytes[..stored.len()], "{what}");
            assert_eq!(
                (&read[0].content[..], &read[2].content[..]),
                (&b"1"[..], &b"2"[..])
            );
            // A read to compare may fail, or one that determines the size: everything was read by
            // then.
            assert!(
                problems.len() <= 1 && (stored.len() == bytes.len() || problems.len() == 1),
                "{what}: {problems:?}"
            );
            assert!(problems.iter().all(|(member, _)| *member == 1), "{what}");
            named += problems.len();
        }
    }
    assert!(named > 4, "{named}");
}

/// Collects problems: the number of the member, and what happened.
#[derive(Default)]
struct FileProblems(Mutex<Vec<(usize, String)>>);

impl Watch for FileProblems {
    fn problem(&self, member: usize, problem: &Problem) {
        self.0.lock().unwrap().push((member, problem.text.clone()));
    }
}

#[test]
fn a_failed_write_ends_the_compression() {
    let bytes = content();
    let mut call = 0;
    loop {
        let what = format!("write {call}");
        let plan = FaultPlan::new(1).fail_write(call, io::ErrorKind::PermissionDenied);
        let source = source(&bytes);
        let (result, published) = within(20, &what, || compressed(Content::Source(source), plan));
        if result.is_ok() {
            assert!(published.is_some());
            break;
        }
        assert_io(&result, io::ErrorKind::PermissionDenied, &what);
        assert_eq!(published, None, "{what}");
        call += 1;
    }
    // The first frames are written together with the first large block.
    assert!(call >= 3, "only {call} writes");
}

#[test]
fn a_full_disk_and_a_failed_publish_publish_nothing() {
    let bytes = content();
    let (_, whole) = compressed(Content::Source(source(&bytes)), FaultPlan::new(1));
    let whole = whole.unwrap().len() as u64;
    for capacity in [0, 1, 8, 100, whole / 2, whole - 97, whole - 1] {
        let what = format!("room for {capacity} of {whole} bytes");
        let (plan, source) = (FaultPlan::new(1).full_after(capacity), source(&bytes));
        let (result, published) = within(20, &what, || compressed(Content::Source(source), plan));
        assert_io(&result, io::ErrorKind::StorageFull, &what);
        assert_eq!(published, None, "{what}");
    }
    let plan = FaultPlan::new(1).full_after(whole);
    let (result, published) = compressed(Content::Source(source(&bytes)), plan);
    assert!(result.is_ok() && published.is_some());
    let plan = FaultPlan::new(1).fail_publish(io::ErrorKind::ReadOnlyFilesystem);
    let (result, published) = compressed(Content::Source(source(&bytes)), plan);
    assert_io(&result, io::ErrorKind::ReadOnlyFilesystem, "publish");
    assert_eq!(published, None);
}

#[test]
fn short_transfers_and_interruptions_do_not_change_the_result() {
    let bytes = content();
    let storm = || FaultPlan::new(7).short_transfers().interruptions();
    let (_, calm) = compressed(Content::Source(source(&bytes)), FaultPlan::new(1));
    let (result, stormy) = compressed(Content::Source(faulty(&bytes, storm())), storm());
    result.unwrap();
    assert!(stormy == calm, "a file");
    let stream = |plan| {
        let stream = FaultyStream::new(io::Cursor::new(bytes.clone()), plan);
        compressed(Content::Stream(Box::new(stream)), FaultPlan::new(1)).1
    };
    assert!(stream(storm()) == stream(FaultPlan::new(1)), "a pipe");
    let calm = calm.unwrap();
    let stream = FaultyStream::new(io::Cursor::new(calm.clone()), storm());
    let mut targets = Collect::default();
    refrain::extract(Box::new(stream), &mut targets, &read_options(2), &Unwatched).unwrap();
    assert!(targets.published[0].content == bytes);
    let mut targets = Collect::default();
    let source = faulty(&calm, storm());
    refrain::extract(source, &mut targets, &read_options(2), &Unwatched).unwrap();
    assert!(targets.published[0].content == bytes);
}

/// Targets whose first sink is faulty. Counts the published members.
struct FaultyTargets {
    plan: Option<FaultPlan>,
    outputs: Vec<MemoryOutput>,
    writes: Arc<AtomicU64>,
}

impl FaultyTargets {
    fn new(plan: FaultPlan) -> FaultyTargets {
        FaultyTargets {
            plan: Some(plan),
            outputs: vec![],
            writes: Arc::default(),
        }
    }
}

struct CountedSink(FaultySink<MemorySink>, Arc<AtomicU64>);

impl Sink for CountedSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.write_all(bytes)
    }
    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.write_zeros(length_bytes)
    }
    fn read_back(&self) -> Option<Arc<dyn Source>> {
        self.0.read_back()
    }
    fn publish(&mut self) -> io::Result<()> {
        self.0.publish()
    }
}

impl Targets for FaultyTargets {
    fn open(&mut self, _member: &MemberStart) -> Result<Target> {
        let inner = MemorySink::new();
        self.outputs.push(inner.output());
        let plan = self.plan.take().unwrap_or_else(|| FaultPlan::new(1));
        let sink = CountedSink(FaultySink::new(inner, plan), self.writes.clone());
        Ok(Target::Sink(Box::new(sink)))
    }
    fn close(&mut self, _member: &Member, sink: Target) -> Result<()> {
        Ok(sink.into_sink().unwrap().publish()?)
    }
}

/// Zeros between data, so that both kinds of writes occur.
fn archive_to_extract() -> (Vec<u8>, Vec<u8>) {
    let bytes = [content(), data::zeros(2 * MIB), data::text(50_000, 1)].concat();
    let members = vec![file("m", &bytes), file("other", b"other")];
    (archive_of(members, &small_options("zstd")).0, bytes)
}

#[test]
fn a_failed_write_ends_the_extraction() {
    let (archive, bytes) = archive_to_extract();
    let run = |plan: FaultPlan| {
        let source = source(&archive);
        within(20, "extract", move || {
            let mut targets = FaultyTargets::new(plan);
            let result = refrain::extract(source, &mut targets, &read_options(2), &Unwatched);
            let first = targets.outputs[0].published();
            (
                result.map(|_| ()),
                first,
                targets.writes.load(Ordering::Relaxed),
            )
        })
    };
    let (result, first, writes) = run(FaultPlan::new(1));
    assert!(result.is_ok() && first.unwrap() == bytes);
    assert!(writes >= 6, "{writes}");
    // The last write belongs to the other member, whose sink does not fail.
    for call in 0..writes - 1 {
        let (result, first, _) = run(FaultPlan::new(1).fail_write(call, io::ErrorKind::TimedOut));
        assert_io(&result, io::ErrorKind::TimedOut, &format!("write {call}"));
        assert_eq!(first, None, "write {call}");
    }
    let (result, first, _) = run(FaultPlan::new(1).full_after(3 * MIB as u64));
    assert_io(&result, io::ErrorKind::StorageFull, "full");
    assert_eq!(first, None);
    let (result, first, _) = run(FaultPlan::new(1).fail_publish(io::ErrorKind::TimedOut));
    assert_io(&result, io::ErrorKind::TimedOut, "publish");
    assert_eq!(first, None);
}

#[test]
fn a_failed_read_of_an_archive_returns_io() {
    let (archive, bytes) = archive_to_extract();
    let sound = faulty(&archive, FaultPlan::new(1));
    let mut targets = Collect::default();
    refrain::extract(sound.clone(), &mut targets, &read_options(2), &Unwatched).unwrap();
    assert!(targets.published[0].content == bytes && sound.calls() > 10);
    for call in 0..sound.calls() {
        let what = format!("read {call}");
        let source = faulty(
            &archive,
            FaultPlan::new(1).fail_read(call, io::ErrorKind::TimedOut),
        );
        let (result, published) = within(20, &what, || {
            let mut targets = Collect::default();
            let result = refrain::extract(source, &mut targets, &read_options(2), &Unwatched);
            (result.map(|_| ()), targets.published)
        });
        assert_io(&result, io::ErrorKind::TimedOut, &what);
        let complete = published.first();
        assert!(
            complete.is_none_or(|first| first.content == bytes),
            "{what}"
        );
    }
}

#[test]
fn a_source_that_changes_its_size_is_archived_as_read_and_named() {
    let bytes = content();
    let size = bytes.len() as u64;
    let small = size / 2;
    let cases = [
        // (initial size, number of the read at which it changes, size then): three reads determine
        // whether the size is true, and whether it is a tar stream.
        (size, 3, small),
        (size, 3, 0),
        (size, 4, small),
        (small, 3, size),
        (small, 3, small + 1),
        (1, 3, size),
    ];
    for (first, call, then) in cases {
        let what = format!("{first} bytes, from read {call} on {then}");
        let plan = FaultPlan::new(1).resize_at(0, first).resize_at(call, then);
        let member = member("m", Content::Source(faulty(&bytes, plan)));
        let (archive, problems) = within(20, &what, || {
            let mut sink = MemorySink::new();
            let output = sink.output();
            let watch = FileProblems::default();
            let options = CompressOptions {
                threads: 1,
                ..small_options("zstd")
            };
            let members = vec![member, file("other", b"other")];
            refrain::compress(members, &mut sink, &options, &watch).unwrap();
            (output.published().unwrap(), watch.0.into_inner().unwrap())
        });
        let read = extracted(&archive, &read_options(1)).unwrap();
        let read_bytes = read[0].content.len();
        assert!(read[0].content == bytes[..read_bytes], "{what}");
        assert!(read_bytes as u64 <= first, "{what}: {read_bytes} bytes");
        assert!(
            read_bytes as u64 >= first.min(then),
            "{what}: {read_bytes} bytes"
        );
        let expected = [
            as_published("m", &bytes[..read_bytes]),
            as_published("other", b"other"),
        ];
        assert_reads(&archive, &expected, &what);
        let text = if then < first { "shrank while it was read" } else { "grew while it was read" };
        assert_eq!(problems, [(0, text.to_string())], "{what}");
    }
}

struct SinkOfTree(std::path::PathBuf);

impl Targets for SinkOfTree {
    fn open(&mut self, member: &MemberStart) -> refrain::Result<Target> {
        if member.name != b"m" {
            return Ok(Target::Nowhere);
        }
        Ok(Target::Sink(Box::new(TarSink::create(&self.0, false)?)))
    }

    fn close(&mut self, _: &Member, target: Target) -> refrain::Result<()> {
        target
            .into_sink()
            .map_or(Ok(()), |mut sink| Ok(sink.publish()?))
    }
}

/// A tar stream with one empty file.
fn tar_of(path: &[u8]) -> Vec<u8> {
    let entry = Entry {
        path: path.to_vec(),
        mode: 0o644,
        ..Entry::default()
    };
    const END_MARK_BYTES: usize = 1024;
    let mut stream = TarView::canonical().entry(&entry).unwrap().header;
    stream.resize(stream.len() + END_MARK_BYTES, 0);
    stream
}

#[test]
fn a_path_that_leaves_the_root_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (path, is_refused) in [
        (&b"inside"[..], false),
        (b"../evil", true),
        (b"/evil", true),
    ] {
        let (result, archive) =
            compressed(Content::Source(source(&tar_of(path))), FaultPlan::new(1));
        result.unwrap();
        let mut target = SinkOfTree(directory.path().join("root"));
        let archive = source(&archive.unwrap());
        let result = extract(archive, &mut target, &read_options(1), &Unwatched);
        let refused = result.err().map(|error| error.to_string());
        assert_eq!(refused.is_some(), is_refused, "{path:?}: {refused:?}");
        assert!(refused.is_none_or(|text| text.contains("the path ")));
        assert!(!directory.path().join("evil").exists());
    }
}
