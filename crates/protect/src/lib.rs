//! Detect, hide, heal: what keeps the bytes of an archive sound.
//!
//! Present so far are the first third, *detect*, and the ciphers of foreign archives ([`lrzip`], to
//! read them only):
//!
//! - [`checksum64`] and [`Checksum64`]: XXH3-64, on every frame and block. Finds accidents, not
//!   forgery.
//! - [`ContentHash`]: BLAKE3 of a member's content, fed from front to back.
//! - [`segment_hash`] and [`ContentHasher`]: the same BLAKE3 hash, with the work done per segment
//!   on any thread.
//! - [`md5`](mod@md5): MD5, to compare with what others say; one input at a time, or many side by
//!   side.
//! - [`digest`]: MD5, SHA-256 and BLAKE3 behind one face, for what people compare.
//!
//! Everything here is a pure function of its bytes: no files, threads, clocks or randomness.

pub mod digest;
pub mod hash;
#[cfg(feature = "lrzip")]
pub mod lrzip;
pub mod md5;

pub use digest::{DigestAlgorithm, DigestHasher, DigestValue};
pub use hash::blake3::{
    ContentHash, ContentHasher, HASH_BYTES, SEGMENT_BYTES, SegmentError, SegmentHash, content_hash,
    segment_hash,
};
pub use hash::xxh3::{Checksum64, PIECE_BYTES, checksum64, join_piece_checksums, pieces_checksum};

#[cfg(any(test, feature = "property"))]
pub mod property;
