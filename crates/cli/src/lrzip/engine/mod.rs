//! The work: compresses, decompresses, tests and lists files with the engine.

mod compress;
mod context;
mod decompress;
pub mod files;
mod info;
mod input;
mod password;
mod sinks;
pub mod tar;
