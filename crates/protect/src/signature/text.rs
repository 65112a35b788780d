//! The text of a signature, in either form.

use super::error::SignatureTextError;
use super::minisign::{self, MinisignSignature};
use super::minisign_key::id_text;
use super::public_key::{PublicKey, SignerName};
use super::sshsig::{self, SshSignature};

/// The largest text that is a signature: long comments fit.
pub const SIGNATURE_TEXT_BYTES_MAX: usize = 16_384;

/// A signature, as it is in a file, and what that says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    text: String,
    pub(super) form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    Minisign(MinisignSignature),
    Ssh(SshSignature),
}

impl Signature {
    pub(super) fn new(form: Form) -> Signature {
        let text = match &form {
            Form::Minisign(signature) => signature.to_text(),
            Form::Ssh(signature) => signature.to_text(),
        };
        Signature { text, form }
    }

    /// Reads a signature of minisign or ssh-keygen.
    ///
    /// # Errors
    /// [`SignatureTextError`]; also for texts longer than [`SIGNATURE_TEXT_BYTES_MAX`].
    pub fn parse(text: &[u8]) -> Result<Signature, SignatureTextError> {
        if text.len() > SIGNATURE_TEXT_BYTES_MAX {
            return Err(SignatureTextError::Unknown);
        }
        let text = str::from_utf8(text).map_err(|_| SignatureTextError::Unknown)?;
        let form = if text.trim_start().starts_with(sshsig::BEGIN) {
            Form::Ssh(SshSignature::parse(text)?)
        } else if text.starts_with(minisign::UNTRUSTED) {
            Form::Minisign(MinisignSignature::parse(text)?)
        } else {
            return Err(SignatureTextError::Unknown);
        };
        Ok(Signature {
            text: text.to_owned(),
            form,
        })
    }

    /// The text, as the programs read it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Who made it, as it states: not proven before it is [verified](Signature::is_valid).
    #[must_use]
    pub fn signer(&self) -> SignerName {
        match &self.form {
            Form::Minisign(signature) => SignerName::Minisign(id_text(&signature.key_id)),
            Form::Ssh(signature) => SignerName::Ssh(sshsig::fingerprint(&signature.point)),
        }
    }

    /// The public key, if the signature has it: SSH's. It says nothing about whose it is.
    #[must_use]
    pub fn public_key(&self) -> Option<PublicKey> {
        match &self.form {
            Form::Minisign(_) => None,
            Form::Ssh(signature) => Some(PublicKey::Ssh(signature.point)),
        }
    }

    /// The comment that is signed along with the text; only minisign has one.
    #[must_use]
    pub fn trusted_comment(&self) -> Option<&str> {
        match &self.form {
            Form::Minisign(signature) => Some(&signature.trusted_comment),
            Form::Ssh(_) => None,
        }
    }

    /// Whether the secret half of `key` signed `message`.
    #[must_use]
    pub fn is_valid(&self, message: &[u8], key: &PublicKey) -> bool {
        match (&self.form, key) {
            (Form::Minisign(signature), PublicKey::Minisign { id, point }) => {
                let key = ed25519_dalek::VerifyingKey::from_bytes(point);
                *id == signature.key_id && key.is_ok_and(|key| signature.is_valid(message, &key))
            }
            (Form::Ssh(signature), PublicKey::Ssh(point)) => {
                *point == signature.point && signature.is_valid(message)
            }
            _ => false,
        }
    }
}
