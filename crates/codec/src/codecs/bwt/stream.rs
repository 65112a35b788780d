//! Encodes a transformed block to bytes, and back.

use super::runs::{ByteRun, RunModel};
use super::tree::Shape;
use crate::arithmetic::{Decoder, Encoder};
use crate::host::{Host, PIECE_BYTES};

/// The runs between two check-ins, at 3 to 10 million a second.
const PIECE_RUNS: usize = 1 << 10;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamError {
    /// The data ends too early.
    Truncated,
    /// Data is left over after the end.
    TooLong,
    /// A run exceeds the end of the block.
    RunTooLong,
    /// The alphabet of ranked runs has a symbol twice.
    SymbolTwice,
    /// A segment of ranked runs does not end in the state with which it was begun.
    WrongState,
}

/// The capacity that `encode` needs in `out` after its limit, so that it never has to grow it: the
/// maximum bytes of the shape of the symbol tree and one run. The run has less than 200 decisions
/// of at most 16 bits, the shape has 1024.
pub(super) const OVERRUN_BYTES: usize = 2048;

/// Appends the coded form of `transformed` to `out`. Stops and returns false when `out` would not
/// stay shorter than `limit_bytes`; the appended bytes are then undefined.
pub(super) fn encode(
    host: Host,
    model: &mut RunModel,
    transformed: &[u8],
    out: &mut Vec<u8>,
    limit_bytes: usize,
) -> bool {
    let mut encoder = Encoder::new(out);
    let mut history = model.start(
        &mut encoder,
        &Shape::from_counts(&count_runs(host, transformed)),
    );
    for (index, run) in runs(transformed).enumerate() {
        if index.is_multiple_of(PIECE_RUNS) {
            (host.check_in)();
        }
        model.code(&mut encoder, &mut history, run);
        if encoder.length_bytes() >= limit_bytes {
            return false;
        }
    }
    encoder.finish();
    out.len() < limit_bytes
}

/// Decodes `data` into `transformed`, which must end together.
///
/// # Errors
/// `StreamError`; the content of `transformed` is then undefined.
pub(super) fn decode(
    host: Host,
    model: &mut RunModel,
    data: &[u8],
    transformed: &mut [u8],
) -> Result<(), StreamError> {
    let mut decoder = Decoder::new(data);
    let mut history = model.start(&mut decoder, &Shape::from_counts(&[0; 256]));
    let mut rest = transformed;
    let mut index = 0_usize;
    while !rest.is_empty() {
        if index.is_multiple_of(PIECE_RUNS) {
            (host.check_in)();
        }
        index += 1;
        let run = model.code(&mut decoder, &mut history, ByteRun::UNKNOWN);
        let length = run.length as usize;
        let Some((now, later)) = rest.split_at_mut_checked(length) else {
            return Err(StreamError::RunTooLong);
        };
        if decoder.is_overdrawn() {
            return Err(StreamError::Truncated);
        }
        now.fill(run.symbol);
        rest = later;
    }
    match decoder.is_exhausted() {
        true => Ok(()),
        false if decoder.is_overdrawn() => Err(StreamError::Truncated),
        false => Err(StreamError::TooLong),
    }
}

/// The runs of `bytes`. Their lengths fit in `u32`, since blocks are at most 2^30 bytes.
pub(super) fn runs(bytes: &[u8]) -> impl Iterator<Item = ByteRun> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (&symbol, after) = rest.split_first()?;
        let more = after.iter().position(|&byte| byte != symbol);
        let more = more.unwrap_or(after.len());
        rest = &after[more..];
        Some(ByteRun {
            symbol,
            length: 1 + more as u32,
        })
    })
}

fn count_runs(host: Host, bytes: &[u8]) -> [u32; 256] {
    let mut counts = [0; 256];
    let mut before = None;
    for piece in bytes.chunks(PIECE_BYTES) {
        for &byte in piece {
            counts[usize::from(byte)] += u32::from(before != Some(byte));
            before = Some(byte);
        }
        (host.check_in)();
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
            Host::default(),
            &mut RunModel::new().unwrap(),
            bytes,
            &mut out,
            usize::MAX
        ));
        out.split_off(6)
    }

    fn round_trip(bytes: &[u8]) -> usize {
        let data = coded(bytes);
        let mut decoded = vec![1; bytes.len()];
        let mut model = RunModel::new().unwrap();
        // Twice: a used model gives the same result as a new one.
        for _ in 0..2 {
            assert_eq!(
                decode(Host::default(), &mut model, &data, &mut decoded),
                Ok(())
            );
            assert!(decoded == bytes);
        }
        data.len()
    }

    #[test]
    fn runs_round_trip() {
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
        let counts = count_runs(Host::default(), b"aaabba");
        assert_eq!(
            (counts[usize::from(b'a')], counts[usize::from(b'b')]),
            (2, 1)
        );
        assert_eq!(runs(b"").count(), 0);
    }

    #[test]
    fn stops_at_the_limit() {
        let bytes = random_bytes(10_000, 4);
        let mut out = Vec::with_capacity(3000 + OVERRUN_BYTES);
        assert!(!encode(
            Host::default(),
            &mut RunModel::new().unwrap(),
            &bytes,
            &mut out,
            3000
        ));
        assert!(out.len() <= 3000 + OVERRUN_BYTES);
        assert_eq!(out.capacity(), 3000 + OVERRUN_BYTES);
    }

    #[test]
    fn returns_an_error_for_wrong_lengths() {
        let bytes = text(5000, 3);
        let data = coded(&bytes);
        let mut model = RunModel::new().unwrap();
        for cut in 0..data.len() {
            let result = decode(Host::default(), &mut model, &data[..cut], &mut [0; 5000]);
            assert!(result.is_err(), "{cut}");
        }
        let longer = [&data[..], &[0]].concat();
        let result = decode(Host::default(), &mut model, &longer, &mut [0; 5000]);
        assert_eq!(result, Err(StreamError::TooLong));
        assert!(decode(Host::default(), &mut model, &data, &mut [0; 4900]).is_err());
        assert!(decode(Host::default(), &mut model, &data, &mut [0; 5100]).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_round_trip(bytes in proptest::collection::vec(0_u8..5, 0..300)) {
            round_trip(&bytes);
        }

        #[test]
        fn arbitrary_data_never_panics(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(Host::default(), &mut RunModel::new().unwrap(), &data, &mut [0; 2000]);
        }
    }
}
