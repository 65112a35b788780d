//! Random numbers from a seed (SplitMix64), and random cycles.

#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

/// Writes a random cycle over the words at multiples of `step`: each holds the index of the next,
/// and following them visits all (Sattolo's shuffle, in place).
pub(crate) fn write_cycle(words: &mut [u64], step: usize, random: &mut Random) {
    let count = words.len() / step;
    for place in 0..count {
        words[place * step] = (place * step) as u64;
    }
    for place in (1..count).rev() {
        let other = random.below(place as u64) as usize;
        words.swap(place * step, other * step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_visits_every_place_once() {
        for (length, step) in [(1, 1), (8, 8), (4096, 8), (1000, 7)] {
            let mut words = vec![0; length];
            write_cycle(&mut words, step, &mut Random::new(7));
            let (mut at, mut visited) = (0, 0);
            loop {
                at = words[at] as usize;
                visited += 1;
                assert_eq!(at % step, 0);
                if at == 0 {
                    break;
                }
            }
            assert_eq!(visited, length / step);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            (0..9).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }
}
