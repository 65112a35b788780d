//! Private key files, with or without a passphrase.

use aes::Aes256;
use aes::cipher::{KeyIvInit, StreamCipher};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ctr::Ctr128BE;
use zeroize::Zeroizing;

use super::wire::Fields;
use super::{ED25519, point_of};

pub(crate) const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";
const MAGIC: &[u8] = b"openssh-key-v1\0";

/// Each takes some milliseconds, and OpenSSH makes keys with 16 or 24 of them.
const ROUNDS_MAX: u32 = 1 << 13;

/// Why a file gives no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PrivateKeyError {
    Damaged,
    /// A key of this kind, not Ed25519.
    Kind(String),
    /// A cipher that is not OpenSSH's default.
    Cipher(String),
    /// It has a passphrase, and none was given.
    Passphrase,
    /// The passphrase is wrong.
    WrongPassphrase,
    /// Trying a passphrase would take too long.
    Cost,
}

use PrivateKeyError as E;

/// The seed of an Ed25519 key, and the comment of its file.
pub(crate) type SeedAndComment = (Zeroizing<[u8; 32]>, String);

/// Reads a private key.
pub(crate) fn parse(text: &str, passphrase: Option<&[u8]>) -> Result<SeedAndComment, E> {
    let coded = text.trim().strip_prefix(BEGIN);
    let coded = coded.and_then(|text| text.strip_suffix(END));
    let coded: String = coded.ok_or(E::Damaged)?.split_ascii_whitespace().collect();
    let coded = Zeroizing::new(coded);
    let bytes = STANDARD.decode(&*coded).map_err(|_| E::Damaged)?;
    let bytes = Zeroizing::new(bytes);
    let file = KeyFile::parse(&bytes)?;
    let mut private = Zeroizing::new(file.private.to_vec());
    if file.cipher != b"none" {
        file.decrypt(passphrase.ok_or(E::Passphrase)?, &mut private)?;
    }
    let mut fields = Fields(&private);
    // Two equal numbers, which show that a passphrase was right.
    let (first, second) = (fields.number(), fields.number());
    if first.is_none() || first != second {
        let is_encrypted = file.cipher != b"none";
        return Err(if is_encrypted { E::WrongPassphrase } else { E::Damaged });
    }
    parse_private(fields, &file.public).ok_or(E::Damaged)
}

/// The outer fields of a file with an Ed25519 key.
struct KeyFile<'a> {
    cipher: &'a [u8],
    kdf: &'a [u8],
    kdf_options: &'a [u8],
    public: [u8; 32],
    private: &'a [u8],
}

impl<'a> KeyFile<'a> {
    fn parse(bytes: &'a [u8]) -> Result<KeyFile<'a>, E> {
        let mut fields = Fields(bytes.strip_prefix(MAGIC).ok_or(E::Damaged)?);
        let mut parse = || {
            let (cipher, kdf, kdf_options) = (fields.string()?, fields.string()?, fields.string()?);
            let is_single = fields.number()? == 1;
            let (public, private) = (fields.string()?, fields.string()?);
            is_single.then_some((cipher, kdf, kdf_options, public, private))
        };
        let (cipher, kdf, kdf_options, public, private) = parse().ok_or(E::Damaged)?;
        let kind = Fields(public).string().ok_or(E::Damaged)?;
        if kind != ED25519.as_bytes() {
            return Err(E::Kind(String::from_utf8_lossy(kind).into_owned()));
        }
        Ok(KeyFile {
            cipher,
            kdf,
            kdf_options,
            public: point_of(public).ok_or(E::Damaged)?,
            private,
        })
    }

    fn decrypt(&self, passphrase: &[u8], private: &mut [u8]) -> Result<(), E> {
        if self.cipher != b"aes256-ctr" || self.kdf != b"bcrypt" {
            return Err(E::Cipher(String::from_utf8_lossy(self.cipher).into_owned()));
        }
        let mut options = Fields(self.kdf_options);
        let salt = options.string().ok_or(E::Damaged)?;
        let rounds = options.number().ok_or(E::Damaged)?;
        if rounds > ROUNDS_MAX {
            return Err(E::Cost);
        }
        if passphrase.is_empty() {
            return Err(E::WrongPassphrase);
        }
        let mut key = Zeroizing::new([0; 48]);
        bcrypt_pbkdf::bcrypt_pbkdf(passphrase, salt, rounds, &mut *key).map_err(|_| E::Damaged)?;
        let (key, iv) = key.split_at(32);
        let cipher = Ctr128BE::<Aes256>::new_from_slices(key, iv);
        cipher.map_err(|_| E::Damaged)?.apply_keystream(private);
        Ok(())
    }
}

/// The seed and the comment behind the two numbers, if they belong to the public key.
fn parse_private(mut fields: Fields<'_>, public: &[u8; 32]) -> Option<SeedAndComment> {
    let is_same = fields.string()? == ED25519.as_bytes() && fields.string()? == public;
    let pair = fields.string()?;
    let comment = String::from_utf8_lossy(fields.string()?).into_owned();
    let mut seed = Zeroizing::new([0; 32]);
    seed.copy_from_slice(pair.get(..32)?);
    (is_same && pair.len() == 64 && pair.ends_with(public)).then_some((seed, comment))
}
