//! A damaged archive is rejected, unless the damage is in a field that is only for information.

#![allow(clippy::unwrap_used, clippy::panic)]

use refrain_format::property::parse_any_bytes;
use refrain_format::{ErrorClass, Limits, find_frame, walk_archive};
use refrain_testkit::{
    Expectation, Mutation, decode_by_index, decode_sequentially, every_bit_flip, every_truncation,
    frames_of, mutations, sample_archive, scaled,
};

/// Returns the number of seeds for a test of `count` seeds under `REFRAIN_TEST_SCALE`.
fn seeds(count: u32) -> u64 {
    u64::from(scaled(count))
}

fn check(mutation: &Mutation, sample: &refrain_testkit::SampleArchive) -> bool {
    let what = &mutation.description;
    let outcome = decode_sequentially(&mutation.bytes);
    match (mutation.expectation, &outcome) {
        (Expectation::RejectedOrHarmless, Ok(members)) => {
            assert_eq!(
                members, &sample.members,
                "{what}: accepted with other members"
            );
        }
        (_, Ok(_)) => panic!("{what}: accepted"),
        (_, Err(_)) => {}
    }
    let walked = walk_archive(&mutation.bytes, &Limits::default(), |_, _, _| Ok(()));
    if mutation.expectation == Expectation::Unsupported {
        let class = walked.map(|_| ()).unwrap_err().class();
        assert_eq!(class, ErrorClass::Unsupported, "{what}");
    }
    outcome.is_err()
}

#[test]
fn samples_are_valid_and_varied() {
    let mut counts = [0_usize; 5];
    for seed in 0..seeds(200).max(200) {
        let sample = sample_archive(seed);
        assert_eq!(
            decode_sequentially(&sample.bytes),
            Ok(sample.members.clone()),
            "seed {seed}"
        );
        assert_eq!(sample_archive(seed).bytes, sample.bytes);
        counts[sample.members.len()] += 1;
    }
    assert!(counts.iter().all(|&count| count > 10), "{counts:?}");
}

#[test]
fn every_truncation_is_rejected() {
    for seed in 0..seeds(12) {
        let sample = sample_archive(seed);
        for mutation in every_truncation(&sample.bytes) {
            assert!(check(&mutation, &sample));
        }
    }
}

#[test]
fn every_flipped_bit_is_rejected() {
    for seed in 0..seeds(8) {
        let sample = sample_archive(seed);
        for mutation in every_bit_flip(&sample.bytes) {
            assert!(check(&mutation, &sample));
        }
    }
}

#[test]
fn accepted_forgeries_have_the_same_members() {
    let (mut rejected, mut harmless) = (0, 0);
    for seed in 0..seeds(60) {
        let sample = sample_archive(seed);
        for mutation in mutations(&sample.bytes, seed) {
            if check(&mutation, &sample) { rejected += 1 } else { harmless += 1 }
        }
    }
    // Forgeries reach the deeper checks, and changes of informational fields are harmless. Fewer
    // archives than usual may have too few of one kind.
    if seeds(60) >= 60 {
        assert!(rejected > 10_000, "{rejected} rejected");
        assert!(
            harmless > 100 && harmless < rejected / 10,
            "{harmless} harmless"
        );
    }
}

/// A reader that can seek reads fewer bytes, so it may miss damage elsewhere, but the bytes that it
/// returns must be right. (It cannot verify what only the index states, such as a name.)
#[test]
fn reading_by_the_index_never_returns_wrong_bytes() {
    let (mut rejected, mut right) = (0, 0);
    for seed in 0..seeds(60) {
        let sample = sample_archive(seed);
        assert_eq!(decode_by_index(&sample.bytes), Ok(sample.members.clone()));
        for mutation in mutations(&sample.bytes, seed) {
            let Ok(members) = decode_by_index(&mutation.bytes) else {
                rejected += 1;
                continue;
            };
            right += 1;
            assert_eq!(members.len(), sample.members.len());
            for (found, expected) in members.iter().zip(&sample.members) {
                let what = &mutation.description;
                assert_eq!(found.content, expected.content, "{what}");
                assert_eq!(found.entries, expected.entries, "{what}");
            }
        }
    }
    if seeds(60) >= 60 {
        assert!(
            rejected > 10_000 && right > 1000,
            "{rejected} rejected, {right} right"
        );
    }
}

#[test]
fn scanning_finds_every_frame_of_a_damaged_archive() {
    for seed in 0..seeds(40) {
        let mut bytes = sample_archive(seed).bytes;
        let frames = frames_of(&bytes);
        let gone = frames[frames.len() / 2].clone();
        bytes[gone.start] ^= 0x10;
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = find_frame(&bytes, from) {
            found.push(at);
            from = at + 1;
        }
        let expected: Vec<usize> = frames
            .iter()
            .map(|frame| frame.start)
            .filter(|&start| start != gone.start)
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn damaged_bytes_parse_as_anything_without_panic() {
    for seed in 0..seeds(6) {
        let sample = sample_archive(seed);
        for mutation in mutations(&sample.bytes, seed).step_by(7) {
            parse_any_bytes(&mutation.bytes);
        }
        for frame in frames_of(&sample.bytes) {
            parse_any_bytes(
                &sample.bytes[frame.start + refrain_format::FRAME_HEADER_BYTES..frame.end],
            );
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(refrain_testkit::scaled(256)))]
    #[test]
    fn random_bytes_parse_as_anything_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        parse_any_bytes(&bytes);
    }
}
