//! The match model: what followed the last bytes when they came before.

use super::bit::At;
use crate::cpu::prefetch;
use crate::zpaq::table::table;
use crate::zpaq::tables::Tables;
use refrain_codec::Result;

const LENGTH_MAX: usize = 255;

/// A ring of the last bytes, and where contexts came last.
pub(crate) struct Match {
    pub(crate) index: u8,
    places: Vec<u32>,
    buffer: Vec<u8>,
    /// By length: what a zero and a one that follow are worth.
    stretched: [[i32; 2]; LENGTH_MAX + 1],
    /// Bytes that match; 0 if none, and after a bit that was not the expected one.
    length: usize,
    distance: u32,
    /// The byte that is expected.
    expected: u8,
    predicted: usize,
    /// Where this byte goes.
    place: u32,
}

impl Match {
    pub(crate) fn new(index: u8, size_bits: u8, buffer_bits: u8, tables: &Tables) -> Result<Match> {
        let stretched = |length: usize| match (2048_u32).checked_div(length as u32) {
            None => [0, 0],
            Some(doubt) => [doubt, 32768 - doubt].map(|probability| tables.stretch(probability)),
        };
        Ok(Match {
            index,
            places: table(1 << size_bits, 0)?,
            buffer: table(1 << buffer_bits, 0)?,
            stretched: std::array::from_fn(stretched),
            length: 0,
            distance: 0,
            expected: 0,
            predicted: 0,
            place: 0,
        })
    }

    /// Byte `index` of the ring.
    #[inline(always)]
    fn byte(&self, index: u32) -> u8 {
        self.buffer[index as usize & (self.buffer.len() - 1)]
    }

    #[inline(always)]
    fn place_of(&self, context: u32) -> usize {
        context as usize & (self.places.len() - 1)
    }

    /// Asks for what the end of a byte with this context needs.
    #[inline(always)]
    pub(crate) fn prefetch(&self, context: u32, is_second_half: bool) {
        let place = &self.places[self.place_of(context)];
        match is_second_half {
            false => prefetch(place),
            true if self.length == 0 => {
                let last = place.wrapping_sub(1) as usize & (self.buffer.len() - 1);
                prefetch(&self.buffer[last]);
            }
            true => {}
        }
    }

    #[inline(always)]
    pub(crate) fn predict(&mut self, at: At) -> i32 {
        self.predicted = usize::from(self.expected >> at.shift & 1);
        self.stretched[self.length & LENGTH_MAX][self.predicted]
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, bit: usize) {
        if self.predicted != bit {
            self.length = 0;
        }
    }

    /// The byte is whole. `context`: the one it had.
    pub(crate) fn end_byte(&mut self, byte: u8, context: u32) {
        let mask = self.buffer.len() - 1;
        self.buffer[self.place as usize & mask] = byte;
        self.place = self.place.wrapping_add(1) & mask as u32;
        let slot = self.place_of(context);
        if self.length == 0 {
            self.distance = self.place.wrapping_sub(self.places[slot]);
            if self.distance as usize & mask != 0 {
                self.length = self.matching_bytes();
            }
        } else {
            self.length = (self.length + 1).min(LENGTH_MAX);
        }
        self.places[slot] = self.place;
        self.expected = self.byte(self.place.wrapping_sub(self.distance));
    }

    /// How many of the last bytes are those before the place that lies `distance` back.
    fn matching_bytes(&self) -> usize {
        let is_equal = |length: u32| {
            let last = self.place.wrapping_sub(length + 1);
            self.byte(last) == self.byte(last.wrapping_sub(self.distance))
        };
        (0..LENGTH_MAX as u32)
            .take_while(|&length| is_equal(length))
            .count()
    }
}
