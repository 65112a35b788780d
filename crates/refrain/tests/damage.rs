//! Broken archives are refused with kind and location, or read correctly if the damage is harmless.
//! Never a panic, a wrong byte, a hang, or more memory than allowed.

// Helpers of tests may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::Cursor;
use std::sync::Arc;

use common::heap::CountingHeap;
use common::*;
use refrain::{Archive, Content, DirectoryContent, ErrorKind, ReadOptions, Result, Unwatched};
use refrain_format::whole;
use refrain_testkit::{Expectation, Mutation, Rng, data, frames_of, mutations, scaled};

#[global_allocator]
static HEAP: CountingHeap = CountingHeap::new();

/// The memory of a reader.
const MEMORY_BYTES: u64 = 64 << 20;

/// The maximum content of a sample, even after a harmless change, with room for the extents of a
/// forged one.
const CONTENT_BYTES_MAX: u64 = 64 << 20;

/// An archive and its content.
struct Sample {
    archive: Vec<u8>,
    members: Vec<Published>,
    entries: Vec<Vec<refrain::Entry>>,
}

impl Sample {
    fn new(members: Vec<refrain::MemberInput>, codec: &str) -> Arc<Sample> {
        let (archive, _) = archive_of(members, &small_options(codec));
        // In a Whole frame, nothing contradicts a forged name. `whole.rs` damages such archives.
        let archive = whole::expand(&archive).unwrap_or(archive);
        let opened = Archive::open(source(&archive), &read_options(1)).unwrap();
        let entries = (0..opened.member_count())
            .map(|member| opened.entries(member).unwrap())
            .collect();
        let members = extracted(&archive, &read_options(1)).unwrap();
        Arc::new(Sample {
            archive,
            members,
            entries,
        })
    }
}

fn tree() -> (tempfile::TempDir, Content) {
    let root = tempfile::tempdir().unwrap();
    for (number, (_, content)) in data::source_tree(6, 2).iter().enumerate() {
        std::fs::write(root.path().join(format!("file-{number}")), content).unwrap();
    }
    let content = Content::directory(DirectoryContent::all(root.path()));
    (root, content)
}

/// A few KiB with copies, fills, empty members and a tree.
fn small_sample(codec: &str) -> Arc<Sample> {
    let (_root, tree) = tree();
    let versions = data::versions(3_000, 2, 1, 1);
    let members = vec![
        file("versions", &versions),
        file("empty", b""),
        member("tree", tree),
        pipe(
            "zeros and again",
            &[&data::zeros(5_000), &versions[..]].concat(),
        ),
    ];
    Sample::new(members, codec)
}

/// Several blocks and several epochs in some tens or hundreds of KiB.
fn many_frames_sample(codec: &str) -> Arc<Sample> {
    // Repeats near enough for the codec fill the store and take little of the archive.
    let repeats = data::periodic(5 * MIB, 3_000, 4);
    let mut members = vec![
        file("repeats", &repeats),
        file("zeros", &data::zeros(300_000)),
    ];
    members.extend((0..4_200).map(|number: u32| file("tiny", &number.to_le_bytes())));
    members.push(pipe("again", &repeats[MIB..2 * MIB]));
    Sample::new(members, codec)
}

fn options() -> ReadOptions {
    ReadOptions {
        threads: 1,
        memory_bytes: MEMORY_BYTES,
        ..ReadOptions::default()
    }
}

fn extract(archive: &[u8], by_pipe: bool) -> (Result<()>, Vec<Published>) {
    let mut targets = Collect {
        limit_bytes: Some(CONTENT_BYTES_MAX),
        ..Collect::default()
    };
    let result = if by_pipe {
        let stream = Box::new(Cursor::new(archive.to_vec()));
        refrain::extract(stream, &mut targets, &options(), &Unwatched)
    } else {
        refrain::extract(source(archive), &mut targets, &options(), &Unwatched)
    };
    (result.map(|_| ()), targets.published)
}

