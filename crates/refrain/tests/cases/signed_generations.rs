//! Signatures of generations: each stays where it is, and the next generation follows it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use refrain::storage::MemorySink;
use refrain::{
    Archive, CompressOptions, Encryption, ErrorKind, GenerationChoice, ReadOptions, SecretKeyFile,
    SigningKey, Trust, Unwatched, append_signature, damaged_places, forget, trusted_signers,
    verify, verify_frames,
};
use refrain_storage::GrowingFile;
use refrain_testkit::data::{random, source_code};
use refrain_testkit::signing_keys::{SSH, SSH_PUBLIC};

use super::encrypted_generations::{add_to, secrets};
use super::generations::file_source;
use crate::common::recovery::{recovery_options, repaired};
use crate::common::{archive_of, extracted_of, file, options};

fn key() -> Arc<SigningKey> {
    Arc::new(SecretKeyFile::parse(SSH).unwrap().unlock(None).unwrap())
}

fn trust() -> Trust {
    Trust {
        signers: trusted_signers(SSH_PUBLIC).unwrap(),
        ..Trust::default()
    }
}

fn shown(path: &Path, choice: &str, base: &ReadOptions) -> Archive {
    let options = ReadOptions {
        generation: choice.parse::<GenerationChoice>().unwrap(),
        ..base.clone()
    };
    Archive::open(file_source(path), &options).unwrap()
}

/// Signs the newest generation, as the command does.
fn sign(path: &Path, options: &ReadOptions) {
    let archive = shown(path, "latest", options);
    let signature = archive.sign(&key()).unwrap();
    let mut sink = MemorySink::new();
    let output = sink.output();
    let recovery = recovery_options("1%", 1);
    append_signature(&archive, &signature, &mut sink, recovery, &Unwatched).unwrap();
    let before = fs::read(path).unwrap();
    let after = output.published().unwrap();
    assert!(after.starts_with(&before));
    fs::write(path, after).unwrap();
}

#[track_caller]
fn assert_signed(path: &Path, choice: &str, base: &ReadOptions, is_signed: bool) {
    let found = shown(path, choice, base).authenticate(&trust(), None);
    assert_eq!(found.is_ok(), is_signed, "{choice}: {:?}", found.err());
}

#[track_caller]
fn assert_sound(path: &Path, base: &ReadOptions) {
    verify(file_source(path), base, &Unwatched).unwrap();
    verify_frames(file_source(path), base, &Unwatched).unwrap();
    let stream: Box<dyn std::io::Read + Send> = Box::new(fs::File::open(path).unwrap());
    verify(stream, base, &Unwatched).unwrap();
    assert_eq!(damaged_places(&file_source(path), base).unwrap(), []);
}

