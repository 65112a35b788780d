//! Delta filter: subtracts from every byte the byte at a fixed distance before it. For samples,
//! pixels and records of a fixed size. The first bytes, which have no predecessor, are unchanged.

use crate::host::{Host, PIECE_BYTES};

pub(super) const MAX_DISTANCE_BYTES: u8 = 16;

/// Replaces bytes by differences, from the end, so that predecessors are still raw.
pub(super) fn encode(host: Host, bytes: &mut [u8], distance: usize) {
    let mut end = bytes.len();
    while end > distance {
        let start = end.saturating_sub(PIECE_BYTES).max(distance);
        for index in (start..end).rev() {
            bytes[index] = bytes[index].wrapping_sub(bytes[index - distance]);
        }
        (host.check_in)();
        end = start;
    }
}

/// Replaces differences by bytes.
pub(super) fn decode(host: Host, bytes: &mut [u8], distance: usize) {
    let mut start = distance;
    while start < bytes.len() {
        let end = bytes.len().min(start + PIECE_BYTES);
        for index in start..end {
            bytes[index] = bytes[index].wrapping_add(bytes[index - distance]);
        }
        (host.check_in)();
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, not in place.
    fn naive(raw: &[u8], distance: usize) -> Vec<u8> {
        let before = |index: usize| index.checked_sub(distance).map_or(0, |i| raw[i]);
        (0..raw.len())
            .map(|index| raw[index].wrapping_sub(before(index)))
            .collect()
    }

    #[test]
    fn matches_its_definition() {
        let raw = crate::test_data::random_bytes(100, 2);
        for distance in 1..=usize::from(MAX_DISTANCE_BYTES) {
            for length in [0, 1, distance, distance + 1, 100] {
                let mut bytes = raw[..length].to_vec();
                encode(Host::default(), &mut bytes, distance);
                assert_eq!(bytes, naive(&raw[..length], distance));
                decode(Host::default(), &mut bytes, distance);
                assert_eq!(bytes, raw[..length]);
            }
        }
    }
}
