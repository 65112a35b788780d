//! What a repair found and does.

use std::ops::Range;

/// Damaged places beyond this number are only counted.
pub(super) const PLACES_MAX: usize = 1000;

/// What a repair found and does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepairSummary {
    /// The bytes of the file that have recovery data.
    pub protected_bytes: u64,
    /// The bytes of the healed file.
    pub healed_bytes: u64,
    /// The bytes that are not intact in the first file, or not at their place.
    pub damaged_bytes: u64,
    /// The first thousand ranges of these, as offsets in the healed file.
    pub damaged: Vec<Range<u64>>,
    /// The bytes that only another file has intact.
    pub merged_bytes: u64,
    /// The bytes that were computed from parity.
    pub computed_bytes: u64,
    /// The bytes that could not be read.
    pub unreadable_bytes: u64,
    /// Parts of the recovery data, and how many of them are not intact in the first file.
    pub recovery_frames: u64,
    /// The parts of the recovery data that are lost.
    pub lost_recovery_frames: u64,
    /// The number of sets of recovery data: more than one if something was added to an archive.
    pub sets: u64,
    /// The first thousand ranges that have no recovery data, as offsets in the healed file: they
    /// are taken from the first file as they are.
    pub unprotected: Vec<Range<u64>>,
    /// How many sets were made anew for ranges of these, in place of what was lost.
    pub renewed_sets: u64,
    /// Whether the first file is as it was.
    pub is_intact: bool,
}

impl RepairSummary {
    /// Adds a damaged range that follows all others.
    pub(super) fn note_damaged(&mut self, range: Range<u64>) {
        self.damaged_bytes += range.end - range.start;
        let count = self.damaged.len();
        match self.damaged.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ if count < PLACES_MAX => self.damaged.push(range),
            _ => {}
        }
    }

    /// Adds what was found in the next segment.
    pub(super) fn add(&mut self, next: RepairSummary) {
        self.protected_bytes += next.protected_bytes;
        self.damaged_bytes += next.damaged_bytes;
        let room = PLACES_MAX.saturating_sub(self.damaged.len());
        self.damaged.extend(next.damaged.into_iter().take(room));
        self.merged_bytes += next.merged_bytes;
        self.computed_bytes += next.computed_bytes;
        self.recovery_frames += next.recovery_frames;
        self.lost_recovery_frames += next.lost_recovery_frames;
        self.sets += 1;
        self.is_intact &= next.is_intact;
    }
}
