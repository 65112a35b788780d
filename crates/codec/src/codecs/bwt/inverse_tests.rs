//! Tests of both inverse transforms.

use super::super::transform::{chain_count, forward};
use super::*;
use crate::test_data::{random_bytes, text};
use proptest::prelude::*;

/// With packed links, as for short texts, and with those of two bytes, as for long ones.
fn inverses() -> [Inverse; 2] {
    let pairs = Inverse {
        packed_bytes_max: 0,
        ..Inverse::default()
    };
    [Inverse::default(), pairs]
}

/// The textbook transform: sorts all suffixes, the empty one first.
fn naive_transform(text: &[u8]) -> (Vec<u8>, Vec<ChainRow>) {
    let mut suffixes: Vec<usize> = (0..=text.len()).collect();
    suffixes.sort_by_key(|&start| &text[start..]);
    let before = suffixes.iter().filter(|&&start| start > 0);
    let transform = before.map(|&start| text[start - 1]).collect();
    let row_of = |start| suffixes.iter().position(|&s| s == start).unwrap() as ChainRow;
    let starts =
        (0..chain_count(text.len())).map(|chain| row_of(chain * sampling_bytes(text.len())));
    (transform, starts.collect())
}

fn check(raw: &[u8], naive: bool) {
    let (mut transform, mut starts) = (raw.to_vec(), Vec::new());
    forward(
        Host::default(),
        &mut transform,
        &mut Vec::new(),
        &mut starts,
    )
    .unwrap();
    if naive {
        assert_eq!((transform.clone(), starts.clone()), naive_transform(raw));
    }
    for mut inverse in inverses() {
        for length in [raw.len(), raw.len() / 2, raw.len() - 1, 1] {
            inverse
                .prepare(Host::default(), &transform, starts[0])
                .unwrap();
            let mut decoded = vec![0xAA; length];
            inverse.follow(Host::default(), &starts, raw.len(), &mut decoded);
            assert!(decoded == raw[..length], "{length} of {}", raw.len());
        }
    }
}

#[test]
fn texts_round_trip() {
    for length in [1, 2, 3, 4, 5, 100, 1001] {
        check(&text(length, 1), true);
        check(&random_bytes(length, 1), true);
        check(&vec![0; length], true);
        check(&vec![255; length], true);
    }
    let all_pairs: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_be_bytes).collect();
    check(&all_pairs, false);
    for length in [65_535, 65_536, 65_537, 200_001, 1_500_000] {
        check(&text(length, 2), false);
        check(&random_bytes(length, 2), false);
        check(&b"ab".repeat(length)[..length], false);
    }
}

/// The longest text whose links are packed has rows of all 24 bits.
#[test]
fn packed_links_reach_the_last_row() {
    let raw = random_bytes(packed::LENGTH_BYTES_MAX, 3);
    let (mut transform, mut starts) = (raw.clone(), Vec::new());
    forward(
        Host::default(),
        &mut transform,
        &mut Vec::new(),
        &mut starts,
    )
    .unwrap();
    let mut inverse = Inverse::default();
    inverse
        .prepare(Host::default(), &transform, starts[0])
        .unwrap();
    assert!(inverse.directory.bytes.is_empty(), "links of two bytes");
    let mut decoded = vec![0; raw.len()];
    inverse.follow(Host::default(), &starts, raw.len(), &mut decoded);
    assert!(decoded == raw);
}

#[test]
fn forged_transforms_decode_without_panic() {
    for length in [1, 2, 3, 1000, 150_001] {
        let transform = random_bytes(length, 5);
        let starts: Vec<ChainRow> = (0..chain_count(length))
            .map(|n| 1 + (n * 7919 % length) as ChainRow)
            .collect();
        for primary in [1, length as ChainRow, length as ChainRow / 2 + 1] {
            for mut inverse in inverses() {
                inverse
                    .prepare(Host::default(), &transform, primary)
                    .unwrap();
                inverse.follow(Host::default(), &starts, length, &mut vec![0; length]);
            }
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_texts_round_trip(raw in proptest::collection::vec(0_u8..4, 1..200)) {
        check(&raw, true);
    }

    #[test]
    fn arbitrary_transforms_decode_without_panic(
        transform in proptest::collection::vec(any::<u8>(), 1..200),
        primary in any::<ChainRow>(),
        start in any::<ChainRow>(),
    ) {
        let length = transform.len();
        let within = |row: ChainRow| 1 + row % length as ChainRow;
        for mut inverse in inverses() {
            inverse.prepare(Host::default(), &transform, within(primary)).unwrap();
            inverse.follow(Host::default(), &[within(start)], length, &mut vec![0; length]);
        }
    }
}
