//! Deadline offsets by nice value.

use crate::entity::Nice;

/// Deadline offsets by nice value, in 128ths of the interval. Each is 11/10 of the previous one in
/// integer arithmetic, as in BFS.
pub(super) const OFFSET_RATIOS: [u64; Nice::COUNT] = {
    let mut ratios = [128; Nice::COUNT];
    let mut index = 1;
    while index < Nice::COUNT {
        ratios[index] = ratios[index - 1] * 11 / 10;
        index += 1;
    }
    ratios
};
const RATIO_UNIT: u64 = OFFSET_RATIOS[0];
/// The published values for −20, 0 and 19.
const _: () = assert!(OFFSET_RATIOS[0] == 128 && RATIO_NICE_0 == 836 && OFFSET_RATIOS[39] == 5089);

pub(super) const RATIO_NICE_0: u64 = OFFSET_RATIOS[20];

pub(super) const fn offset_of_ratio(ratio: u64, interval_ns: u64) -> u64 {
    interval_ns.saturating_mul(ratio) / RATIO_UNIT
}
