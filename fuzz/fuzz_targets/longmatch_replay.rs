//! The extents of any content restore it, are well formed, and match the reference implementation.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_fuzz::{Part, content};
use refrain_longmatch::Rules;
use refrain_longmatch::property::matches_reference_and_replays;

#[derive(Debug, arbitrary::Arbitrary)]
struct Cut {
    segment_bytes: u16,
    epoch_segments: u8,
    anchor_bits: u8,
    far_min: u8,
    near_min: u16,
    near_window: u16,
    run_min: u16,
    resume_spacing: u8,
}

fuzz_target!(|input: (Cut, Vec<Part>)| {
    let (cut, parts) = input;
    let rules = Rules {
        anchor_bits: 4 + u32::from(cut.anchor_bits) % 5,
        far_min: 64 + u32::from(cut.far_min),
        near_min: 64 + u32::from(cut.near_min),
        near_window: u64::from(cut.near_window),
        block_bytes: 8192,
        run_min: 64 + u32::from(cut.run_min),
        resume_spacing: 16 + u32::from(cut.resume_spacing),
    };
    // The reference implementation is slow, so only a part of the content is used.
    let mut content = content(&parts);
    content.truncate(128 << 10);
    let segment_bytes = 100 + usize::from(cut.segment_bytes);
    matches_reference_and_replays(
        &content,
        segment_bytes,
        1 + usize::from(cut.epoch_segments) % 8,
        rules,
    );
});
