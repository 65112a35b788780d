//! Secret keys, which sign.

use std::fmt;

use zeroize::Zeroizing;

use super::error::SignatureKeyError as E;
use super::minisign::{MinisignSignature, UNTRUSTED};
use super::minisign_key;
use super::public_key::PublicKey;
use super::signers::parse_line;
use super::sshsig::SshSignature;
use super::text::{Form, Signature};
use crate::openssh::private_key::{self, PrivateKeyError};

/// A file with a secret key of minisign or OpenSSH. Erased when dropped.
pub struct SecretKeyFile {
    form: FileForm,
    /// The file, or minisign's line with the key.
    text: Zeroizing<String>,
}

#[derive(Clone, Copy)]
enum FileForm {
    Minisign,
    Ssh,
}

/// A secret key. Erased when dropped.
pub struct SigningKey {
    key: ed25519_dalek::SigningKey,
    /// The id, if it is a key of minisign.
    minisign_id: Option<[u8; 8]>,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

impl SecretKeyFile {
    /// Recognizes the text of a file.
    ///
    /// # Errors
    /// [`SignatureKeyError`](E) for other files.
    pub fn parse(text: &str) -> Result<SecretKeyFile, E> {
        let text = text.trim();
        if text.starts_with(private_key::BEGIN) {
            return Ok(SecretKeyFile {
                form: FileForm::Ssh,
                text: Zeroizing::new(text.to_owned()),
            });
        }
        if text.starts_with("-----BEGIN") {
            let first = text.lines().next().unwrap_or_default();
            return Err(E::Kind(first.trim_matches('-').to_owned()));
        }
        let line = if text.starts_with(UNTRUSTED) {
            text.lines().nth(1).unwrap_or_default().trim()
        } else {
            text
        };
        if parse_line(line).is_ok() {
            return Err(E::PublicKey);
        }
        // All begin with `Ed`; this is followed by `Sc` or zeros, and `B2`.
        if !line.starts_with("RWRTY0Iy") && !line.starts_with("RWQAAEIy") {
            return Err(E::Unknown);
        }
        Ok(SecretKeyFile {
            form: FileForm::Minisign,
            text: Zeroizing::new(line.to_owned()),
        })
    }

    /// The key; `passphrase` is used only if it has one.
    ///
    /// # Errors
    /// [`SignatureKeyError`](E): `Passphrase` if one is needed and none given.
    pub fn unlock(&self, passphrase: Option<&[u8]>) -> Result<SigningKey, E> {
        let (minisign_id, seed) = match self.form {
            FileForm::Minisign => {
                let (id, seed) = minisign_key::parse_secret(&self.text, passphrase)?;
                (Some(id), seed)
            }
            FileForm::Ssh => {
                let parsed = private_key::parse(&self.text, passphrase);
                (None, parsed.map_err(of_ssh)?.0)
            }
        };
        let key = ed25519_dalek::SigningKey::from_bytes(&seed);
        Ok(SigningKey { key, minisign_id })
    }
}

fn of_ssh(error: PrivateKeyError) -> E {
    match error {
        PrivateKeyError::Damaged => E::Damaged,
        PrivateKeyError::Kind(kind) => E::Kind(kind),
        PrivateKeyError::Cipher(cipher) => E::Cipher(cipher),
        PrivateKeyError::Passphrase => E::Passphrase,
        PrivateKeyError::WrongPassphrase => E::WrongPassphrase,
        PrivateKeyError::Cost => E::Cost,
    }
}

impl SigningKey {
    /// Signs `message`, in the form of the key's program. Minisign's has a comment that is signed,
    /// too: one line.
    #[must_use]
    pub fn sign(&self, message: &[u8], trusted_comment: &str) -> Signature {
        Signature::new(match self.minisign_id {
            Some(id) => {
                let comment = trusted_comment.replace(['\n', '\r'], " ");
                Form::Minisign(MinisignSignature::sign(message, &comment, id, &self.key))
            }
            None => Form::Ssh(SshSignature::sign(message, &self.key)),
        })
    }

    /// The public half.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        let point = self.key.verifying_key().to_bytes();
        match self.minisign_id {
            Some(id) => PublicKey::Minisign { id, point },
            None => PublicKey::Ssh(point),
        }
    }
}
