//! Arithmetic decoding, and the buffer of encoded bytes.

use super::error::damaged;
use super::predictor::{BitCoder, Predictor};
use refrain_codec::Result;

#[derive(Default)]
pub(crate) struct InputBuffer {
    bytes: Vec<u8>,
    read_bytes: usize,
}

impl InputBuffer {
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.read_bytes..]
    }

    /// Appends bytes up to `capacity` unread ones. Returns the number of bytes appended.
    pub(crate) fn fill(&mut self, bytes: &[u8], capacity: usize) -> usize {
        let room = capacity.saturating_sub(self.unread().len());
        let count = bytes.len().min(room);
        if count > 0 {
            self.bytes.drain(..self.read_bytes);
            self.read_bytes = 0;
            self.bytes.extend_from_slice(&bytes[..count]);
        }
        count
    }

    pub(crate) fn skip(&mut self, count: usize) {
        self.read_bytes = self.bytes.len().min(self.read_bytes + count);
    }

    #[inline(always)]
    pub(crate) fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.read_bytes).copied();
        self.read_bytes += usize::from(byte.is_some());
        byte.ok_or_else(|| damaged("the data ends inside a block"))
    }
}

pub(crate) struct ArithmeticDecoder {
    pub(crate) input: InputBuffer,
    low: u32,
    high: u32,
    pub(crate) code: u32,
}

impl ArithmeticDecoder {
    pub(crate) fn new() -> ArithmeticDecoder {
        ArithmeticDecoder {
            input: InputBuffer::default(),
            low: 1,
            high: u32::MAX,
            code: 0,
        }
    }

    /// Resets the interval for a new segment. [`read_code`](Self::read_code) must follow.
    pub(crate) fn reset(&mut self) {
        (self.low, self.high) = (1, u32::MAX);
    }

    /// Reads the first four bytes of encoded data, or the next length of stored data.
    pub(crate) fn read_code(&mut self) -> Result<u32> {
        let mut code = [0; 4];
        for byte in &mut code {
            *byte = self.input.byte()?;
        }
        self.code = u32::from_be_bytes(code);
        Ok(self.code)
    }

    /// Decodes the next byte of a segment; `None` at its end.
    pub(crate) fn decode_byte(&mut self, predictor: &mut Predictor) -> Result<Option<u8>> {
        if self.code(0)? == 0 {
            return predictor.code_byte(self).map(Some);
        }
        match self.code {
            0 => Ok(None),
            _ => Err(damaged("a segment ends without its marker")),
        }
    }
}

impl BitCoder for ArithmeticDecoder {
    #[inline(always)]
    fn code(&mut self, probability: u32) -> Result<usize> {
        if !(self.low..=self.high).contains(&self.code) {
            return Err(damaged(
                "the code is outside of the interval of the arithmetic decoder",
            ));
        }
        let range = u64::from(self.high - self.low);
        let middle = self.low + ((range * u64::from(probability)) >> 16) as u32;
        let bit = usize::from(self.code <= middle);
        match bit {
            1 => self.high = middle,
            _ => self.low = middle + 1,
        }
        while (self.high ^ self.low) < 1 << 24 {
            self.high = self.high << 8 | 255;
            self.low = (self.low << 8).max(1);
            self.code = self.code << 8 | u32::from(self.input.byte()?);
        }
        Ok(bit)
    }
}
