//! The anchor scan for any machine, and the reference implementation of the vector form.
#![forbid(unsafe_code)]

use super::window_hash::window_hash;
use crate::params::ANCHOR_WINDOW_BYTES;

/// Does the same as `select::positions`, starting at position `from`.
pub(super) fn positions(bytes: &[u8], from: usize, threshold: i16, found: &mut impl FnMut(usize)) {
    let Some(tail) = bytes.get(from..) else {
        return;
    };
    for (position, window) in tail.windows(ANCHOR_WINDOW_BYTES).enumerate() {
        let word = |at: usize| u16::from_le_bytes([window[at], window[at + 1]]);
        if window_hash([word(0), word(2), word(4), word(6)]) < threshold {
            found(from + position);
        }
    }
}
