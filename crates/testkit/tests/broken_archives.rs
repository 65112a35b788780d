//! The format's promise: a broken archive is refused, or it was not broken where it matters.

#![allow(clippy::unwrap_used, clippy::panic)]

use refrain_format::property::parse_any_bytes;
use refrain_format::{ErrorClass, Limits, find_frame, walk_archive};
use refrain_testkit::{
    Expectation, Mutation, decode_model, decode_model_by_index, every_bit_flip, every_truncation,
    frames_of, mutations, sample_archive, scaled,
};

/// The number of seeds that a test of `count` seeds uses under `REFRAIN_TEST_SCALE`.
fn seeds(count: u32) -> u64 {
    u64::from(scaled(count))
}

fn check(mutation: &Mutation, sample: &refrain_testkit::SampleArchive) -> bool {
    let what = &mutation.description;
    let outcome = decode_model(&mutation.bytes);
    match (mutation.expectation, &outcome) {
        (Expectation::RefusedOrHarmless, Ok(members)) => {
            assert_eq!(members, &sample.members, "{what}: passed wrongly");
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
            decode_model(&sample.bytes),
            Ok(sample.members.clone()),
            "seed {seed}"
        );
        assert_eq!(sample_archive(seed).bytes, sample.bytes);
        counts[sample.members.len()] += 1;
    }
    assert!(counts.iter().all(|&count| count > 10), "{counts:?}");
}

#[test]
fn every_truncation_is_refused() {
    for seed in 0..seeds(12) {
        let sample = sample_archive(seed);
        for mutation in every_truncation(&sample.bytes) {
            assert!(check(&mutation, &sample));
        }
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    for seed in 0..seeds(8) {
        let sample = sample_archive(seed);
        for mutation in every_bit_flip(&sample.bytes) {
            assert!(check(&mutation, &sample));
        }
    }
}

#[test]
fn forged_archives_never_pass_wrongly() {
    let (mut refused, mut harmless) = (0, 0);
    for seed in 0..seeds(60) {
        let sample = sample_archive(seed);
        for mutation in mutations(&sample.bytes, seed) {
            match check(&mutation, &sample) {
                true => refused += 1,
                false => harmless += 1,
            }
        }
    }
    // Forgeries reach the deeper checks, and changes to fields that are for information only are harmless. Fewer
    // archives than usual may have too few of one kind.
    if seeds(60) >= 60 {
        assert!(refused > 10_000, "{refused} refused");
        assert!(
            harmless > 100 && harmless < refused / 10,
            "{harmless} harmless"
        );
    }
}

/// A reader that can seek looks at fewer bytes, so it may not notice damage elsewhere; what it gives must be right.
/// (What only the index states, like a name, it cannot compare with anything.)
#[test]
fn reading_by_the_index_never_gives_wrong_bytes() {
    let (mut refused, mut right) = (0, 0);
    for seed in 0..seeds(60) {
        let sample = sample_archive(seed);
        assert_eq!(
            decode_model_by_index(&sample.bytes),
            Ok(sample.members.clone())
        );
        for mutation in mutations(&sample.bytes, seed) {
            let Ok(members) = decode_model_by_index(&mutation.bytes) else {
                refused += 1;
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
            refused > 10_000 && right > 1000,
            "{refused} refused, {right} right"
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
fn broken_bytes_are_harmless_as_anything() {
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
    fn random_bytes_are_harmless(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        parse_any_bytes(&bytes);
    }
}
