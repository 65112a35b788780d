//! Encodes a transformed block as ranked runs, and back: the alphabet in the order of first runs,
//! then segments of runs.

use super::forward_ranks::{self, Found, Order, Queue};
use super::ranked_runs::{RankedModel, RankedRun, SYMBOLS_MAX};
use super::rans::{Decoder, Encoder};
use super::stream::{StreamError, runs};
use crate::host::Host;

/// The runs of a segment: so many that its states (8 bytes) are negligible, and so few that an
/// encoder needs little memory.
const SEGMENT_RUNS: usize = 1 << 16;
/// The runs between two check-ins, at 30 to 60 ns.
const PIECE_RUNS: usize = 1 << 12;
/// Shorter runs are written as this many bytes at once, of which the later ones are overwritten.
const WRITE_BYTES: usize = 16;

/// The maximum bytes of an alphabet: its size, and the symbols.
pub(super) const OVERRUN_BYTES: usize = 1 + 256;

pub(super) const fn encoder_memory_bytes() -> usize {
    Encoder::memory_bytes(SEGMENT_RUNS * SYMBOLS_MAX)
}

/// An encoder for `encode`. `None` when memory cannot be allocated.
pub(super) fn new_encoder() -> Option<Encoder> {
    Encoder::for_segments_of(SEGMENT_RUNS * SYMBOLS_MAX)
}

/// Appends the coded form of `transformed` to `out`. Stops and returns false when `out` would not
/// stay shorter than `limit_bytes`; it is then as long as that. `ranks` is scratch space
/// for one number per byte.
pub(super) fn encode(
    host: Host,
    model: &mut RankedModel,
    encoder: &mut Encoder,
    ranks: &mut [i32],
    transformed: &[u8],
    out: &mut Vec<u8>,
    limit_bytes: usize,
) -> bool {
    let found = forward_ranks::find(host, transformed, ranks);
    write_alphabet(&found, out);
    model.reset();
    encoder.clear();
    let mut append = |encoder: &mut Encoder| {
        let segment = encoder.finish();
        let space = limit_bytes.saturating_sub(out.len());
        out.extend_from_slice(&segment[..space.min(segment.len())]);
        segment.len() < space
    };
    for (index, run) in runs(transformed).enumerate() {
        if index.is_multiple_of(PIECE_RUNS) {
            (host.check_in)();
            if index > 0 && index.is_multiple_of(SEGMENT_RUNS) && !append(encoder) {
                return false;
            }
        }
        // The last run has a rank, too, which means nothing.
        let rank = (ranks[found.runs - 1 - index] as u8).max(1);
        let length = run.length;
        model.code(encoder, run.symbol, RankedRun { length, rank });
    }
    found.runs == 0 || append(encoder)
}

/// Decodes `data` into `transformed`, which must end together.
///
/// # Errors
/// `StreamError`; the content of `transformed` is then undefined.
pub(super) fn decode(
    host: Host,
    model: &mut RankedModel,
    data: &[u8],
    transformed: &mut [u8],
) -> Result<(), StreamError> {
    let (order, data) = read_alphabet(data)?;
    let mut decoder = Decoder::new(data).ok_or(StreamError::Truncated)?;
    let mut queue = Queue::new(&order);
    model.reset();
    let mut next = queue.first();
    let mut at = 0;
    while at < transformed.len() {
        decoder.start_segment();
        for _ in 0..SEGMENT_RUNS / PIECE_RUNS {
            (host.check_in)();
            at = decode_piece(&mut decoder, model, &mut queue, &mut next, transformed, at)?;
        }
        if decoder.is_overdrawn() {
            return Err(StreamError::Truncated);
        }
        if !decoder.is_at_end_of_segment() {
            return Err(StreamError::WrongState);
        }
    }
    if decoder.is_exhausted() { Ok(()) } else { Err(StreamError::TooLong) }
}

/// Decodes `PIECE_RUNS` from position `at` on, or as many as are left. Returns the position behind
/// them.
fn decode_piece(
    decoder: &mut Decoder<'_>,
    model: &mut RankedModel,
    queue: &mut Queue,
    next: &mut u8,
    transformed: &mut [u8],
    mut at: usize,
) -> Result<usize, StreamError> {
    for _ in 0..PIECE_RUNS {
        if at == transformed.len() {
            break;
        }
        let symbol = *next;
        // Known before the rank, so that the contexts of the next run are loaded early.
        *next = queue.second();
        let run = model.code(decoder, symbol, RankedRun::UNKNOWN);
        queue.put_back(run.rank);
        let length = run.length as usize;
        let rest = &mut transformed[at..];
        match rest.first_chunk_mut::<WRITE_BYTES>() {
            Some(bytes) if length <= WRITE_BYTES => *bytes = [symbol; WRITE_BYTES],
            _ => rest
                .get_mut(..length)
                .ok_or(StreamError::RunTooLong)?
                .fill(symbol),
        }
        at += length;
    }
    Ok(at)
}

/// Appends the number of symbols that occur minus 1, and these in the order of their first runs.
fn write_alphabet(found: &Found, out: &mut Vec<u8>) {
    out.push(found.symbols.saturating_sub(1) as u8);
    out.extend_from_slice(&found.order[..found.symbols.max(1)]);
}

