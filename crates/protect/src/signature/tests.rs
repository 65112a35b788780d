//! Signatures of minisign 0.11 and OpenSSH, made for these tests.

use refrain_testkit::signing_keys::{
    ECDSA_PUBLIC, MINISIGN, MINISIGN_PUBLIC, SSH, SSH_PASSPHRASE, SSH_PASSPHRASE_PUBLIC, SSH_PUBLIC,
};

use super::minisign_key::id_text;
use super::{
    PublicKey, SecretKeyFile, Signature, SignatureKeyError, SignatureTextError, TrustedSigner,
    trusted_signers,
};

/// What was signed.
const MESSAGE: &str = "\
refrain root hash 1\n\
43a5a63449 test\n";
/// `minisign -S -t 'a trusted comment'`.
const MINISIGN_SIGNATURE: &str = "\
untrusted comment: signature from minisign secret key\n\
RUTykBXoF5CvEY6FdfsQXF1S+xp9xFGQoSSMPSA+R7qqQAWAQZNFlZy8VDY606tDJL2pl9PoJE9sEoe9f4ppDjLe+ZhIpbVp0wA=\n\
trusted comment: a trusted comment\n\
qHQRUeHk+6fkcz67Rgv5bESeTAkvY6W33R/e8Ms+YzLErWBIc72sG0BA9eW9R3BvEJyaeS0hOci+07b4nlPkAg==\n";
/// `minisign -S -l`.
const MINISIGN_LEGACY: &str = "\
untrusted comment: signature from minisign secret key\n\
RWTykBXoF5CvERFa1UlbsPnXa8P4vUpNpA+72Hd2u1N9AcQasHCSRxHhV4c//nq8ps+T/QbUSrcBLhd9Np0WXYZVSt74l5ApvwQ=\n\
trusted comment: timestamp:1795749391	file:m\n\
m4fHvlPqtOrHtvE84IgyayUI4Qg0nx5lHzol1RW7oxmsJ1dx3sC2Ga8ywZP5miMwhGYPeH3PK+JbzMtn5YolBA==\n";
/// `ssh-keygen -Y sign -n refrain`.
const SSH_SIGNATURE: &str = "\
-----BEGIN SSH SIGNATURE-----\n\
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgYugkGdlkFhV/+GaS6govN3pJ6C\n\
in3TutyLIpsvtutaIAAAAHcmVmcmFpbgAAAAAAAAAGc2hhNTEyAAAAUwAAAAtzc2gtZWQy\n\
NTUxOQAAAEAHNNJmSCvU0SHHKmyvhSDJ1u+byJ2gPdQZqWQUBOyrV6E7GqyNwdj0okEBbG\n\
TODwgYNsAOEssZHLzyBkvX5EYB\n\
-----END SSH SIGNATURE-----\n";
/// `ssh-keygen -Y sign -n file`.
const SSH_OTHER_PURPOSE: &str = "\
-----BEGIN SSH SIGNATURE-----\n\
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgYugkGdlkFhV/+GaS6govN3pJ6C\n\
in3TutyLIpsvtutaIAAAAEZmlsZQAAAAAAAAAGc2hhNTEyAAAAUwAAAAtzc2gtZWQyNTUx\n\
OQAAAEAbOLof28ZzdOZ9im1D2arIwM2/Fr0UBs2rCPuq6FNUkdAef2zlhiVS/2OFzZ9oiX\n\
8yvDTqk2n64xyefLzZUtYA\n\
-----END SSH SIGNATURE-----\n";
/// By a key of another kind.
const ECDSA_SIGNATURE: &str = "\
-----BEGIN SSH SIGNATURE-----\n\
U1NIU0lHAAAAAQAAAGgAAAATZWNkc2Etc2hhMi1uaXN0cDI1NgAAAAhuaXN0cDI1NgAAAE\n\
EEj83BNFnyn95X7xcX4PdyrEYY/5sw1bG0IlAOHBGC7hn8AODwhNcD+5EwWxq6pap4tGAj\n\
WdxAaJ7HIjTpcTv/7AAAAAdyZWZyYWluAAAAAAAAAAZzaGE1MTIAAABkAAAAE2VjZHNhLX\n\
NoYTItbmlzdHAyNTYAAABJAAAAIQDnU7qn6UqwejdWHdFKWKXyUY2CmmjJTv+ipecBhh23\n\
TgAAACBErXSRpYTYPislPwiL7c96xGI0/vpjeszcfmH1U+Fr7A==\n\
-----END SSH SIGNATURE-----\n";

