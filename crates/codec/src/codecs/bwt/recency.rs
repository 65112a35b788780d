//! The symbols seen last, the latest first: the front of a move-to-front list.

/// Symbols kept. Ranks behind that tell nothing that the predictors could use.
const KEPT: usize = 32;

/// The last `KEPT` distinct symbols.
pub(super) struct Recency([u8; KEPT]);

impl Recency {
    /// The alphabet's first symbols.
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|index| index as u8))
    }

    /// The symbol with `rank` other ones after it. Ranks are below `KEPT`.
    #[inline(always)]
    pub(super) fn nth(&self, rank: usize) -> u8 {
        self.0[rank]
    }

    /// Moves `symbol` to the front; returns its rank before, or `KEPT` when it was not there.
    #[inline(always)]
    pub(super) fn touch(&mut self, symbol: u8) -> u32 {
        let mut places = 0_u32;
        for (place, &kept) in self.0.iter().enumerate() {
            places |= u32::from(kept == symbol) << place;
        }
        let rank = places.trailing_zeros();
        let moved = (rank as usize).min(KEPT - 1);
        self.0.copy_within(..moved, 1);
        self.0[0] = symbol;
        rank
    }
}

const _: () = assert!(KEPT == u32::BITS as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_whole_move_to_front_list() {
        let mut whole: Vec<u8> = (0..=255).collect();
        let mut recency = Recency::new();
        for byte in crate::test_data::random_bytes(20_000, 8) {
            let symbol = byte & (byte >> 3) & 63;
            let rank = whole.iter().position(|&kept| kept == symbol).unwrap();
            whole.remove(rank);
            whole.insert(0, symbol);
            assert_eq!(recency.touch(symbol) as usize, rank.min(KEPT));
            assert_eq!(recency.0[..], whole[..KEPT]);
        }
    }
}
