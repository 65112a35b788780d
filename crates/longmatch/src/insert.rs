//! Step E: inserts the fresh bytes of an epoch into the index, and the order of its extents into
//! the table of continuations. Serial, in the order of content.
#![forbid(unsafe_code)]

use crate::check_in::STEPS_PER_CHECK_IN;
use crate::continuation::{
    CONTINUATION_KEY_BYTES, Continuation, ContinuationSlot, Continuations, Direction,
};
use crate::epoch::Epoch;
use crate::extent::Extent;
use crate::flatten::FlatEpoch;
use crate::index::{FingerprintIndex, IndexWords};
use crate::params::FINGERPRINT_BYTES;

/// The number of pending insertions whose buckets have been prefetched, so that cache misses
/// overlap.
const LOOKAHEAD: usize = 16;

/// Inserts the anchors of the epoch's fresh bytes, and thins the index if it is nearly full.
/// `store_end` is the length of the store after the epoch. Anchors in copies are not inserted: the
/// store already has them. Calls `check_in` about every 100 µs.
pub fn insert_epoch<W: IndexWords>(
    index: &mut FingerprintIndex<W>,
    epoch: &Epoch<'_>,
    flat: &FlatEpoch,
    store_end: u64,
    check_in: fn(),
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
                index.insert(older, older_offset, check_in);
            }
            count += 1;
            if count.is_multiple_of(STEPS_PER_CHECK_IN) {
                check_in();
            }
        },
    );
    let oldest = count.saturating_sub(LOOKAHEAD);
    for (fingerprint, offset) in (oldest..count).map(|number| pending[number % LOOKAHEAD]) {
        index.insert(fingerprint, offset, check_in);
    }
    index.thin_if_nearly_full(store_end, check_in);
}

/// Calls `each(fingerprint, offset_in_store)` for the anchors of the epoch's fresh bytes: those
/// that [`insert_epoch`] inserts.
pub fn fresh_anchors(epoch: &Epoch<'_>, flat: &FlatEpoch, mut each: impl FnMut(u64, u64)) {
    flat.fresh_anchors(
        epoch,
        FINGERPRINT_BYTES as u32,
        |segment, anchor, offset_in_store| {
            each(
                epoch.segments()[segment].scan.fingerprints[anchor],
                offset_in_store,
            );
        },
    );
}

/// Records which extents of the epoch follow each other. Calls `check_in` about every 100 µs.
pub fn insert_continuations(
    continuations: &mut Continuations,
    epoch: &Epoch<'_>,
    flat: &FlatEpoch,
    check_in: fn(),
) {
    if continuations.is_absent() {
        return;
    }
    let mut window = BoundaryWindow::new(epoch);
    let mut pending = [ContinuationSlot::default(); LOOKAHEAD];
    let mut count = 0;
    let mut insert = |continuations: &mut Continuations, slot| {
        let older = std::mem::replace(&mut pending[count % LOOKAHEAD], slot);
        if count >= LOOKAHEAD {
            continuations.insert_slot(older, check_in);
        }
        count += 1;
    };
    for (number, pair) in flat.extents.windows(2).enumerate() {
        let [before, after] = pair else { continue };
        if number.is_multiple_of(STEPS_PER_CHECK_IN) {
            check_in();
        }
        let is_in_store =
            |extent: &Extent| matches!(extent, Extent::Fresh { .. } | Extent::Copy { .. });
        if !is_in_store(before) || !is_in_store(after) {
            continue;
        }
        let (from, to) = (flat.offset(number), flat.offset(number + 1));
        let end = from + before.length();
        let at = flat.starts.get(number + 1).copied().unwrap_or_default();
        let Some((earlier, later)) = window.around(at) else {
            continue;
        };
        let forward = Continuation {
            offset_in_store: to,
            length: after.length() as u32,
        };
        let slot = continuations.slot(Direction::Forward, end, later, forward);
        insert(continuations, slot);
        let backward = Continuation {
            offset_in_store: end,
            length: before.length() as u32,
        };
        let slot = continuations.slot(Direction::Backward, to, earlier, backward);
        insert(continuations, slot);
    }
    let oldest = count.saturating_sub(LOOKAHEAD);
    for number in oldest..count {
        continuations.insert_slot(pending[number % LOOKAHEAD], check_in);
    }
}

/// Reads the bytes on both sides of positions in ascending order.
struct BoundaryWindow<'a> {
    epoch: Epoch<'a>,
    segment: usize,
}

impl<'a> BoundaryWindow<'a> {
    fn new(epoch: &Epoch<'a>) -> BoundaryWindow<'a> {
        BoundaryWindow {
            epoch: *epoch,
            segment: 0,
        }
    }

    /// Returns the bytes before and after `at`; `None` at the edges of a segment, where a matcher
    /// does not see them either.
    fn around(
        &mut self,
        at: u32,
    ) -> Option<([u8; CONTINUATION_KEY_BYTES], [u8; CONTINUATION_KEY_BYTES])> {
        let segments = self.epoch.segments();
        while segments.get(self.segment)?.end() <= at {
            self.segment += 1;
        }
        let segment = segments.get(self.segment)?;
        let inside = (at - segment.start) as usize;
        let (before, after) = segment.bytes.split_at_checked(inside)?;
        Some((*before.last_chunk()?, *after.first_chunk()?))
    }
}
