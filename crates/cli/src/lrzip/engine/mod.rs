//! The work: files are compressed, decompressed, tested and listed by the engine's verbs.

mod compress;
mod context;
mod decompress;
pub mod files;
mod info;
mod input;
mod password;
mod sinks;
pub mod tar;
