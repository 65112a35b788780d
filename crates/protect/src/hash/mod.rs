//! The hash functions, one file each.

pub mod blake3;
pub mod member;
pub mod sparse;
pub mod xxh3;
