#![doc = include_str!("../README.md")]
//!
//! [`decoder`] returns the module for a codec or filter of ours, [`Module`] runs one.

#![deny(unsafe_code)]

mod modules;
#[cfg(any(test, feature = "property"))]
pub mod property;
mod run;
#[cfg(test)]
mod tests;

pub use modules::{Decoder, Role, decoder, decoders};
pub use run::{Error, Limits, Module};
