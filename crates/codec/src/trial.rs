//! Trial compression with a quick codec: is a block compressible, and does a filter help?

use crate::codecs::zstd;
use crate::error::Result;
use crate::sample::{entropy_bits, histogram};
use crate::workspace::Workspace;

/// Below this entropy (bits per byte) order-0 coding alone saves enough: no trial is needed.
pub(crate) const COMPRESSIBLE_BELOW_BITS: f64 = 7.4;
/// A saving of less than 1/64 of the sample counts as nothing.
const WORTHWHILE_SAVING_LOG: u32 = 6;

/// Whether neither the entropy of single bytes nor a quick codec finds redundancy in the sample.
pub(crate) fn sample_is_incompressible(workspace: &mut Workspace) -> Result<bool> {
    if entropy_bits(&histogram(&workspace.sample)) < COMPRESSIBLE_BELOW_BITS {
        return Ok(false);
    }
    let sample = std::mem::take(&mut workspace.sample);
    let trial = quick_bytes(workspace, &sample);
    let raw_bytes = sample.len();
    workspace.sample = sample;
    Ok(trial? >= raw_bytes - (raw_bytes >> WORTHWHILE_SAVING_LOG))
}

/// The compressed size of `bytes` by the quick codec.
pub(crate) fn quick_bytes(workspace: &mut Workspace, bytes: &[u8]) -> Result<usize> {
    workspace.trial_bytes(|workspace, out| zstd::quick(workspace, bytes, out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::take_sample;
    use crate::test_data;

    #[test]
    fn only_random_data_is_incompressible() {
        let mut workspace = Workspace::new();
        for (raw, expected) in [
            (test_data::random_bytes(1 << 20, 5), true),
            (test_data::text(1 << 20, 5), false),
            (vec![0; 1 << 20], false),
        ] {
            take_sample(&[&raw], &mut workspace.sample);
            assert_eq!(sample_is_incompressible(&mut workspace), Ok(expected));
        }
    }
}
