//! The reach: how many of the latest bytes a decoder of a stream has to keep. Extents stay within
//! it.

use std::path::Path;

use crate::common::*;
use refrain::storage::Sink;
use refrain::{Archive, CompressOptions, Content, DirectoryContent, ErrorKind, ReadOptions};
use refrain_testkit::{data, scaled};

const REACH_BYTES: u64 = 64 << 20;

/// The length of the passage that repeats, first far away and then near.
const PASSAGE_BYTES: usize = 4 * MIB;

/// Incompressible content whose first passage repeats beyond the reach, and again directly after
/// that.
fn content() -> Vec<u8> {
    let mut bytes = data::random(72 * MIB, 1);
    bytes.extend_from_within(..PASSAGE_BYTES);
    bytes.extend(data::random(2 * MIB, 2));
    bytes.extend_from_within(72 * MIB..72 * MIB + PASSAGE_BYTES);
    bytes
}

fn options(threads: usize, reach_bytes: Option<u64>) -> CompressOptions {
    CompressOptions {
        threads,
        reach_bytes,
        ..small_options("none")
    }
}

fn reading_with(memory_bytes: u64) -> ReadOptions {
    ReadOptions {
        threads: 2,
        memory_bytes,
        ..ReadOptions::default()
    }
}

#[test]
fn extents_remain_within_a_limited_reach() {
    let bytes = content();
    let (archive, summary) =
        piped_archive_of(vec![pipe("m", &bytes)], &options(2, Some(REACH_BYTES)));
    let info = Archive::open(source(&archive), &read_options(1))
        .unwrap()
        .info()
        .unwrap();
    assert!(info.reach_bytes <= REACH_BYTES, "{}", info.reach_bytes);
    assert_eq!(info.reach_bytes, summary.reach_bytes);
    // The far repeat is out of reach, the near one is not.
    let matched = summary.matched_bytes as usize;
    assert!(
        (PASSAGE_BYTES * 9 / 10..=PASSAGE_BYTES * 11 / 10).contains(&matched),
        "{matched}"
    );

    // The latest bytes of the archive may take half of a reader's memory.
    let read = extracted_from_pipe(&archive, &reading_with(2 * REACH_BYTES)).unwrap();
    assert!(read[0].content == bytes);
    let read = extracted(&archive, &reading_with(2 * REACH_BYTES)).unwrap();
    assert!(read[0].content == bytes);
    let error = extracted_from_pipe(&archive, &reading_with(REACH_BYTES)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Limit, "{error}");

    for threads in [1, 7] {
        let options = options(threads, Some(REACH_BYTES));
        let (again, _) = piped_archive_of(vec![pipe("m", &bytes)], &options);
        assert!(again == archive, "{threads} threads change the bytes");
    }
}

#[test]
fn finds_far_repeats_without_a_limit() {
    let bytes = content();
    let (archive, summary) = archive_of(vec![pipe("m", &bytes)], &options(2, None));
    let matched = summary.matched_bytes as usize;
    assert!(matched > 2 * PASSAGE_BYTES * 9 / 10, "{matched}");
    assert!(summary.reach_bytes > REACH_BYTES);
    let read = extracted_from_pipe(&archive, &reading_with(4 * REACH_BYTES)).unwrap();
    assert!(read[0].content == bytes);
}

/// The history of a stream compressed by a slowly decoding codec extends as far as compressed
/// copies fit into memory.
/// With the quickest of the codecs that decode too slowly for history.
fn slow_options(threads: usize) -> CompressOptions {
    CompressOptions {
        threads,
        codec: Some(refrain::CodecChoice {
            name: "lzma".into(),
            level: Some(0),
        }),
        ..small_options("lzma")
    }
}

#[test]
fn with_a_slow_codec_the_history_of_a_stream_is_what_fits_in_memory() {
    const PASSAGE_BYTES: usize = 2 * MIB;
    let mut bytes = data::text(PASSAGE_BYTES, 1);
    bytes.extend(data::text(64 * MIB, 2));
    bytes.extend_from_within(..PASSAGE_BYTES);
    bytes.extend(data::text(MIB, 3));
    bytes.extend_from_within(..PASSAGE_BYTES);
    let matched = |summary: &refrain::CompressSummary| {
        (summary.matched_bytes as f64 / PASSAGE_BYTES as f64 * 10.0).round() as u64
    };

    let (archive, summary) = archive_of(vec![pipe("m", &bytes)], &slow_options(7));
    assert_eq!(matched(&summary), 10, "{summary:?}");
    let read = extracted(&archive, &read_options(2)).unwrap();
    assert!(read[0].content == bytes);
    if scaled(1) > 1 {
        let (again, _) = archive_of(vec![pipe("m", &bytes)], &slow_options(1));
        assert!(again == archive, "one thread changes the bytes");
    }

    let (_, from_file) = archive_of(vec![file("m", &bytes)], &slow_options(2));
    assert_eq!(matched(&from_file), 20, "{from_file:?}");
    let (_, fast) = archive_of(vec![pipe("m", &bytes)], &small_options("zstd"));
    assert_eq!(matched(&fast), 20, "{fast:?}");
}

