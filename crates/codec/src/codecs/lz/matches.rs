//! Matches, and what the finders share.

use crate::host::Host;

/// A match: `length` bytes that also stand `distance` bytes before.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub length: u32,
    pub distance: u32,
}

#[inline(always)]
pub(super) fn add_longer(
    found: &mut Vec<Match>,
    longest: &mut usize,
    length: usize,
    distance: u32,
) {
    if length > *longest {
        *longest = length;
        found.push(Match {
            length: length as u32,
            distance,
        });
    }
}

#[inline(always)]
pub(super) fn hash(bytes: [u8; 4], bits: u32) -> usize {
    (u32::from_le_bytes(bytes).wrapping_mul(0x9E37_79B1) >> (u32::BITS - bits)) as usize
}

pub(super) fn zeros<T: Copy + Default>(host: Host, length: usize) -> Option<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(length).ok()?;
    host.resize(&mut list, length);
    Some(list)
}

/// The number of equal bytes from two positions on, at most `limit`.
#[inline(always)]
pub(super) fn common(raw: &[u8], a: usize, b: usize, limit: usize) -> usize {
    let (Some(a), Some(b)) = (raw.get(a..a + limit), raw.get(b..b + limit)) else {
        return 0;
    };
    let (x, x_rest) = a.as_chunks::<8>();
    let (y, y_rest) = b.as_chunks::<8>();
    for (index, (x, y)) in x.iter().zip(y).enumerate() {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if difference != 0 {
            return index * 8 + difference.trailing_zeros() as usize / 8;
        }
    }
    x.len() * 8
        + x_rest
            .iter()
            .zip(y_rest)
            .take_while(|(x, y)| x == y)
            .count()
}
