//! Selects the filters that are worth a trial on a sample.

use super::step::FilterStep;
use super::{arm64, x86_64};
use crate::sample::{entropy_bits, histogram};

/// The distances considered for the delta filter: samples of 1 to 8 bytes, and the pixel sizes 3
/// and 6.
const DELTA_DISTANCES: [u8; 6] = [1, 2, 3, 4, 6, 8];
const DELTA_TEST_BYTES: usize = 16 << 10;
/// The entropy of differences must be below this share of the plain entropy.
const DELTA_SHARE: f64 = 0.9;
/// Below this plain entropy (bits per byte) a dictionary coder does well without differences.
const DELTA_MIN_BITS: f64 = 3.0;

/// x86: at least one plausible call or jump per this many bytes, and at most
const X86_BYTES_PER_BRANCH_MAX: usize = 256;
/// this many implausible targets after E8 and E9 per plausible one.
const X86_IMPLAUSIBLE_PER_PLAUSIBLE: usize = 3;
/// x86-64: at least one operand to convert per this many bytes. Code has one in 25 to 40; a block
/// may have other parts.
const X86_64_BYTES_PER_OPERAND_MAX: usize = 256;
/// ARM64: at least one BL or ADRP per this many bytes at the best of the four phases,
const ARM64_BYTES_PER_BRANCH_MAX: usize = 128;
/// and at least this many times as many as at the worst phase.
const ARM64_PHASE_FACTOR: usize = 4;

/// The sizes of records that are looked for: words, and the entries of tables in programs.
const RECORD_BYTES: [u8; 8] = [4, 8, 12, 16, 20, 24, 28, 32];
/// Records repeat bytes of the record before them: at least one in this many bytes more than bytes
/// at odd distances do.
const RECORD_REPEATS_ONE_IN: usize = 8;

/// The filters that might help, the likeliest first. Cheap: does not run a codec.
pub(crate) fn select_candidates(sample: &[u8]) -> impl Iterator<Item = FilterStep> + use<> {
    [
        candidate_x86_64(sample),
        candidate_x86(sample),
        candidate_arm64(sample),
        candidate_delta(sample),
    ]
    .into_iter()
    .flatten()
}

/// The size of the records of which a sample seems to consist, if it does: the smallest distance at
/// which almost as many bytes repeat as at any.
pub(crate) fn record_bytes(sample: &[u8]) -> Option<u8> {
    let repeats = |distance: usize| {
        let later = sample.get(distance..).unwrap_or(&[]);
        later.iter().zip(sample).filter(|(a, b)| a == b).count()
    };
    let at_records = RECORD_BYTES.map(|bytes| repeats(usize::from(bytes)));
    let most = *at_records.iter().max()?;
    let by_chance = [5, 7, 11, 13].map(repeats).into_iter().max()?;
    if most <= by_chance + sample.len() / RECORD_REPEATS_ONE_IN {
        return None;
    }
    let almost = most - most / 32;
    let mut sizes = RECORD_BYTES.into_iter().zip(at_records);
    sizes
        .find(|&(_, count)| count >= almost)
        .map(|(bytes, _)| bytes)
}

fn candidate_x86(sample: &[u8]) -> Option<FilterStep> {
    let mut plausible = 0;
    let mut implausible = 0;
    for window in sample.windows(5) {
        if window[0] & 0xFE == 0xE8 {
            // Near targets: 00 0x .. or FF Fx .., within 1 MiB.
            let near = matches!((window[4], window[3] >> 4), (0x00, 0x0) | (0xFF, 0xF));
            *(if near { &mut plausible } else { &mut implausible }) += 1;
        }
    }
    let dense = plausible * X86_BYTES_PER_BRANCH_MAX >= sample.len();
    let likely = implausible <= plausible * X86_IMPLAUSIBLE_PER_PLAUSIBLE;
    (plausible > 0 && dense && likely).then_some(FilterStep::X86)
}

fn candidate_x86_64(sample: &[u8]) -> Option<FilterStep> {
    let census = x86_64::census(sample);
    let dense = census.converted * X86_64_BYTES_PER_OPERAND_MAX >= sample.len();
    let likely = census.converted > census.doubted;
    (dense && likely).then_some(FilterStep::X86_64)
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
    let part = &sample[..sample.len().min(DELTA_TEST_BYTES)];
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

/// The histogram of the bytes after a delta filter, without the bytes that have no predecessor.
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
    fn selects_delta_with_the_sample_size_of_waves() {
        for distance_bytes in [1, 2, 4] {
            let raw = test_data::wave(1 << 14, usize::from(distance_bytes));
            // The ARM64 filter may be a candidate, too: a high byte may be constant for a while.
            assert!(
                select_candidates(&raw).any(|step| step == FilterStep::Delta { distance_bytes })
            );
        }
    }

    #[test]
    fn selects_nothing_for_plain_data() {
        for raw in [
            test_data::text(1 << 16, 1),
            test_data::random_bytes(1 << 16, 1),
            vec![0; 1 << 16],
            Vec::new(),
        ] {
            assert_eq!(select_candidates(&raw).count(), 0);
        }
    }

    #[test]
    fn finds_the_size_of_records() {
        for bytes in [8, 12, 16, 24, 32] {
            let table = test_data::records(1 << 14, bytes, 1);
            assert_eq!(record_bytes(&table), Some(bytes as u8), "{bytes}");
        }
        for raw in [
            test_data::text(1 << 14, 1),
            test_data::random_bytes(1 << 14, 1),
            vec![0; 1 << 14],
            Vec::new(),
        ] {
            assert_eq!(record_bytes(&raw), None);
        }
    }

    #[test]
    fn selects_the_branch_filter_of_machine_code() {
        let x86 = test_data::x86_code(1 << 16, 1);
        assert!(select_candidates(&x86).any(|step| step == FilterStep::X86));
        let x86_64 = test_data::x86_64_code(1 << 16, 1);
        assert!(select_candidates(&x86_64).any(|step| step == FilterStep::X86_64));
        assert!(!select_candidates(&[0xE8; 1 << 16]).any(|step| step == FilterStep::X86));
        let arm = test_data::arm64_code(1 << 16, 1);
        assert!(
            select_candidates(&arm[1..]).any(|step| step == FilterStep::Arm64 { phase_bytes: 3 })
        );
    }
}
