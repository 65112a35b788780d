//! Arithmetic decoding, and the coded bytes that wait for it.

use super::error::damaged;
use super::predictor::{BitCoder, Predictor};
use refrain_codec::Result;

/// Coded bytes that wait.
#[derive(Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    /// The first one that waits.
    at: usize,
}

impl Input {
    /// Those that wait.
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Appends as many of `bytes` as there is room for, if `most` may wait; how many those are.
    pub(crate) fn gather(&mut self, bytes: &[u8], most: usize) -> usize {
        let room = most.saturating_sub(self.waiting().len());
        let count = bytes.len().min(room);
        if count > 0 {
            self.bytes.drain(..self.at);
            self.at = 0;
            self.bytes.extend_from_slice(&bytes[..count]);
        }
        count
    }

    /// Passes over `count` bytes, of those that wait.
    pub(crate) fn skip(&mut self, count: usize) {
        self.at = self.bytes.len().min(self.at + count);
    }

    #[inline(always)]
    pub(crate) fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte.ok_or_else(|| damaged("the data ends inside a block"))
    }
}

/// What the decoder knows of the number that all bits are coded as.
pub(crate) struct ArithmeticDecoder {
    pub(crate) input: Input,
    low: u32,
    high: u32,
    pub(crate) code: u32,
}

impl ArithmeticDecoder {
    pub(crate) fn new() -> ArithmeticDecoder {
        ArithmeticDecoder {
            input: Input::default(),
            low: 1,
            high: u32::MAX,
            code: 0,
        }
    }

    /// Begins a segment, but for the code.
    pub(crate) fn reset(&mut self) {
        (self.low, self.high) = (1, u32::MAX);
    }

    /// The first four bytes of coded data; of stored data the next length.
    pub(crate) fn read_code(&mut self) -> Result<u32> {
        let mut code = [0; 4];
        for byte in &mut code {
            *byte = self.input.byte()?;
        }
        self.code = u32::from_be_bytes(code);
        Ok(self.code)
    }

    /// The next byte of a segment; `None` at its end.
    pub(crate) fn decode_byte(&mut self, predictor: &mut Predictor) -> Result<Option<u8>> {
        if self.code(0)? == 0 {
            return predictor.code_byte(self).map(Some);
        }
        match self.code {
            0 => Ok(None),
            _ => Err(damaged("a segment does not end where it says")),
        }
    }
}

impl BitCoder for ArithmeticDecoder {
    #[inline(always)]
    fn code(&mut self, probability: u32) -> Result<usize> {
        if !(self.low..=self.high).contains(&self.code) {
            return Err(damaged("not what an arithmetic coder writes"));
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
