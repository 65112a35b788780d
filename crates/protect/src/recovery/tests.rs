use super::property::{losses_are_healed, search_is_right};
use super::*;
use crate::property::patterned_bytes;

#[test]
fn parameters_fit_their_own_checks_and_stay_within_the_share() {
    for power in 0..46 {
        for bytes in [1_u64 << power, (1 << power) + 1, (3 << power) - 1] {
            for share in [0, 10, 100, 1000, 3333, 10_000, u32::MAX] {
                let found = RecoveryParameters::choose(bytes, share).unwrap();
                found.check().unwrap();
                let row_bytes = found.columns() * u64::from(found.slice_bytes);
                assert!(u64::from(found.data_rows) * row_bytes >= bytes);
                let parity = u64::from(found.parity_rows) * row_bytes;
                let wanted = bytes / 10_000 * u64::from(share.clamp(SHARE_MIN, SHARE_MAX));
                assert!(parity >= wanted, "{found:?} for {share}");
                if bytes > 1 << 22 && share >= 1000 {
                    assert!(parity <= wanted / 100 * 104 + 8 * row_bytes, "{found:?}");
                }
                assert!(
                    found.table_pieces() * found.piece_bytes() >= 8 * found.slice_count() as usize
                );
                assert!(found.table_pieces() + found.table_parity() < 1 << 16);
            }
        }
    }
    assert!(RecoveryParameters::choose(0, 1000).is_err());
    assert!(RecoveryParameters::choose(u64::MAX, 1000).is_err());
}

#[test]
fn what_no_writer_chooses_is_refused() {
    let good = RecoveryParameters::choose(1 << 20, 1000).unwrap();
    type Change = fn(&mut RecoveryParameters);
    let changes: [Change; 10] = [
        |bad| bad.protected_bytes = 0,
        |bad| bad.protected_bytes = u64::MAX,
        |bad| bad.slice_bytes = 0,
        |bad| bad.slice_bytes = 4095,
        |bad| bad.slice_bytes = 1 << 31,
        |bad| bad.data_rows = 0,
        |bad| bad.data_rows = u32::MAX,
        |bad| bad.data_rows += 1,
        |bad| bad.parity_rows = 0,
        |bad| bad.parity_rows = u32::MAX,
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut bad = good;
        change(&mut bad);
        assert!(bad.check().is_err(), "change {number}: {bad:?}");
    }
}

/// The test vector of `docs/recovery.md`: five data rows, and their three parity rows.
const VECTOR: ([u16; 5], [u16; 3]) = (
    [0x0001, 0x1234, 0xbeef, 0x0000, 0x8001],
    [0x8bf5, 0xbf1c, 0x66ac],
);

#[test]
fn parity_is_the_matrix_of_the_document() {
    let mut data = [0; 5 * 64];
    for (row, number) in VECTOR.0.iter().enumerate() {
        [data[row * 64], data[row * 64 + 32]] = number.to_le_bytes();
    }
    let mut parity = [0; 3 * 64];
    let mut encoder = ColumnEncoder::new(5, 3).unwrap();
    encoder.encode(&data, 64, &mut parity).unwrap();
    let number = |row: usize| u16::from_le_bytes([parity[row * 64], parity[row * 64 + 32]]);
    assert_eq!([number(0), number(1), number(2)], VECTOR.1);
    assert!(encoder.encode(&data, 0, &mut parity).is_err());
    assert!(encoder.encode(&data[1..], 64, &mut parity).is_err());
}

#[test]
fn losses_up_to_the_parity_are_healed_and_one_more_is_not() {
    for (bytes, share) in [
        (1, 1000),
        (700, 1000),
        (1024, 500),
        (70_000, 1000),
        (700_000, 3000),
    ] {
        losses_are_healed(&patterned_bytes(bytes, 5), share, 11);
    }
    let mut decoder = ColumnDecoder::new(4, 2).unwrap();
    let (mut data, row) = ([0; 256], [0; 64]);
    let parity = [(0, &row[..]), (1, &row[..])];
    assert!(decoder.decode(&mut data, 64, &[0, 1], &parity).is_ok());
    assert!(decoder.decode(&mut data, 64, &[0, 1, 2], &parity).is_err());
    assert!(decoder.decode(&mut data, 64, &[0, 9], &parity).is_err());
    let twice = [(1, &row[..]), (1, &row[..])];
    assert!(decoder.decode(&mut data, 64, &[0, 1], &twice).is_err());
}

