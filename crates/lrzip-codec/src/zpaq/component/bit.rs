//! What the components share for one bit: its position in its byte, contexts and predictions.

/// The number of mixer inputs that are computed in parallel lanes.
pub(crate) const LANES: usize = 8;

/// The length of [`Predictions`]: components are numbered by bytes, and a group of lanes that
/// begins at the last one must not exceed the array.
pub(crate) const PREDICTIONS: usize = 256 + LANES;

/// The predictions of all components, in the logistic domain.
pub(crate) type Predictions = [i32; PREDICTIONS];

/// The contexts of all components for one byte.
pub(crate) type Contexts = [u32; 256];

#[derive(Debug, Clone, Copy)]
pub(crate) struct BitPosition {
    /// The known bits of this byte, after a leading one.
    pub partial: u32,
    /// The known bits of this nibble, after a leading one.
    pub nibble: usize,
    /// The high part of `row_index`: in the second nibble the first one after a leading one, else
    /// 0.
    pub first_nibble: u32,
    /// The number of bits by which the byte is shifted right to obtain this bit.
    pub shift: u32,
}

impl BitPosition {
    /// Returns the known bits as a context selects a counter: the counters of one nibble are
    /// adjacent.
    #[inline(always)]
    pub(crate) fn row_index(self) -> u32 {
        self.first_nibble | self.nibble as u32
    }
}

/// The ideal prediction of a bit, as a probability of 15 bits.
#[inline(always)]
pub(crate) fn target(bit: usize) -> i32 {
    bit as i32 * 32767
}
