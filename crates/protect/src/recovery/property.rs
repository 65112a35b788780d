//! Properties of recovery data that hold for any input; shared by the tests and the fuzz targets.
//! Each function panics if its property does not hold.
#![allow(clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::convert::Infallible;

use super::{
    ColumnDecoder, ColumnEncoder, DigestTable, RecoveryParameters, SliceIndex, SlicePlaces,
    slice_digest,
};

/// Random losses of slices, as many in each column as it has parity, are healed. `share` is in
/// hundredths of a percent.
///
/// # Panics
/// If a healed slice differs.
pub fn losses_are_healed(bytes: &[u8], share: u32, seed: u64) {
    let parameters =
        RecoveryParameters::choose(bytes.len() as u64, share).expect("a file that is not empty");
    let slice_bytes = parameters.slice_bytes as usize;
    let row_bytes = parameters.columns() as usize * slice_bytes;
    let (data_rows, parity_rows) = (
        parameters.data_rows as usize,
        parameters.parity_rows as usize,
    );
    let mut data = bytes.to_vec();
    data.resize(data_rows * row_bytes, 0);
    let mut parity = vec![0; parity_rows * row_bytes];
    let mut encoder = ColumnEncoder::new(data_rows, parity_rows).expect("checked numbers");
    encoder
        .encode(&data, row_bytes, &mut parity)
        .expect("lengths that fit");
    let mut decoder = ColumnDecoder::new(data_rows, parity_rows).expect("checked numbers");
    let mut seed = seed;
    for start in (0..row_bytes).step_by(slice_bytes) {
        let column =
            |rows: &[u8], row: usize| rows[row * row_bytes + start..][..slice_bytes].to_vec();
        let mut lost_rows = BTreeSet::new();
        while lost_rows.len() < parity_rows {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            lost_rows.insert((seed >> 33) as usize % (data_rows + parity_rows));
        }
        let mut damaged: Vec<u8> = (0..data_rows).flat_map(|row| column(&data, row)).collect();
        let right = damaged.clone();
        let lost: Vec<usize> = lost_rows.range(..data_rows).copied().collect();
        for row in &lost {
            damaged[row * slice_bytes..][..slice_bytes].fill(0x55);
        }
        let rest = (0..parity_rows).filter(|row| !lost_rows.contains(&(data_rows + row)));
        let rest: Vec<_> = rest.map(|row| (row, column(&parity, row))).collect();
        let rest: Vec<_> = rest.iter().map(|(row, bytes)| (*row, &bytes[..])).collect();
        decoder
            .decode(&mut damaged, slice_bytes, &lost, &rest)
            .expect("no more losses than parity");
        assert!(damaged == right, "{parameters:?} without {lost_rows:?}");
    }
}

/// What a search finds in damaged bytes are slices of the file. Returns how many slices
/// it does not find, and how many a search at every byte does not find, either.
///
/// # Panics
/// If a slice is found where there are other bytes.
pub fn search_is_right(bytes: &[u8], damaged: &[u8]) -> (u64, u64) {
    let parameters =
        RecoveryParameters::choose(bytes.len() as u64, 1000).expect("a file that is not empty");
    let slice_bytes = parameters.slice_bytes as usize;
    let digests = bytes.chunks(slice_bytes).map(|slice| {
        let mut slice = slice.to_vec();
        slice.resize(slice_bytes, 0);
        slice_digest(&slice)
    });
    let table = DigestTable::new(parameters, digests.collect()).expect("a digest for each slice");
    let mut places = SlicePlaces::new(parameters.slice_count());
    let mut read = |offset: u64, buffer: &mut [u8]| {
        let rest = damaged.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok::<usize, Infallible>(count)
    };
    let (index, input) = (SliceIndex::new(&table), (0, damaged.len() as u64));
    let Ok(()) = index.search(input, &mut read, &mut places);
    let not_found = parameters.slice_count() - places.found_count();
    let Ok(()) = index.search_everywhere(input, &mut read, &mut places);
    for (slice, right) in bytes.chunks(slice_bytes).enumerate() {
        if let Some((_, offset)) = places.place(slice as u64) {
            let found = damaged
                .get(offset as usize..)
                .and_then(|rest| rest.get(..right.len()));
            assert!(found == Some(right), "slice {slice} at {offset}");
        }
    }
    (not_found, parameters.slice_count() - places.found_count())
}