#[test]
fn a_table_is_restored_from_the_pieces_at_any_place() {
    for bytes in [1, 5_000, 3_000_000] {
        let parameters = RecoveryParameters::choose(bytes, 1000).unwrap();
        let digests =
            (0..parameters.slice_count()).map(|slice| slice.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let table = DigestTable::new(parameters, digests.collect()).unwrap();
        let pieces = table.to_pieces().unwrap();
        let (width, count) = (parameters.piece_bytes(), parameters.table_pieces());
        let all: Vec<_> = pieces.chunks_exact(width).enumerate().collect();
        assert_eq!(all.len(), count + parameters.table_parity());
        let restore = |part: &[(usize, &[u8])], set_id| {
            DigestTable::from_pieces(parameters, part.iter().copied(), set_id)
        };
        for part in all
            .chunks(parameters.group_pieces())
            .chain([&all[1..1 + count]])
        {
            assert_eq!(restore(part, table.set_id()).as_ref(), Ok(&table));
        }
        assert!(restore(&all[..count - 1], table.set_id()).is_err());
        assert!(restore(&all[..count], table.set_id() + 1).is_err());
        assert!(restore(&[(0, &pieces[..width - 1])], table.set_id()).is_err());
        assert!(restore(&[(all.len(), &pieces[..width])], table.set_id()).is_err());
    }
}

#[test]
fn an_insertion_or_a_loss_costs_the_slices_that_it_divides() {
    let bytes = patterned_bytes(3_000_000, 9);
    assert_eq!(search_is_right(&bytes, &bytes), (0, 0));
    for at in [0, 1, 4096, 70_001, 1_500_000, 2_999_000] {
        for count in [1, 512, 4096, 100_000] {
            let inserted = [&bytes[..at], &patterned_bytes(count, 1), &bytes[at..]].concat();
            assert!(
                search_is_right(&bytes, &inserted).0 <= 1,
                "{count} inserted at {at}"
            );
            let rest = &bytes[bytes.len().min(at + count)..];
            let lost = (count.div_ceil(4096) + 1) as u64;
            let missing = [&bytes[..at], rest].concat();
            assert!(
                search_is_right(&bytes, &missing).0 <= lost,
                "{count} missing at {at}"
            );
        }
    }
    let halves = [&bytes[1_500_000..], &bytes[..1_500_000]].concat();
    assert!(search_is_right(&bytes, &halves).0 <= 1, "in another order");
}

#[test]
fn converted_line_ends_and_overwritten_bytes_cost_only_their_slices() {
    let bytes = patterned_bytes(2_000_000, 3);
    let converted: Vec<u8> = bytes[600_000..700_000]
        .iter()
        .flat_map(|&byte| if byte == b'\n' { vec![b'\r', b'\n'] } else { vec![byte] })
        .collect();
    let damaged = [&bytes[..600_000], &converted, &bytes[700_000..]].concat();
    assert!(search_is_right(&bytes, &damaged).0 <= 26);
    let mut damaged = bytes.clone();
    for at in (0..bytes.len()).step_by(100_000) {
        damaged[at] ^= 1;
    }
    assert_eq!(search_is_right(&bytes, &damaged), (20, 20));
    damaged[..500_000].fill(0);
    assert_eq!(search_is_right(&bytes, &damaged), (123 + 14, 123 + 14));
}

#[test]
fn what_repeats_itself_is_found_at_any_byte() {
    for period in [1, 2, 100, 127, 250, 5000] {
        let one = patterned_bytes(period, 7);
        let bytes: Vec<u8> = one.iter().copied().cycle().take(20_000).collect();
        for at in [0, 300, 10_000, 19_999] {
            for count in [1, 21, 300] {
                let inserted = [&bytes[..at], &patterned_bytes(count, 1), &bytes[at..]].concat();
                let (_, lost) = search_is_right(&bytes, &inserted);
                assert!(lost <= 1, "{count} at {at} in a period of {period}");
            }
        }
    }
}

#[test]
fn a_second_input_adds_only_what_the_first_lacks() {
    let bytes = patterned_bytes(1_000_000, 3);
    let parameters = RecoveryParameters::choose(bytes.len() as u64, 1000).unwrap();
    let slices = bytes.chunks(parameters.slice_bytes as usize);
    let digests = slices.map(|slice| {
        let mut slice = slice.to_vec();
        slice.resize(parameters.slice_bytes as usize, 0);
        slice_digest(&slice)
    });
    let table = DigestTable::new(parameters, digests.collect()).unwrap();
    let index = SliceIndex::new(&table);
    let mut places = SlicePlaces::new(parameters.slice_count());
    for (input, part) in [&bytes[..600_000], &bytes[400_001..]].iter().enumerate() {
        let mut read = |offset: u64, buffer: &mut [u8]| {
            let rest = &part[offset as usize..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok::<usize, ()>(count)
        };
        let of_input = (input as u8, part.len() as u64);
        index.search(of_input, &mut read, &mut places).unwrap();
    }
    assert!(places.is_complete());
    assert_eq!(places.place(0), Some((0, 0)));
    assert_eq!(places.place(150), Some((1, 150 * 4096 - 400_001)));
    places.note(0, 5, 77);
    assert_eq!(places.place(0), Some((0, 0)), "the first place stays");
}

mod random {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(64))]
        #[test]
        fn random_losses_are_healed(length in 1_usize..200_000, share in 1_u32..10_000, seed: u64) {
            losses_are_healed(&patterned_bytes(length, seed), share, seed ^ 1);
        }

        #[test]
        fn a_search_finds_nothing_wrong(
            length in 1_usize..100_000,
            period in 1_usize..5000,
            cuts in proptest::collection::vec(0_usize..100_000, 4),
            seed: u64,
        ) {
            let bytes: Vec<u8> = patterned_bytes(period, seed).into_iter().cycle().take(length).collect();
            let mut damaged = Vec::new();
            for cut in cuts.chunks(2) {
                let [from, to] = [cut[0].min(length), cut[1].min(length)];
                damaged.extend_from_slice(&bytes[from.min(to)..from.max(to)]);
            }
            search_is_right(&bytes, &damaged);
        }
    }
}
