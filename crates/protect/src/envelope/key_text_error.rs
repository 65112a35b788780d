//! What is wrong with the text of a key.

use std::fmt;

/// Why a text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTextError {
    /// It begins like no known key.
    Unknown,
    /// A character is wrong or missing.
    Damaged,
    /// A secret key where a public one is expected.
    SecretKey,
    /// A public key where a secret one is expected.
    PublicKey,
    /// An SSH key other than Ed25519.
    SshKind,
    /// An SSH key that is encrypted with a passphrase.
    SshPassphrase,
}

impl fmt::Display for KeyTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyTextError::Unknown => {
                "this is no key: public keys begin with age1 or ssh-ed25519, secret ones with \
                 AGE-SECRET-KEY- or -----BEGIN OPENSSH PRIVATE KEY-----"
            }
            KeyTextError::Damaged => "a character of the key is wrong or missing",
            KeyTextError::SecretKey => "this is a secret key, a public one is expected",
            KeyTextError::PublicKey => "this is a public key, a secret one is expected",
            KeyTextError::SshKind => "of SSH keys only ssh-ed25519 can be used",
            KeyTextError::SshPassphrase => {
                "the SSH key is protected by a passphrase: make a copy without one \
                 (ssh-keygen -p), or use another key"
            }
        })
    }
}

impl std::error::Error for KeyTextError {}
