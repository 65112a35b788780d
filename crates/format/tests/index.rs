//! The index of whole archives: contradictions with the frames are found even if all checksums are
//! right.
#![allow(clippy::unwrap_used)]

use refrain_format::property::Rng;
use refrain_format::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, Limits, MAGIC, UntrustedFrameHeader,
    complete_frame, walk_archive,
};
use refrain_testkit::{decode_sequentially, sample_archive};

fn seeds() -> u64 {
    refrain_testkit::scaled(200).into()
}

fn frames(archive: &[u8]) -> Vec<(usize, FrameHeader, Vec<u8>)> {
    let mut frames = Vec::new();
    walk_archive(archive, &Limits::default(), |offset, header, _| {
        let start = offset as usize + FRAME_HEADER_BYTES;
        let payload = &archive[start..start + header.payload_bytes as usize];
        frames.push((offset as usize, *header, payload.to_vec()));
        Ok(())
    })
    .unwrap();
    frames
}

/// The archive with another payload of the same size in one frame, and right checksums.
fn forged(archive: &[u8], (offset, header): (usize, &FrameHeader), payload: &[u8]) -> Vec<u8> {
    let frame = complete_frame(header.kind, 0, payload, header.archive_id, header.sequence);
    let mut archive = archive.to_vec();
    archive[offset..offset + frame.len()].copy_from_slice(&frame);
    archive
}

/// Whether a reader that decodes entries accepts the archive: it compares the paths in slices with
/// them.
fn is_valid(archive: &[u8]) -> bool {
    walk_archive(archive, &Limits::default(), |_, _, _| Ok(())).is_ok()
        && decode_sequentially(archive).is_ok()
}

/// The size of the head of a payload whose head is less than 128 bytes long.
fn head_bytes(payload: &[u8]) -> usize {
    1 + usize::from(payload[0])
}

#[test]
fn every_changed_byte_of_an_index_is_found() {
    let (mut nodes, mut changes) = (0, 0);
    for seed in 0..seeds() {
        let archive = sample_archive(seed).bytes;
        let mut rng = Rng::new(seed);
        for (offset, header, payload) in frames(&archive) {
            let first = match header.kind {
                FrameKind::Index => 1,
                // Readers that decode extents compare their sums.
                FrameKind::End => head_bytes(&payload),
                _ => continue,
            };
            nodes += 1;
            for _ in 0..8.min(payload.len() - first) {
                let at = first + rng.below((payload.len() - first) as u64) as usize;
                let mut changed = payload.clone();
                changed[at] ^= 1 << rng.below(8);
                let changed = forged(&archive, (offset, &header), &changed);
                assert!(
                    !is_valid(&changed),
                    "seed {seed}, frame {offset}, byte {at}"
                );
                changes += 1;
            }
        }
    }
    assert!(
        nodes > 2 * seeds() && changes > 10 * seeds(),
        "{nodes} nodes, {changes} changes"
    );
}

#[test]
fn nodes_of_an_index_stand_in_the_order_of_their_rows() {
    let mut swapped = 0;
    for seed in 0..seeds() {
        let archive = sample_archive(seed).bytes;
        let frames = frames(&archive);
        for pair in frames.windows(2) {
            let [
                (offset, header, payload),
                (next_offset, next_header, next_payload),
            ] = pair
            else {
                continue;
            };
            let are_nodes = header.kind == FrameKind::Index && next_header.kind == header.kind;
            if !are_nodes || payload.len() != next_payload.len() || payload == next_payload {
                continue;
            }
            let changed = forged(&archive, (*offset, header), next_payload);
            let changed = forged(&changed, (*next_offset, next_header), payload);
            assert!(!is_valid(&changed), "seed {seed}, frame {offset}");
            swapped += 1;
        }
    }
    assert!(swapped > seeds() / 5, "{swapped}");
}

#[test]
fn lists_of_later_versions_are_ignored_or_unsupported() {
    let archive = sample_archive(1).bytes;
    let frames = frames(&archive);
    let (end_offset, end_header, _) = frames.last().unwrap();
    assert_eq!(end_header.kind, FrameKind::End);
    // An index frame of an unknown list before End. It is all head.
    for (list, is_known) in [(6, true), (7, false)] {
        let payload = [6, list, 0, 1, 0, 0, 0, 9];
        let header = UntrustedFrameHeader::parse(&archive[MAGIC.len()..]).unwrap();
        let header = header.check(&Limits::default(), None).unwrap();
        let frame = complete_frame(
            FrameKind::Index,
            0,
            &payload,
            header.archive_id,
            end_header.sequence,
        );
        let mut with_list = archive[..*end_offset].to_vec();
        with_list.extend(frame);
        let mut last = None;
        let walked = walk_archive(&with_list, &Limits::default(), |offset, header, _| {
            last = Some((offset, header.kind));
            Ok(())
        });
        // Either way the archive then lacks its end.
        assert!(walked.is_err());
        let accepted = last == Some((*end_offset as u64, FrameKind::Index));
        assert_eq!(accepted, is_known, "list {list}");
    }
}
