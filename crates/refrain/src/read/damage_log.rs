//! Collects the damaged places met by reads of an opened archive.

use std::collections::BTreeMap;

use refrain_pool::Lock;

use crate::damage::DamagedPlace;

/// Collects places, by the offset of their frame.
#[derive(Default)]
pub(crate) struct DamageLog {
    places: Lock<BTreeMap<u64, DamagedPlace>>,
}

impl DamageLog {
    /// Records a place.
    pub(crate) fn add(&self, place: DamagedPlace) {
        self.places.lock().insert(place.bytes.start, place);
    }

    /// The places so far, by their offsets.
    pub(crate) fn places(&self) -> Vec<DamagedPlace> {
        self.places.lock().values().cloned().collect()
    }
}
