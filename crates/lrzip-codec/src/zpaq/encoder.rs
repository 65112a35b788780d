//! ZPAQ, the other way: one block of level 1 with one segment, no names, no checksum, in a model of `models`.
//!
//! The predictor is the decoder's own, so the two cannot disagree.

use super::error::damaged;
use super::header::Header;
use super::models::block_header;
use super::predictor::{BitCoder, Predictor};
use refrain_codec::Result;

/// What the encoder allocates for a level, in bytes.
pub(crate) fn memory_bytes(level: u8) -> u64 {
    match Header::parse(&block_header(level)) {
        Ok(Some((header, _))) => header.memory_bytes(),
        // The test below holds that this is not reached.
        _ => u64::MAX / 2,
    }
}

/// Codes `raw` and appends it to `out`.
pub(crate) fn encode(level: u8, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let block_header = block_header(level);
    let parsed = Header::parse(&block_header)?;
    let (header, _) = parsed.ok_or_else(|| damaged("the block header is cut short"))?;
    out.extend_from_slice(&block_header);
    // A segment without a name or a comment, and a reserved byte.
    out.extend_from_slice(&[1, 0, 0, 0]);
    let mut predictor = Predictor::new(&header)?;
    let mut encoder = Encoder {
        low: 1,
        high: u32::MAX,
        left: 0,
        out,
    };
    // What is decoded first says that nothing is done to the rest.
    for byte in std::iter::once(0).chain(raw.iter().copied()) {
        // It is not the end.
        encoder.bit(0, 0);
        encoder.left = byte;
        predictor.code_byte(&mut encoder)?;
    }
    encoder.bit(1, 0);
    // Four bytes on which the decoder stops, the end of the segment, the end of the block.
    out.extend_from_slice(&[0, 0, 0, 0, 254, 255]);
    Ok(())
}

struct Encoder<'a> {
    low: u32,
    high: u32,
    /// Bits of this byte that are not coded yet, the next one on top.
    left: u8,
    out: &'a mut Vec<u8>,
}

impl BitCoder for Encoder<'_> {
    #[inline(always)]
    fn code(&mut self, probability: u32) -> Result<usize> {
        let bit = u32::from(self.left >> 7);
        self.left <<= 1;
        self.bit(bit, probability);
        Ok(bit as usize)
    }
}

impl Encoder<'_> {
    /// One binary decision; `probability` of a one, of 65536.
    #[inline(always)]
    fn bit(&mut self, bit: u32, probability: u32) {
        let range = u64::from(self.high - self.low);
        let middle = self.low + ((range * u64::from(probability)) >> 16) as u32;
        match bit {
            1 => self.high = middle,
            _ => self.low = middle + 1,
        }
        while (self.high ^ self.low) < 1 << 24 {
            self.out.push((self.high >> 24) as u8);
            self.high = self.high << 8 | 255;
            self.low = (self.low << 8).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_has_a_model_that_the_decoder_takes() {
        for level in 1..=9 {
            let bytes = block_header(level);
            let (header, length) = Header::parse(&bytes).unwrap().unwrap();
            assert_eq!(length, bytes.len());
            assert!(header.memory_bytes() < 256 << 20, "{level}");
            assert_eq!(memory_bytes(level), header.memory_bytes());
        }
    }
}
