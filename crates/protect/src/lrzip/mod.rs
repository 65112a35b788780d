//! The two ciphers of lrzip's archives: keys from a password, and the encryption of items (block
//! headers, blocks, the digest) one by one.
//!
//! Neither is recommended. AES-128-CBC does not detect changed bytes, and its key derivation is a
//! single hash over some hundred megabytes. AES-256-GCM authenticates each item, but not their
//! order.

mod decrypt;
mod encrypt;
mod gcm;
mod keys;
mod pieces;
mod random;
#[cfg(test)]
mod tests;

pub use gcm::PieceAuthentication;
pub use keys::{ArchiveKeys, ItemKind, PASSWORD_BYTES_MAX};
pub use pieces::{ItemParts, LAST_PIECE_BYTES_MIN, PIECE_UNIT_BYTES, PieceDecryption};
pub use random::{SEED_BYTES, SeededRandom};
