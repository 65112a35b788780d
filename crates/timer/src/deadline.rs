//! Deadlines as nanoseconds of the caller's clock.

/// The deadline that never comes: [`TimerSystem::next_ns`](crate::TimerSystem::next_ns) returns it
/// if no timer is pending.
pub const NEVER_NS: u64 = u64::MAX;

/// Returns the deadline `delay` after `now_ns`; saturates at [`NEVER_NS`].
pub fn deadline_after(now_ns: u64, delay: std::time::Duration) -> u64 {
    let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
    now_ns.saturating_add(delay_ns)
}