/// Opens the archive and reads everything: members and entries.
fn by_index(
    archive: &[u8],
    limit_bytes: u64,
) -> Result<(Vec<Published>, Vec<Vec<refrain::Entry>>)> {
    let archive = Archive::open(source(archive), &options())?;
    archive.info()?;
    let (mut members, mut entries) = (vec![], vec![]);
    for (index, member) in archive.members()?.iter().enumerate() {
        // A forged length: reads a part, and fails like a caller without room for all of it.
        let mut content = vec![0; member.content_bytes.min(limit_bytes) as usize];
        archive.read_at(index, 0, &mut content)?;
        entries.push(archive.entries(index)?);
        members.push(Published {
            name: String::from_utf8_lossy(&member.name).into_owned(),
            content,
        });
    }
    archive.blocks()?;
    Ok((members, entries))
}

/// Checks kind and location of an error of a broken archive.
fn check_error(error: &refrain::Error, expectation: Expectation, what: &str) {
    match (error.kind, expectation) {
        (ErrorKind::Unsupported, _) => {}
        (ErrorKind::Damaged | ErrorKind::Limit, Expectation::Rejected) => {}
        (ErrorKind::Damaged | ErrorKind::Limit, Expectation::RejectedOrHarmless) => {}
        // The limit of the sink: a forged archive with valid but endless content.
        (ErrorKind::Io, Expectation::RejectedOrHarmless) => return,
        (kind, _) => panic!("{what}: refused as {kind:?}: {error}"),
    }
    assert_has_location(error, what);
}

/// What was published before an error must be a correct prefix of the members; after success, all
/// of them.
fn check_published(sample: &Sample, read: &[Published], complete: bool, what: &str) {
    assert!(
        read.len() <= sample.members.len(),
        "{what}: too many members"
    );
    if complete {
        assert_eq!(read.len(), sample.members.len(), "{what}: members");
    }
    for (read, expected) in read.iter().zip(&sample.members) {
        assert!(
            read.content == expected.content,
            "{what}: wrong content passed"
        );
        // A forged name is published before the index at the end contradicts it.
        assert!(
            !complete || read.name == expected.name,
            "{what}: wrong name"
        );
    }
}

/// Checks everything that must hold for one broken archive. Returns the number of ways of reading
/// that refused it.
fn check(sample: &Sample, mutation: &Mutation) -> usize {
    let (bytes, what) = (&mutation.bytes, &mutation.description);
    let mut refusals = 0;
    let mut walked = vec![];
    for by_pipe in [false, true] {
        let what = format!("{what} (by {})", if by_pipe { "pipe" } else { "file" });
        let (result, published) = extract(bytes, by_pipe);
        check_published(sample, &published, result.is_ok(), &what);
        let verified = if by_pipe {
            let stream = Box::new(Cursor::new(bytes.to_vec()));
            refrain::verify(stream, &options(), &Unwatched)
        } else {
            refrain::verify(source(bytes), &options(), &Unwatched)
        };
        for result in [&result, &verified.map(|_| ())] {
            match result {
                Ok(()) => assert_eq!(
                    mutation.expectation,
                    Expectation::RejectedOrHarmless,
                    "{what}: accepted"
                ),
                Err(error) => {
                    refusals += 1;
                    check_error(error, mutation.expectation, &what);
                }
            }
        }
        walked.push(result.is_ok());
    }
    assert_eq!(
        walked[0], walked[1],
        "{what}: file and pipe judge differently"
    );
    // Reading by the index touches only a part of the archive, so damage elsewhere may remain
    // undetected, but no frame that is read may be wrong. A forged archive with correct checksums
    // may have other content, which only the hash of the whole member detects.
    let is_forged = mutation.expectation == Expectation::RejectedOrHarmless;
    match by_index(bytes, CONTENT_BYTES_MAX) {
        Ok((members, entries)) if !is_forged => {
            check_published(sample, &members, true, what);
            assert_eq!(entries, sample.entries, "{what}");
        }
        Ok(_) => {}
        Err(error) => {
            refusals += 1;
            // An archive of a later version may look contradictory when a part of it is read.
            let expectation = match mutation.expectation {
                Expectation::Unsupported => Expectation::Rejected,
                expectation => expectation,
            };
            check_error(&error, expectation, what);
            assert!(
                !walked[0],
                "{what}: passes the test and cannot be read: {error}"
            );
        }
    }
    refusals
}

