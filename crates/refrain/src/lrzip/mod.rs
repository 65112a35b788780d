#![cfg(feature = "lrzip")]
//! Archives of lrzip: how to write them, and what their headers state.
//!
//! Reading does not need this module: [`Archive`](crate::Archive), [`extract`](crate::extract())
//! and [`verify`](crate::verify) recognize the dialect of an archive.

mod compress;
mod options;

pub use crate::read::lrzip::headers::{LrzipBlock, LrzipChunk, LrzipLayout};
pub use compress::{LrzipSummary, compress_lrzip};
pub use options::{LrzipBackEnd, LrzipCipher, LrzipEncryption, LrzipOptions};
