//! Minisign's keys: public ones, and files with secret ones.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blake2::{Blake2b256, Digest};
use ed25519_dalek::SigningKey;
use scrypt::{Params, scrypt};
use zeroize::Zeroizing;

use super::error::SignatureKeyError as E;

const ALGORITHM: [u8; 2] = *b"Ed";
const CHECKSUM: [u8; 2] = *b"B2";
const SCRYPT: [u8; 2] = *b"Sc";
const NO_PASSPHRASE: [u8; 2] = [0; 2];

/// The key id, the secret and the public key, and a checksum.
const KEY_BYTES: usize = 8 + 64 + 32;

/// What minisign itself asks for is the most that is done: 1 GiB of memory, once.
const SCRYPT_BYTES_MAX: u64 = 1 << 30;
const SCRYPT_WORK_MAX: u64 = 1 << 31;

/// The id and the point of a public key, from its line of text.
pub(super) fn parse_public(line: &str) -> Option<([u8; 8], [u8; 32])> {
    let bytes = STANDARD.decode(line).ok()?;
    let rest = bytes.strip_prefix(&ALGORITHM)?;
    let (id, point) = rest.split_first_chunk()?;
    Some((*id, point.try_into().ok()?))
}

/// Whether a line begins as public keys do: `Ed`, coded.
pub(super) fn begins_public(line: &str) -> bool {
    line.starts_with("RW")
}

/// The key id as minisign prints it.
pub(super) fn id_text(id: &[u8; 8]) -> String {
    format!("{:016X}", u64::from_le_bytes(*id))
}

/// The key id and the seed of a secret key; `line` is the second of its file.
pub(super) fn parse_secret(
    line: &str,
    passphrase: Option<&[u8]>,
) -> Result<([u8; 8], Zeroizing<[u8; 32]>), E> {
    let bytes = Zeroizing::new(STANDARD.decode(line).map_err(|_| E::Damaged)?);
    let parsed = SecretKey::parse(&bytes).ok_or(E::Damaged)?;
    let mut key = Zeroizing::new(*parsed.key);
    let is_encrypted = parsed.kdf != NO_PASSPHRASE;
    if is_encrypted {
        let passphrase = passphrase.ok_or(E::Passphrase)?;
        let stream = parsed.stream(passphrase)?;
        for (byte, mask) in key.iter_mut().zip(stream.iter()) {
            *byte ^= mask;
        }
    }
    let (content, checksum) = key.split_at(KEY_BYTES - 32);
    let expected = Blake2b256::new()
        .chain_update(ALGORITHM)
        .chain_update(content);
    // Only keys with a passphrase have a checksum.
    if is_encrypted && expected.finalize().as_slice() != checksum {
        return Err(E::WrongPassphrase);
    }
    let mut seed = Zeroizing::new([0; 32]);
    let (id, pair) = content.split_first_chunk().ok_or(E::Damaged)?;
    let (secret, public) = pair.split_at(32);
    seed.copy_from_slice(secret);
    let is_pair = SigningKey::from_bytes(&seed).verifying_key().as_bytes() == public;
    is_pair.then_some((*id, seed)).ok_or(E::Damaged)
}

struct SecretKey<'a> {
    kdf: [u8; 2],
    salt: &'a [u8],
    operations: u64,
    memory_bytes: u64,
    key: &'a [u8; KEY_BYTES],
}

