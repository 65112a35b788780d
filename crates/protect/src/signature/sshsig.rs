//! Signatures in OpenSSH's form (`PROTOCOL.sshsig`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256, Sha512};

use super::error::SignatureTextError as E;
use crate::openssh::wire::{Fields, put_string};
use crate::openssh::{ED25519, blob_of, point_of};

pub(super) const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";

/// ssh-keygen's lines.
const LINE_BYTES: usize = 70;

const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;

/// What the signatures are for, so that none made for another purpose counts.
pub(super) const NAMESPACE: &str = "refrain";

/// A signature. It has the public key of who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SshSignature {
    pub point: [u8; 32],
    is_sha256: bool,
    signature: [u8; 64],
}

impl SshSignature {
    pub(super) fn sign(message: &[u8], key: &SigningKey) -> SshSignature {
        SshSignature {
            point: key.verifying_key().to_bytes(),
            is_sha256: false,
            signature: key.sign(&signed(message, false)).to_bytes(),
        }
    }

    /// Whether the key in it made it.
    pub(super) fn is_valid(&self, message: &[u8]) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&self.signature);
        VerifyingKey::from_bytes(&self.point).is_ok_and(|key| {
            key.verify_strict(&signed(message, self.is_sha256), &signature)
                .is_ok()
        })
    }

    pub(super) fn to_text(&self) -> String {
        let mut signature = Vec::new();
        put_string(&mut signature, ED25519.as_bytes());
        put_string(&mut signature, &self.signature);
        let mut bytes = [MAGIC, &VERSION.to_be_bytes()].concat();
        for field in [
            &blob_of(&self.point)[..],
            NAMESPACE.as_bytes(),
            b"",
            hash_name(self.is_sha256),
            &signature,
        ] {
            put_string(&mut bytes, field);
        }
        let coded = STANDARD.encode(bytes);
        let mut text = format!("{BEGIN}\n");
        for line in coded.as_bytes().chunks(LINE_BYTES) {
            text.extend(line.iter().copied().map(char::from));
            text.push('\n');
        }
        text + END + "\n"
    }

    pub(super) fn parse(text: &str) -> Result<SshSignature, E> {
        let coded = text.trim().strip_prefix(BEGIN);
        let coded = coded.and_then(|text| text.strip_suffix(END));
        let coded: String = coded.ok_or(E::Damaged)?.split_ascii_whitespace().collect();
        let bytes = STANDARD.decode(coded).map_err(|_| E::Damaged)?;
        let mut fields = Fields(bytes.strip_prefix(MAGIC).ok_or(E::Damaged)?);
        let version = fields.number().ok_or(E::Damaged)?;
        if version != VERSION {
            return Err(E::Unsupported(format!("version {version}")));
        }
        let mut next = || fields.string().ok_or(E::Damaged);
        let (key, namespace, _reserved) = (next()?, next()?, next()?);
        let (hash, signature) = (next()?, next()?);
        if !fields.0.is_empty() {
            return Err(E::Damaged);
        }
        let kind = Fields(key).string().ok_or(E::Damaged)?;
        if kind != ED25519.as_bytes() {
            let kind = String::from_utf8_lossy(kind);
            return Err(E::Unsupported(format!(
                "made by a key of the kind {kind:?}"
            )));
        }
        if namespace != NAMESPACE.as_bytes() {
            let namespace = String::from_utf8_lossy(namespace);
            let text = format!("made for {namespace:?} instead of {NAMESPACE:?}");
            return Err(E::Unsupported(text));
        }
        let is_sha256 = hash == hash_name(true);
        if !is_sha256 && hash != hash_name(false) {
            return Err(E::Unsupported("its hash".into()));
        }
        Ok(SshSignature {
            point: point_of(key).ok_or(E::Damaged)?,
            is_sha256,
            signature: signature_of(signature).ok_or(E::Damaged)?,
        })
    }
}

/// The signature in its field, after the kind of the key.
fn signature_of(field: &[u8]) -> Option<[u8; 64]> {
    let mut fields = Fields(field);
    let is_ed25519 = fields.string()? == ED25519.as_bytes();
    let signature = fields.string()?.try_into().ok()?;
    (is_ed25519 && fields.0.is_empty()).then_some(signature)
}

fn hash_name(is_sha256: bool) -> &'static [u8] {
    if is_sha256 { b"sha256" } else { b"sha512" }
}

/// What is signed instead of a message.
fn signed(message: &[u8], is_sha256: bool) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    put_string(&mut bytes, NAMESPACE.as_bytes());
    put_string(&mut bytes, b"");
    put_string(&mut bytes, hash_name(is_sha256));
    if is_sha256 {
        put_string(&mut bytes, &Sha256::digest(message));
    } else {
        put_string(&mut bytes, &Sha512::digest(message));
    }
    bytes
}

/// The name of a key as ssh-keygen prints it.
pub(super) fn fingerprint(point: &[u8; 32]) -> String {
    let coded = STANDARD.encode(Sha256::digest(blob_of(point)));
    format!("SHA256:{}", coded.trim_end_matches('='))
}
