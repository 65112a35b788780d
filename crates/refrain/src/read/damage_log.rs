//! The damaged places that reads of an opened archive met.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_pool::Lock;

use crate::damage::DamagedPlace;

/// Collects places, by the offset of their frame. A frame that was found damaged is not read again.
#[derive(Default)]
pub(crate) struct DamageLog {
    /// Whether there are any, so that reads of intact archives take no lock.
    has_any: AtomicBool,
    places: Lock<BTreeMap<u64, DamagedPlace>>,
}

impl DamageLog {
    /// Records a place.
    pub(crate) fn add(&self, place: DamagedPlace) {
        self.places.lock().insert(place.bytes.start, place);
        self.has_any.store(true, Ordering::Release);
    }

    /// Whether the frame at this offset is known to be damaged.
    pub(crate) fn has(&self, frame_offset: u64) -> bool {
        self.has_any.load(Ordering::Acquire) && self.places.lock().contains_key(&frame_offset)
    }

    /// The places so far, by their offsets.
    pub(crate) fn places(&self) -> Vec<DamagedPlace> {
        self.places.lock().values().cloned().collect()
    }
}
