//! Trial compression with a quick codec.

use crate::codecs::zstd;
use crate::error::Result;
use crate::sample::{entropy_bits, histogram};
use crate::workspace::Workspace;

/// Below this entropy (bits per byte) order-0 coding alone pays: no trial is needed.
const SURELY_COMPRESSIBLE_BITS: f64 = 7.4;
/// A saving below 1/64 on the sample counts as nothing.
const WORTHWHILE_SAVING_LOG: u32 = 6;

/// True when neither the entropy of single bytes nor a quick codec finds anything in the sample.
pub(crate) fn sample_is_incompressible(workspace: &mut Workspace) -> Result<bool> {
    if entropy_bits(&histogram(&workspace.sample)) < SURELY_COMPRESSIBLE_BITS {
        return Ok(false);
    }
    let sample = std::mem::take(&mut workspace.sample);
    let trial = quick_bytes(workspace, &sample);
    let raw_bytes = sample.len();
    workspace.sample = sample;
    Ok(trial? >= raw_bytes - (raw_bytes >> WORTHWHILE_SAVING_LOG))
}

/// Size that the quick codec makes of `bytes`.
pub(crate) fn quick_bytes(workspace: &mut Workspace, bytes: &[u8]) -> Result<usize> {
    workspace.trial_bytes(|workspace, out| zstd::quick(workspace, bytes, out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::take_sample;
    use crate::test_data;

    #[test]
    fn noise_is_seen_and_text_is_not_taken_for_it() {
        let mut workspace = Workspace::new();
        for (raw, expected) in [
            (test_data::noise(1 << 20, 5), true),
            (test_data::text(1 << 20, 5), false),
            (vec![0; 1 << 20], false),
        ] {
            take_sample(&[&raw], &mut workspace.sample);
            assert_eq!(sample_is_incompressible(&mut workspace), Ok(expected));
        }
    }
}
