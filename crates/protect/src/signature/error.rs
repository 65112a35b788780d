//! What is wrong with keys and signatures.

use std::fmt;

/// Why a text is no key for signatures, or gives none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureKeyError {
    /// It begins like no known key.
    Unknown,
    /// A character is wrong or missing.
    Damaged,
    /// A secret key where a public one is expected.
    SecretKey,
    /// A public key where a secret one is expected.
    PublicKey,
    /// A key of another kind, such as `ssh-rsa`.
    Kind(String),
    /// An option of the line with a key that is unknown, or has a value that is.
    Option(String),
    /// A secret key that is encrypted in an unusual way.
    Cipher(String),
    /// A passphrase is needed.
    Passphrase,
    /// The passphrase is wrong.
    WrongPassphrase,
    /// Trying a passphrase would take too much time or memory.
    Cost,
}

impl fmt::Display for SignatureKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => {
                "this is no key: public keys begin with RW or ssh-ed25519, files with secret keys \
                 are those of minisign and ssh-keygen"
            }
            Self::Damaged => "a character of the key is wrong or missing",
            Self::SecretKey => "this is a secret key, a public one is expected",
            Self::PublicKey => "this is a public key, a secret one is expected",
            Self::Kind(kind) => {
                return write!(
                    f,
                    "keys of the kind {kind:?} are not supported: only Ed25519 is"
                );
            }
            Self::Option(option) => {
                return write!(f, "the option {option:?} of a key is not supported");
            }
            Self::Cipher(cipher) => {
                return write!(
                    f,
                    "secret keys with the cipher {cipher:?} are not supported"
                );
            }
            Self::Passphrase => "the secret key has a passphrase, and none was given",
            Self::WrongPassphrase => "the passphrase of the secret key is wrong",
            Self::Cost => "trying the passphrase would take too much time or memory",
        })
    }
}

impl std::error::Error for SignatureKeyError {}

/// Why a text is no signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureTextError {
    /// It begins like none.
    Unknown,
    /// A character is wrong or missing.
    Damaged,
    /// It was made by something that is not supported: a kind of key, or a namespace.
    Unsupported(String),
}

impl fmt::Display for SignatureTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("this is no signature of minisign or ssh-keygen"),
            Self::Damaged => f.write_str("the signature is damaged"),
            Self::Unsupported(what) => write!(f, "the signature is not supported: {what}"),
        }
    }
}

impl std::error::Error for SignatureTextError {}
