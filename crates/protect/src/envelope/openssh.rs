//! Ed25519 keys of OpenSSH (RFC 8709, and `PROTOCOL.key` of OpenSSH) as X25519 keys: the two curves
//! are the same in other coordinates (RFC 7748, section 4.1).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use curve25519_dalek::edwards::CompressedEdwardsY;
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

use super::derive::Secret;
use super::key_text_error::KeyTextError;
use crate::openssh::private_key::{self, PrivateKeyError};
use crate::openssh::{ED25519, point_of};

pub(super) use private_key::BEGIN as PRIVATE_BEGIN;

/// The X25519 form of a public key: `ssh-ed25519 BASE64 [comment]`.
pub(super) fn parse_public(text: &str) -> Result<[u8; 32], KeyTextError> {
    let mut words = text.split_ascii_whitespace();
    if words.next() != Some(ED25519) {
        return Err(KeyTextError::SshKind);
    }
    let coded = words.next().ok_or(KeyTextError::Damaged)?;
    let bytes = STANDARD.decode(coded).map_err(|_| KeyTextError::Damaged)?;
    let point = point_of(&bytes).ok_or(KeyTextError::Damaged)?;
    let point = CompressedEdwardsY(point).decompress();
    let point = point.ok_or(KeyTextError::Damaged)?;
    Ok(point.to_montgomery().to_bytes())
}

/// The X25519 form of a private key that has no passphrase.
pub(super) fn parse_private(text: &str) -> Result<Secret, KeyTextError> {
    let parsed = private_key::parse(text, None);
    let (seed, _) = parsed.map_err(|error| match error {
        PrivateKeyError::Kind(_) => KeyTextError::SshKind,
        PrivateKeyError::Passphrase => KeyTextError::SshPassphrase,
        _ => KeyTextError::Damaged,
    })?;
    // As Ed25519 makes its scalar (RFC 8032, section 5.1.5); X25519 clears and sets its bits.
    let mut hash = Zeroizing::new([0; 64]);
    hash.copy_from_slice(&Sha512::digest(*seed));
    let mut secret = Zeroizing::new([0; 32]);
    secret.copy_from_slice(&hash[..32]);
    Ok(secret)
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
