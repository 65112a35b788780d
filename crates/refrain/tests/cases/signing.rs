//! Signatures: made while archives are written and later, and checked before content is used.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::recovery::{protected, recovery_options, repaired};
use crate::common::*;
use refrain::storage::{MemorySink, MemorySource, Source};
use refrain::{
    Archive, CompressOptions, Encryption, ErrorKind, Identity, KeySlots, ReadOptions,
    SecretKeyFile, SignatureState, SigningKey, TemporarySpace, Trust, TrustedSigner, Unwatched,
    append_signature, new_identity, recovery_info, trusted_signers, verify, verify_root,
};
use refrain_format::{
    FRAME_HEADER_BYTES, FrameKind, TAIL_BYTES, UntrustedFrameHeader, complete_frame,
};
use refrain_testkit::signing_keys::{MINISIGN, MINISIGN_PUBLIC, SSH, SSH_PUBLIC};
use refrain_testkit::{data, frames_of};

fn read_options() -> ReadOptions {
    crate::common::read_options(1)
}

fn key(text: &str) -> Arc<SigningKey> {
    let file = SecretKeyFile::parse(text).unwrap();
    Arc::new(file.unlock(None).unwrap())
}

fn signers(text: &str) -> Vec<TrustedSigner> {
    trusted_signers(text).unwrap()
}

fn trust(text: &str) -> Trust {
    Trust {
        signers: signers(text),
        ..Trust::default()
    }
}

fn open(bytes: &[u8], options: &ReadOptions) -> Archive {
    Archive::open(source(bytes), options).unwrap()
}

/// The archive with a signature, by the verb sign.
pub fn signed(bytes: &[u8], text: &str, options: &ReadOptions) -> Vec<u8> {
    let archive = open(bytes, options);
    let signature = archive.sign(&key(text)).unwrap();
    let mut sink = MemorySink::new();
    let output = sink.output();
    let recovery = recovery_options("1%", 1);
    let summary = append_signature(&archive, &signature, &mut sink, recovery, &Unwatched);
    assert!(summary.unwrap().is_some());
    output.published().unwrap()
}

/// What is said of the signatures of an archive.
fn states(bytes: &[u8], trust: &Trust, options: &ReadOptions) -> Vec<SignatureState> {
    let archive = open(bytes, options);
    let root_hash = archive.root_hash().unwrap();
    let signatures = archive.signatures().unwrap();
    (signatures.iter().map(|it| trust.state(it, &root_hash))).collect()
}

fn valid(comment: &str) -> SignatureState {
    SignatureState::Valid {
        comment: comment.into(),
    }
}

/// Why an archive is refused.
fn refusal(bytes: &[u8], trust: &Trust) -> String {
    let error = open(bytes, &read_options()).authenticate(trust, None);
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Damaged);
    error.to_string()
}

fn identity() -> Identity {
    new_identity(false).unwrap()
}

fn encrypted_for(identity: &Identity) -> Option<Encryption> {
    Some(Encryption {
        recipients: vec![identity.recipient()],
        ..Encryption::default()
    })
}

const MINISIGN_NAME: &str = "minisign public key 11AF9017E81590F2";

#[test]
fn an_archive_signed_later_is_that_signed_while_it_is_written() {
    for (bytes, recovery) in [(100, None), (300_000, None), (300_000, Some("10%"))] {
        let content = data::random(bytes, 7);
        let plain = CompressOptions {
            recovery: recovery.map(|share| share.parse().unwrap()),
            temporary: Some(TemporarySpace::new(std::env::temp_dir())),
            ..options(1, 2)
        };
        let with_key = CompressOptions {
            signing_key: Some(key(MINISIGN)),
            ..plain.clone()
        };
        let (archive, _) = archive_of(vec![file("x", &content)], &plain);
        let later = signed(&archive, MINISIGN, &read_options());
        let (written, summary) = archive_of(vec![file("x", &content)], &with_key);
        assert!(written == later, "{bytes} {recovery:?}");
        assert_eq!(summary.archive_bytes, written.len() as u64);
        let (piped, _) = piped_archive_of(vec![pipe("x", &content)], &with_key);
        for archive in [&written, &piped] {
            assert_reads(archive, &[as_published("x", &content)], "signed");
            let found = states(archive, &trust(MINISIGN_PUBLIC), &read_options());
            assert_eq!(found, [valid(MINISIGN_NAME)]);
        }
        assert_eq!(
            Some(summary.root_hash),
            open(&written, &read_options()).root_hash()
        );
    }
}

