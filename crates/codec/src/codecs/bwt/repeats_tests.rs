//! Tests of `repeats`.

use super::*;
use crate::test_data::{random_bytes, text};
use proptest::prelude::*;

fn round_trip(raw: &[u8], escape: u8) -> usize {
    let mut out = Vec::new();
    let mut table = PositionTable::default();
    assert!(remove(
        Host::default(),
        &mut table,
        raw,
        escape,
        raw.len() * 2 + 100,
        &mut out
    ));
    let mut decoded = vec![1; raw.len()];
    let result = restore(
        Host::default(),
        &mut table,
        &out,
        escape,
        raw.len(),
        &mut decoded,
    );
    assert_eq!(result, Ok(()));
    assert!(decoded == raw);
    for length in [
        0,
        1.min(raw.len()),
        raw.len() / 2,
        raw.len().saturating_sub(1),
    ] {
        let result = restore(
            Host::default(),
            &mut table,
            &out,
            escape,
            raw.len(),
            &mut decoded[..length],
        );
        assert_eq!(result, Ok(()));
        assert!(decoded[..length] == raw[..length]);
    }
    out.len()
}

#[test]
fn removes_and_restores_repeats() {
    let once = random_bytes(50_000, 1);
    for raw in [
        once.repeat(2),
        once[..777].repeat(100),
        once[..3].repeat(3000),
    ] {
        let escape = rarest_byte(Host::default(), &raw);
        round_trip(&raw, escape);
    }
    assert!(round_trip(&once.repeat(2), 9) < 52_000);
    assert!(round_trip(&once[..777].repeat(100), 9) < 2000);
}

#[test]
fn escapes_in_the_text_round_trip() {
    let mut raw = text(30_000, 4);
    raw.extend_from_within(..20_000);
    for escape in [b'a', b' ', 0, 255] {
        round_trip(&raw, escape);
    }
}

#[test]
fn short_texts_round_trip() {
    for length in 0..200 {
        round_trip(&random_bytes(length, 7), 5);
        round_trip(&vec![5; length], 5);
    }
}

#[test]
fn stops_at_the_limit() {
    let raw = random_bytes(10_000, 1);
    let mut out = Vec::new();
    assert!(!remove(
        Host::default(),
        &mut PositionTable::default(),
        &raw,
        0,
        raw.len(),
        &mut out
    ));
    assert!(out.capacity() <= raw.len() + 16);
}

#[test]
fn returns_an_error_for_forged_data() {
    let mut raw = random_bytes(5000, 2);
    raw.extend_from_within(..);
    let mut table = PositionTable::default();
    let mut out = Vec::new();
    assert!(remove(
        Host::default(),
        &mut table,
        &raw,
        7,
        raw.len(),
        &mut out
    ));
    let mut decoded = vec![0; raw.len()];
    for cut in 0..out.len() {
        let result = restore(
            Host::default(),
            &mut table,
            &out[..cut],
            7,
            raw.len(),
            &mut decoded,
        );
        assert!(result.is_err(), "{cut}");
    }
    let longer = [&out[..], &[0]].concat();
    let result = restore(
        Host::default(),
        &mut table,
        &longer,
        7,
        raw.len(),
        &mut decoded,
    );
    assert_eq!(result, Err(RepeatError::TooLong));
}

proptest! {
    #[test]
    fn arbitrary_texts_round_trip(
        parts in proptest::collection::vec((any::<u64>(), 1_usize..300), 1..20),
        escape in any::<u8>(),
    ) {
        let part = |&(seed, length): &(u64, usize)| random_bytes(length, seed % 4);
        let raw: Vec<u8> = parts.iter().flat_map(part).collect();
        round_trip(&raw, escape);
    }

    #[test]
    fn arbitrary_data_never_panics(
        data in proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..400),
        length in 0_usize..1000,
    ) {
        let _ = restore(Host::default(), &mut PositionTable::default(), &data, 0, length, &mut vec![0; length]);
    }
}
