//! The extents of any content restore it, are well formed, and match the reference implementation.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_fuzz::{Part, content};
use refrain_longmatch::Rules;
use refrain_longmatch::property::matches_reference_and_replays;

#[derive(Debug, arbitrary::Arbitrary)]
struct MatchSettings {
    segment_bytes: u16,
    epoch_segments: u8,
    anchor_bits: u8,
    far_min: u8,
    near_min: u16,
    near_window: u16,
    run_min: u16,
    resume_spacing: u8,
}

fuzz_target!(|input: (MatchSettings, Vec<Part>)| {
    let (settings, parts) = input;
    let rules = Rules {
        anchor_bits: 4 + u32::from(settings.anchor_bits) % 5,
        far_min: 64 + u32::from(settings.far_min),
        near_min: 64 + u32::from(settings.near_min),
        near_window: u64::from(settings.near_window),
        block_bytes: 8192,
        run_min: 64 + u32::from(settings.run_min),
        resume_spacing: 16 + u32::from(settings.resume_spacing),
    };
    // The reference implementation is slow, so only a part of the content is used.
    let mut content = content(&parts);
    content.truncate(128 << 10);
    let segment_bytes = 100 + usize::from(settings.segment_bytes);
    matches_reference_and_replays(
        &content,
        segment_bytes,
        1 + usize::from(settings.epoch_segments) % 8,
        rules,
    );
});
