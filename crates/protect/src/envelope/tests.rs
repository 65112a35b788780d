//! The test vectors of docs/format-envelope.md, which the second reader checks as well.

use super::derive::derive;
use super::*;

const DOCUMENT: &str = include_str!("../../../../docs/format-envelope.md");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn counting<const N: usize>(first: u8) -> [u8; N] {
    std::array::from_fn(|at| first.wrapping_add(at as u8))
}

#[test]
fn the_document_has_the_right_vectors() {
    let file_key = FileKey::new(counting(0));
    let salt = counting::<SALT_BYTES>(0x20);
    let mut record = [0; SEALED_RECORD_BYTES];
    file_key.records(&salt).seal(5, true, &mut record);
    let identity = Identity::X25519(zeroize::Zeroizing::new([0x42; 32]));
    let x25519 = Slot::for_recipient(&file_key, &salt, &identity.recipient(), &[0x43; 64]);
    let cost = PasswordCost::MIN;
    let password = Slot::for_password(&file_key, &salt, b"password", cost, counting(0x40));
    let (
        Some(Slot::X25519 { share, wrapped }),
        Some(Slot::Password {
            wrapped: by_password,
            ..
        }),
    ) = (x25519, password)
    else {
        panic!("slots of other kinds");
    };
    let link = run_link(&salt, &counting(0x60), 0x5000);
    let mut of_run = [0; SEALED_RECORD_BYTES];
    let run_key = file_key.run_key();
    run_key.records(&salt, &link).seal(0, true, &mut of_run);
    let table = run_key.table(&salt, &link).seal(b"abc".to_vec());
    let pair = file_key.run_pair(&salt);
    let (run_share, shared_key) = RunKey::agree(&pair.recipient(), &counting(0x80)).unwrap();
    let mut shared_record = [0; SEALED_RECORD_BYTES];
    shared_key
        .records(&salt, &link)
        .seal(0, true, &mut shared_record);
    let Identity::Hybrid(seed) = &pair else { panic!("an X-Wing pair") };
    let values = [
        ("Commitment", hex(&file_key.commitment(&salt))),
        (
            "the key of records",
            hex(&*derive(
                "refrain envelope 1 records",
                &[&*file_key.0, &salt],
            )),
        ),
        ("Authenticator", hex(&file_key.authenticate(&salt, b"abc"))),
        ("the first 32 bytes of record 5", hex(&record[..32])),
        ("its tag", hex(&record[RECORD_BYTES..])),
        ("Share", hex(&share)),
        ("Wrapped_Key for X25519", hex(&wrapped)),
        ("Wrapped_Key for the password", hex(&by_password)),
        ("Link", hex(&link)),
        ("the first 32 bytes of record 0", hex(&of_run[..32])),
        ("the tag of record 0", hex(&of_run[RECORD_BYTES..])),
        ("the sealed table", hex(&table)),
        ("the seed of the key pair", hex(&**seed)),
        ("the first 32 bytes of a share", hex(&run_share[..32])),
        (
            "the tag under the shared key",
            hex(&shared_record[RECORD_BYTES..]),
        ),
    ];
    for (name, value) in values {
        let line = format!("{name:<31} {value}");
        assert!(DOCUMENT.contains(&line), "{line}");
    }
}
