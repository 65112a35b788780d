//! Delta filter: every byte minus the byte at a distance before it. For samples, pixels and records
//! of a fixed size; the first bytes, without a predecessor, stay.

/// Largest distance.
pub(super) const MAX_DISTANCE_BYTES: u8 = 16;

/// Bytes to differences; from the end, so that predecessors are still raw.
pub(super) fn encode(bytes: &mut [u8], distance: usize) {
    for index in (distance..bytes.len()).rev() {
        bytes[index] = bytes[index].wrapping_sub(bytes[index - distance]);
    }
}

/// Differences to bytes.
pub(super) fn decode(bytes: &mut [u8], distance: usize) {
    for index in distance..bytes.len() {
        bytes[index] = bytes[index].wrapping_add(bytes[index - distance]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, out of place.
    fn naive(raw: &[u8], distance: usize) -> Vec<u8> {
        let before = |index: usize| index.checked_sub(distance).map_or(0, |i| raw[i]);
        (0..raw.len())
            .map(|index| raw[index].wrapping_sub(before(index)))
            .collect()
    }

    #[test]
    fn equals_its_definition() {
        let raw = crate::test_data::noise(100, 2);
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
