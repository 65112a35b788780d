//! The most recent symbols, the latest first: the front of a move-to-front list.

/// The number of symbols in the list. Higher ranks tell the predictors nothing.
const LENGTH: usize = 32;

/// The last `LENGTH` distinct symbols.
pub(super) struct Recency([u8; LENGTH]);

impl Recency {
    /// Starts with the first symbols of the alphabet.
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|index| index as u8))
    }

    /// The symbol at `rank`, which is below `LENGTH`; the latest has rank 0.
    #[inline(always)]
    pub(super) fn nth(&self, rank: usize) -> u8 {
        self.0[rank]
    }

    /// Moves `symbol` to the front. Returns its former rank, or `LENGTH` when it was not in the
    /// list.
    #[inline(always)]
    pub(super) fn touch(&mut self, symbol: u8) -> u32 {
        let mut matches = 0_u32;
        for (rank, &other) in self.0.iter().enumerate() {
            matches |= u32::from(other == symbol) << rank;
        }
        let rank = matches.trailing_zeros();
        let moved = (rank as usize).min(LENGTH - 1);
        self.0.copy_within(..moved, 1);
        self.0[0] = symbol;
        rank
    }
}

const _: () = assert!(LENGTH == u32::BITS as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_whole_move_to_front_list() {
        let mut whole: Vec<u8> = (0..=255).collect();
        let mut recency = Recency::new();
        for byte in crate::test_data::random_bytes(20_000, 8) {
            let symbol = byte & (byte >> 3) & 63;
            let rank = whole.iter().position(|&other| other == symbol).unwrap();
            whole.remove(rank);
            whole.insert(0, symbol);
            assert_eq!(recency.touch(symbol) as usize, rank.min(LENGTH));
            assert_eq!(recency.0[..], whole[..LENGTH]);
        }
    }
}
