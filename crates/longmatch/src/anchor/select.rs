//! Selects the anchors of a range of bytes.
#![forbid(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::scalar;
use crate::params::{ANCHOR_BITS_MAX, ANCHOR_SPACING_MIN, ANCHOR_WINDOW_BYTES, FINGERPRINT_BYTES};

/// A position is an anchor if its window's hash is below this.
fn threshold(anchor_bits: u32) -> i16 {
    debug_assert!((4..=ANCHOR_BITS_MAX).contains(&anchor_bits));
    i16::MIN + (1 << (16 - anchor_bits))
}

/// Calls `found` with every position of `bytes` whose window hash is below the threshold, in
/// ascending order. The last `ANCHOR_WINDOW_BYTES - 1` positions have no window and are never
/// found.
fn positions(bytes: &[u8], threshold: i16, mut found: impl FnMut(usize)) {
    let mut from = 0;
    #[cfg(target_arch = "x86_64")]
    if avx2::is_available() {
        from = avx2::positions(bytes, threshold, &mut found);
    }
    scalar::positions(bytes, from, threshold, &mut found);
}

/// Calls `emit` with the anchors of `bytes[range]` that have a whole fingerprint window before
/// `range.end`.
pub(crate) fn find(
    bytes: &[u8],
    range: std::ops::Range<usize>,
    anchor_bits: u32,
    mut emit: impl FnMut(usize),
) {
    const { assert!(FINGERPRINT_BYTES >= ANCHOR_WINDOW_BYTES) };
    let Some(last) = range
        .end
        .checked_sub(FINGERPRINT_BYTES)
        .filter(|&last| last >= range.start)
    else {
        return;
    };
    // Positions up to and including `last` can be anchors; the slice ends with the window of
    // `last`.
    let windows = &bytes[range.start..last + ANCHOR_WINDOW_BYTES];
    let mut allowed_from = 0;
    positions(windows, threshold(anchor_bits), |position| {
        if position >= allowed_from {
            allowed_from = position + ANCHOR_SPACING_MIN;
            emit(range.start + position);
        }
    });
}

#[cfg(test)]
mod tests {
    use refrain_testkit::data;

    use super::*;

    #[test]
    fn the_vector_scan_matches_the_scalar_reference() {
        let data = data::random(20_000, 1);
        for start in 0..40 {
            for length in [0, 1, 7, 8, 9, 39, 40, 41, 63, 64, 100, 1000, 19_000] {
                let bytes = &data[start..start + length];
                let (mut fast, mut reference) = (vec![], vec![]);
                positions(bytes, threshold(4), |p| fast.push(p));
                scalar::positions(bytes, 0, threshold(4), &mut |p| reference.push(p));
                assert_eq!(fast, reference, "start {start} length {length}");
            }
        }
    }

    #[test]
    fn density_is_as_stated_and_zeros_are_never_anchors() {
        let data = data::random(1 << 20, 2);
        let mut count = 0;
        find(&data, 0..data.len(), 7, |_| count += 1);
        assert!((6500..9500).contains(&count), "{count} anchors in 1 MiB");
        find(&vec![0; 1 << 16], 0..1 << 16, 4, |p| {
            panic!("anchor in zeros at {p}")
        });
    }

    #[test]
    fn anchors_do_not_depend_on_where_the_scan_starts() {
        let data = data::random(1 << 16, 3);
        let mut whole = vec![];
        positions(&data, threshold(8), |p| whole.push(p));
        let mut part = vec![];
        positions(&data[1000..], threshold(8), |p| part.push(p + 1000));
        let tail: Vec<_> = whole.into_iter().filter(|&p| p >= 1000).collect();
        assert_eq!(tail, part);
    }
}
