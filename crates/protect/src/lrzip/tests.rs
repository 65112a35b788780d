use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::{hkdf, pbkdf2};
use sha2::{Digest, Sha512};

use super::keys::{ArchiveKeys, ItemKind};
use super::pieces::{LAST_PIECE_BYTES_MIN, PIECE_UNIT_BYTES};
use super::random::{SEED_BYTES, SeededRandom};

/// The reference implementation of encryption, as `docs/lrzip.md` describes it.
fn encrypt_cbc_reference(
    hash: &[u8; 64],
    salt: &[u8],
    salted_password: &[u8],
    raw: &[u8],
) -> Vec<u8> {
    let key = Sha512::digest([&hash[..], salt, salted_password].concat());
    let initial = Sha512::digest([&key[..], salt, salted_password].concat());
    let cipher = Aes128::new_from_slice(&key[..16]).unwrap();
    let mut previous: [u8; 16] = initial[..16].try_into().unwrap();
    let mut out = Vec::new();
    let mut padded = raw.to_vec();
    padded.resize(raw.len().next_multiple_of(16), 0);
    for block in padded.chunks(16) {
        previous.iter_mut().zip(block).for_each(|(a, b)| *a ^= b);
        cipher.encrypt_block((&mut previous).into());
        out.extend(previous);
    }
    let tail = raw.len() % 16;
    if tail > 0 {
        // The last two blocks are swapped, and the last one is truncated.
        let at = out.len() - 32;
        let stolen: Vec<u8> = out.splice(at..at + 16, []).collect();
        out.extend(&stolen[..tail]);
    }
    [salt, &out].concat()
}

#[test]
fn decrypts_ciphertext_stealing() {
    let keys = ArchiveKeys::cbc(*b"12345678", 100, b"secret");
    let ArchiveKeys::Cbc {
        hash,
        salted_password,
    } = &keys
    else {
        panic!("another cipher");
    };
    for length in 16..80_u8 {
        let raw: Vec<u8> = (0..length).collect();
        let encrypted_item = encrypt_cbc_reference(hash, b"saltsalt", salted_password, &raw);
        assert_eq!(encrypted_item.len(), raw.len() + 8);
        assert_eq!(keys.decrypt(ItemKind::Data, encrypted_item), Some(raw));
    }
    assert_eq!(
        keys.decrypt(ItemKind::Data, b"saltsalt short".to_vec()),
        None
    );
}

#[test]
fn items_round_trip_and_match_the_reference() {
    let mut random = SeededRandom::new([7; SEED_BYTES]);
    let cbc = ArchiveKeys::cbc(*b"12345678", 100, b"secret");
    let gcm = ArchiveKeys::gcm([7; 16], 10, [0, 7], b"secret").unwrap();
    for length in 0..80_u8 {
        let raw: Vec<u8> = (0..length).collect();
        for (keys, item) in [
            (&cbc, ItemKind::BlockHeader),
            (&cbc, ItemKind::Data),
            (&gcm, ItemKind::Data),
        ] {
            let mut encrypted_item = Vec::new();
            keys.encrypt(item, &raw, &mut random, &mut encrypted_item)
                .unwrap();
            let decrypted = keys.decrypt(item, encrypted_item.clone()).unwrap();
            assert_eq!(decrypted[..raw.len()], raw, "{length}");
            if let (
                ArchiveKeys::Cbc {
                    hash,
                    salted_password,
                },
                16..,
            ) = (keys, length)
            {
                let expected =
                    encrypt_cbc_reference(hash, &encrypted_item[..8], salted_password, &raw);
                assert_eq!(encrypted_item, expected, "{length}");
            }
        }
    }
    for keys in [cbc, gcm] {
        let (mut encrypted_item, mut again) = (Vec::new(), Vec::new());
        keys.encrypt(ItemKind::Digest, &[9; 16], &mut random, &mut encrypted_item)
            .unwrap();
        assert_eq!(encrypted_item.len(), keys.digest_bytes());
        assert_eq!(
            keys.decrypt(ItemKind::Digest, encrypted_item.clone())
                .unwrap(),
            [9; 16]
        );
        keys.encrypt(ItemKind::Data, &[9; 16], &mut random, &mut encrypted_item)
            .unwrap();
        keys.encrypt(ItemKind::Data, &[9; 16], &mut random, &mut again)
            .unwrap();
        assert!(
            !encrypted_item.ends_with(&again),
            "two items have equal ciphertexts"
        );
    }
}

