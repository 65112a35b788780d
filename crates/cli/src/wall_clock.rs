//! The time of day, for what a run records: nothing waits for it, and only encryption for lrzip
//! derives bytes from it.

use std::time::{SystemTime, UNIX_EPOCH};

/// The seconds since 1970 (UTC); 0 if the clock is before that.
pub fn unix_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
