//! A transformed block as coded bytes, and back.

use super::runs::{Run, RunModel};
use super::tree::Shape;
use crate::arithmetic::{Decoder, Encoder};

/// Why a stream does not open.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// It ends too early.
    Truncated,
    /// It goes on behind its end.
    TooLong,
    /// A run reaches behind the block's end.
    RunTooLong,
}

/// Room behind its limit that `encode` wants in `out`, so that it never has to grow it: most bytes that
/// the shape of the symbol tree and one run can take: less than 200 decisions of at most 16 bits in the run, and 1024 in
/// the shape.
pub(super) const ROOM_BYTES: usize = 2048;

/// Appends the coded form of `transformed` to `out`. Gives up and returns false when `out` would
/// not stay shorter than `limit_bytes`; then what was appended means nothing.
pub(super) fn encode(
    model: &mut RunModel,
    transformed: &[u8],
    out: &mut Vec<u8>,
    limit_bytes: usize,
) -> bool {
    let mut encoder = Encoder::new(out);
    let mut history = model.start(&mut encoder, &Shape::of(&count_runs(transformed)));
    for run in runs(transformed) {
        model.code(&mut encoder, &mut history, run);
        if encoder.length_bytes() >= limit_bytes {
            return false;
        }
    }
    encoder.finish();
    out.len() < limit_bytes
}

/// Fills `transformed` from `data`, which must hold exactly that.
///
/// # Errors
/// `Damage`; `transformed` then holds anything.
pub(super) fn decode(
    model: &mut RunModel,
    data: &[u8],
    transformed: &mut [u8],
) -> Result<(), Damage> {
    let mut decoder = Decoder::new(data);
    let mut history = model.start(&mut decoder, &Shape::of(&[0; 256]));
    let mut rest = transformed;
    while !rest.is_empty() {
        let run = model.code(&mut decoder, &mut history, Run::UNKNOWN);
        let length = run.length as usize;
        let Some((now, later)) = rest.split_at_mut_checked(length) else {
            return Err(Damage::RunTooLong);
        };
        if decoder.is_overdrawn() {
            return Err(Damage::Truncated);
        }
        now.fill(run.symbol);
        rest = later;
    }
    match decoder.is_exhausted() {
        true => Ok(()),
        false if decoder.is_overdrawn() => Err(Damage::Truncated),
        false => Err(Damage::TooLong),
    }
}

/// The runs of `bytes`, none longer than `u32` holds, since blocks are at most 2^30 bytes.
fn runs(bytes: &[u8]) -> impl Iterator<Item = Run> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (&symbol, after) = rest.split_first()?;
        let more = after.iter().position(|&byte| byte != symbol);
        let more = more.unwrap_or(after.len());
        rest = &after[more..];
        Some(Run {
            symbol,
            length: 1 + more as u32,
        })
    })
}

/// How many runs each byte has.
fn count_runs(bytes: &[u8]) -> [u32; 256] {
    let mut counts = [0; 256];
    let mut before = None;
    for &byte in bytes {
        counts[usize::from(byte)] += u32::from(before != Some(byte));
        before = Some(byte);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::{random_bytes, text};
    use proptest::prelude::*;

    fn coded(bytes: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        assert!(encode(
            &mut RunModel::new().unwrap(),
            bytes,
            &mut out,
            usize::MAX
        ));
        out.split_off(6)
    }

    fn round_trip(bytes: &[u8]) -> usize {
        let data = coded(bytes);
        let mut opened = vec![1; bytes.len()];
        let mut model = RunModel::new().unwrap();
        // Twice: a used model starts like a fresh one.
        for _ in 0..2 {
            assert_eq!(decode(&mut model, &data, &mut opened), Ok(()));
            assert!(opened == bytes);
        }
        data.len()
    }

    #[test]
    fn runs_come_back() {
        assert!(round_trip(&[]) <= 100);
        assert!(round_trip(&vec![7; 3_000_000]) <= 100);
        assert!(round_trip(&text(50_000, 1)) < 40_000);
        assert!(round_trip(&random_bytes(50_000, 1)) < 54_000);
        let mut steps = Vec::new();
        for length in 1..400 {
            steps.resize(steps.len() + length, length as u8);
        }
        round_trip(&steps);
    }

    #[test]
    fn runs_are_split_where_bytes_change() {
        let found: Vec<_> = runs(b"aaabba")
            .map(|run| (run.symbol, run.length))
            .collect();
        assert_eq!(found, [(b'a', 3), (b'b', 2), (b'a', 1)]);
        let counts = count_runs(b"aaabba");
        assert_eq!(
            (counts[usize::from(b'a')], counts[usize::from(b'b')]),
            (2, 1)
        );
        assert_eq!(runs(b"").count(), 0);
    }

    #[test]
    fn a_limit_is_kept() {
        let bytes = random_bytes(10_000, 4);
        let mut out = Vec::with_capacity(3000 + ROOM_BYTES);
        assert!(!encode(
            &mut RunModel::new().unwrap(),
            &bytes,
            &mut out,
            3000
        ));
        assert!(out.len() <= 3000 + ROOM_BYTES);
        assert_eq!(out.capacity(), 3000 + ROOM_BYTES);
    }

    #[test]
    fn wrong_lengths_are_noticed() {
        let bytes = text(5000, 3);
        let data = coded(&bytes);
        let mut model = RunModel::new().unwrap();
        for cut in 0..data.len() {
            let result = decode(&mut model, &data[..cut], &mut [0; 5000]);
            assert!(result.is_err(), "{cut}");
        }
        let longer = [&data[..], &[0]].concat();
        let result = decode(&mut model, &longer, &mut [0; 5000]);
        assert_eq!(result, Err(Damage::TooLong));
        assert!(decode(&mut model, &data, &mut [0; 4900]).is_err());
        assert!(decode(&mut model, &data, &mut [0; 5100]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in proptest::collection::vec(0_u8..5, 0..300)) {
            round_trip(&bytes);
        }

        #[test]
        fn any_data_opens_or_fails(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&mut RunModel::new().unwrap(), &data, &mut [0; 2000]);
        }
    }
}
