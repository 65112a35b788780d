//! The components of a model: each predicts a bit and is then updated with its value.
//!
//! The tables of one component are one allocation, whose length is a power of two. The entries that
//! one bit needs are in one cache line, which is prefetched: rows of histories during the previous
//! nibble, weights during the previous bit.

pub(crate) mod bit;
mod counting;
mod histories;
mod matching;
mod mixing;
pub(crate) mod unit;
