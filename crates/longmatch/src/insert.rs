//! Step D: the index learns the fresh bytes of an epoch. Serial, in the order of content.
#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use crate::flatten::FlatEpoch;
use crate::index::{Index, IndexWords};
use crate::params::FINGERPRINT_BYTES;

/// Insertions that wait for their buckets, which were asked for when they came: cache misses overlap.
const LOOKAHEAD: usize = 16;

/// Inserts the anchors of the epoch's fresh bytes and thins the index if it got full. `store_end` is the length of the
/// store after the epoch. Anchors in copies are not inserted: the store has them already.
pub fn insert_epoch<W: IndexWords>(
    index: &mut Index<W>,
    epoch: &Epoch<'_>,
    flat: &FlatEpoch,
    store_end: u64,
) {
    let mut waiting = [(0u64, 0u64); LOOKAHEAD];
    let mut count = 0;
    flat.fresh_anchors(
        epoch,
        FINGERPRINT_BYTES as u32,
        |segment, anchor, offset| {
            let fingerprint = epoch.segments()[segment].scan.fingerprints[anchor];
            index.prefetch(fingerprint);
            let (before, at) = (count, count % LOOKAHEAD);
            let (older, older_offset) = std::mem::replace(&mut waiting[at], (fingerprint, offset));
            if before >= LOOKAHEAD {
                index.insert(older, older_offset);
            }
            count += 1;
        },
    );
    let oldest = count.saturating_sub(LOOKAHEAD);
    for (fingerprint, offset) in (oldest..count).map(|number| waiting[number % LOOKAHEAD]) {
        index.insert(fingerprint, offset);
    }
    index.thin_if_nearly_full(store_end);
}
