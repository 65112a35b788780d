//! Transpose filter: in tiles of 4,096 records, first the first bytes of all records, then their
//! second bytes, and so on, so that bytes of the same significance are together (the shuffle of
//! Blosc and HDF5). Tiles keep what a prefix needs small; the last one has the whole records that
//! are left, and bytes behind them are unchanged.

use crate::host::Host;

/// The records of a tile.
const RECORDS: usize = 4096;
pub(super) const MIN_RECORD_BYTES: u8 = 2;
pub(super) const MAX_RECORD_BYTES: u8 = 32;

/// The filtered bytes behind a prefix that are needed to restore it.
pub(super) fn lookahead_bytes(record_bytes: usize) -> usize {
    RECORDS * record_bytes - 1
}

/// Puts bytes with the same place in their record together.
pub(super) fn encode(host: Host, bytes: &mut [u8], record_bytes: usize) {
    in_tiles(host, bytes, record_bytes, |tile, out, records| {
        for (column, out) in out.chunks_exact_mut(records).enumerate() {
            let values = tile.iter().skip(column).step_by(record_bytes);
            out.iter_mut()
                .zip(values)
                .for_each(|(to, from)| *to = *from);
        }
    });
}

/// Puts records together.
pub(super) fn decode(host: Host, bytes: &mut [u8], record_bytes: usize) {
    in_tiles(host, bytes, record_bytes, |tile, out, records| {
        for (column, values) in tile.chunks_exact(records).enumerate() {
            let places = out.iter_mut().skip(column).step_by(record_bytes);
            places.zip(values).for_each(|(to, from)| *to = *from);
        }
    });
}

/// Replaces each tile by what `transpose` writes for it and its number of records.
fn in_tiles(
    host: Host,
    bytes: &mut [u8],
    record_bytes: usize,
    transpose: impl Fn(&[u8], &mut [u8], usize),
) {
    let mut copy = vec![0; (RECORDS * record_bytes).min(bytes.len())];
    for tile in bytes.chunks_mut(RECORDS * record_bytes) {
        let records = tile.len() / record_bytes;
        if records == 0 {
            return;
        }
        let length = records * record_bytes;
        let (tile, copy) = (&mut tile[..length], &mut copy[..length]);
        transpose(tile, copy, records);
        tile.copy_from_slice(copy);
        (host.check_in)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, byte by byte.
    fn naive(raw: &[u8], width: usize) -> Vec<u8> {
        let mut out = raw.to_vec();
        for start in (0..raw.len()).step_by(RECORDS * width) {
            let records = ((raw.len() - start) / width).min(RECORDS);
            for record in 0..records {
                for byte in 0..width {
                    out[start + byte * records + record] = raw[start + record * width + byte];
                }
            }
        }
        out
    }

    #[test]
    fn matches_its_definition() {
        let raw = crate::test_data::random_bytes(3 * RECORDS * 32, 2);
        for width in [2, 3, 4, 8, 16, 24, 32] {
            let tile = RECORDS * width;
            for length in [
                0,
                1,
                width,
                width + 1,
                tile - 1,
                tile,
                tile + 1,
                2 * tile + 77,
            ] {
                let mut bytes = raw[..length].to_vec();
                encode(Host::default(), &mut bytes, width);
                assert!(bytes == naive(&raw[..length], width), "{width} {length}");
                decode(Host::default(), &mut bytes, width);
                assert!(bytes == raw[..length], "{width} {length}");
            }
        }
    }
}
