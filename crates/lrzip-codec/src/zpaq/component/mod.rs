//! The components of a model: what each predicts, and what it learns from the bit that came.
//!
//! The tables of one component are one allocation, whose length is a power of two; what one bit needs of them lies in one line of the
//! cache, and was asked for before: rows of histories in the half byte before, weights with the bit before.

pub(crate) mod bit;
mod counting;
mod histories;
mod matching;
mod mixing;
pub(crate) mod unit;
