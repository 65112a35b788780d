//! How many stacks may exist: each takes two of the mappings that the system allows a process.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const RESERVED_MAPPINGS: u64 = 5_000;

/// The kernel's default, where its setting cannot be read.
const MAPPINGS_MAX_DEFAULT: u64 = 65_530;

/// The smallest limit: a batch of stacks.
const STACKS_MAX_LEAST: u64 = 128;

static MAPPED: AtomicU64 = AtomicU64::new(0);

pub(super) fn stacks_max() -> u64 {
    static LIMIT: OnceLock<u64> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/vm/max_map_count");
        let count = text.ok().and_then(|text| text.trim().parse().ok());
        let mappings = count.unwrap_or(MAPPINGS_MAX_DEFAULT);
        (mappings.saturating_sub(RESERVED_MAPPINGS) / 2).max(STACKS_MAX_LEAST)
    })
}

pub(super) fn stacks_mapped() -> u64 {
    MAPPED.load(Ordering::Relaxed)
}

/// Counts another stack. If there are too many, returns their number as an error.
pub(super) fn claim() -> Result<u64, u64> {
    let limit = stacks_max();
    let add = |stacks: u64| (stacks < limit).then_some(stacks + 1);
    MAPPED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
}

pub(super) fn release(stacks: u64) {
    MAPPED.fetch_sub(stacks, Ordering::Relaxed);
}
