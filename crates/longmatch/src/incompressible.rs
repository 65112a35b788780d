//! Detects segments of incompressible data: compressed, encrypted or random bytes.
#![forbid(unsafe_code)]

/// Shorter segments are not sampled: there is little to gain.
const SEGMENT_BYTES_MIN: usize = 32 << 10;
/// The sample: this many slices, evenly spaced.
const SAMPLE_SLICES: usize = 64;
const SLICE_BYTES: usize = 64;
/// Two random bytes are equal in one of 256 cases. A segment counts as incompressible up to this
/// excess. (Measured in segments of 1 MiB: crates, wheels, gzip files and pictures are 1 % above in
/// the median, and 57 of 62 files count as incompressible. Text is at least 41 % above, machine
/// code 466 %, kernel source 525 %, JSON 1036 %; none of these files counts as incompressible.)
const EXCESS_PERCENT_MAX: usize = 25;

/// Returns whether the bytes look incompressible, judged by how often two bytes of a sample are
/// equal (the collision probability, or Rényi entropy of order 2).
pub(crate) fn is_incompressible(bytes: &[u8]) -> bool {
    if bytes.len() < SEGMENT_BYTES_MIN {
        return false;
    }
    let mut counts = [0usize; 256];
    let stride = bytes.len() / SAMPLE_SLICES;
    for slice in bytes.chunks_exact(stride).take(SAMPLE_SLICES) {
        for &byte in &slice[..SLICE_BYTES] {
            counts[usize::from(byte)] += 1;
        }
    }
    const SAMPLE: usize = SAMPLE_SLICES * SLICE_BYTES;
    // The number of ordered pairs of sample positions with equal bytes.
    let equal_pairs: usize = counts.iter().map(|&count| count * count - count).sum();
    equal_pairs * 256 * 100 <= SAMPLE * (SAMPLE - 1) * (100 + EXCESS_PERCENT_MAX)
}

const _: () = assert!(SEGMENT_BYTES_MIN / SAMPLE_SLICES >= SLICE_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    fn random_bytes(length: usize) -> Vec<u8> {
        refrain_testkit::data::random(length, 7)
    }

    #[test]
    fn only_random_bytes_are_incompressible() {
        assert!(is_incompressible(&random_bytes(1 << 20)));
        assert!(is_incompressible(&random_bytes(SEGMENT_BYTES_MIN)));
        assert!(!is_incompressible(&random_bytes(SEGMENT_BYTES_MIN - 1)));
        assert!(!is_incompressible(&[0; 1 << 20]));
        let text: Vec<u8> = random_bytes(1 << 20)
            .iter()
            .map(|byte| byte & 0x7F)
            .collect();
        assert!(!is_incompressible(&text));
    }
}