fn key(text: &str) -> super::SigningKey {
    let file = SecretKeyFile::parse(text).expect("a file with a secret key");
    file.unlock(None).expect("a key without a passphrase")
}

fn signature(text: &str) -> Signature {
    Signature::parse(text.as_bytes()).expect("a signature")
}

fn public(text: &str) -> PublicKey {
    trusted_signers(text).expect("a public key")[0].key
}

#[test]
fn signatures_are_those_of_the_programs() {
    let made = key(SSH).sign(MESSAGE.as_bytes(), "unused");
    assert_eq!(made.text(), SSH_SIGNATURE);
    let made = key(MINISIGN).sign(MESSAGE.as_bytes(), "a trusted comment");
    let signed_lines = |text: &str| text.lines().skip(1).collect::<Vec<_>>().join(" ");
    assert_eq!(signed_lines(made.text()), signed_lines(MINISIGN_SIGNATURE));
    assert_eq!(made.trusted_comment(), Some("a trusted comment"));
    assert_eq!(key(SSH).public_key(), public(SSH_PUBLIC));
    assert_eq!(key(MINISIGN).public_key(), public(MINISIGN_PUBLIC));
}

#[test]
fn a_signature_counts_for_its_text_and_key_only() {
    for (made, right) in [
        (MINISIGN_SIGNATURE, MINISIGN_PUBLIC),
        (MINISIGN_LEGACY, MINISIGN_PUBLIC),
        (SSH_SIGNATURE, SSH_PUBLIC),
    ] {
        let made = signature(made);
        for other in [MINISIGN_PUBLIC, SSH_PUBLIC, SSH_PASSPHRASE_PUBLIC] {
            let is_valid = made.is_valid(MESSAGE.as_bytes(), &public(other));
            assert_eq!(is_valid, other == right, "{other}");
        }
        assert!(!made.is_valid(b"another text", &public(right)));
    }
}

#[test]
fn another_trusted_comment_makes_a_signature_wrong() {
    let changed = MINISIGN_SIGNATURE.replace("a trusted", "A trusted");
    assert!(!signature(&changed).is_valid(MESSAGE.as_bytes(), &public(MINISIGN_PUBLIC)));
    // The first comment is not signed.
    let changed = MINISIGN_SIGNATURE.replace("signature from", "anything by");
    assert!(signature(&changed).is_valid(MESSAGE.as_bytes(), &public(MINISIGN_PUBLIC)));
}

#[test]
fn signatures_of_other_kinds_say_what_they_are() {
    let error = |text: &str| Signature::parse(text.as_bytes()).map(|_| ()).unwrap_err();
    assert!(matches!(error(ECDSA_SIGNATURE),
        SignatureTextError::Unsupported(what) if what.contains("ecdsa-sha2-nistp256")));
    assert!(matches!(error(SSH_OTHER_PURPOSE),
        SignatureTextError::Unsupported(what) if what.contains("\"file\"")));
    assert_eq!(error("hello"), SignatureTextError::Unknown);
    assert_eq!(error(&"x".repeat(20_000)), SignatureTextError::Unknown);
}

/// Whatever one character becomes, the signature is refused, or still right: what is changed is
/// then not a part of it.
#[test]
fn changed_signatures_are_refused() {
    for (text, right) in [
        (MINISIGN_SIGNATURE, MINISIGN_PUBLIC),
        (SSH_SIGNATURE, SSH_PUBLIC),
    ] {
        let right = public(right);
        let free = text.lines().next().map_or(0, str::len);
        let free = if text.starts_with("untrusted") { free } else { 0 };
        for at in 0..text.len() {
            for byte in [b'A', b'\n', b' ', 0xff] {
                let mut changed = text.as_bytes().to_vec();
                if changed[at] == byte || changed[at].is_ascii_whitespace() {
                    continue;
                }
                changed[at] = byte;
                let parsed = Signature::parse(&changed);
                let is_valid = parsed.is_ok_and(|it| it.is_valid(MESSAGE.as_bytes(), &right));
                assert!(!is_valid || at < free, "{text} with {byte:#x} at {at}");
            }
        }
    }
}

