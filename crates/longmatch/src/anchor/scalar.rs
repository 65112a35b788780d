//! The anchor scan for any machine, and the twin that the vector form is compared with.
#![forbid(unsafe_code)]

use super::window_hash;
use crate::params::ANCHOR_WINDOW_BYTES;

/// As `super::positions`, from position `from` on.
pub(super) fn positions(bytes: &[u8], from: usize, threshold: i32, found: &mut impl FnMut(usize)) {
    let Some(tail) = bytes.get(from..) else {
        return;
    };
    for (position, window) in tail.windows(ANCHOR_WINDOW_BYTES).enumerate() {
        let low = u32::from_le_bytes([window[0], window[1], window[2], window[3]]);
        let high = u32::from_le_bytes([window[4], window[5], window[6], window[7]]);
        if window_hash(low, high) < threshold {
            found(from + position);
        }
    }
}