/// Checks mutations under the watchdog, and the peak of the memory.
fn check_all(sample: &Arc<Sample>, mutations: impl Iterator<Item = Mutation>) {
    // The memory of a case itself: the archive three times, its content twice, and buffers.
    let content: usize = sample
        .members
        .iter()
        .map(|member| member.content.len())
        .sum();
    let allowed = MEMORY_BYTES as usize * 11 / 10 + 4 * content + 4 * sample.archive.len();
    let mut cases = 0;
    for mutation in mutations {
        let what = mutation.description.clone();
        let is_forged = mutation.expectation == Expectation::RejectedOrHarmless;
        let sample = sample.clone();
        let ((), peak) = HEAP.peak_bytes_of(|| {
            within(20, &what, move || {
                check(&sample, &mutation);
            });
        });
        // A forged fill is valid content, which the targets of this test hold in memory.
        let allowed = allowed + if is_forged { 2 * CONTENT_BYTES_MAX as usize } else { 0 };
        assert!(
            peak <= allowed,
            "{what}: {peak} bytes of memory, allowed are {allowed}"
        );
        cases += 1;
    }
    assert!(cases > 0);
}

fn truncation(archive: &[u8], length: usize) -> Mutation {
    Mutation {
        description: format!("cut to {length} of {} bytes", archive.len()),
        bytes: archive[..length].to_vec(),
        expectation: Expectation::Rejected,
    }
}

fn bit_flip(archive: &[u8], bit: usize) -> Mutation {
    let mut bytes = archive.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    Mutation {
        description: format!("bit {} of byte {} flipped", bit % 8, bit / 8),
        bytes,
        expectation: Expectation::Rejected,
    }
}

/// The distance between cases; the scale divides it.
fn step(usual: usize) -> usize {
    (usual / scaled(1) as usize).max(1)
}

/// Every `every`-th offset, and more in and around the frames' headers.
fn offsets(archive: &[u8], every: usize) -> Vec<usize> {
    let mut offsets: Vec<usize> = (0..archive.len()).step_by(every).collect();
    for frame in frames_of(archive).iter().take(scaled(6) as usize) {
        let header = frame.start..(frame.start + 48).min(archive.len());
        offsets.extend(header.step_by(step(3)));
    }
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

// One test, because all cases measure the peak of the same heap.
#[test]
fn broken_archives_are_refused_or_read_correctly() {
    for codec in ["zstd", "none"] {
        let sample = small_sample(codec);
        let archive = &sample.archive;
        check_all(
            &sample,
            offsets(archive, step(151))
                .into_iter()
                .map(|length| truncation(archive, length)),
        );
        let mut numbers = Rng::new(1);
        let bits = offsets(archive, step(149))
            .into_iter()
            .map(|at| at * 8 + numbers.below(8) as usize);
        check_all(&sample, bits.map(|bit| bit_flip(archive, bit)));
        check_all(&sample, mutations(archive, 3).step_by(step(5)));

        let sample = many_frames_sample(codec);
        let archive = &sample.archive;
        assert!(frames_of(archive).len() > 4_000);
        let mut numbers = Rng::new(2);
        let length = archive.len() as u64;
        let some = |count, numbers: &mut Rng| -> Vec<usize> {
            (0..count).map(|_| numbers.below(length) as usize).collect()
        };
        check_all(
            &sample,
            some(3, &mut numbers)
                .into_iter()
                .map(|length| truncation(archive, length)),
        );
        check_all(
            &sample,
            some(3, &mut numbers)
                .into_iter()
                .map(|at| bit_flip(archive, at * 8 + at % 8)),
        );
        check_all(&sample, mutations(archive, 4).step_by(step(900)));
    }
}
