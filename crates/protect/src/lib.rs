#![doc = include_str!("../README.md")]
//!
//! # Contents
//!
//! - [`checksum64`] and [`Checksum64`]: XXH3-64, the checksum of every frame and block. It detects
//!   accidents, not forgery.
//! - [`ContentHash`]: BLAKE3 of the content of a member, appended from front to back.
//! - [`segment_hash`] and [`ContentHasher`]: the same BLAKE3 hash, computed per segment on any
//!   thread.
//! - [`ScatteredHash`]: the same of content whose pieces arrive in any order.
//! - [`SparseHasher`]: the hash of a member that is mostly zeros, which are left out of it;
//!   [`MemberHasher`]: whichever of the two a member has.
//! - [`Subtrees`]: a hash of which a part of the input is known; values stand for the rest.
//! - [`md5`](mod@md5): MD5 of one input, or of many in parallel vector lanes.
//! - [`digest`]: MD5, SHA-256 and BLAKE3 behind one interface, for digests that users compare.
//! - [`recovery`]: Reed-Solomon parity over the bytes of a file, and the search for what is intact.
//! - [`envelope`]: encryption of Refrain's own archives.
//! - [`signature`]: signatures with the keys of minisign and SSH.
//! - `lrzip` (feature `lrzip`): the ciphers of lrzip's archives.

pub mod digest;
pub mod envelope;
pub mod hash;
#[cfg(feature = "lrzip")]
pub mod lrzip;
pub mod md5;
mod openssh;
pub mod recovery;
pub mod signature;

pub use digest::{DigestAlgorithm, DigestHasher, DigestValue};
pub use hash::blake3::{
    ContentHash, ContentHasher, HASH_BYTES, SEGMENT_BYTES, SegmentError, SegmentHash, content_hash,
    segment_hash,
};
pub use hash::member::{HashKind, MemberHasher, MemberSegment};
pub use hash::scattered::ScatteredHash;
pub use hash::sparse::{SPARSE_PIECE_BYTES, SparseHasher, SparseSegment};
pub use hash::subtrees::Subtrees;
pub use hash::xxh3::{
    CHECKSUM_CHUNK_BYTES, Checksum64, checksum64, chunked_checksum64, join_chunk_checksums,
};

#[cfg(any(test, feature = "property"))]
pub mod property;
