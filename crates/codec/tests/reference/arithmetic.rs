//! The arithmetic decoder of `docs/codec-bwt.md`, section 3.

/// The coded data is damaged.
#[derive(Debug, PartialEq, Eq)]
pub struct Damage(pub &'static str);

/// Reads decisions.
pub struct Decoder<'a> {
    low: u64,
    high: u64,
    point: u64,
    coded: &'a [u8],
    read_bytes: usize,
}

impl<'a> Decoder<'a> {
    pub fn new(coded: &'a [u8]) -> Result<Self, Damage> {
        let mut decoder = Self {
            low: 0,
            high: u64::MAX,
            point: 0,
            coded,
            read_bytes: 0,
        };
        for _ in 0..2 {
            decoder.read_word()?;
        }
        Ok(decoder)
    }

    fn read_word(&mut self) -> Result<(), Damage> {
        for _ in 0..4 {
            let byte = self.coded.get(self.read_bytes).ok_or(Damage("truncated"))?;
            self.read_bytes += 1;
            self.point = self.point.wrapping_mul(256) + u64::from(*byte);
        }
        Ok(())
    }

    /// Reads one decision, which is 1 with `probability` / 65536.
    pub fn decide(&mut self, probability: i64) -> Result<usize, Damage> {
        assert!((1..=65535).contains(&probability));
        let split = self.low + ((self.high - self.low) >> 16) * probability as u64;
        let decision = usize::from(self.point <= split);
        match decision {
            1 => self.high = split,
            _ => self.low = split + 1,
        }
        while self.low >> 32 == self.high >> 32 {
            self.low <<= 32;
            self.high = (self.high << 32) + 0xFFFF_FFFF;
            self.read_word()?;
        }
        assert!(self.low <= self.point && self.point <= self.high);
        Ok(decision)
    }

    /// Returns an error if bytes are left.
    pub fn finish(self) -> Result<(), Damage> {
        if self.read_bytes == self.coded.len() {
            Ok(())
        } else {
            Err(Damage("bytes left over"))
        }
    }
}
