//! Records whose words all hold the same number, so that a mixture shows in the content.

/// Fills `bytes`, whose length is a multiple of eight, with `number`.
pub(super) fn fill(bytes: &mut [u8], number: u64) {
    for word in bytes.chunks_exact_mut(8) {
        word.copy_from_slice(&number.to_le_bytes());
    }
}

pub(super) fn number_of(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// How many records were checked, and how many held more than one number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) looks: u64,
    pub(super) mixed: u64,
    /// The greatest common divisor of all offsets where the number changed: the size of the pieces
    /// that stayed whole. 0 without any.
    pub(super) piece_bytes: u64,
}

impl Sighting {
    pub(super) fn look(&mut self, bytes: &[u8]) {
        self.looks += 1;
        let mut is_mixed = false;
        let mut before = None;
        for (index, word) in (0..).zip(bytes.chunks_exact(8)) {
            if before.is_some_and(|before| before != word) {
                is_mixed = true;
                self.piece_bytes = greatest_divisor(self.piece_bytes, index * 8);
            }
            before = Some(word);
        }
        self.mixed += u64::from(is_mixed);
    }

    /// Combines what two threads saw.
    pub(super) fn and(self, other: Sighting) -> Sighting {
        Sighting {
            looks: self.looks + other.looks,
            mixed: self.mixed + other.mixed,
            piece_bytes: greatest_divisor(self.piece_bytes, other.piece_bytes),
        }
    }

    pub(super) fn per_thousand(self) -> f64 {
        self.mixed as f64 * 1000.0 / self.looks as f64
    }
}

fn greatest_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => greatest_divisor(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixtures_are_seen_with_the_pieces_that_stayed_whole() {
        let mut bytes = vec![0; 4 * 4096];
        let mut seen = Sighting::default();
        fill(&mut bytes, 5);
        seen.look(&bytes);
        assert_eq!((seen.looks, seen.mixed, seen.piece_bytes), (1, 0, 0));
        fill(&mut bytes[4096..12_288], 6);
        seen.look(&bytes);
        assert_eq!((seen.looks, seen.mixed, seen.piece_bytes), (2, 1, 4096));
        fill(&mut bytes[..512], 7);
        seen.look(&bytes);
        assert_eq!((seen.looks, seen.mixed, seen.piece_bytes), (3, 2, 512));
        assert_eq!(seen.and(Sighting::default()), seen);
        assert_eq!(number_of(&bytes), Some(7));
        assert_eq!(number_of(&bytes[..3]), None);
    }
}
