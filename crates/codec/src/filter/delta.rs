//! Delta filter: subtracts from every byte the byte at a fixed distance before it. For samples,
//! pixels and records of a fixed size. The first bytes, which have no predecessor, are unchanged.

pub(super) const MAX_DISTANCE_BYTES: u8 = 16;

/// Replaces bytes by differences, from the end, so that predecessors are still raw.
pub(super) fn encode(bytes: &mut [u8], distance: usize) {
    for index in (distance..bytes.len()).rev() {
        bytes[index] = bytes[index].wrapping_sub(bytes[index - distance]);
    }
}

/// Replaces differences by bytes.
pub(super) fn decode(bytes: &mut [u8], distance: usize) {
    for index in distance..bytes.len() {
        bytes[index] = bytes[index].wrapping_add(bytes[index - distance]);
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
                encode(&mut bytes, distance);
                assert_eq!(bytes, naive(&raw[..length], distance));
                decode(&mut bytes, distance);
                assert_eq!(bytes, raw[..length]);
            }
        }
    }
}
