//! Whole frames: small archives collapse to one frame and expand to the same bytes; damaged ones
//! give errors.
#![allow(clippy::unwrap_used)]

use refrain_format::property::expand_any_payload;
use refrain_format::whole::{
    WHOLE_START_BYTES, collapse, expand, expand_payload, whole_archive_bytes,
};
use refrain_format::{
    ErrorClass, FrameHeader, FrameKind, IndexList, Limits, MAGIC, Payload, UntrustedFrameHeader,
    complete_frame, walk_archive,
};
use refrain_testkit::sample_archive;

const TAIL_BYTES: usize = 8;

/// Whether expanding a Whole frame would not restore the archive: it has skippable frames, smaller
/// index nodes than usual, or the path order of a tree.
fn has_more_frames(archive: &[u8]) -> bool {
    let mut found = false;
    walk_archive(archive, &Limits::default(), |_, header, payload| {
        found |= header.skippable || header.kind == FrameKind::Index;
        if let Payload::End { roots, .. } = payload {
            found |= roots.iter().any(|root| root.list == IndexList::Slices);
        }
        Ok(())
    })
    .unwrap();
    found
}

/// The first sample archives that collapse, and their collapsed forms.
fn collapsed(count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let archives = (0..).map(|seed| sample_archive(seed).bytes);
    let both = archives.filter_map(|archive| Some((collapse(&archive)?, archive)));
    both.map(|(whole, archive)| (archive, whole))
        .take(count)
        .collect()
}

fn header(whole: &[u8]) -> FrameHeader {
    let header = UntrustedFrameHeader::parse(&whole[MAGIC.len()..]).unwrap();
    header.check(&Limits::default(), None).unwrap()
}

fn payload(whole: &[u8]) -> &[u8] {
    &whole[WHOLE_START_BYTES..whole.len() - TAIL_BYTES]
}

fn whole_with(payload: &[u8], sequence: u64) -> Vec<u8> {
    let frame = complete_frame(FrameKind::Whole, 0, payload, 7, sequence);
    let mut tail = (frame.len() as u64).to_le_bytes();
    tail[6..].copy_from_slice(b"R\xfe");
    [&MAGIC[..], &frame, &tail].concat()
}

#[test]
fn expanding_a_collapsed_archive_gives_the_same_bytes() {
    let mut collapsed = 0;
    for seed in 0..refrain_testkit::scaled(300).into() {
        let archive = sample_archive(seed).bytes;
        match collapse(&archive) {
            Some(whole) => {
                collapsed += 1;
                assert_eq!(expand(&whole).unwrap(), archive, "seed {seed}");
                assert!(whole.len() < archive.len(), "seed {seed}");
                assert_eq!(whole_archive_bytes(&whole), Some(whole.len() as u64));
                assert_eq!(whole_archive_bytes(&archive), None);
                expand_any_payload(payload(&whole));
            }
            None => assert!(
                has_more_frames(&archive) || archive.len() > 16_384,
                "seed {seed}"
            ),
        }
    }
    assert!(collapsed > 50, "{collapsed} samples collapse");
}

#[test]
fn the_id_of_the_archive_is_that_of_the_frame() {
    for (archive, whole) in collapsed(5) {
        let header = header(&whole);
        let changed = expand_payload(header.archive_id ^ 1, payload(&whole)).unwrap();
        assert_eq!(changed.len(), archive.len());
        assert_ne!(changed, archive);
        walk_archive(&changed, &Limits::default(), |_, frame, _| {
            assert_eq!(frame.archive_id, header.archive_id ^ 1);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn damaged_bytes_and_lengths_are_detected() {
    let (_, whole) = collapsed(1).remove(0);
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(expand(&flipped).is_err(), "byte {at}");
        assert!(expand(&whole[..at]).is_err(), "cut at {at}");
    }
    let longer = [&whole[..], &[0]].concat();
    assert!(expand(&longer).is_err());
}

#[test]
fn edited_payloads_give_errors_or_sound_archives() {
    let samples = collapsed(8);
    for (at, (_, whole)) in samples.iter().enumerate() {
        let payload = payload(whole);
        for position in 0..payload.len() {
            let mut edited = payload.to_vec();
            edited[position] ^= 1 << ((position + at) % 8);
            expand_any_payload(&edited);
            expand_any_payload(&payload[..position]);
        }
    }
}

#[test]
fn what_a_whole_frame_cannot_hold_is_rejected() {
    let (archive, whole) = collapsed(1).remove(0);
    let good = payload(&whole).to_vec();
    let class = |payload: &[u8]| expand(&whole_with(payload, 0)).unwrap_err().class();
    assert!(expand(&whole_with(&good, 0)).is_ok());
    assert!(expand(&whole_with(&good, 1)).is_err(), "a sequence number");
    assert!(expand(&archive).is_err(), "an ordinary archive");
    let with_frame = |kind| class(&[&good[..], &[kind, 0, 0]].concat());
    for kind in [7, 8, 9] {
        assert_eq!(with_frame(kind), ErrorClass::Damaged, "kind {kind}");
    }
    for kind in [0, 17, 20, 77] {
        assert_eq!(with_frame(kind), ErrorClass::Unsupported, "kind {kind}");
    }
    let too_long = [&good[..], &[0; 1 << 16]].concat();
    assert_eq!(class(&too_long), ErrorClass::Limit);
    // The head has three totals with any values; the sums of the extents would give them.
    let head = usize::from(good[0]) + 1;
    let totals = [&[3, 0, 0, 0], &good[head..]].concat();
    let extended = [&[5, 0, 0, 0, 2, 0], &good[head..]].concat();
    assert_eq!(
        expand_payload(7, &totals).map_err(|error| error.class()),
        expand_payload(7, &extended).map_err(|error| error.class()),
        "an extension that may be ignored"
    );
    let required = [&[5, 0, 0, 0, 3, 0], &good[head..]].concat();
    assert_eq!(class(&required), ErrorClass::Unsupported);
    assert_eq!(class(&[3, 0, 0, 0]), ErrorClass::Damaged, "no frames");
}

#[test]
fn whole_frames_are_not_allowed_among_others() {
    let (_, whole) = collapsed(1).remove(0);
    let error = walk_archive(&whole, &Limits::default(), |_, _, _| Ok(())).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Damaged);
    assert!(error.to_string().contains("only frame"), "{error}");
}
