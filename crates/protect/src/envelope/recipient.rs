//! Public and secret keys, and their text forms: those of age (`age1`, `AGE-SECRET-KEY-1` for
//! X25519; `age1pq1`, `AGE-SECRET-KEY-PQ-1` for X-Wing) and of OpenSSH (`ssh-ed25519`, and private
//! keys without a passphrase).

use std::fmt;
use std::str::FromStr;

use x_wing::{DecapsulationKey, Decapsulator, EncapsulationKey, KeyExport};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::bech32_text;
use super::derive::Secret;
use super::key_text_error::KeyTextError;
use super::openssh;

/// The size of an X-Wing public key in bytes.
const HYBRID_PUBLIC_BYTES: usize = 1216;

const X25519_PUBLIC: &str = "age";
const X25519_SECRET: &str = "age-secret-key-";
const HYBRID_PUBLIC: &str = "age1pq";
const HYBRID_SECRET: &str = "age-secret-key-pq-";

/// A public key, for which an archive can be encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipient {
    /// An X25519 key, or the Ed25519 key of an SSH user in that form.
    X25519([u8; 32]),
    /// An X-Wing key: X25519 and ML-KEM-768.
    Hybrid(Box<[u8; HYBRID_PUBLIC_BYTES]>),
}

/// A secret key. Erased when dropped.
#[derive(Clone, PartialEq, Eq)]
pub enum Identity {
    /// An X25519 key.
    X25519(Zeroizing<[u8; 32]>),
    /// The seed of an X-Wing key.
    Hybrid(Zeroizing<[u8; 32]>),
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Identity::X25519(_) => "Identity::X25519",
            Identity::Hybrid(_) => "Identity::Hybrid",
        })
    }
}

impl Identity {
    /// The public key.
    #[must_use]
    pub fn recipient(&self) -> Recipient {
        match self {
            Identity::X25519(secret) => {
                Recipient::X25519(PublicKey::from(&StaticSecret::from(**secret)).to_bytes())
            }
            Identity::Hybrid(seed) => {
                let secret = DecapsulationKey::from(**seed);
                let mut public = Box::new([0; HYBRID_PUBLIC_BYTES]);
                public.copy_from_slice(&secret.encapsulation_key().to_bytes());
                Recipient::Hybrid(public)
            }
        }
    }

    /// The text form: age's, in capital letters.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        let (prefix, secret): (_, &Secret) = match self {
            Identity::X25519(secret) => (X25519_SECRET, secret),
            Identity::Hybrid(seed) => (HYBRID_SECRET, seed),
        };
        let mut text = Zeroizing::new(bech32_text::encode(prefix, &**secret));
        text.make_ascii_uppercase();
        text
    }

    /// All secret keys of a file: an age identity file (one key a line, and comments) or a private
    /// key of OpenSSH.
    ///
    /// # Errors
    /// [`KeyTextError`]; `Unknown` if there is no key.
    pub fn from_file_text(text: &str) -> Result<Vec<Identity>, KeyTextError> {
        if text.trim_start().starts_with(openssh::PRIVATE_BEGIN) {
            return Ok(vec![Identity::X25519(openssh::parse_private(text)?)]);
        }
        let lines = text.lines().map(str::trim);
        let keys = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Vec<_> = keys.map(str::parse).collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(KeyTextError::Unknown) } else { Ok(keys) }
    }
}

impl FromStr for Identity {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Identity, KeyTextError> {
        let lower = Zeroizing::new(text.to_ascii_lowercase());
        if text.parse::<Recipient>().is_ok() {
            return Err(KeyTextError::PublicKey);
        }
        if !lower.starts_with(X25519_SECRET) {
            return Err(KeyTextError::Unknown);
        }
        let (prefix, bytes) = bech32_text::decode(text).ok_or(KeyTextError::Damaged)?;
        let bytes = Zeroizing::new(bytes);
        let mut secret = Zeroizing::new([0; 32]);
        if bytes.len() != secret.len() {
            return Err(KeyTextError::Damaged);
        }
        secret.copy_from_slice(&bytes);
        match &*prefix {
            X25519_SECRET => Ok(Identity::X25519(secret)),
            HYBRID_SECRET => Ok(Identity::Hybrid(secret)),
            _ => Err(KeyTextError::Unknown),
        }
    }
}

