//! The entry of a wheel for one timer.

/// A timer is due: `slot` identifies its record and `sequence` the use of that record. Reminders
/// order by deadline, then by sequence number, which is the order of insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reminder {
    pub(crate) deadline_ns: u64,
    pub(crate) sequence: u64,
    pub(crate) slot: usize,
}