impl<'a> SecretKey<'a> {
    fn parse(bytes: &'a [u8]) -> Option<SecretKey<'a>> {
        let rest = bytes.strip_prefix(&ALGORITHM)?;
        let (kdf, rest) = rest.split_first_chunk()?;
        let rest = rest.strip_prefix(&CHECKSUM)?;
        let (salt, rest) = rest.split_at_checked(32)?;
        let (operations, rest) = rest.split_first_chunk()?;
        let (memory, key) = rest.split_first_chunk()?;
        Some(SecretKey {
            kdf: *kdf,
            salt,
            operations: u64::from_le_bytes(*operations),
            memory_bytes: u64::from_le_bytes(*memory),
            key: key.try_into().ok()?,
        })
    }

    /// The bytes that the key is combined with.
    fn stream(&self, passphrase: &[u8]) -> Result<Zeroizing<[u8; KEY_BYTES]>, E> {
        if self.kdf != SCRYPT {
            return Err(E::Cipher(String::from_utf8_lossy(&self.kdf).into_owned()));
        }
        let (log_n, p) = scrypt_parameters(self.operations, self.memory_bytes).ok_or(E::Cost)?;
        let parameters = Params::new(log_n, SCRYPT_R as u32, p).map_err(|_| E::Damaged)?;
        let mut stream = Zeroizing::new([0; KEY_BYTES]);
        let derived = scrypt(passphrase, self.salt, &parameters, &mut *stream);
        derived.map_err(|_| E::Damaged)?;
        Ok(stream)
    }
}

const SCRYPT_R: u64 = 8;

/// scrypt's log2(N) and p for libsodium's limits of operations and memory
/// (`crypto_pwhash_scryptsalsa208sha256`), with r = 8. `None` if that is more than is done.
fn scrypt_parameters(operations: u64, memory_bytes: u64) -> Option<(u8, u32)> {
    let operations = operations.max(32_768);
    let most = if operations < memory_bytes / 32 {
        operations / (SCRYPT_R * 4)
    } else {
        memory_bytes / (SCRYPT_R * 128)
    };
    let log_n = (1..63).find(|&log| 1_u64 << log > most / 2).unwrap_or(63);
    let p = if operations < memory_bytes / 32 {
        1
    } else {
        ((operations / 4) >> log_n).min(0x3fff_ffff) / SCRYPT_R
    };
    let bytes = (128 * SCRYPT_R).checked_shl(log_n)?;
    let is_small = log_n < 40 && bytes <= SCRYPT_BYTES_MAX && bytes * p.max(1) <= SCRYPT_WORK_MAX;
    is_small.then_some((log_n as u8, p.max(1) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As libsodium chooses them; the first are those of minisign's keys.
    #[test]
    fn limits_of_libsodium_are_parameters_of_scrypt() {
        assert_eq!(scrypt_parameters(1 << 25, 1 << 30), Some((20, 1)));
        assert_eq!(scrypt_parameters(524_288, 16 << 20), Some((14, 1)));
        assert_eq!(scrypt_parameters(0, 0), Some((1, 512)));
        assert_eq!(scrypt_parameters(1 << 26, 1 << 32), None);
        assert_eq!(scrypt_parameters(1 << 34, 1 << 35), None);
        assert_eq!(scrypt_parameters(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn a_secret_key_with_a_passphrase_opens_with_that() {
        let seed = [7; 32];
        let public = SigningKey::from_bytes(&seed).verifying_key().to_bytes();
        let content = [&b"key id 8"[..], &seed, &public].concat();
        let checksum = Blake2b256::new()
            .chain_update(ALGORITHM)
            .chain_update(&content);
        let mut key = [&content[..], &checksum.finalize()].concat();
        let salt = [9; 32];
        let limits = [32_768_u64.to_le_bytes(), (1_u64 << 20).to_le_bytes()].concat();
        let header = [&b"EdScB2"[..], &salt, &limits].concat();
        let coded = |key: &[u8]| STANDARD.encode([&header[..], key].concat());
        let file = Zeroizing::new([&header[..], &key].concat());
        let parsed = SecretKey::parse(&file).expect("a key");
        let stream = parsed.stream(b"secret").expect("small limits");
        key.iter_mut()
            .zip(stream.iter())
            .for_each(|(byte, mask)| *byte ^= mask);
        let line = coded(&key);
        let found = parse_secret(&line, Some(b"secret")).expect("the key");
        assert_eq!((&found.0, &*found.1), (b"key id 8", &seed));
        assert_eq!(parse_secret(&line, Some(b"guess")), Err(E::WrongPassphrase));
        assert_eq!(parse_secret(&line, None), Err(E::Passphrase));
        assert_eq!(parse_secret(&line[..100], None), Err(E::Damaged));
    }
}
