//! The hash functions, one file each.

pub mod blake3;
pub mod member;
pub mod scattered;
pub mod sparse;
pub mod subtrees;
pub mod xxh3;
