//! The match model: it predicts the byte that followed the last occurrence of the context.

use super::bit::BitPosition;
use crate::cpu::prefetch;
use crate::zpaq::table::allocate;
use crate::zpaq::tables::Tables;
use refrain_codec::Result;

const LENGTH_MAX: usize = 255;

/// A ring of the last bytes, and a table of the last position of each context.
pub(crate) struct Match {
    pub(crate) index: u8,
    last_positions: Vec<u32>,
    buffer: Vec<u8>,
    /// The predictions for an expected zero and one, indexed by length.
    stretched: [[i32; 2]; LENGTH_MAX + 1],
    /// The length of the match in bytes; 0 without a match, and after a mispredicted bit.
    length: usize,
    distance: u32,
    expected: u8,
    predicted: usize,
    /// The position of the current byte in the ring.
    position: u32,
}

impl Match {
    pub(crate) fn new(index: u8, size_bits: u8, buffer_bits: u8, tables: &Tables) -> Result<Match> {
        let stretched = |length: usize| match (2048_u32).checked_div(length as u32) {
            None => [0, 0],
            Some(error) => [error, 32768 - error].map(|probability| tables.stretch(probability)),
        };
        Ok(Match {
            index,
            last_positions: allocate(1 << size_bits, 0)?,
            buffer: allocate(1 << buffer_bits, 0)?,
            stretched: std::array::from_fn(stretched),
            length: 0,
            distance: 0,
            expected: 0,
            predicted: 0,
            position: 0,
        })
    }

    #[inline(always)]
    fn byte(&self, index: u32) -> u8 {
        self.buffer[index as usize & (self.buffer.len() - 1)]
    }

    #[inline(always)]
    fn slot_of(&self, context: u32) -> usize {
        context as usize & (self.last_positions.len() - 1)
    }

    /// Prefetches what the end of a byte with this context needs.
    #[inline(always)]
    pub(crate) fn prefetch(&self, context: u32, is_second_nibble: bool) {
        let last_position = &self.last_positions[self.slot_of(context)];
        match is_second_nibble {
            false => prefetch(last_position),
            true if self.length == 0 => {
                let last = last_position.wrapping_sub(1) as usize & (self.buffer.len() - 1);
                prefetch(&self.buffer[last]);
            }
            true => {}
        }
    }

    #[inline(always)]
    pub(crate) fn predict(&mut self, position: BitPosition) -> i32 {
        self.predicted = usize::from(self.expected >> position.shift & 1);
        self.stretched[self.length & LENGTH_MAX][self.predicted]
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, bit: usize) {
        if self.predicted != bit {
            self.length = 0;
        }
    }

    pub(crate) fn end_byte(&mut self, byte: u8, context: u32) {
        let mask = self.buffer.len() - 1;
        self.buffer[self.position as usize & mask] = byte;
        self.position = self.position.wrapping_add(1) & mask as u32;
        let slot = self.slot_of(context);
        if self.length == 0 {
            self.distance = self.position.wrapping_sub(self.last_positions[slot]);
            if self.distance as usize & mask != 0 {
                self.length = self.matching_bytes();
            }
        } else {
            self.length = (self.length + 1).min(LENGTH_MAX);
        }
        self.last_positions[slot] = self.position;
        self.expected = self.byte(self.position.wrapping_sub(self.distance));
    }

    /// Returns the number of last bytes that equal those before the position `distance` back.
    fn matching_bytes(&self) -> usize {
        let is_equal = |length: u32| {
            let last = self.position.wrapping_sub(length + 1);
            self.byte(last) == self.byte(last.wrapping_sub(self.distance))
        };
        (0..LENGTH_MAX as u32)
            .take_while(|&length| is_equal(length))
            .count()
    }
}