/// Reads what `write_alphabet` wrote and returns the order of the queue, and the rest.
fn read_alphabet(data: &[u8]) -> Result<(Order, &[u8]), StreamError> {
    let (&last, data) = data.split_first().ok_or(StreamError::Truncated)?;
    let (given, rest) = data
        .split_at_checked(usize::from(last) + 1)
        .ok_or(StreamError::Truncated)?;
    let mut occurs = [false; 256];
    let mut order = [0; 256];
    for (symbol, &given) in order.iter_mut().zip(given) {
        if occurs[usize::from(given)] {
            return Err(StreamError::SymbolTwice);
        }
        occurs[usize::from(given)] = true;
        *symbol = given;
    }
    let others = (0..=255).filter(|&symbol: &u8| !occurs[usize::from(symbol)]);
    for (symbol, other) in order[given.len()..].iter_mut().zip(others) {
        *symbol = other;
    }
    Ok((order, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::{random_bytes, text};
    use proptest::prelude::*;

    fn encode_to(out: &mut Vec<u8>, bytes: &[u8], limit_bytes: usize) -> bool {
        encode(
            Host::default(),
            &mut RankedModel::new().unwrap(),
            &mut new_encoder().unwrap(),
            &mut vec![0; bytes.len()],
            bytes,
            out,
            limit_bytes,
        )
    }

    fn coded(bytes: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        assert!(encode_to(&mut out, bytes, usize::MAX));
        out.split_off(6)
    }

    fn decode_to(data: &[u8], length: usize) -> Result<Vec<u8>, StreamError> {
        let mut decoded = vec![1; length];
        let mut model = RankedModel::new().unwrap();
        decode(Host::default(), &mut model, data, &mut decoded).map(|()| decoded)
    }

    fn round_trip(bytes: &[u8]) -> usize {
        let data = coded(bytes);
        let mut decoded = vec![1; bytes.len()];
        let mut model = RankedModel::new().unwrap();
        // Twice: a used model gives the same result as a new one.
        for _ in 0..2 {
            let result = decode(Host::default(), &mut model, &data, &mut decoded);
            assert_eq!(result, Ok(()));
            assert!(decoded == bytes);
        }
        data.len()
    }

    #[test]
    fn runs_round_trip() {
        assert!(round_trip(&[]) <= 2);
        assert!(round_trip(&vec![7; 3_000_000]) <= 20);
        assert!(round_trip(&text(50_000, 1)) < 40_000);
        assert!(round_trip(&random_bytes(50_000, 1)) < 54_000);
        let mut steps = Vec::new();
        for length in 1..400 {
            steps.resize(steps.len() + length, length as u8);
        }
        round_trip(&steps);
        let long: Vec<u8> = (7..22).flat_map(|log| vec![log; 1 << log]).collect();
        round_trip(&long);
    }

    #[test]
    fn segments_of_all_lengths_round_trip() {
        for runs in [1, 2, 63, 64, 65].map(|pieces| pieces * PIECE_RUNS / 4) {
            for more in [0, 1] {
                let bytes: Vec<u8> = (0..runs + more).map(|run| run as u8).collect();
                round_trip(&bytes);
            }
        }
        let bytes: Vec<u8> = (0..=2 * SEGMENT_RUNS).map(|run| (run % 7) as u8).collect();
        for less in 0..2 {
            round_trip(&bytes[less..]);
        }
    }

    #[test]
    fn stops_at_the_limit() {
        let bytes = random_bytes(200_000, 4);
        for limit in [0, 3000, 100_000] {
            let mut out = Vec::with_capacity(limit + OVERRUN_BYTES);
            assert!(!encode_to(&mut out, &bytes, limit));
            assert!((limit..=limit + OVERRUN_BYTES).contains(&out.len()));
            assert_eq!(out.capacity(), limit + OVERRUN_BYTES);
        }
    }

    #[test]
    fn returns_an_error_for_wrong_data() {
        let bytes = text(5000, 3);
        let data = coded(&bytes);
        for cut in 0..data.len() {
            assert!(decode_to(&data[..cut], 5000).is_err(), "{cut}");
        }
        let longer = [&data[..], &[0, 0]].concat();
        assert_eq!(decode_to(&longer, 5000), Err(StreamError::TooLong));
        assert!(decode_to(&data, 4900).is_err());
        assert!(decode_to(&data, 5100).is_err());
        let mut twice = data.clone();
        twice[2] = twice[1];
        assert_eq!(decode_to(&twice, 5000), Err(StreamError::SymbolTwice));
        // The first state.
        let mut other = data.clone();
        other[2 + usize::from(data[0])] ^= 1;
        assert!(decode_to(&other, 5000).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_round_trip(bytes in proptest::collection::vec(0_u8..5, 0..300)) {
            round_trip(&bytes);
        }

        #[test]
        fn arbitrary_data_never_panics(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode_to(&[&[0, 65], &data[..]].concat(), 2000);
            let _ = decode_to(&data, 2000);
        }
    }
}
