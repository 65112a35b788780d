#![cfg(feature = "lrzip")]
//! Writes lrzip archives, and describes their headers.
//!
//! Reading does not need this module: [`Archive`](crate::Archive), [`extract`](crate::extract())
//! and [`verify`](crate::verify) recognize an archive's dialect.

mod compress;
mod options;

pub use crate::read::lrzip::headers::{LrzipBlock, LrzipChunk, LrzipLayout};
pub use compress::{LrzipSummary, compress_lrzip};
pub use options::{LrzipBackEnd, LrzipCipher, LrzipEncryption, LrzipOptions};
