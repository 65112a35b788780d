//! Whose signatures count: public keys, in the lines and files of minisign and OpenSSH.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::error::SignatureKeyError as E;
use super::minisign::UNTRUSTED;
use super::minisign_key::{begins_public, parse_public};
use super::public_key::PublicKey;
use super::validity::{Validity, pieces};
use crate::openssh::{ED25519, point_of};

/// Somebody whose signatures count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedSigner {
    /// The key.
    pub key: PublicKey,
    /// Whose it is: what the file says about it. May be empty.
    pub comment: String,
    validity: Validity,
}

impl TrustedSigner {
    /// Whether the key counts at a time, in seconds since 1970: files may limit that.
    #[must_use]
    pub fn counts_at(&self, unix_seconds: i64) -> bool {
        self.validity.holds_at(unix_seconds)
    }
}

impl std::str::FromStr for TrustedSigner {
    type Err = E;

    /// Reads one line: minisign's `RW…`, or `ssh-ed25519 AAAA…` with what may precede it in
    /// `authorized_keys` or a file of allowed signers.
    fn from_str(line: &str) -> Result<TrustedSigner, E> {
        parse_line(line.trim())
    }
}

/// The public keys in a file: minisign's, one with the public key of SSH, `authorized_keys`, or
/// allowed signers (`ssh-keygen(1)`). Keys of other kinds are passed over if there is a usable one.
///
/// # Errors
/// The error of the first wrong line, and its number from 1; `Unknown` if there is no key.
pub fn trusted_signers(text: &str) -> Result<Vec<TrustedSigner>, (usize, E)> {
    let mut found = vec![];
    let mut other = None;
    let mut comment = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(text) = line.strip_prefix(UNTRUSTED) {
            comment = Some(text.trim());
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match parse_line(line) {
            Ok(signer) => {
                let before = comment.take().filter(|_| signer.comment.is_empty());
                let comment = before.map_or(signer.comment, str::to_owned);
                found.push(TrustedSigner { comment, ..signer });
            }
            Err(error @ E::Kind(_)) => {
                other.get_or_insert((number, error));
            }
            Err(error) => return Err((number, error)),
        }
    }
    if found.is_empty() {
        return Err(other.unwrap_or((1, E::Unknown)));
    }
    Ok(found)
}

pub(super) fn parse_line(line: &str) -> Result<TrustedSigner, E> {
    if line.starts_with("-----BEGIN") {
        return Err(E::SecretKey);
    }
    let words = pieces(line, |c| c.is_ascii_whitespace()).ok_or(E::Damaged)?;
    if let Some(first) = words.first().filter(|word| begins_public(word)) {
        return minisign_line(first, words.get(1..).unwrap_or_default());
    }
    let at = words.iter().take(3).position(|word| is_ssh_kind(word));
    let at = at.ok_or(E::Unknown)?;
    let (before, key) = words.split_at(at);
    let (kind, coded) = (key.first(), key.get(1).ok_or(E::Damaged)?);
    let blob = STANDARD.decode(coded).map_err(|_| E::Damaged)?;
    if kind != Some(&ED25519) {
        return Err(E::Kind(kind.copied().unwrap_or_default().to_owned()));
    }
    let comment = key.get(2..).unwrap_or_default().join(" ");
    let (comment, validity) = match before {
        [] => (comment, Validity::default()),
        // Options of `authorized_keys`, or who may sign.
        [one] if comment.is_empty() => ((*one).to_owned(), Validity::of_login(one)?),
        [one] => (comment, Validity::of_login(one)?),
        [who, options, ..] => ((*who).to_owned(), Validity::of_signer(options)?),
    };
    Ok(TrustedSigner {
        key: PublicKey::Ssh(point_of(&blob).ok_or(E::Damaged)?),
        comment,
        validity,
    })
}

fn minisign_line(key: &str, comment: &[&str]) -> Result<TrustedSigner, E> {
    let Some((id, point)) = parse_public(key) else {
        // Secret keys begin alike, and are longer.
        return Err(if key.len() > 100 { E::SecretKey } else { E::Damaged });
    };
    Ok(TrustedSigner {
        key: PublicKey::Minisign { id, point },
        comment: comment.join(" "),
        validity: Validity::default(),
    })
}

fn is_ssh_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"]
        .iter()
        .any(|start| word.starts_with(start))
}