#[test]
fn with_a_slow_codec_the_history_of_a_directory_is_unlimited() {
    let root = tempfile::tempdir().unwrap();
    let passage = data::text(PASSAGE_BYTES, 1);
    let file = |name: &str, bytes: &[u8]| std::fs::write(root.path().join(name), bytes).unwrap();
    passage
        .chunks(100_000)
        .enumerate()
        .for_each(|(number, piece)| file(&format!("a{number:03}"), piece));
    file("b", &data::text(64 * MIB, 2));
    file("c", &passage);
    file("d", &data::text(MIB, 3));
    // Not equal to "c": equal files refer to the same content.
    file("e", &[b"e", &passage[..]].concat());
    let tree = || member("m", Content::directory(DirectoryContent::all(root.path())));
    let (archive, summary) = archive_of(vec![tree()], &slow_options(2));
    let matched = summary.matched_bytes as usize;
    assert!(
        (PASSAGE_BYTES * 19 / 10..=PASSAGE_BYTES * 21 / 10).contains(&matched),
        "{summary:?}"
    );
    let far = CompressOptions {
        reach_bytes: Some(u64::MAX),
        ..slow_options(7)
    };
    let (piped, _) = piped_archive_of(vec![tree()], &far);
    assert!(piped == archive, "threads or the pipe change the bytes");

    let stream = &extracted(&archive, &read_options(2)).unwrap()[0].content;
    let restored = root.path().join("restored");
    let mut sink = refrain::TarSink::create(&restored, false).unwrap();
    sink.write_all(stream).unwrap();
    sink.publish().unwrap();
    for name in ["b", "c", "e"] {
        let read = |root: &Path| std::fs::read(root.join(name)).unwrap();
        assert!(read(&restored) == read(root.path()), "{name}");
    }
}

#[test]
fn refuses_a_reach_beyond_the_memory_from_stream_to_stream() {
    let mut sink = refrain::storage::StreamSink::new(std::io::sink(), "pipe");
    let unlimited = options(2, Some(u64::MAX));
    let result = refrain::compress(
        vec![pipe("m", b"x")],
        &mut sink,
        &unlimited,
        &refrain::Unwatched,
    );
    assert_eq!(result.unwrap_err().kind, refrain::ErrorKind::Limit);
}

/// The reach that the Archive frame promises.
fn promise(archive: &[u8]) -> u64 {
    let limits = refrain_format::Limits::default();
    let expanded = refrain_format::whole::expand(archive);
    let archive = expanded.as_deref().unwrap_or(archive);
    let (_, first) = refrain_format::read_frame(archive, 8, &limits).unwrap();
    let refrain_format::Payload::Archive(header) = first else {
        panic!("the first frame is not Archive");
    };
    header.reach_bytes
}

#[test]
fn a_directory_into_a_stream_has_a_limited_reach_by_default() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("a"), "a").unwrap();
    let tree = || member("m", Content::directory(DirectoryContent::all(root.path())));
    let (piped, _) = piped_archive_of(vec![tree()], &small_options("zstd"));
    assert_eq!(promise(&piped), refrain::MEMORY_BYTES_MIN / 4);
    let (filed, _) = archive_of(vec![tree()], &small_options("zstd"));
    assert_eq!(promise(&filed), u64::MAX);
}

#[test]
fn a_stream_into_a_stream_has_a_limited_reach_by_default() {
    let (archive, _) =
        piped_archive_of(vec![pipe("m", &data::text(100_000, 1))], &options(1, None));
    assert_eq!(promise(&archive), refrain::MEMORY_BYTES_MIN / 4);
}

#[test]
fn refuses_a_reach_of_fewer_than_four_blocks() {
    let mut sink = refrain::storage::NullSink::new();
    let options = options(1, Some(1 << 20));
    let error = refrain::compress(vec![], &mut sink, &options, &refrain::Unwatched).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Limit);
}

