//! What the components share for one bit: its position in its byte, contexts and predictions.

/// Inputs of a mixer whose arithmetic is done side by side.
pub(crate) const LANES: usize = 8;

/// The length of [`Predictions`]: components are numbered by bytes, and a group of lanes that begins
/// at the last one must not exceed the array.
pub(crate) const PREDICTIONS: usize = 256 + LANES;

/// What each component predicts, in the logistic domain.
pub(crate) type Predictions = [i32; PREDICTIONS];

/// The contexts of all components, for one byte.
pub(crate) type Contexts = [u32; 256];

/// Where in its byte a bit stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    /// The bits of this byte that are known, behind a leading one.
    pub partial: u32,
    /// Those of this half byte, likewise.
    pub in_half: usize,
    /// What `in_rows` is beyond `in_half`: the first half byte behind a leading one, or nothing in it.
    pub first_half: u32,
    /// By so much a byte is shifted to show this bit.
    pub shift: u32,
}

impl At {
    /// The known bits in the form by which a context selects a counter: those of one half byte lie side by side.
    #[inline(always)]
    pub(crate) fn in_rows(self) -> u32 {
        self.first_half | self.in_half as u32
    }
}

/// What a prediction of 15 bits should have been.
#[inline(always)]
pub(crate) fn target(bit: usize) -> i32 {
    bit as i32 * 32767
}
