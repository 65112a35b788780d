//! Which filters are worth a trial on the sample.

use super::arm64;
use super::step::FilterStep;
use crate::sample::{entropy_bits, histogram};

/// Distances tried for the delta filter: samples of 1 to 8 bytes, and the pixel sizes 3 and 6.
const DELTA_DISTANCES: [u8; 6] = [1, 2, 3, 4, 6, 8];
/// Bytes of the sample that the delta test looks at.
const DELTA_LOOK_BYTES: usize = 16 << 10;
/// Entropy of differences must fall below this share of the plain entropy.
const DELTA_SHARE: f64 = 0.9;
/// Plain entropy below which a dictionary coder does well without differences, bits per byte.
const DELTA_MIN_BITS: f64 = 3.0;

/// x86: at least one plausible call or jump per this many bytes, and no more than ...
const X86_BYTES_PER_BRANCH_MAX: usize = 256;
/// ... this share of E8 and E9 bytes may be followed by an implausible target.
const X86_IMPLAUSIBLE_PER_PLAUSIBLE: usize = 3;
/// ARM64: at least one BL or ADRP per this many bytes at the best of the four phases ...
const ARM64_BYTES_PER_BRANCH_MAX: usize = 128;
/// ... and this many times as many as at the worst phase.
const ARM64_PHASE_FACTOR: usize = 4;

/// Filters that might help, the likeliest first. Cheap: no codec runs here.
pub(crate) fn candidates(sample: &[u8]) -> impl Iterator<Item = FilterStep> + use<> {
    [
        candidate_x86(sample),
        candidate_arm64(sample),
        candidate_delta(sample),
    ]
    .into_iter()
    .flatten()
}

fn candidate_x86(sample: &[u8]) -> Option<FilterStep> {
    let mut plausible = 0;
    let mut implausible = 0;
    for window in sample.windows(5) {
        if window[0] & 0xFE == 0xE8 {
            // Near targets: 00 0x .. or FF Fx .., within 1 MiB.
            let near = matches!((window[4], window[3] >> 4), (0x00, 0x0) | (0xFF, 0xF));
            *(if near {
                &mut plausible
            } else {
                &mut implausible
            }) += 1;
        }
    }
    let dense = plausible * X86_BYTES_PER_BRANCH_MAX >= sample.len();
    let likely = implausible <= plausible * X86_IMPLAUSIBLE_PER_PLAUSIBLE;
    (plausible > 0 && dense && likely).then_some(FilterStep::X86)
}

fn candidate_arm64(sample: &[u8]) -> Option<FilterStep> {
    let counts: [usize; 4] = std::array::from_fn(|phase| {
        let words = sample.get(phase..).unwrap_or(&[]).as_chunks::<4>().0;
        let is_branch = |word: &&[u8; 4]| arm64::is_converted(u32::from_le_bytes(**word));
        words.iter().filter(is_branch).count()
    });
    let (phase, &most) = counts.iter().enumerate().max_by_key(|&(_, count)| count)?;
    let least = counts.iter().min()?;
    let dense = most * ARM64_BYTES_PER_BRANCH_MAX >= sample.len();
    (most > 0 && dense && most >= least * ARM64_PHASE_FACTOR).then_some(FilterStep::Arm64 {
        phase_bytes: phase as u8,
    })
}

fn candidate_delta(sample: &[u8]) -> Option<FilterStep> {
    let part = &sample[..sample.len().min(DELTA_LOOK_BYTES)];
    let plain = entropy_bits(&histogram(part));
    if plain < DELTA_MIN_BITS {
        return None;
    }
    let mut best = (plain * DELTA_SHARE, None);
    for distance_bytes in DELTA_DISTANCES {
        let entropy = entropy_bits(&difference_histogram(part, usize::from(distance_bytes)));
        if entropy < best.0 {
            best = (entropy, Some(FilterStep::Delta { distance_bytes }));
        }
    }
    best.1
}

/// Histogram of the bytes after a delta filter, without the bytes that have no predecessor.
fn difference_histogram(bytes: &[u8], distance: usize) -> [u32; 256] {
    let mut histogram = [0; 256];
    let later = bytes.get(distance..).unwrap_or(&[]);
    for (byte, before) in later.iter().zip(bytes) {
        histogram[usize::from(byte.wrapping_sub(*before))] += 1;
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data;

    #[test]
    fn waves_candidate_their_sample_size() {
        for distance_bytes in [1, 2, 4] {
            let raw = test_data::wave(1 << 14, usize::from(distance_bytes));
            // The ARM64 filter may be nominated too, by a high byte that stands still for a while.
            assert!(candidates(&raw).any(|step| step == FilterStep::Delta { distance_bytes }));
        }
    }

    #[test]
    fn plain_data_nominates_nothing() {
        for raw in [
            test_data::text(1 << 16, 1),
            test_data::noise(1 << 16, 1),
            vec![0; 1 << 16],
            vec![0xE8; 1 << 16],
            Vec::new(),
        ] {
            assert_eq!(candidates(&raw).count(), 0);
        }
    }

    #[test]
    fn code_nominates_its_filter() {
        let x86 = test_data::x86_code(1 << 16, 1);
        assert!(candidates(&x86).any(|step| step == FilterStep::X86));
        let arm = test_data::arm64_code(1 << 16, 1);
        assert!(candidates(&arm[1..]).any(|step| step == FilterStep::Arm64 { phase_bytes: 3 }));
    }
}