#[test]
fn secret_keys_open_by_their_passphrase() {
    let file = SecretKeyFile::parse(SSH_PASSPHRASE).expect("a file with a secret key");
    let unlock = |passphrase| file.unlock(passphrase).map(|key| key.public_key());
    assert_eq!(unlock(None), Err(SignatureKeyError::Passphrase));
    assert_eq!(
        unlock(Some(b"guess")),
        Err(SignatureKeyError::WrongPassphrase)
    );
    assert_eq!(unlock(Some(b"")), Err(SignatureKeyError::WrongPassphrase));
    assert_eq!(unlock(Some(b"secret")), Ok(public(SSH_PASSPHRASE_PUBLIC)));
}

#[test]
fn files_that_are_no_secret_keys_say_what_they_are() {
    let error = |text: &str| {
        let file = SecretKeyFile::parse(text);
        file.and_then(|file| file.unlock(None))
            .map(|_| ())
            .unwrap_err()
    };
    for (text, expected) in [
        ("", SignatureKeyError::Unknown),
        ("hello", SignatureKeyError::Unknown),
        (SSH_PUBLIC, SignatureKeyError::PublicKey),
        (MINISIGN_PUBLIC, SignatureKeyError::PublicKey),
        (&SSH.replace("b3Bl", "b3Bm"), SignatureKeyError::Damaged),
        (
            &MINISIGN.replace("vPmml", "vPmmm"),
            SignatureKeyError::Damaged,
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----",
            SignatureKeyError::Kind("BEGIN RSA PRIVATE KEY".into()),
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
    for length in 1..SSH.trim_end().len() {
        assert!(
            SecretKeyFile::parse(&SSH[..length])
                .and_then(|file| file.unlock(None))
                .is_err(),
            "{length}"
        );
    }
}

#[test]
fn public_keys_are_found_in_all_files_that_have_them() {
    let one = |text: &str| {
        let found = trusted_signers(text).expect("public keys");
        (
            found.len(),
            found[0].comment.clone(),
            found[0].counts_at(1_700_000_000),
        )
    };
    let key = SSH_PUBLIC
        .strip_suffix(" test@home\n")
        .expect("the comment");
    let id = "minisign public key 11AF9017E81590F2".to_owned();
    assert_eq!(one(MINISIGN_PUBLIC), (1, id, true));
    assert_eq!(one(SSH_PUBLIC), (1, "test@home".into(), true));
    assert_eq!(
        one(&format!("# mine\n\nann@a,bo@b {key}\n")),
        (1, "ann@a,bo@b".into(), true)
    );
    let allowed = format!("ann namespaces=\"git\" {key} x\nbo {key}\n");
    assert_eq!(one(&allowed), (2, "ann".into(), false));
    let allowed = format!("ann valid-before=\"20200101\" {key}\n");
    assert_eq!(one(&allowed), (1, "ann".into(), false));
    let login = format!("command=\"a b\",no-pty {key} ann\n{ECDSA_PUBLIC}");
    assert_eq!(one(&login), (1, "ann".into(), true));
    let (PublicKey::Minisign { id, .. }, Ok(_)) = (
        public(MINISIGN_PUBLIC),
        MINISIGN_PUBLIC
            .lines()
            .nth(1)
            .unwrap()
            .parse::<TrustedSigner>(),
    ) else {
        panic!("a key of minisign");
    };
    assert_eq!(id_text(&id), "11AF9017E81590F2");
}

#[test]
fn files_without_a_usable_public_key_say_why() {
    for (text, expected) in [
        ("", (1, SignatureKeyError::Unknown)),
        ("\nhello\n", (2, SignatureKeyError::Unknown)),
        (
            ECDSA_PUBLIC,
            (1, SignatureKeyError::Kind("ecdsa-sha2-nistp256".into())),
        ),
        ("ssh-ed25519 AAAA", (1, SignatureKeyError::Damaged)),
        ("RWabc", (1, SignatureKeyError::Damaged)),
        (SSH, (1, SignatureKeyError::SecretKey)),
        (MINISIGN, (2, SignatureKeyError::SecretKey)),
    ] {
        assert_eq!(trusted_signers(text).unwrap_err(), expected, "{text}");
    }
}
