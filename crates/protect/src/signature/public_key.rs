//! Public keys for signatures, and how signatures name them.

use std::fmt;

use super::minisign_key::id_text;
use super::sshsig;

/// A public key for signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicKey {
    /// A key of minisign.
    Minisign {
        /// What tells keys apart. It proves nothing.
        id: [u8; 8],
        /// The point of the curve.
        point: [u8; 32],
    },
    /// The point of an SSH key.
    Ssh([u8; 32]),
}

impl PublicKey {
    /// What a signature by this key calls it.
    #[must_use]
    pub fn name(&self) -> SignerName {
        match self {
            PublicKey::Minisign { id, .. } => SignerName::Minisign(id_text(id)),
            PublicKey::Ssh(point) => SignerName::Ssh(sshsig::fingerprint(point)),
        }
    }
}

/// Who made a signature, as the signature itself states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignerName {
    /// A key of minisign, by its id in hexadecimal digits.
    Minisign(String),
    /// A key of SSH, by the hash of it that ssh-keygen prints.
    Ssh(String),
}

impl fmt::Display for SignerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignerName::Minisign(id) => write!(f, "minisign {id}"),
            SignerName::Ssh(fingerprint) => write!(f, "ssh-ed25519 {fingerprint}"),
        }
    }
}

impl SignerName {
    /// The id or hash alone.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            SignerName::Minisign(key) | SignerName::Ssh(key) => key,
        }
    }

    /// The form of the key: `minisign` or `ssh-ed25519`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            SignerName::Minisign(_) => "minisign",
            SignerName::Ssh(_) => "ssh-ed25519",
        }
    }
}
