//! Temporary files: they change how long a run takes and how much memory it needs, never the
//! content, and the archive only where the options say so.

use std::io::Cursor;
use std::path::Path;

use crate::common::*;
use refrain::storage::MemorySink;
use refrain::{
    CompressOptions, CompressSummary, ErrorKind, ReadOptions, TemporarySpace, compress, verify,
};
use refrain_testkit::data;

/// Text that does not fit into the memory for old pages, and all of it again with edits.
fn content() -> Vec<u8> {
    let mut bytes = data::source_code(18 * MIB, 7);
    bytes.extend(data::edited(&bytes.clone(), 200, 8));
    bytes
}

fn with_temporary(codec: &str, directory: Option<&Path>) -> CompressOptions {
    CompressOptions {
        temporary: directory.map(TemporarySpace::new),
        ..small_options(codec)
    }
}

/// The archive of a stream with both kinds of sinks, and the notices of both.
fn archives(bytes: &[u8], options: &CompressOptions) -> (Vec<u8>, Vec<u8>, Vec<String>) {
    let watch = Notices::default();
    let mut sink = MemorySink::new();
    let output = sink.output();
    compress(vec![pipe("m", bytes)], &mut sink, options, &watch).expect("it compresses");
    let to_file = output.published().expect("it is published");
    let (to_pipe, _) = piped_archive_of(vec![pipe("m", bytes)], options);
    (to_file, to_pipe, watch.0.into_inner().unwrap())
}

#[test]
fn the_archive_does_not_depend_on_the_temporary_file() {
    let bytes = content();
    let directory = tempfile::tempdir().unwrap();
    let (to_file, to_pipe, notices) = archives(&bytes, &with_temporary("zstd", None));
    assert!(notices.is_empty(), "{notices:?}");
    assert_reads(&to_file, &[as_published("m", &bytes)], "to a file");
    assert_reads(&to_pipe, &[as_published("m", &bytes)], "to a pipe");

    let spilling = with_temporary("zstd", Some(directory.path()));
    let one_thread = CompressOptions {
        threads: 1,
        ..spilling.clone()
    };
    let (file_again, pipe_again, notices) = archives(&bytes, &one_thread);
    assert!(file_again == to_file && pipe_again == to_pipe);
    assert!(notices.is_empty(), "{notices:?}");
    // A file so small that it constantly loses pages.
    let short = CompressOptions {
        temporary: Some(TemporarySpace {
            directory: directory.path().to_owned(),
            bytes_max: Some(1 << 20),
        }),
        ..spilling.clone()
    };
    let (file_again, pipe_again, _) = archives(&bytes, &short);
    assert!(file_again == to_file && pipe_again == to_pipe);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);

    // One that cannot be written.
    let missing = directory.path().join("missing");
    let (file_again, _, notices) = archives(&bytes, &with_temporary("zstd", Some(&missing)));
    assert!(file_again == to_file);
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("missing"), "{notices:?}");
}

/// Compresses with a codec that decodes slowly, and a temporary file of at most `bytes_max`.
fn slowly(bytes: &[u8], directory: Option<&Path>, bytes_max: usize) -> (Vec<u8>, CompressSummary) {
    let options = CompressOptions {
        temporary: directory.map(|directory| TemporarySpace {
            directory: directory.to_owned(),
            bytes_max: Some(bytes_max as u64),
        }),
        block_bytes: Some(1 << 20),
        ..small_options("bwt")
    };
    let archived = archive_of(vec![pipe("m", bytes)], &options);
    let one_thread = CompressOptions {
        threads: 1,
        ..options
    };
    let (again, _) = archive_of(vec![pipe("m", bytes)], &one_thread);
    assert!(again == archived.0, "the threads change the bytes");
    archived
}

#[test]
fn with_slow_codecs_repeats_reach_back_as_far_as_the_temporary_file() {
    let directory = tempfile::tempdir().unwrap();
    // Two epochs of fresh bytes before the repeat: the floor moves between epochs. Its blocks are
    // stored, which takes no time.
    let mut bytes = data::random(40 * MIB, 1);
    bytes.extend_from_within(..4 * MIB);
    let matched = |(archive, summary): (Vec<u8>, CompressSummary)| {
        assert_reads(&archive, &[as_published("m", &bytes)], "slow codec");
        summary.matched_bytes as usize
    };
    let near_all = 4 * MIB - MIB / 8;
    assert!(matched(slowly(&bytes, None, 0)) < near_all);
    let directory = Some(directory.path());
    assert!(matched(slowly(&bytes, directory, 64 * MIB)) >= near_all);
    assert_eq!(matched(slowly(&bytes, directory, 12 * MIB)), 0);
}

/// Incompressible content whose end repeats its beginning.
fn far_repeat() -> Vec<u8> {
    let mut bytes = data::random(40 * MIB, 3);
    bytes.extend_from_within(..5 * MIB);
    bytes
}

fn reading(memory_bytes: usize, temporary: Option<&Path>) -> ReadOptions {
    ReadOptions {
        threads: 2,
        memory_bytes: memory_bytes as u64,
        temporary: temporary.map(Path::to_owned),
        ..ReadOptions::default()
    }
}

#[test]
fn an_archive_from_a_pipe_is_read_with_less_memory_than_its_reach() {
    let bytes = far_repeat();
    let (archive, summary) = archive_of(vec![file("m", &bytes)], &small_options("none"));
    assert!(summary.reach_bytes as usize > 40 * MIB);
    let error = extracted_from_pipe(&archive, &reading(48 * MIB, None)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Limit);
    let message = error.to_string();
    assert!(message.contains("temporary"), "{message}");

    let directory = tempfile::tempdir().unwrap();
    let options = reading(48 * MIB, Some(directory.path()));
    let read = extracted_from_pipe(&archive, &options).unwrap();
    assert!(read[0].content == bytes);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);

    let missing = directory.path().join("missing");
    let error = extracted_from_pipe(&archive, &reading(48 * MIB, Some(&missing))).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io, "{error}");
}

#[test]
fn a_limited_reach_is_read_with_a_temporary_file_too() {
    let bytes = far_repeat();
    let limited = CompressOptions {
        reach_bytes: Some(44 << 20),
        ..small_options("none")
    };
    let (archive, _) = piped_archive_of(vec![pipe("m", &bytes)], &limited);
    let directory = tempfile::tempdir().unwrap();
    let options = reading(32 * MIB, Some(directory.path()));
    let read = extracted_from_pipe(&archive, &options).unwrap();
    assert!(read[0].content == bytes);
}

#[test]
fn a_reader_with_less_memory_than_the_stated_reach_says_so_at_once() {
    let limited = CompressOptions {
        reach_bytes: Some(44 << 20),
        ..small_options("none")
    };
    let (archive, _) = piped_archive_of(vec![pipe("m", &data::random(3 * MIB, 5))], &limited);
    let directory = tempfile::tempdir().unwrap();
    let notices = |options: &ReadOptions| {
        let watch = Notices::default();
        let stream = Box::new(Cursor::new(archive.clone()));
        // The archive is short, so it is still read.
        verify(stream, options, &watch).unwrap();
        watch.0.into_inner().unwrap()
    };
    let said = notices(&reading(64 * MIB, None));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("44 MiB") && said[0].contains("32 MiB"),
        "{said:?}"
    );
    assert!(notices(&reading(96 * MIB, None)).is_empty());
    assert!(notices(&reading(64 * MIB, Some(directory.path()))).is_empty());
}
