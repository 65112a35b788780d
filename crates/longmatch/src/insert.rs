//! Step E: inserts the fresh bytes of an epoch into the index. Serial, in the order of content.
#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use crate::flatten::FlatEpoch;
use crate::index::{FingerprintIndex, IndexWords};
use crate::params::FINGERPRINT_BYTES;

/// The number of pending insertions whose buckets have been prefetched, so that cache misses
/// overlap.
const LOOKAHEAD: usize = 16;

/// Inserts the anchors of the epoch's fresh bytes, and thins the index if it is nearly full.
/// `store_end` is the length of the store after the epoch. Anchors in copies are not inserted: the
/// store already has them.
pub fn insert_epoch<W: IndexWords>(
    index: &mut FingerprintIndex<W>,
    epoch: &Epoch<'_>,
    flat: &FlatEpoch,
    store_end: u64,
) {
    let mut pending = [(0u64, 0u64); LOOKAHEAD];
    let mut count = 0;
    flat.fresh_anchors(
        epoch,
        FINGERPRINT_BYTES as u32,
        |segment, anchor, offset| {
            let fingerprint = epoch.segments()[segment].scan.fingerprints[anchor];
            index.prefetch(fingerprint);
            let at = count % LOOKAHEAD;
            let (older, older_offset) = std::mem::replace(&mut pending[at], (fingerprint, offset));
            if count >= LOOKAHEAD {
                index.insert(older, older_offset);
            }
            count += 1;
        },
    );
    let oldest = count.saturating_sub(LOOKAHEAD);
    for (fingerprint, offset) in (oldest..count).map(|number| pending[number % LOOKAHEAD]) {
        index.insert(fingerprint, offset);
    }
    index.thin_if_nearly_full(store_end);
}
