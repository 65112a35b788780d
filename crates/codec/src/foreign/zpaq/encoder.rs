//! ZPAQ, the other way: one block of level 1 with one segment, no names, no checksum, in a model of `models`.
//!
//! The predictor is the decoder's own, so the two cannot disagree.

use super::header::Header;
use super::models::block_header;
use super::predictor::Predictor;
use super::wrong;
use crate::error::Result;

/// What the encoder allocates for a level, in bytes.
pub(in crate::foreign) fn encoder_memory_bytes(level: u8) -> u64 {
    match Header::parse(&block_header(level)) {
        Ok(Some((header, _))) => header.memory_bytes(),
        // The test below holds that this is not reached.
        _ => u64::MAX / 2,
    }
}

/// Codes `raw` and appends it to `out`.
pub(in crate::foreign) fn encode(level: u8, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let block_header = block_header(level);
    let parsed = Header::parse(&block_header)?;
    let (header, _) = parsed.ok_or_else(|| wrong("the block header is cut short"))?;
    out.extend_from_slice(&block_header);
    // A segment without a name or a comment, and a reserved byte.
    out.extend_from_slice(&[1, 0, 0, 0]);
    let mut encoder = Encoder {
        predictor: Predictor::new(&header)?,
        low: 1,
        high: u32::MAX,
        out,
    };
    // What is decoded first says that nothing is done to the rest.
    encoder.byte(0)?;
    raw.iter().try_for_each(|&byte| encoder.byte(byte))?;
    encoder.bit(1, 0);
    // Four bytes on which the decoder stops, the end of the segment, the end of the block.
    out.extend_from_slice(&[0, 0, 0, 0, 254, 255]);
    Ok(())
}

struct Encoder<'a> {
    predictor: Predictor,
    low: u32,
    high: u32,
    out: &'a mut Vec<u8>,
}

impl Encoder<'_> {
    fn byte(&mut self, byte: u8) -> Result<()> {
        // It is not the end.
        self.bit(0, 0);
        for shift in (0..8).rev() {
            let bit = u32::from(byte >> shift & 1);
            let probability = self.predictor.predict() * 2 + 1;
            self.bit(bit, probability);
            self.predictor.update(bit as usize)?;
        }
        Ok(())
    }

    /// One binary decision; `probability` of a one, of 65536.
    #[inline]
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
            assert_eq!(encoder_memory_bytes(level), header.memory_bytes());
        }
    }
}
