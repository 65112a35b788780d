use proptest::prelude::*;

use super::block::MD5_BYTES;
use super::hash::{Md5, md5, md5_many};
use super::reference::md5_reference;
use crate::property::{md5_in_lanes, md5_in_parts, patterned_bytes};

fn hexadecimal(digest: [u8; MD5_BYTES]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// RFC 1321, appendix A.5.
const VECTORS: [(&str, &str); 7] = [
    ("", "d41d8cd98f00b204e9800998ecf8427e"),
    ("a", "0cc175b9c0f1b6a831c399e269772661"),
    ("abc", "900150983cd24fb0d6963f7d28e17f72"),
    ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
    (
        "abcdefghijklmnopqrstuvwxyz",
        "c3fcd3d76192e4007dfb496cca67e13b",
    ),
    (
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "d174ab98d277d9f5a5611c2c9f419d9f",
    ),
    (
        "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
        "57edf4a22be3c955ac49da2e2107b67a",
    ),
];

#[test]
fn matches_the_vectors_of_the_rfc() {
    for (message, digest) in VECTORS {
        assert_eq!(hexadecimal(md5_reference(message.as_bytes())), digest);
        assert_eq!(hexadecimal(md5(message.as_bytes())), digest);
    }
    let messages = VECTORS.map(|(message, _)| message.as_bytes());
    let digests = md5_many(&messages).into_iter().map(hexadecimal);
    assert!(digests.eq(VECTORS.map(|(_, digest)| digest)));
}

#[test]
fn every_length_around_a_block_matches_the_reference() {
    let bytes = patterned_bytes(300, 1);
    for length in 0..bytes.len() {
        assert_eq!(
            md5(&bytes[..length]),
            md5_reference(&bytes[..length]),
            "{length} bytes"
        );
    }
}

#[test]
fn lengths_beyond_32_bits_are_counted() {
    // The length is set directly, which avoids an input of 512 MiB.
    let with_length = |length_bytes| {
        let mut hash = Md5::new();
        hash.length_bytes = length_bytes;
        hash.finish()
    };
    assert_ne!(with_length(1 << 29), with_length(0));
    assert_eq!(
        with_length(1 << 61),
        with_length(0),
        "lengths are modulo 2^64 bits"
    );
}

#[test]
fn lanes_match_the_reference_for_many_lengths_and_counts() {
    let bytes = patterned_bytes(9_000, 2);
    for count in [0, 1, 2, 3, 8, 9, 15, 16, 17, 31, 32, 33, 70, 200] {
        for spread in [0, 1, 63, 64, 700] {
            let inputs: Vec<&[u8]> = (0..count)
                .map(|index| &bytes[index..index + 100 + (index * 7919 % 11) * spread])
                .collect();
            md5_in_lanes(&inputs, spread);
        }
    }
}

proptest! {
    #[test]
    fn parts_match_the_reference(
        bytes in proptest::collection::vec(any::<u8>(), 0..700),
        cuts in proptest::collection::vec(any::<u16>(), 0..6),
    ) {
        md5_in_parts(&bytes, &cuts);
    }

    #[test]
    fn lanes_match_the_reference(
        inputs in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..400), 0..80),
        cut in 0_usize..400,
    ) {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        md5_in_lanes(&inputs, cut);
    }
}
