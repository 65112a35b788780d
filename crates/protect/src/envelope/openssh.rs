//! Ed25519 keys of OpenSSH (RFC 8709, and `PROTOCOL.key` of OpenSSH) as X25519 keys: the two curves
//! are the same in other coordinates (RFC 7748, section 4.1).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use curve25519_dalek::edwards::CompressedEdwardsY;
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

use super::derive::Secret;
use super::key_text_error::KeyTextError;

pub(super) const PRIVATE_BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const PRIVATE_END: &str = "-----END OPENSSH PRIVATE KEY-----";
const PRIVATE_MAGIC: &[u8] = b"openssh-key-v1\0";
const ED25519: &[u8] = b"ssh-ed25519";

/// The X25519 form of a public key: `ssh-ed25519 BASE64 [comment]`.
pub(super) fn parse_public(text: &str) -> Result<[u8; 32], KeyTextError> {
    let mut words = text.split_ascii_whitespace();
    if words.next().map(str::as_bytes) != Some(ED25519) {
        return Err(KeyTextError::SshKind);
    }
    let coded = words.next().ok_or(KeyTextError::Damaged)?;
    let bytes = STANDARD.decode(coded).map_err(|_| KeyTextError::Damaged)?;
    let point = public_of(&bytes).ok_or(KeyTextError::Damaged)?;
    let point = CompressedEdwardsY(point).decompress();
    let point = point.ok_or(KeyTextError::Damaged)?;
    Ok(point.to_montgomery().to_bytes())
}

/// The X25519 form of a private key that has no passphrase.
pub(super) fn parse_private(text: &str) -> Result<Secret, KeyTextError> {
    let coded = text.trim().strip_prefix(PRIVATE_BEGIN);
    let coded = coded.and_then(|text| text.strip_suffix(PRIVATE_END));
    let coded: Zeroizing<String> = Zeroizing::new(
        coded
            .ok_or(KeyTextError::Damaged)?
            .split_ascii_whitespace()
            .collect(),
    );
    let bytes = STANDARD
        .decode(&*coded)
        .map_err(|_| KeyTextError::Damaged)?;
    let bytes = Zeroizing::new(bytes);
    let mut fields = Fields(
        bytes
            .strip_prefix(PRIVATE_MAGIC)
            .ok_or(KeyTextError::Damaged)?,
    );
    let (cipher, _kdf, _options) = (fields.string(), fields.string(), fields.string());
    if cipher.ok_or(KeyTextError::Damaged)? != b"none" {
        return Err(KeyTextError::SshPassphrase);
    }
    let mut parse = || {
        // The number of keys, and the public key.
        fields.take(4)?;
        fields.string()?;
        let mut private = Fields(fields.string()?);
        // Two equal numbers, which show that a passphrase was right.
        private.take(8)?;
        Some((private.string()?, private))
    };
    let (kind, mut private) = parse().ok_or(KeyTextError::Damaged)?;
    if kind != ED25519 {
        return Err(KeyTextError::SshKind);
    }
    let mut seed = || {
        private.string()?;
        private.string()?.get(..32)
    };
    let seed = seed().ok_or(KeyTextError::Damaged)?;
    // As Ed25519 makes its scalar (RFC 8032, section 5.1.5); X25519 clears and sets its bits.
    let mut hash = Zeroizing::new([0; 64]);
    hash.copy_from_slice(&Sha512::digest(seed));
    let mut secret = Zeroizing::new([0; 32]);
    secret.copy_from_slice(&hash[..32]);
    Ok(secret)
}

/// The point in the wire form of a public key.
fn public_of(bytes: &[u8]) -> Option<[u8; 32]> {
    let mut fields = Fields(bytes);
    let is_ed25519 = fields.string()? == ED25519;
    let point = fields.string()?.try_into().ok()?;
    (is_ed25519 && fields.0.is_empty()).then_some(point)
}

/// SSH's fields: a length of four bytes, big endian, and as many bytes (RFC 4251, section 5).
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_be_bytes(self.take(4)?.try_into().ok()?);
        self.take(length as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Identity;
    use super::*;

    /// Made by `ssh-keygen -t ed25519 -N ""` for this test.
    const PRIVATE: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----\n\
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n\
QyNTUxOQAAACAMaK1A0F363aUvvy1jcTakO9vQuzq4BYyhH61VcQS5DwAAAIjyHAm+8hwJ\n\
vgAAAAtzc2gtZWQyNTUxOQAAACAMaK1A0F363aUvvy1jcTakO9vQuzq4BYyhH61VcQS5Dw\n\
AAAECfKYNLQQZsfONdpODc6fC4XAZqpHFIvr+ly49oA9UDXgxorUDQXfrdpS+/LWNxNqQ7\n\
29C7OrgFjKEfrVVxBLkPAAAABHRlc3QB\n\
-----END OPENSSH PRIVATE KEY-----\n";
    const PUBLIC: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAxorUDQXfrdpS+/LWNxNqQ729C7OrgFjKEfrVVxBLkP test";
    /// The same kind, with a passphrase.
    const PROTECTED: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----\n\
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABBkFudfFH\n\
xYjy6JXT5PB6iqAAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIMoT5sUs5i61AjML\n\
AT3yWY3fdlx1aGVY+WDjmYwwoFnyAAAAkCwXCaMCrH+PWx9wbeq1kB8hHxLJFhol1OWFzQ\n\
eGXYJUlM1YEb+djJ/W0YULl/R8HAIb6RFs9+c2QP6ClKqYFxFTJ5E0h7g4etYs7GMhMClT\n\
jNsYoJuRAXtg7f8zlkyyqe2bUP/pGbTE06BZTo6StA1eYZLtgjnze2LdMdnnv0dVRRqN8U\n\
ncH4c4oUxauLL1DQ==\n\
-----END OPENSSH PRIVATE KEY-----\n";

    #[test]
    fn both_halves_of_a_key_pair_belong_together() {
        let public = parse_public(PUBLIC).expect("a public key");
        let secret = parse_private(PRIVATE).expect("a private key");
        let recipient = Identity::X25519(secret).recipient();
        assert_eq!(recipient, super::super::Recipient::X25519(public));
    }

    #[test]
    fn other_private_keys_are_refused_in_words() {
        assert_eq!(parse_private(PROTECTED), Err(KeyTextError::SshPassphrase));
        for length in 0..PRIVATE.trim_end().len() {
            let cut = parse_private(&PRIVATE[..length]);
            assert_eq!(cut, Err(KeyTextError::Damaged), "{length}");
        }
    }
}
