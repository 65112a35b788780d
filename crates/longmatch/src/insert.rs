//! Step D: the index learns the fresh bytes of an epoch. Serial, in the order of content.
#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use crate::flatten::FlatEpoch;
use crate::index::Index;
use crate::params::FINGERPRINT_BYTES;

/// Insertions whose buckets are asked for at once, so that their cache misses overlap.
const LOOKAHEAD: usize = 16;

/// Inserts the anchors of the epoch's fresh bytes and thins the index if it got full. `store_end` is the length of the
/// store after the epoch. Anchors in copies are not inserted: the store has them already.
pub fn insert_epoch(index: &mut Index, epoch: &Epoch<'_>, flat: &FlatEpoch, store_end: u64) {
    let mut waiting = [(0u64, 0u64); LOOKAHEAD];
    let mut count = 0;
    flat.fresh_anchors(
        epoch,
        FINGERPRINT_BYTES as u32,
        |segment, anchor, offset| {
            waiting[count] = (epoch.segments()[segment].scan.fingerprints[anchor], offset);
            count += 1;
            if count == LOOKAHEAD {
                insert_all(index, &waiting);
                count = 0;
            }
        },
    );
    insert_all(index, &waiting[..count]);
    index.settle(store_end);
}

fn insert_all(index: &mut Index, entries: &[(u64, u64)]) {
    let touched = entries
        .iter()
        .fold(0, |all, &(fingerprint, _)| all | index.touch(fingerprint));
    std::hint::black_box(touched);
    for &(fingerprint, offset) in entries {
        index.insert(fingerprint, offset);
    }
}
