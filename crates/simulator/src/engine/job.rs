//! A job of a simulated flow.

#[derive(Debug)]
pub(super) struct SimulatedJob {
    pub arrived_ns: u64,
    /// The work left, nanoseconds at full speed.
    pub left_ns: u64,
    /// The work done, nanoseconds at full speed.
    pub done_ns: u64,
    pub has_started: bool,
}