fn nights(is_encrypted: bool) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let base = secrets(1, "latest");
    let contents: Vec<_> = (0..5)
        .map(|seed| random(100_000 + seed, seed as u64))
        .collect();
    let made = CompressOptions {
        signing_key: Some(key()),
        encryption: is_encrypted.then(|| Encryption {
            recipients: vec![base.identities[0].recipient()],
            ..Encryption::default()
        }),
        ..options(1, 1)
    };
    // So many members that a tree proves single ones.
    let mut members = vec![file("a", &contents[0])];
    let small: Vec<_> = (0..300).map(|number| format!("{number}")).collect();
    members.extend(small.iter().map(|name| file(name, name.as_bytes())));
    fs::write(&path, archive_of(members, &made).0).unwrap();
    let add = |night: usize| {
        let members = vec![file("a", &contents[night])];
        add_to(&path, members, &options(1, 1), &base).unwrap();
    };
    assert_signed(&path, "latest", &base, true);
    let before = fs::read(&path).unwrap();
    add(1);
    assert!(fs::read(&path).unwrap().starts_with(&before));
    assert_sound(&path, &base);
    assert_signed(&path, "0", &base, true);
    assert_signed(&path, "latest", &base, false);
    add(2);
    assert_signed(&path, "2", &base, false);
    sign(&path, &base);
    let complete = fs::read(&path).unwrap();
    add(3);
    let three = fs::read(&path).unwrap();
    for (choice, is_signed) in [("0", true), ("1", false), ("2", true), ("3", false)] {
        assert_signed(&path, choice, &base, is_signed);
    }
    assert_sound(&path, &base);
    // One that was cut off leaves the signature before it.
    for cut in [3, 20, 60, 5000, three.len() - complete.len() - 1] {
        fs::write(&path, &three[..complete.len() + cut]).unwrap();
        let archive = shown(&path, "latest", &base);
        assert_eq!(archive.generation(), 2, "{cut}");
        assert_eq!(archive.incomplete_bytes().unwrap(), cut as u64);
        assert_signed(&path, "latest", &base, true);
        assert_signed(&path, "0", &base, true);
        add(3);
        assert!(fs::read(&path).unwrap().starts_with(&complete));
        assert_signed(&path, "2", &base, true);
    }
    // What is forgotten leaves a record between a generation and its signature.
    let mut growing = GrowingFile::open(&path).unwrap();
    forget(&mut growing, &[1], &base).unwrap();
    drop(growing);
    sign(&path, &base);
    add(4);
    for (choice, is_signed) in [("0", true), ("2", true), ("3", true), ("5", false)] {
        assert_signed(&path, choice, &base, is_signed);
    }
    assert_sound(&path, &base);
    for (choice, night) in [("2", 2), ("3", 3), ("latest", 4)] {
        let options = ReadOptions {
            generation: choice.parse().unwrap(),
            ..base.clone()
        };
        let (found, _) = extracted_of(&fs::read(&path).unwrap(), &options).unwrap();
        assert!(found[0].content == contents[night], "{choice}");
    }
    sign(&path, &base);
    assert_signed(&path, "latest", &base, true);
}

#[test]
fn signatures_of_generations_stay() {
    nights(false);
}

#[test]
fn signatures_of_encrypted_generations_stay() {
    nights(true);
}

#[test]
fn signed_archives_with_recovery_data_grow() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let base = secrets(1, "latest");
    for is_encrypted in [false, true] {
        let signed = CompressOptions {
            recovery: Some("5%".parse().unwrap()),
            signing_key: Some(key()),
            encryption: is_encrypted.then(|| Encryption {
                recipients: vec![base.identities[0].recipient()],
                ..Encryption::default()
            }),
            ..options(1, 1)
        };
        let members = || vec![file("a", &source_code(200_000, 1))];
        let (archive, _) = archive_of(members(), &signed);
        fs::write(&path, &archive).unwrap();
        add_to(&path, members(), &options(1, 1), &base).unwrap();
        assert_signed(&path, "0", &base, true);
        assert_signed(&path, "latest", &base, false);
        assert_sound(&path, &base);
        let grown = fs::read(&path).unwrap();
        assert!(grown.starts_with(&archive));
        // A signature of what was added renews the recovery data at the end.
        let latest = shown(&path, "latest", &base);
        let signature = latest.sign(&key()).unwrap();
        let mut sink = MemorySink::new();
        let output = sink.output();
        let recovery = recovery_options("1%", 1);
        let appended = append_signature(&latest, &signature, &mut sink, recovery, &Unwatched);
        assert!(appended.unwrap().unwrap().renewed_recovery);
        let bytes = output.published().unwrap();
        fs::write(&path, &bytes).unwrap();
        add_to(&path, members(), &options(1, 1), &base).unwrap();
        for choice in ["0", "1"] {
            assert_signed(&path, choice, &base, true);
        }
        assert_signed(&path, "latest", &base, false);
        assert_sound(&path, &base);
        let whole = fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[3000..3300].fill(0);
        damaged[bytes.len() + 50..bytes.len() + 90].fill(0);
        assert!(repaired(&[&damaged]).unwrap().0 == whole);
    }
}

#[test]
fn small_signed_archives_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let small = CompressOptions {
        signing_key: Some(key()),
        ..options(1, 1)
    };
    let (archive, _) = archive_of(vec![file("a", b"x")], &small);
    fs::write(&path, &archive).unwrap();
    let refused = super::generations::add_to(
        &path,
        vec![file("a", b"y")],
        &options(1, 1),
        super::generations::label(1, &[]),
    );
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Unsupported);
    assert!(fs::read(&path).unwrap() == archive);
}
