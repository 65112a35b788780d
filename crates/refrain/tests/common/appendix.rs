//! Frames after an archive.

use refrain_format::{
    FLAG_SKIPPABLE, FrameKind, Limits, TAIL_BYTES, Tail, UntrustedFrameHeader, complete_frame,
};

/// An appendix of an archive: skippable frames after its tail, and another tail that leads to its
/// last frame. `sequence` is the number of the first of them.
pub fn appendix(archive: &[u8], payloads: &[&[u8]], sequence: u64) -> Vec<u8> {
    let back_bytes = Tail::parse(&archive[archive.len() - TAIL_BYTES..]).unwrap();
    let last = archive.len() - TAIL_BYTES - back_bytes.back_bytes as usize;
    let header = UntrustedFrameHeader::parse(&archive[last..]).unwrap();
    let header = header.check(&Limits::default(), None).unwrap();
    let mut bytes = Vec::new();
    for (number, payload) in payloads.iter().enumerate() {
        let sequence = header.sequence + sequence + number as u64;
        bytes.extend(complete_frame(
            FrameKind::Recovery,
            FLAG_SKIPPABLE,
            payload,
            header.archive_id,
            sequence,
        ));
    }
    let back_bytes = (archive.len() + bytes.len() - last) as u64;
    bytes.extend(Tail { back_bytes }.to_bytes());
    bytes
}
