//! Signatures of short texts with Ed25519 keys (RFC 8032), in the forms of two programs that many
//! have: minisign, and OpenSSH (`ssh-keygen -Y`, `PROTOCOL.sshsig`). Each reads what the other side
//! of its form wrote, here or there.
//!
//! - [`SecretKeyFile`] and [`SigningKey`]: secret keys, with or without a passphrase.
//! - [`TrustedSigner`]: whose signatures count: public keys, and files with them.
//! - [`Signature`]: the text of a signature, which is made, described and verified here.
//!
//! Hashes and passphrases are those of the two forms: BLAKE2b and scrypt; SHA-2, bcrypt and AES.

mod error;
mod minisign;
mod minisign_key;
mod public_key;
mod secret_key;
mod signers;
mod sshsig;
#[cfg(test)]
mod tests;
mod text;
mod validity;

pub use error::{SignatureKeyError, SignatureTextError};
pub use public_key::{PublicKey, SignerName};
pub use secret_key::{SecretKeyFile, SigningKey};
pub use signers::{TrustedSigner, trusted_signers};
pub use text::{SIGNATURE_TEXT_BYTES_MAX, Signature};
