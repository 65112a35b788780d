//! The encoder: one block of level 1 with one segment, without names and checksum, in a model of
//! `encoder_models`.
//!
//! It uses the decoder's predictor, so both always agree.

use super::encoder_models::block_header;
use super::error::damaged;
use super::header::Header;
use super::predictor::{BitCoder, Predictor};
use refrain_codec::Result;

/// Returns the memory that the encoder allocates at a level, in bytes.
pub(crate) fn memory_bytes(level: u8) -> u64 {
    match Header::parse(&block_header(level)) {
        Ok(Some((header, _))) => header.memory_bytes(),
        // Unreachable, as the test below shows.
        _ => u64::MAX / 2,
    }
}

pub(crate) fn encode(level: u8, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let block_header = block_header(level);
    let parsed = Header::parse(&block_header)?;
    let (header, _) = parsed.ok_or_else(|| damaged("a truncated block header"))?;
    out.extend_from_slice(&block_header);
    // A segment without a name or a comment, and a reserved byte.
    out.extend_from_slice(&[1, 0, 0, 0]);
    let mut predictor = Predictor::new(&header)?;
    let mut encoder = Encoder {
        low: 1,
        high: u32::MAX,
        pending_bits: 0,
        out,
    };
    // The first decoded byte selects no postprocessing.
    for byte in std::iter::once(0).chain(raw.iter().copied()) {
        // This is not the end of the segment.
        encoder.bit(0, 0);
        encoder.pending_bits = byte;
        predictor.code_byte(&mut encoder)?;
    }
    encoder.bit(1, 0);
    // Four zeros at which the decoder stops, the end of the segment, the end of the block.
    out.extend_from_slice(&[0, 0, 0, 0, 254, 255]);
    Ok(())
}

struct Encoder<'a> {
    low: u32,
    high: u32,
    /// The bits of this byte that are not encoded yet, the next one on top.
    pending_bits: u8,
    out: &'a mut Vec<u8>,
}

impl BitCoder for Encoder<'_> {
    #[inline(always)]
    fn code(&mut self, probability: u32) -> Result<usize> {
        let bit = u32::from(self.pending_bits >> 7);
        self.pending_bits <<= 1;
        self.bit(bit, probability);
        Ok(bit as usize)
    }
}

impl Encoder<'_> {
    /// Encodes one bit. A one has `probability` / 65536.
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
    fn every_level_has_a_model_that_the_decoder_accepts() {
        for level in 1..=9 {
            let bytes = block_header(level);
            let (header, length) = Header::parse(&bytes).unwrap().unwrap();
            assert_eq!(length, bytes.len());
            assert!(header.memory_bytes() < 256 << 20, "{level}");
            assert_eq!(memory_bytes(level), header.memory_bytes());
        }
    }
}