#[test]
fn several_sign_and_each_counts_for_itself() {
    let (archive, _) = archive_of(vec![file("x", b"content")], &options(1, 1));
    let one = signed(&archive, MINISIGN, &read_options());
    let both = signed(&one, SSH, &read_options());
    assert_reads(&both, &[as_published("x", b"content")], "signed twice");
    let not_verified = SignatureState::NotVerified;
    let all = [
        (
            Trust::default(),
            [not_verified.clone(), not_verified.clone()],
        ),
        (
            trust(MINISIGN_PUBLIC),
            [valid(MINISIGN_NAME), not_verified.clone()],
        ),
        (trust(SSH_PUBLIC), [not_verified, valid("test@home")]),
    ];
    for (trust, expected) in all {
        assert_eq!(states(&both, &trust, &read_options()), expected);
    }
    let opened = open(&both, &read_options());
    let found = opened.authenticate(&trust(SSH_PUBLIC), None).unwrap();
    let signer = found.signer.unwrap();
    assert!(signer.starts_with("ssh-ed25519 SHA256:") && signer.ends_with(" (test@home)"));
    verify_root(source(&both), &found.root_hash, &read_options(), &Unwatched).unwrap();
    // The same signature once more changes nothing.
    let again = opened.sign(&key(SSH)).unwrap();
    let (mut sink, recovery) = (MemorySink::new(), recovery_options("1%", 1));
    let summary = append_signature(&opened, &again, &mut sink, recovery, &Unwatched);
    assert_eq!(summary.unwrap(), None);
    assert_eq!(sink.output().published(), None);
}

#[test]
fn what_nobody_trusted_vouches_for_is_refused() {
    let (archive, _) = archive_of(vec![file("x", b"content")], &options(1, 1));
    let ssh = signed(&archive, SSH, &read_options());
    assert!(refusal(&archive, &trust(SSH_PUBLIC)).contains("is not signed"));
    assert!(refusal(&ssh, &trust(MINISIGN_PUBLIC)).contains("not a trusted key"));
    let remembered = Trust {
        root_hash: Some([7; 32]),
        ..Trust::default()
    };
    assert!(refusal(&archive, &remembered).contains("another archive, or another version"));
    let expired = format!("ann valid-before=\"20000101\" {SSH_PUBLIC}");
    let late = Trust {
        unix_seconds: 1_700_000_000,
        ..trust(&expired)
    };
    assert!(refusal(&ssh, &late).contains("does not count"));
    // Two archives in a file have no root hash.
    let both = [&ssh[..], &archive].concat();
    assert!(refusal(&both, &trust(SSH_PUBLIC)).contains("nobody can vouch"));
}

/// The signature of an archive, appended to another one.
#[test]
fn a_signature_of_another_archive_is_refused() {
    let (archive, _) = archive_of(vec![file("x", b"content")], &options(1, 1));
    let (other, _) = archive_of(vec![file("x", b"another")], &options(1, 1));
    let signature = open(&archive, &read_options()).sign(&key(SSH)).unwrap();
    let mut sink = MemorySink::new();
    let output = sink.output();
    let recovery = recovery_options("1%", 1);
    let other = open(&other, &read_options());
    append_signature(&other, &signature, &mut sink, recovery, &Unwatched).unwrap();
    let forged = output.published().unwrap();
    assert!(refusal(&forged, &trust(SSH_PUBLIC)).contains("wrong: of another archive"));
    // Bytes copied from the other file do not even belong to it.
    let appendix = &signed(&archive, SSH, &read_options())[archive.len()..];
    let (other, _) = archive_of(vec![file("x", b"another")], &options(1, 1));
    let copied = [&other[..], appendix].concat();
    assert!(
        Archive::open(source(&copied), &read_options()).is_err()
            || refusal(&copied, &trust(SSH_PUBLIC)).contains("is not signed")
    );
}

