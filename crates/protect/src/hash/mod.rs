//! The hash functions, one file each.

pub mod blake3;
pub mod xxh3;
