//! XOR filter: combines every byte with the byte at a fixed distance before it. For records of a
//! fixed size whose fields change in a few bits, such as floating-point numbers. The first bytes,
//! which have no predecessor, are unchanged.

use crate::host::{Host, PIECE_BYTES};

/// Replaces bytes by what differs, from the end, so that predecessors are still raw.
pub(super) fn encode(host: Host, bytes: &mut [u8], distance: usize) {
    let mut end = bytes.len();
    while end > distance {
        let start = end.saturating_sub(PIECE_BYTES).max(distance);
        for index in (start..end).rev() {
            bytes[index] ^= bytes[index - distance];
        }
        (host.check_in)();
        end = start;
    }
}

/// Restores the bytes.
pub(super) fn decode(host: Host, bytes: &mut [u8], distance: usize) {
    let mut start = distance;
    while start < bytes.len() {
        let end = bytes.len().min(start + PIECE_BYTES);
        for index in start..end {
            bytes[index] ^= bytes[index - distance];
        }
        (host.check_in)();
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_its_definition() {
        let raw = crate::test_data::random_bytes(700, 2);
        for distance in [1, 2, 8, 255] {
            for length in [0, 1, distance, distance + 1, 700] {
                let before = |index: usize| index.checked_sub(distance).map_or(0, |i| raw[i]);
                let expected: Vec<u8> = (0..length).map(|i| raw[i] ^ before(i)).collect();
                let mut bytes = raw[..length].to_vec();
                encode(Host::default(), &mut bytes, distance);
                assert_eq!(bytes, expected);
                decode(Host::default(), &mut bytes, distance);
                assert_eq!(bytes, raw[..length]);
            }
        }
    }
}