/// An archive whose End frame states the root hash of another one.
fn with_root_hash(archive: &[u8], root_hash: [u8; 32]) -> Vec<u8> {
    let own = open(archive, &read_options()).root_hash().unwrap();
    let end = frames_of(archive).pop().unwrap();
    let header = UntrustedFrameHeader::parse(&archive[end.clone()]).unwrap();
    let header = header.check(&Default::default(), None).unwrap();
    assert_eq!(header.kind, FrameKind::End);
    let mut payload = archive[end.start + FRAME_HEADER_BYTES..end.end].to_vec();
    let at = payload.windows(32).position(|bytes| bytes == own).unwrap();
    payload[at..at + 32].copy_from_slice(&root_hash);
    let frame = complete_frame(
        FrameKind::End,
        0,
        &payload,
        header.archive_id,
        header.sequence,
    );
    let tail = &archive[archive.len() - TAIL_BYTES..];
    [&archive[..end.start], &frame, tail].concat()
}

#[test]
fn forged_members_under_a_signed_root_hash_are_refused() {
    let content = data::random(300_000, 1);
    let (archive, summary) = archive_of(vec![file("x", &content)], &options(1, 1));
    let (other, _) = archive_of(vec![file("y", &content)], &options(1, 1));
    let forged = with_root_hash(&other, summary.root_hash);
    let signature = open(&archive, &read_options()).sign(&key(SSH)).unwrap();
    let detached = Trust {
        signatures: vec![signature],
        ..trust(SSH_PUBLIC)
    };
    assert!(refusal(&forged, &detached).contains("are not those of the root hash"));
    let opened = open(&archive, &read_options());
    opened.authenticate(&detached, None).unwrap();
    opened.check_member(0, &Unwatched).unwrap();
    let root = &summary.root_hash;
    let error = verify_root(source(&other), root, &read_options(), &Unwatched).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Damaged);
    // Who vouches for a root hash compares the members with it.
    assert!(open(&forged, &read_options()).sign(&key(SSH)).is_err());
}

#[test]
fn recovery_data_protects_signatures() {
    let content = data::random(200_000, 3);
    let (archive, _) = archive_of(vec![file("x", &content)], &options(1, 1));
    let (whole, _) = protected(&archive, "10%").unwrap();
    let signed = signed(&whole, SSH, &read_options());
    // As a signed archive that is protected.
    let first = self::signed(&archive, SSH, &read_options());
    assert!(signed.starts_with(&first));
    let info = recovery_info(&*source(&signed)).unwrap().unwrap();
    assert_eq!(info.protected_bytes, first.len() as u64);
    let mut damaged = signed.clone();
    damaged[archive.len() - 100..archive.len() + 200].fill(0xee);
    assert!(repaired(&[&damaged]).unwrap().0 == signed);
    let found = states(&signed, &trust(SSH_PUBLIC), &read_options());
    assert_eq!(found, [valid("test@home")]);
    // What its recovery data says is damaged would not be healed any more.
    let mut damaged = whole.clone();
    damaged[archive.len() / 2] ^= 1;
    let opened = open(&damaged, &read_options());
    let signature = opened.sign(&key(SSH)).unwrap();
    let (mut sink, recovery) = (MemorySink::new(), recovery_options("1%", 1));
    let error = append_signature(&opened, &signature, &mut sink, recovery, &Unwatched);
    assert_eq!(error.unwrap_err().kind, ErrorKind::Damaged);
}

#[test]
fn damaged_signatures_cost_nothing_but_themselves() {
    let (archive, _) = archive_of(vec![file("x", b"content")], &options(1, 1));
    let whole = signed(&archive, SSH, &read_options());
    for at in (archive.len()..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        assert!(
            verify(source(&damaged), &read_options(), &Unwatched).is_err(),
            "{at}"
        );
        let opened = Archive::open(source(&damaged), &read_options());
        let refused = opened.and_then(|it| it.authenticate(&trust(SSH_PUBLIC), None));
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Damaged, "{at}");
    }
}

#[test]
fn signatures_of_encrypted_archives_are_sealed() {
    let identity = identity();
    let with_key = ReadOptions {
        identities: vec![identity.clone()],
        ..read_options()
    };
    let content = data::random(40_000, 5);
    for recovery in [None, Some("10%")] {
        let plain = CompressOptions {
            encryption: encrypted_for(&identity),
            recovery: recovery.map(|share| share.parse().unwrap()),
            ..options(1, 1)
        };
        let signing = CompressOptions {
            signing_key: Some(key(SSH)),
            ..plain.clone()
        };
        let (archive, _) = archive_of(vec![file("x", &content)], &plain);
        let later = signed(&archive, SSH, &with_key);
        let (written, summary) = archive_of(vec![file("x", &content)], &signing);
        assert_eq!(summary.archive_bytes, written.len() as u64);
        for archive in [&later, &written] {
            assert_eq!(
                states(archive, &trust(SSH_PUBLIC), &with_key),
                [valid("test@home")]
            );
            verify(source(archive), &with_key, &Unwatched).unwrap();
            let stream = Box::new(io::Cursor::new(archive.clone()));
            verify(stream, &with_key, &Unwatched).unwrap();
            let is_visible = archive.windows(10).any(|bytes| bytes == b"-----BEGIN");
            assert!(!is_visible);
            let both = signed(archive, MINISIGN, &with_key);
            let found = states(&both, &trust(MINISIGN_PUBLIC), &with_key);
            assert_eq!(found, [SignatureState::NotVerified, valid(MINISIGN_NAME)]);
        }
    }
}