/// Another library's AES-256-GCM, with keys that it derives itself, as `docs/lrzip.md` describes.
fn encrypt_gcm_reference(item: ItemKind, label: &[u8], raw: &[u8]) -> Vec<u8> {
    let mut master = [0; 64];
    let iterations = 10.try_into().unwrap();
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA512,
        iterations,
        &[7; 16],
        b"secret",
        &mut master,
    );
    let prk = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA512, &master);
    let key: UnboundKey = prk.expand(&[label], &AES_256_GCM).unwrap().into();
    let associated = [b'L', b'R', b'Z', b'I', 0, 7, 3, item as u8];
    let nonce = Nonce::assume_unique_for_key([1; 12]);
    let mut encrypted = raw.to_vec();
    LessSafeKey::new(key)
        .seal_in_place_append_tag(nonce, Aad::from(associated), &mut encrypted)
        .unwrap();
    [&[1; 12][..], &encrypted].concat()
}

#[test]
fn gcm_is_that_of_another_library_and_rejects_changed_items() {
    let keys = ArchiveKeys::gcm([7; 16], 10, [0, 7], b"secret").unwrap();
    for length in (0..100).chain([4096, 5001]) {
        let raw: Vec<u8> = (0..length).map(|at| at as u8).collect();
        for (item, label) in [
            (ItemKind::BlockHeader, &b"lrzip-v3-hdr"[..]),
            (ItemKind::Data, b"lrzip-v3-data"),
        ] {
            let stored = encrypt_gcm_reference(item, label, &raw);
            assert_eq!(keys.decrypt(item, stored), Some(raw.clone()));
        }
    }
    let mut stored = encrypt_gcm_reference(ItemKind::Data, b"lrzip-v3-data", b"content");
    assert_eq!(keys.decrypt(ItemKind::Digest, stored.clone()), None);
    assert_eq!(keys.decrypt(ItemKind::BlockHeader, stored.clone()), None);
    stored[14] ^= 1;
    assert_eq!(keys.decrypt(ItemKind::Data, stored.clone()), None);
    assert_eq!(keys.decrypt(ItemKind::Data, stored[..5].to_vec()), None);
}

#[test]
fn blocks_are_decrypted_in_pieces() {
    let mut random = SeededRandom::new([8; SEED_BYTES]);
    let cbc = ArchiveKeys::cbc(*b"12345678", 100, b"secret");
    let gcm = ArchiveKeys::gcm([7; 16], 10, [0, 7], b"secret").unwrap();
    for keys in [&cbc, &gcm] {
        let parts = keys.block_parts();
        for length in (16..200_usize).chain([4096, 4097, 5000]) {
            let raw: Vec<u8> = (0..length).map(|at| (at * at / 3) as u8).collect();
            let mut item = Vec::new();
            keys.encrypt(ItemKind::Data, &raw, &mut random, &mut item)
                .unwrap();
            let (start, rest) = item.split_at(parts.start_bytes);
            let (encrypted, tag) = rest.split_at(rest.len() - parts.tag_bytes);
            for units in [1, 2, 3, 1000] {
                let mut decryption = keys.decrypt_block_in_pieces(start).unwrap();
                let mut authentication = keys.authenticate_block_in_pieces(start);
                assert_eq!(authentication.is_some(), parts.tag_bytes > 0);
                let mut decrypted = encrypted.to_vec();
                let mut at = 0;
                while at < decrypted.len() {
                    let left = decrypted.len() - at;
                    let mut count = left.min(units * PIECE_UNIT_BYTES);
                    if left - count < LAST_PIECE_BYTES_MIN {
                        count = left;
                    }
                    let piece = &mut decrypted[at..at + count];
                    if let Some(authentication) = &mut authentication {
                        authentication.update(piece);
                    }
                    decryption.decrypt(piece).unwrap();
                    at += count;
                }
                assert!(decrypted == raw, "{length} by {units}");
                if let Some(authentication) = authentication {
                    assert!(authentication.has_tag(tag), "{length} by {units}");
                }
            }
            for at in [0, length / 2, length - 1] {
                let mut changed = encrypted.to_vec();
                changed[at] ^= 4;
                if let Some(mut authentication) = keys.authenticate_block_in_pieces(start) {
                    authentication.update(&changed);
                    assert!(!authentication.has_tag(tag));
                }
            }
        }
        assert!(keys.decrypt_block_in_pieces(b"short").is_none());
        assert!(keys.authenticate_block_in_pieces(b"short").is_none());
    }
}

#[test]
fn a_tag_of_another_length_is_wrong() {
    let gcm = ArchiveKeys::gcm([7; 16], 10, [0, 7], b"secret").unwrap();
    for tag in [&[][..], &[0; 15], &[0; 17]] {
        let authentication = gcm.authenticate_block_in_pieces(&[1; 12]).unwrap();
        assert!(!authentication.has_tag(tag));
    }
}
