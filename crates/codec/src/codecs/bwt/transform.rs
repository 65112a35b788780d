//! The Burrows–Wheeler transform (1994), by the suffix sorter of the C library libsais (Grebnov,
//! after Nong, Zhang and Chan 2009), in linear time for any input.
//!
//! Reasons for the C library: on 64 MiB of kernel source it takes 2.6 to 3.2 s, the pure Rust port
//! `libsais-rs` 0.2.2 3.8 to 5.0 s with the same result; the port brings rayon and 743 `unsafe`,
//! and the crate `libsais` 0.2 has a safe interface for this direction. Sorting processes trusted
//! bytes only. The inverse transform, which processes untrusted ones, is our own safe code in
//! `inverse.rs`.

#[cfg(not(target_family = "wasm"))]
use libsais::{BwtConstruction, bwt::AuxIndicesSamplingRate};

use crate::host::Host;

/// The speed of the sorter.
const SORTER_MB_PER_S: usize = 20;

/// The rows of the sorted matrix at which the chains of the text start, see `sampling_bytes`. The
/// first is the row of the whole text. Rows count from 0, the empty suffix; so these are 1 and
/// above.
pub(super) type ChainRow = u32;

/// The minimum number of bytes between chain starts, so that their four bytes each are negligible.
const SAMPLING_MIN_BYTES: usize = 1 << 16;
/// A block has at most this many chains (log2): enough to hide the latency of memory and to decode
/// a prefix faster.
const CHAINS_MAX_LOG: u32 = 6;
pub(super) const CHAINS_MAX: usize = 1 << CHAINS_MAX_LOG;

/// The number of bytes from one chain start to the next, a power of two, for a text of
/// `length_bytes`.
pub(super) fn sampling_bytes(length_bytes: usize) -> usize {
    (length_bytes.next_power_of_two() >> CHAINS_MAX_LOG).max(SAMPLING_MIN_BYTES)
}

/// The number of chains of a text of `length_bytes`, 1 or more.
pub(super) fn chain_count(length_bytes: usize) -> usize {
    length_bytes.div_ceil(sampling_bytes(length_bytes)).max(1)
}

/// The maximum memory of the sorter beside `suffixes`, bytes.
pub(super) const fn scratch_bytes(length_bytes: u64) -> u64 {
    length_bytes / 8 + (1 << 20)
}

/// A build for WebAssembly, which has no sorter, only decodes.
#[cfg(target_family = "wasm")]
pub(super) fn forward(
    _host: Host,
    _text: &mut [u8],
    _suffixes: &mut Vec<i32>,
    _starts: &mut Vec<ChainRow>,
) -> Option<()> {
    None
}

/// Replaces `text` (1 to 2^30 bytes) by its transform, without the end mark, and fills `starts`
/// with the rows of its chains. `suffixes` is scratch memory. Returns `None` when memory cannot be
/// allocated.
#[cfg(not(target_family = "wasm"))]
pub(super) fn forward(
    host: Host,
    text: &mut [u8],
    suffixes: &mut Vec<i32>,
    starts: &mut Vec<ChainRow>,
) -> Option<()> {
    let additional = text.len().saturating_sub(suffixes.len());
    suffixes.try_reserve_exact(additional).ok()?;
    if additional > 0 {
        host.resize(suffixes, text.len());
    }
    let mut samples = vec![0_i32; chain_count(text.len())];
    let sampling = i32::try_from(sampling_bytes(text.len())).ok()?;
    let scratch = &mut suffixes[..text.len()];
    host.call(scratch.len(), SORTER_MB_PER_S, || {
        BwtConstruction::replace_text(text)
            .with_borrowed_temporary_array_buffer(scratch)
            .single_threaded()
            .with_aux_indices_in_buffer(AuxIndicesSamplingRate::from(sampling), &mut samples)
            .run()
            .is_ok()
    })
    .then_some(())?;
    starts.clear();
    starts.extend(samples.iter().map(|&row| row as ChainRow));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_few_and_cover_the_text() {
        for length in [
            1,
            2,
            65_535,
            65_536,
            65_537,
            1 << 20,
            (1 << 22) + 1,
            1 << 26,
            1 << 30,
        ] {
            let chains = chain_count(length);
            assert!((1..=64).contains(&chains), "{length}: {chains}");
            assert!(chains * sampling_bytes(length) >= length);
            assert!((chains - 1) * sampling_bytes(length) < length);
            assert!(sampling_bytes(length).is_power_of_two());
        }
    }
}