impl FromStr for Recipient {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Recipient, KeyTextError> {
        if text.starts_with("ssh-") || text.starts_with("ecdsa-") {
            return Ok(Recipient::X25519(openssh::parse_public(text)?));
        }
        let lower = text.to_ascii_lowercase();
        if lower.starts_with(X25519_SECRET) || text.starts_with("-----BEGIN") {
            return Err(KeyTextError::SecretKey);
        }
        if !lower.starts_with("age1") {
            return Err(KeyTextError::Unknown);
        }
        let (prefix, bytes) = bech32_text::decode(text).ok_or(KeyTextError::Damaged)?;
        match &*prefix {
            X25519_PUBLIC => {
                let bytes = bytes.try_into().map_err(|_| KeyTextError::Damaged)?;
                Ok(Recipient::X25519(bytes))
            }
            HYBRID_PUBLIC => {
                let bytes: Box<[u8; HYBRID_PUBLIC_BYTES]> = bytes
                    .into_boxed_slice()
                    .try_into()
                    .map_err(|_| KeyTextError::Damaged)?;
                EncapsulationKey::try_from(&bytes[..]).map_err(|_| KeyTextError::Damaged)?;
                Ok(Recipient::Hybrid(bytes))
            }
            _ => Err(KeyTextError::Unknown),
        }
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Recipient::X25519(public) => bech32_text::encode(X25519_PUBLIC, public),
            Recipient::Hybrid(public) => bech32_text::encode(HYBRID_PUBLIC, &public[..]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_keys_read_back() {
        for identity in [
            Identity::X25519(Zeroizing::new([3; 32])),
            Identity::Hybrid(Zeroizing::new([4; 32])),
        ] {
            let text = identity.to_text();
            assert_eq!(text.parse(), Ok(identity.clone()));
            let recipient = identity.recipient();
            assert_eq!(recipient.to_string().parse(), Ok(recipient.clone()));
            assert_eq!(text.parse::<Recipient>(), Err(KeyTextError::SecretKey));
            let public = recipient.to_string().parse::<Identity>();
            assert_eq!(public, Err(KeyTextError::PublicKey));
            let file = format!("# a comment\n\n{}\n", *text);
            assert_eq!(Identity::from_file_text(&file), Ok(vec![identity]));
        }
        assert_eq!(
            Identity::from_file_text("# x\n"),
            Err(KeyTextError::Unknown)
        );
    }

    /// From the specification of age (C2SP), section "The X25519 recipient type".
    #[test]
    fn keys_of_age_are_read() {
        let secret = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
        let identity: Identity = secret.parse().expect("a key of age");
        assert_eq!(identity, Identity::X25519(Zeroizing::new([0x42; 32])));
        assert_eq!(*identity.to_text(), secret);
        let public = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
        assert_eq!(identity.recipient().to_string(), public);
    }

    #[test]
    fn wrong_texts_say_what_is_wrong() {
        let public = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
        let typo = public.replace("zvkyg", "zvkyq");
        for (text, error) in [
            ("", KeyTextError::Unknown),
            ("hello", KeyTextError::Unknown),
            (&typo, KeyTextError::Damaged),
            (&public[..40], KeyTextError::Damaged),
            ("ssh-rsa AAAA", KeyTextError::SshKind),
            ("ssh-ed25519 AAAA", KeyTextError::Damaged),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----",
                KeyTextError::SecretKey,
            ),
        ] {
            assert_eq!(text.parse::<Recipient>(), Err(error), "{text}");
        }
    }
}
