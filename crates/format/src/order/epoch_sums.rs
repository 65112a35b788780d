//! The sums of an epoch's extents.

use crate::extents::Extent;

/// The sums of the extents of one epoch, with references resolved; see
/// [`StreamChecker::observe_epoch`](crate::order::StreamChecker::observe_epoch).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EpochSums {
    /// The lowest store offset that a copy refers to.
    pub lowest_source: Option<u64>,
    /// The number of content bytes of the copies.
    pub matched_bytes: u64,
    /// The number of content bytes of the fills.
    pub run_bytes: u64,
}

impl EpochSums {
    /// Returns the sums of these extents; references must be resolved.
    #[must_use]
    pub fn from_extents(extents: &[Extent]) -> Self {
        let mut sums = Self::default();
        for extent in extents {
            sums.add(extent);
        }
        sums
    }

    /// Adds the sums of other extents.
    pub fn join(&mut self, other: &Self) {
        let sources = [self.lowest_source, other.lowest_source];
        self.lowest_source = sources.into_iter().flatten().min();
        self.matched_bytes = self.matched_bytes.saturating_add(other.matched_bytes);
        self.run_bytes = self.run_bytes.saturating_add(other.run_bytes);
    }

    /// Adds one extent. Inside a reference, fresh bytes count as copies.
    pub fn add(&mut self, extent: &Extent) {
        match extent {
            Extent::Fresh { .. } => {}
            Extent::Copy {
                length,
                offset_in_store,
            } => {
                self.matched_bytes = self.matched_bytes.saturating_add(*length);
                let lowest = self.lowest_source.unwrap_or(u64::MAX);
                self.lowest_source = Some(lowest.min(*offset_in_store));
            }
            // The extents that it stands for are counted instead.
            Extent::Reference { .. } => {}
            Extent::Fill { length, .. } => self.run_bytes = self.run_bytes.saturating_add(*length),
        }
    }
}
