//! Counts of byte values.

use crate::host::{Host, PIECE_BYTES};

/// How often each byte value occurs in `bytes`.
pub(super) fn histogram(host: Host, bytes: &[u8]) -> [u32; 256] {
    // Four counters per byte, since consecutive equal bytes would wait for the store of the
    // previous count.
    let mut counts = [[0_u32; 4]; 256];
    for piece in bytes.chunks(PIECE_BYTES) {
        let (fours, rest) = piece.as_chunks::<4>();
        for four in fours {
            for (lane, &byte) in four.iter().enumerate() {
                counts[usize::from(byte)][lane] += 1;
            }
        }
        for &byte in rest {
            counts[usize::from(byte)][0] += 1;
        }
        (host.check_in)();
    }
    counts.map(|lanes| lanes.iter().sum())
}