#[test]
fn blocks_close_early_when_too_much_would_wait_for_them() {
    // The names together are more than a reader may have to hold back, the contents less than a
    // block.
    const MEMBERS: usize = 20_000;
    let name = |number: usize| format!("{number:04000}");
    let members = (0..MEMBERS).map(|number| file(&name(number), &number.to_le_bytes()));
    let options = CompressOptions {
        memory_bytes: Some(1 << 30),
        ..small_options("none")
    };
    let (archive, summary) = archive_of(members.collect(), &options);
    assert!(summary.blocks > 1, "{} blocks", summary.blocks);
    let read = extracted_from_pipe(&archive, &reading_with(2 << 30)).unwrap();
    assert_eq!(read.len(), MEMBERS);
    for (number, member) in read.iter().enumerate() {
        assert!(member.name == name(number), "name of {number}");
        assert_eq!(member.content, number.to_le_bytes());
    }
}

/// Incompressible members of an odd size, with short repeats of what is at every distance up to
/// `distance_max`, so that epochs use the oldest bytes that they may.
fn members_with_repeats(bytes: usize, distance_max: usize) -> Vec<Vec<u8>> {
    const MEMBER_BYTES: usize = MIB - 1;
    const PIECE_BYTES: usize = 1 << 10;
    const STEP_BYTES: usize = 256 << 10;
    let mut content = data::random(bytes, 7);
    for end in (MEMBER_BYTES..=bytes).step_by(MEMBER_BYTES) {
        let distances = (1..=distance_max / STEP_BYTES).map(|number| number * STEP_BYTES);
        for (number, distance) in distances.filter(|&distance| distance < end / 2).enumerate() {
            let to = end - (number + 1) * (PIECE_BYTES + 100);
            content.copy_within(to - distance..to - distance + PIECE_BYTES, to);
        }
    }
    content.chunks(MEMBER_BYTES).map(<[u8]>::to_vec).collect()
}

/// Compresses the contents from pipes into a pipe; every epoch stays within the reach, or it fails.
fn piped(contents: &[Vec<u8>], options: &CompressOptions) -> (Vec<u8>, refrain::CompressSummary) {
    let members = contents.iter().map(|content| pipe("m", content));
    piped_archive_of(members.collect(), options)
}

#[test]
fn the_smallest_reach_holds_for_incompressible_content() {
    // Four blocks of 4 or 16 MiB are less than an epoch or two with everything between.
    for (level, reach_mib, content_mib) in [(1, 16, 40), (3, 16, 40), (6, 64, 90)] {
        let reach_bytes = (reach_mib * MIB) as u64;
        let options = |threads| CompressOptions {
            reach_bytes: Some(reach_bytes),
            ..crate::common::options(level, threads)
        };
        let one = [data::random(content_mib * MIB, 1)];
        let (archive, _) = piped(&one, &options(2));
        let read = extracted_from_pipe(&archive, &reading_with(3 * reach_bytes)).unwrap();
        assert!(read[0].content == one[0], "level {level}");

        let contents = members_with_repeats(content_mib * MIB, reach_mib * MIB);
        let (archive, summary) = piped(&contents, &options(2));
        assert!(summary.reach_bytes <= reach_bytes, "level {level}");
        assert!(summary.matched_bytes > 0, "level {level}: {summary:?}");
        let read = extracted_from_pipe(&archive, &reading_with(3 * reach_bytes)).unwrap();
        let expected = read.iter().map(|member| &member.content);
        assert!(expected.eq(&contents), "level {level}");
        let (again, _) = piped(&contents, &options(7));
        assert!(again == archive, "level {level}: threads change the bytes");
    }
}

#[test]
fn epochs_that_begin_anywhere_in_a_block_keep_to_the_default_reach() {
    for first_bytes in [64 << 10, 128 << 10, MIB] {
        let mut contents = members_with_repeats(64 * MIB, 40 * MIB);
        contents[0].truncate(first_bytes);
        let (_, summary) = piped(&contents, &options(2, None));
        assert!(summary.reach_bytes <= refrain::MEMORY_BYTES_MIN / 4);
    }
}

#[test]
fn small_blocks_need_a_reach_of_some_mebibytes() {
    let options = |reach_bytes| CompressOptions {
        block_bytes: Some(64 << 10),
        ..options(2, Some(reach_bytes))
    };
    let contents = members_with_repeats(8 * MIB, 4 * MIB);
    let mut sink = refrain::storage::NullSink::new();
    let result = refrain::compress(vec![], &mut sink, &options(MIB as u64), &refrain::Unwatched);
    let error = result.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Limit);
    assert!(error.to_string().ends_with("at least 3.2 MiB"), "{error}");
    let reach_bytes = 32 * MIB as u64 / 10;
    let (_, summary) = piped(&contents, &options(reach_bytes));
    assert!(summary.reach_bytes <= reach_bytes && summary.matched_bytes > 0);
}
