//! References: extents that stand for extents of earlier content.

use crate::common::*;
use refrain::{Archive, CompressOptions, ErrorKind};
use refrain_format::{FrameKind, Limits, Payload, walk_archive};
use refrain_testkit::{Rng, data};

/// Versions of a file, and all of them again at another distance from the start of an epoch.
fn content() -> (Vec<u8>, usize) {
    let mut bytes = data::versions(1_500_000, 22, 60, 5);
    let half = bytes.len();
    bytes.extend(data::random(300_000, 6));
    bytes.extend_from_within(..half);
    (bytes, half)
}

fn options(threads: usize) -> CompressOptions {
    CompressOptions {
        threads,
        ..small_options("zstd")
    }
}

fn extents_of(archive: &[u8]) -> u64 {
    let archive = Archive::open(source(archive), &read_options(1)).unwrap();
    archive.info().unwrap().extents
}

#[test]
fn content_that_repeats_takes_hardly_any_extents() {
    let (bytes, half) = content();
    let (once, _) = archive_of(vec![file("m", &bytes[..half])], &options(2));
    let (twice, summary) = archive_of(vec![file("m", &bytes)], &options(2));
    let (first, both) = (extents_of(&once), extents_of(&twice));
    assert!(first > 1000, "{first}");
    assert!(
        both < first + first / 2,
        "{both} extents, {first} without the repeat"
    );
    assert!(summary.matched_bytes > bytes.len() as u64 / 10 * 9);
    assert_reads(&twice, &[as_published("m", &bytes)], "file");
    let (again, _) = archive_of(vec![file("m", &bytes)], &options(7));
    assert!(again == twice, "threads change the bytes");
}

#[test]
fn any_range_is_read_through_repeats() {
    let (bytes, _) = content();
    let (archive, _) = archive_of(vec![file("m", &bytes)], &options(2));
    let archive = Archive::open(source(&archive), &read_options(2)).unwrap();
    let mut rng = Rng::new(7);
    for _ in 0..400 {
        let at = rng.below(bytes.len() as u64);
        let mut buffer = vec![0; 1 + rng.below(40_000) as usize];
        let count = archive.read_at(0, at, &mut buffer).unwrap();
        assert!(
            buffer[..count] == bytes[at as usize..at as usize + count],
            "{at}"
        );
    }
}

#[test]
fn pipes_and_a_limited_reach_have_repeats_too() {
    let (bytes, _) = content();
    for reach_bytes in [None, Some(24 << 20)] {
        let options = CompressOptions {
            reach_bytes,
            ..options(2)
        };
        let (archive, _) = piped_archive_of(vec![pipe("m", &bytes)], &options);
        assert_reads(&archive, &[as_published("m", &bytes)], "pipe");
        let info = Archive::open(source(&archive), &read_options(1))
            .unwrap()
            .info()
            .unwrap();
        assert!(info.reach_bytes <= reach_bytes.unwrap_or(u64::MAX));
    }
}

/// The ranges of the archive and of the content that each Extents frame takes and describes.
fn extents_frames(archive: &[u8]) -> Vec<(u64, std::ops::Range<u64>)> {
    let mut frames = vec![];
    walk_archive(archive, &Limits::default(), |offset, frame, payload| {
        if let (FrameKind::Extents, Payload::Extents { header, .. }) = (frame.kind, payload) {
            frames.push((offset, header.content_start..header.content_end()));
        }
        Ok(())
    })
    .unwrap();
    frames
}

#[test]
fn a_scan_restores_what_does_not_lead_to_a_lost_frame() {
    const PIECE: usize = 100_000;
    let (bytes, half) = content();
    let (mut archive, _) = archive_of(vec![file("m", &bytes)], &options(2));
    let frames = extents_frames(&archive);
    let (offset, lost) = frames
        .iter()
        .find(|(_, content)| content.start > 0)
        .unwrap()
        .clone();
    // Further apart than parity can repair.
    for at in [40, 60] {
        archive[offset as usize + at] ^= 1;
    }
    assert!(
        (lost.end as usize) < half,
        "the lost frame is in the first half"
    );
    let archive = Archive::open_by_scan(source(&archive), &read_options(2)).unwrap();
    let (mut read, mut lost_later) = (0, 0);
    for at in (0..bytes.len()).step_by(PIECE) {
        let end = bytes.len().min(at + PIECE);
        let mut buffer = vec![0; end - at];
        let is_lost = (at as u64) < lost.end && (end as u64) > lost.start;
        match archive.read_at(0, at as u64, &mut buffer) {
            Ok(count) => {
                assert!(!is_lost && count == buffer.len());
                assert!(buffer == bytes[at..end], "{at}");
                read += 1;
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
                assert!(is_lost || at as u64 >= lost.end, "{at}: {error}");
                lost_later += usize::from(!is_lost);
            }
        }
    }
    assert!(lost_later > 0, "later content repeats the lost frame's");
    assert!(read > bytes.len() / PIECE / 5, "{read}");
}
