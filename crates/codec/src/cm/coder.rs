//! Binary arithmetic coder: 32-bit bounds, 16-bit probabilities, bytes shifted out as soon as both
//! bounds agree on them (the carry-less coder of PAQ and ZPAQ; Mahoney, "Data Compression
//! Explained", 3.2).

use crate::error::Error;
use crate::id::CodecId;

/// Bytes that end every payload. The decoder reads as many ahead, so that it has used up exactly
/// what was written.
const TAIL_BYTES: usize = 4;

/// The interval that all bits so far have left.
struct Bounds {
    low: u32,
    high: u32,
}

impl Bounds {
    fn new() -> Self {
        Self {
            low: 0,
            high: u32::MAX,
        }
    }

    /// Last point of the lower part, which stands for a one. `low <= split < high`, as
    /// `probability_one` is 16 bits and neither bound can meet the other.
    #[inline(always)]
    fn split(&self, probability_one: u32) -> u32 {
        let range = u64::from(self.high - self.low);
        self.low + ((range * u64::from(probability_one)) >> 16) as u32
    }

    #[inline(always)]
    fn narrow(&mut self, split: u32, bit: u32) {
        if bit != 0 {
            self.high = split;
        } else {
            self.low = split + 1;
        }
    }

    /// True while the first byte is settled.
    #[inline(always)]
    fn is_settled(&self) -> bool {
        (self.low ^ self.high) >> 24 == 0
    }

    #[inline(always)]
    fn shift(&mut self) {
        self.low <<= 8;
        self.high = self.high << 8 | 0xFF;
    }
}

/// Codes a bit with a probability; what differs between writing and reading.
pub(crate) trait BitCoder {
    /// Writes `bit`, or reads one and ignores `bit`. `probability_one` has 16 bits, 1..=65535.
    ///
    /// # Errors
    /// `Damaged` when the payload ends early.
    fn code(&mut self, bit: u32, probability_one: u32) -> Result<u32, Error>;
}

/// Appends bits to a byte vector.
pub(crate) struct Encoder<'a> {
    bounds: Bounds,
    out: &'a mut Vec<u8>,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            bounds: Bounds::new(),
            out,
        }
    }

    /// Settles what is left.
    pub(crate) fn finish(self) {
        let tail: [u8; TAIL_BYTES] = self.bounds.low.to_be_bytes();
        self.out.extend_from_slice(&tail);
    }
}

impl BitCoder for Encoder<'_> {
    #[inline(always)]
    fn code(&mut self, bit: u32, probability_one: u32) -> Result<u32, Error> {
        let split = self.bounds.split(probability_one);
        self.bounds.narrow(split, bit);
        while self.bounds.is_settled() {
            self.out.push((self.bounds.high >> 24) as u8);
            self.bounds.shift();
        }
        Ok(bit)
    }
}

/// Reads bits back.
pub(crate) struct Decoder<'a> {
    bounds: Bounds,
    /// The 32 bits of payload that lie within the bounds.
    point: u32,
    unread: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// # Errors
    /// `Damaged` when `data` is shorter than any payload.
    pub(crate) fn new(data: &'a [u8]) -> Result<Self, Error> {
        let Some((head, unread)) = data.split_first_chunk::<TAIL_BYTES>() else {
            return Err(damaged("payload ends early"));
        };
        Ok(Self {
            bounds: Bounds::new(),
            point: u32::from_be_bytes(*head),
            unread,
        })
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// `Damaged`.
    pub(crate) fn finish(self) -> Result<(), Error> {
        match self.unread.is_empty() {
            true => Ok(()),
            false => Err(damaged("bytes after the end")),
        }
    }
}

impl BitCoder for Decoder<'_> {
    #[inline(always)]
    fn code(&mut self, _bit: u32, probability_one: u32) -> Result<u32, Error> {
        let split = self.bounds.split(probability_one);
        let bit = u32::from(self.point <= split);
        self.bounds.narrow(split, bit);
        while self.bounds.is_settled() {
            let Some((&byte, rest)) = self.unread.split_first() else {
                return Err(damaged("payload ends early"));
            };
            self.unread = rest;
            self.point = self.point << 8 | u32::from(byte);
            self.bounds.shift();
        }
        Ok(bit)
    }
}

fn damaged(cause: &'static str) -> Error {
    Error::Damaged {
        codec: CodecId::CM,
        cause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property;

    fn bits_and_odds() -> Vec<(u32, u32)> {
        let noise = property::noise(60_000, 3);
        noise
            .chunks_exact(3)
            .map(|chunk| {
                let odds = u32::from(chunk[0]) << 8 | u32::from(chunk[1]);
                (u32::from(chunk[2] & 1), odds.clamp(1, 65_535))
            })
            .chain((0..5000).map(|index| (1, [65_535, 1][usize::from(index % 50 == 7)])))
            .collect()
    }

    #[test]
    fn any_bits_with_any_odds_come_back() {
        let coded = bits_and_odds();
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out);
        for &(bit, odds) in &coded {
            encoder.code(bit, odds).unwrap();
        }
        encoder.finish();
        let mut decoder = Decoder::new(&out).unwrap();
        for &(bit, odds) in &coded {
            assert_eq!(decoder.code(0, odds), Ok(bit));
        }
        assert_eq!(decoder.finish(), Ok(()));
    }

    #[test]
    fn sure_bits_cost_next_to_nothing() {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out);
        for _ in 0..1 << 20 {
            encoder.code(1, 65_535).unwrap();
        }
        encoder.finish();
        // 2^20 bits of 2.2e-5 bits each make 23 bits.
        assert!(out.len() <= TAIL_BYTES + 4, "{}", out.len());
    }
}
