//! Damaged archives are read as far as their frames are intact.

use std::sync::Arc;

use crate::common::{archive_of, file, options, read_options, source};
use refrain::storage::MemorySource;
use refrain::{Archive, CodecChoice, CompressOptions, ErrorKind, ReadOptions};
use refrain_testkit::data;

const MEMORY_BYTES: u64 = 128 << 20;

fn open(archive: Vec<u8>) -> refrain::Result<Archive> {
    let options = ReadOptions {
        threads: 2,
        memory_bytes: MEMORY_BYTES,
        ..ReadOptions::default()
    };
    Archive::open_by_scan(Arc::new(MemorySource::new(archive)), &options)
}

/// Two members in several blocks and two epochs.
fn sample() -> (Vec<Vec<u8>>, Vec<u8>) {
    let contents = vec![data::source_code(11 << 20, 1), data::random(9 << 20, 2)];
    let options = CompressOptions {
        codec: "zstd:1".parse::<CodecChoice>().ok(),
        threads: 2,
        memory_bytes: Some(MEMORY_BYTES),
        ..CompressOptions::default()
    };
    let members = vec![file("a", &contents[0]), file("b", &contents[1])];
    let (archive, _) = archive_of(members, &options);
    (contents, archive)
}

fn read(archive: &Archive, member: usize, length: usize) -> refrain::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let count = archive.read_at(member, 0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

#[test]
fn a_scan_reads_an_intact_archive_like_the_index() {
    let (contents, archive) = sample();
    let scanned = open(archive).unwrap();
    assert_eq!(scanned.skipped_bytes(), 0);
    assert_eq!(scanned.member_count(), 2);
    for (number, content) in contents.iter().enumerate() {
        assert!(read(&scanned, number, content.len() + 1).unwrap() == *content);
        assert_eq!(
            scanned.members().unwrap()[number].name,
            [b"a", b"b"][number]
        );
    }
}

#[test]
fn a_scan_reads_all_content_without_index_and_end() {
    let (contents, archive) = sample();
    // The last hundreds of bytes hold the End frame and a part of the index.
    let cut = archive[..archive.len() - 150].to_vec();
    let options = ReadOptions::default();
    let by_index = Archive::open(Arc::new(MemorySource::new(cut.clone())), &options);
    assert_eq!(by_index.err().unwrap().kind, ErrorKind::Damaged);
    let scanned = open(cut).unwrap();
    assert!(scanned.skipped_bytes() > 0);
    assert!(read(&scanned, 1, contents[1].len()).unwrap() == contents[1]);
}

#[test]
fn a_scan_reads_everything_around_a_destroyed_part() {
    let (contents, mut archive) = sample();
    let whole = open(archive.clone()).unwrap();
    let blocks = whole.blocks().unwrap();
    let hit = &blocks[1];
    let middle = (hit.archive_offset + hit.stored_bytes / 2) as usize;
    archive[middle..middle + 100].fill(0x55);
    let scanned = open(archive).unwrap();
    let error = read(&scanned, 0, contents[0].len()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Damaged);
    assert!(read(&scanned, 1, contents[1].len()).unwrap() == contents[1]);
    assert!(read(&scanned, 0, 1 << 20).unwrap() == contents[0][..1 << 20]);
}

#[test]
fn a_scan_of_something_else_returns_an_error() {
    for bytes in [vec![], b"plain text".to_vec(), data::random(3 << 20, 3)] {
        assert_eq!(open(bytes).err().unwrap().kind, ErrorKind::Damaged);
    }
}

/// The length of the readable content of member 0 from its start, at most `length`, and whether it
/// is right.
fn readable(archive: &Archive, content: &[u8]) -> usize {
    let mut at = 0;
    while at < content.len() {
        let mut piece = vec![0; (64 << 10).min(content.len() - at)];
        match archive.read_at(0, at as u64, &mut piece) {
            Ok(count) if count > 0 => {
                assert!(piece[..count] == content[at..at + count], "wrong at {at}");
                at += count;
            }
            _ => break,
        }
    }
    at
}

#[test]
fn a_scan_of_a_cut_archive_reads_everything_whose_blocks_are_there() {
    let content = data::source_code(40 << 20, 7);
    let options = CompressOptions {
        codec: "lz4".parse::<CodecChoice>().ok(),
        threads: 2,
        memory_bytes: Some(MEMORY_BYTES),
        block_bytes: Some(1 << 20),
        ..CompressOptions::default()
    };
    let (archive, _) = archive_of(vec![file("a", &content)], &options);
    let whole = open(archive.clone()).unwrap();
    let blocks = whole.blocks().unwrap();
    assert!(blocks.len() > 3);
    let ends = blocks
        .iter()
        .map(|block| block.archive_offset + block.stored_bytes);
    let cuts = ends.flat_map(|end| [end - 1, end, end + 200]);
    let mut readable_before = 0;
    for cut in cuts.filter(|&cut| cut < archive.len() as u64) {
        let is_there =
            |block: &&refrain::BlockInfo| block.archive_offset + block.stored_bytes <= cut;
        let store_bytes: u64 = blocks
            .iter()
            .filter(is_there)
            .map(|block| block.raw_bytes)
            .sum();
        if store_bytes == 0 {
            continue;
        }
        let scanned = open(archive[..cut as usize].to_vec()).unwrap();
        let found = readable(&scanned, &content);
        // The content of blocks is at least as long as they are; reads are in pieces of 64 KiB.
        assert!(
            found as u64 + (64 << 10) > store_bytes,
            "{found} of {store_bytes} at {cut}"
        );
        assert!(found >= readable_before);
        readable_before = found;
    }
    assert!(readable_before > 0);
}

/// An archive embedded in the content is not part of what a scan finds, even where the frame around
/// it is damaged.
#[test]
fn frames_of_an_embedded_archive_are_ignored() {
    let random = refrain_testkit::data::random(300_000, 5);
    let (inner, _) = archive_of(vec![file("inner", &random)], &options(1, 1));
    let content = [&random[..1000], &inner, &random[1000..2000]].concat();
    let (mut archive, _) = archive_of(vec![file("outer", &content)], &options(1, 1));
    let block = Archive::open(source(&archive), &read_options(1)).unwrap();
    let block = block.blocks().unwrap()[0].clone();
    let middle = (block.archive_offset + block.stored_bytes / 2) as usize;
    archive[middle] ^= 1;
    let scanned = Archive::open_by_scan(source(&archive), &read_options(1)).unwrap();
    let names: Vec<_> = scanned.members().unwrap();
    let names: Vec<_> = names.iter().map(|member| member.name.clone()).collect();
    assert_eq!(names, [b"outer"]);
    assert_eq!(
        scanned.member(0).unwrap().content_bytes,
        content.len() as u64
    );
}

/// The number of times that the archive contains `start`.
fn count_of(archive: &[u8], start: &[u8]) -> usize {
    let windows = archive.windows(start.len());
    windows.filter(|window| *window == start).count()
}

#[test]
fn data_never_contains_the_start_of_a_frame_of_its_archive() {
    const BLOCK: usize = 1 << 20;
    const PAGE: usize = 64 << 10;
    let options = CompressOptions {
        codec: "none".parse::<CodecChoice>().ok(),
        threads: 2,
        memory_bytes: Some(MEMORY_BYTES),
        block_bytes: Some(BLOCK as u64),
        ..CompressOptions::default()
    };
    // The id depends on the first block only.
    let mut content = data::random(3 * BLOCK, 5);
    let (before, _) = archive_of(vec![file("a", &content)], &options);
    let start = before[8..16].to_vec();
    // In the middle of a page, and across the seam of two pages.
    let places = [BLOCK + 100, 2 * BLOCK + PAGE - 3];
    for (number, at) in places.into_iter().enumerate() {
        content[at..at + start.len()].copy_from_slice(&start);
        // The next mask alone would not help either.
        let next: Vec<u8> = start.iter().map(|byte| byte ^ 1).collect();
        let behind = at + 1000;
        content[behind..behind + start.len() * number].copy_from_slice(&next[..8 * number]);
    }
    let (archive, _) = archive_of(vec![file("a", &content)], &options);
    assert_eq!(archive[8..16], start);
    assert_eq!(count_of(&archive, &start), count_of(&before, &start));
    crate::common::assert_reads(
        &archive,
        &[crate::common::as_published("a", &content)],
        "masked",
    );
    let scanned = open(archive[..archive.len() - 100].to_vec()).unwrap();
    assert!(read(&scanned, 0, content.len()).unwrap() == content);
}

/// Random bytes around an archive.
fn content_with_an_archive(options: &CompressOptions) -> Vec<u8> {
    let inner = data::source_code(3 << 20, 9);
    let (inner, _) = archive_of(vec![file("inner", &inner)], options);
    let around = [data::random(7 << 20, 10), data::random(6 << 20, 11)];
    [&around[0][..], &inner, &around[1]].concat()
}

#[test]
fn a_cut_block_is_read_up_to_the_cut_and_no_embedded_frame_is_taken() {
    let options = CompressOptions {
        threads: 2,
        memory_bytes: Some(MEMORY_BYTES),
        ..CompressOptions::default()
    };
    let content = content_with_an_archive(&options);
    let (archive, _) = archive_of(vec![file("a", &content)], &options);
    let blocks = open(archive.clone()).unwrap().blocks().unwrap();
    let data_end = blocks
        .last()
        .map(|last| last.archive_offset + last.stored_bytes);
    for lost in [1, 20 << 10, 300 << 10, 2 << 20] {
        let cut = data_end.unwrap() as usize - lost;
        let scanned = open(archive[..cut].to_vec()).unwrap();
        assert_eq!(scanned.member_count(), 1);
        let found = readable(&scanned, &content);
        let least = content.len() - lost - (64 << 10);
        assert!(
            found >= least,
            "{found} of {} without {lost}",
            content.len()
        );
    }
    // Even where only the embedded archive is intact.
    let start = content
        .windows(8)
        .position(|window| *window == archive[..8]);
    let mut destroyed = archive.clone();
    let at = archive.len() - content.len() + start.unwrap();
    destroyed[..at - 4096].fill(0x77);
    if let Ok(scanned) = open(destroyed) {
        let names: Vec<_> = (0..scanned.member_count())
            .map(|member| scanned.member(member).unwrap().name)
            .collect();
        assert!(!names.contains(&b"inner".to_vec()), "{names:?}");
    }
}

#[test]
fn the_right_pieces_of_damaged_blocks_are_read() {
    const PIECE: usize = 64 << 10;
    let content = data::source_code(3 << 20, 12);
    for (codec, is_coded) in [
        ("none", false),
        ("zstd:3", true),
        ("lzma:1", true),
        ("lz4", true),
    ] {
        let options = CompressOptions {
            codec: codec.parse::<CodecChoice>().ok(),
            threads: 2,
            memory_bytes: Some(MEMORY_BYTES),
            block_bytes: Some(1 << 20),
            ..CompressOptions::default()
        };
        let (mut archive, _) = archive_of(vec![file("a", &content)], &options);
        let blocks = open(archive.clone()).unwrap().blocks().unwrap();
        let hit = &blocks[1];
        let middle = (hit.archive_offset + hit.stored_bytes / 2) as usize;
        archive[middle..middle + 10].fill(0x55);
        let scanned = open(archive).unwrap();
        let whole = scanned.blocks().unwrap();
        assert_eq!(
            whole.len(),
            blocks.len() - 1,
            "only intact blocks are listed"
        );
        // Content and store are nearly the same here: few passages repeat.
        let mut right = 0;
        for at in (0..content.len()).step_by(PIECE) {
            let mut piece = vec![0; PIECE.min(content.len() - at)];
            let Ok(count) = scanned.read_at(0, at as u64, &mut piece) else {
                continue;
            };
            assert!(piece[..count] == content[at..at + count], "{codec} at {at}");
            right += count;
        }
        let lost = content.len() - right;
        let most = if is_coded { (hit.raw_bytes as usize) * 5 / 8 + 2 * PIECE } else { 4 * PIECE };
        assert!(lost > 0 && lost <= most, "{codec}: {lost} bytes are lost");
    }
}
