//! A random number generator with the same sequence on every machine and in every version.

/// xoshiro256** (Blackman, Vigna 2018), seeded by splitmix64 (Steele, Lea, Flood 2014), as
/// its authors recommend.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates the generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        Self {
            state: std::array::from_fn(|_| splitmix64(&mut mix)),
        }
    }

    /// Returns the next number, any 64 bits.
    pub fn any(&mut self) -> u64 {
        let result = self.state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = self.state[1] << 17;
        self.state[2] ^= self.state[0];
        self.state[3] ^= self.state[1];
        self.state[1] ^= self.state[2];
        self.state[0] ^= self.state[3];
        self.state[2] ^= shifted;
        self.state[3] = self.state[3].rotate_left(45);
        result
    }

    /// Returns the next number below `bound` (at least 1). For very large bounds the distribution
    /// is slightly uneven.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.any() % bound.max(1)
    }

    /// Returns the next length from `least` to `most`.
    pub fn length(&mut self, least: usize, most: usize) -> usize {
        least + self.below((most - least) as u64 + 1) as usize
    }

    /// Returns true on average once in `every` calls.
    pub fn once_in(&mut self, every: u64) -> bool {
        self.below(every) == 0
    }

    /// Returns one of `choices`.
    pub fn choose<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        for part in out.chunks_mut(8) {
            let bytes = self.any().to_le_bytes();
            part.copy_from_slice(&bytes[..part.len()]);
        }
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first output of splitmix64 for seed 0, as published with the algorithm.
    #[test]
    fn splitmix_matches_the_published_vector() {
        let mut state = 0;
        assert_eq!(splitmix64(&mut state), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (mut first, mut second) = (Rng::new(9), Rng::new(9));
        assert!((0..100).all(|_| first.any() == second.any()));
        assert_ne!(Rng::new(1).any(), Rng::new(2).any());
        assert!((0..1000).all(|_| (3..=5).contains(&first.length(3, 5))));
    }
}
