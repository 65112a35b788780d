//! Signatures in minisign's form: two comments, of which the second is signed as well.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blake2::{Blake2b512, Digest};
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};

use super::error::SignatureTextError;

pub(super) const UNTRUSTED: &str = "untrusted comment:";
const TRUSTED: &str = "trusted comment: ";

/// The text itself is signed; minisign before 0.10.
const PLAIN: [u8; 2] = *b"Ed";
/// BLAKE2b of the text is signed.
const HASHED: [u8; 2] = *b"ED";

/// A signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MinisignSignature {
    pub key_id: [u8; 8],
    is_hashed: bool,
    signature: [u8; 64],
    pub trusted_comment: String,
    /// Of the signature and the trusted comment.
    global: [u8; 64],
}

impl MinisignSignature {
    pub(super) fn sign(
        message: &[u8],
        trusted_comment: &str,
        key_id: [u8; 8],
        key: &SigningKey,
    ) -> MinisignSignature {
        let signature = key.sign(&Blake2b512::digest(message)).to_bytes();
        let signed = [&signature[..], trusted_comment.as_bytes()].concat();
        MinisignSignature {
            key_id,
            is_hashed: true,
            signature,
            trusted_comment: trusted_comment.to_owned(),
            global: key.sign(&signed).to_bytes(),
        }
    }

    /// Whether this key made it.
    pub(super) fn is_valid(&self, message: &[u8], key: &VerifyingKey) -> bool {
        let is_right = |message: &[u8], signature: &[u8; 64]| {
            key.verify_strict(message, &ed25519_dalek::Signature::from_bytes(signature))
                .is_ok()
        };
        let of_message = if self.is_hashed {
            is_right(&Blake2b512::digest(message), &self.signature)
        } else {
            is_right(message, &self.signature)
        };
        let signed = [&self.signature[..], self.trusted_comment.as_bytes()].concat();
        of_message && is_right(&signed, &self.global)
    }

    pub(super) fn to_text(&self) -> String {
        let kind = if self.is_hashed { HASHED } else { PLAIN };
        let signature = STANDARD.encode([&kind[..], &self.key_id, &self.signature].concat());
        format!(
            "{UNTRUSTED} signature of a Refrain archive\n{signature}\n{TRUSTED}{}\n{}\n",
            self.trusted_comment,
            STANDARD.encode(self.global)
        )
    }

    pub(super) fn parse(text: &str) -> Result<MinisignSignature, SignatureTextError> {
        let damaged = SignatureTextError::Damaged;
        let mut lines = text.lines();
        let mut line = || lines.next().ok_or(SignatureTextError::Damaged);
        let (_, signature, comment, global) = (line()?, line()?, line()?, line()?);
        let decode = |text: &str| STANDARD.decode(text.trim_end()).ok();
        let signature = decode(signature).ok_or(SignatureTextError::Damaged)?;
        let global = decode(global).and_then(|bytes| bytes.try_into().ok());
        let (kind, rest) = signature.split_first_chunk().ok_or(damaged.clone())?;
        let (key_id, signature) = rest.split_first_chunk().ok_or(damaged.clone())?;
        let is_hashed = match *kind {
            HASHED => true,
            PLAIN => false,
            _ => return Err(SignatureTextError::Unsupported("its algorithm".into())),
        };
        let trusted_comment = comment.strip_prefix(TRUSTED).ok_or(damaged.clone())?;
        Ok(MinisignSignature {
            key_id: *key_id,
            is_hashed,
            signature: signature.try_into().map_err(|_| damaged.clone())?,
            trusted_comment: trusted_comment.to_owned(),
            global: global.ok_or(damaged)?,
        })
    }
}