/// Slots for which there is no room: the archive is copied.
#[test]
fn signatures_survive_a_change_of_keys() {
    let (mine, other) = (identity(), identity());
    let with_key = ReadOptions {
        identities: vec![mine.clone()],
        ..read_options()
    };
    let encrypted = CompressOptions {
        encryption: encrypted_for(&mine),
        signing_key: Some(key(SSH)),
        ..options(1, 1)
    };
    let (archive, _) = archive_of(vec![file("x", b"content")], &encrypted);
    let added = Encryption {
        recipients: vec![other.recipient(); 20],
        ..Encryption::default()
    };
    let slots = KeySlots::read(&*source(&archive)).unwrap().unwrap();
    let changed = slots.with(&added, &with_key).unwrap();
    assert!(changed.writes().is_none(), "there is no room");
    let mut sink = MemorySink::new();
    let output = sink.output();
    let recovery = recovery_options("1%", 1);
    changed
        .copy(&source(&archive), &mut sink, recovery)
        .unwrap();
    let copied = output.published().unwrap();
    let with_other = ReadOptions {
        identities: vec![other],
        ..read_options()
    };
    assert_eq!(
        states(&copied, &trust(SSH_PUBLIC), &with_other),
        [valid("test@home")]
    );
    verify(source(&copied), &with_other, &Unwatched).unwrap();
}

/// Counts what is read.
struct Counted {
    inner: MemorySource<Vec<u8>>,
    bytes: AtomicU64,
}

impl Source for Counted {
    fn size_bytes(&self) -> io::Result<u64> {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read_at(offset, buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// One signature over the root hash vouches for one of many members with little reading.
#[test]
fn one_of_many_members_is_proven_by_the_tree() {
    let content = |number: u64| data::random(500, number);
    let members = |count| {
        (0..count)
            .map(|it| file(&format!("{it:05}"), &content(it)))
            .collect()
    };
    let signing = CompressOptions {
        signing_key: Some(key(SSH)),
        ..options(1, 1)
    };
    let (archive, _) = archive_of(members(3000), &signing);
    let counted = Arc::new(Counted {
        inner: MemorySource::new(archive.clone()),
        bytes: AtomicU64::new(0),
    });
    let opened = Archive::open(counted.clone(), &read_options()).unwrap();
    let number = opened.find_member(b"01234").unwrap().unwrap();
    opened
        .authenticate(&trust(SSH_PUBLIC), Some(&[number]))
        .unwrap();
    let before = counted.bytes.load(Ordering::Relaxed);
    assert!(before < 64 << 10, "{before} bytes");
    opened.check_member(number, &Unwatched).unwrap();
    // Without the tree, by all rows of the index.
    let mut damaged = archive.clone();
    damaged[archive.len() - TAIL_BYTES - 1] ^= 1;
    let opened = open(&damaged, &read_options());
    opened
        .authenticate(&trust(SSH_PUBLIC), Some(&[number]))
        .unwrap();
    // A member that is not the one in the tree.
    let mut names: Vec<_> = (0..3000)
        .map(|it| file(&format!("{it:05}"), &content(it)))
        .collect();
    names[1234] = file("01234", b"forged");
    let (other, _) = archive_of(names, &options(1, 1));
    let root_hash = opened.root_hash().unwrap();
    let forged = with_root_hash(&other, root_hash);
    let opened = open(&forged, &read_options());
    let detached = Trust {
        signatures: vec![open(&archive, &read_options()).sign(&key(SSH)).unwrap()],
        ..trust(SSH_PUBLIC)
    };
    let error = opened.authenticate(&detached, Some(&[number])).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Damaged);
}
