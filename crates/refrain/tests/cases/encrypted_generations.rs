//! Encrypted archives that grow.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use refrain::{
    AddSummary, AddTo, Archive, Compaction, CompressOptions, Encryption, ErrorKind, Identity,
    KeySlots, MemberInput, PasswordSource, ReadOptions, RecoveryOptions, RecoveryShare, Unwatched,
    add, forget, is_rewritten, verify, verify_frames,
};
use refrain_storage::{
    AtomicFile, GrowingFile, MemorySink, MemorySource, OutputOptions, Overwrite,
};
use refrain_testkit::data::{edited, far_duplicates, random, source_code};

use super::generations::{file_source, label};
use crate::common::{Published, archive_of, extracted_of, file, options, read_options};

pub fn identity(byte: u8) -> Identity {
    Identity::X25519([byte; 32].into())
}

pub fn secrets(byte: u8, choice: &str) -> ReadOptions {
    ReadOptions {
        identities: vec![identity(byte)],
        generation: choice.parse().unwrap(),
        ..read_options(2)
    }
}

pub fn encryption() -> Encryption {
    Encryption {
        recipients: vec![identity(1).recipient()],
        ..Encryption::default()
    }
}

/// Adds to an encrypted archive. One that does not exist is made for the key 1, unless the options
/// say for whom.
pub fn add_to(
    path: &Path,
    members: Vec<MemberInput>,
    options: &CompressOptions,
    secrets: &ReadOptions,
) -> refrain::Result<AddSummary> {
    let label = label(1000, &[]);
    if !path.exists() {
        let options = CompressOptions {
            encryption: options.encryption.clone().or_else(|| Some(encryption())),
            ..options.clone()
        };
        let mut sink = AtomicFile::create(path, &OutputOptions::default()).unwrap();
        let to = AddTo::Copy(None, &mut sink);
        return add(members, to, None, &options, label, &Unwatched);
    }
    let mut growing = GrowingFile::open(path).unwrap();
    let to = AddTo::File(&mut growing, secrets);
    add(members, to, None, options, label, &Unwatched)
}

fn contents_of(archive: &[u8], options: &ReadOptions) -> refrain::Result<Vec<Published>> {
    Ok(extracted_of(archive, options)?.0)
}

#[track_caller]
fn assert_content(bytes: &[u8], choice: &str, expected: &[u8]) {
    let found =
        contents_of(bytes, &secrets(1, choice)).unwrap_or_else(|error| panic!("{choice}: {error}"));
    assert_eq!(found.len(), 1, "{choice}");
    assert!(found[0].content == expected, "{choice}");
}

#[test]
fn an_encrypted_archive_grows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let mut contents = vec![far_duplicates(1_000_000, 100_000, 1)];
    for number in 0..6 {
        contents.push(edited(&contents[number], 40, 2 + number as u64));
    }
    let mut ends = Vec::new();
    for content in &contents {
        let before = fs::read(&path).unwrap_or_default();
        let added = add_to(
            &path,
            vec![file("a", content)],
            &options(3, 2),
            &secrets(1, "latest"),
        )
        .unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.starts_with(&before));
        assert_eq!(added.archive_bytes, bytes.len() as u64);
        assert_eq!(
            added.added.archive_bytes,
            (bytes.len() - before.len()) as u64
        );
        ends.push(bytes.len());
    }
    assert!(ends[6] - ends[1] < ends[0] / 3, "{ends:?}");
    let bytes = fs::read(&path).unwrap();
    for (number, &end) in ends.iter().enumerate() {
        for (earlier, content) in contents[..=number].iter().enumerate() {
            assert_content(&bytes[..end], &format!("{}", earlier + 1), content);
        }
        verify(
            Arc::new(refrain_storage::MemorySource::new(bytes[..end].to_vec())),
            &secrets(1, "latest"),
            &Unwatched,
        )
        .unwrap();
    }
    let stream: Box<dyn std::io::Read + Send> = Box::new(std::io::Cursor::new(bytes.clone()));
    verify(stream, &secrets(1, "latest"), &Unwatched).unwrap();
    let locked = add_to(
        &path,
        vec![file("a", b"x")],
        &options(3, 1),
        &secrets(2, "latest"),
    );
    assert_eq!(locked.unwrap_err().kind, ErrorKind::Usage);
    let locked = add_to(
        &path,
        vec![file("a", b"x")],
        &options(3, 1),
        &read_options(1),
    );
    assert!(locked.unwrap_err().to_string().contains("secret key"));
    assert!(fs::read(&path).unwrap() == bytes);
}

#[test]
fn what_compress_encrypted_grows_whatever_its_size() {
    let directory = tempfile::tempdir().unwrap();
    for length in [0, 10, 3000, 200_000] {
        let path = directory.path().join(format!("{length}.rfn"));
        let first = source_code(length, 1);
        let second = edited(&source_code(200_000, 2), 30, 2);
        let options = CompressOptions {
            encryption: Some(encryption()),
            ..options(3, 1)
        };
        let (archive, summary) = archive_of(vec![file("a", &first)], &options);
        fs::write(&path, &archive).unwrap();
        assert!(!is_rewritten(&file_source(&path)).unwrap());
        let plain = CompressOptions {
            encryption: None,
            ..options
        };
        for content in [&second, &first] {
            add_to(
                &path,
                vec![file("a", content)],
                &plain,
                &secrets(1, "latest"),
            )
            .unwrap();
        }
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.starts_with(&archive));
        assert_content(&bytes[..archive.len()], "0", &first);
        for (choice, content) in [
            ("0", &first),
            ("1", &second),
            ("2", &first),
            ("latest", &first),
        ] {
            assert_content(&bytes, choice, content);
        }
        verify(file_source(&path), &secrets(1, "latest"), &Unwatched).unwrap();
        let archive = Archive::open(file_source(&path), &secrets(1, "0")).unwrap();
        assert_eq!(archive.info().unwrap().root_hash, Some(summary.root_hash));
    }
}

#[test]
fn after_a_crash_other_content_is_added_at_the_same_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let contents = [random(90_000, 1), random(120_000, 2), random(120_000, 3)];
    let add = |content: &[u8]| {
        add_to(
            &path,
            vec![file("a", content)],
            &options(1, 1),
            &secrets(1, "latest"),
        )
    };
    add(&contents[0]).unwrap();
    let before = fs::read(&path).unwrap();
    add(&contents[1]).unwrap();
    let complete = fs::read(&path).unwrap();
    for cut in [1, 30, 67, 68, 69, 40_000, complete.len() - before.len() - 1] {
        let cut = &complete[..before.len() + cut];
        fs::write(&path, cut).unwrap();
        assert_content(cut, "latest", &contents[0]);
        let archive = Archive::open(file_source(&path), &secrets(1, "latest")).unwrap();
        assert_eq!(
            archive.incomplete_bytes().unwrap(),
            (cut.len() - before.len()) as u64
        );
        add(&contents[2]).unwrap();
        let again = fs::read(&path).unwrap();
        assert!(again.starts_with(&before));
        let equal = again[before.len()..].iter().zip(&complete[before.len()..]);
        let equal = equal.filter(|(one, two)| one == two).count();
        assert!(
            equal < (again.len() - before.len()) / 100,
            "{equal} equal bytes"
        );
        assert_content(&again, "1", &contents[0]);
        assert_content(&again, "2", &contents[2]);
    }
}

#[test]
fn generations_are_forgotten_and_keys_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let contents = [random(90_000, 1), random(60_000, 2), random(70_000, 3)];
    for content in &contents {
        add_to(
            &path,
            vec![file("a", content)],
            &options(1, 1),
            &secrets(1, "latest"),
        )
        .unwrap();
    }
    let mut growing = GrowingFile::open(&path).unwrap();
    assert!(forget(&mut growing, &[2], &read_options(1)).is_err());
    let gone = forget(&mut growing, &[2], &secrets(1, "latest")).unwrap();
    assert_eq!(gone.len(), 1);
    drop(growing);
    let bytes = fs::read(&path).unwrap();
    assert_content(&bytes, "3", &contents[2]);
    assert!(contents_of(&bytes, &secrets(1, "2")).is_err());
    // So many slots that the header has no room, and the archive is copied.
    let added = Encryption {
        recipients: (2..20).map(|byte| identity(byte).recipient()).collect(),
        passwords: vec![PasswordSource::from_bytes(b"password")],
        ..Encryption::default()
    };
    let source = file_source(&path);
    let slots = KeySlots::read(&*source).unwrap().expect("encrypted");
    let changed = slots.with(&added, &secrets(1, "latest")).unwrap();
    assert!(changed.writes().is_none());
    let recovery = RecoveryOptions {
        share: RecoveryShare::default(),
        threads: 1,
        memory_bytes: 64 << 20,
        temporary: None,
    };
    let mut sink = MemorySink::new();
    let output = sink.output();
    changed.copy(&source, &mut sink, recovery).unwrap();
    fs::write(&path, output.published().unwrap()).unwrap();
    let all = ReadOptions {
        password: Some(PasswordSource::from_bytes(b"password")),
        ..read_options(1)
    };
    add_to(&path, vec![file("a", &contents[1])], &options(1, 1), &all).unwrap();
    verify(file_source(&path), &secrets(7, "latest"), &Unwatched).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_content(&bytes, "1", &contents[0]);
    assert_content(&bytes, "latest", &contents[1]);
    let again = KeySlots::read(&*file_source(&path))
        .unwrap()
        .expect("encrypted");
    let changed = again.without(&[0], &secrets(5, "latest")).unwrap();
    let mut bytes = bytes;
    for (offset, slots) in changed.writes().expect("room") {
        bytes[offset as usize..offset as usize + slots.len()].copy_from_slice(slots);
    }
    assert!(contents_of(&bytes, &secrets(1, "latest")).is_err());
    assert_eq!(
        contents_of(&bytes, &secrets(5, "latest")).unwrap()[0].content,
        contents[1]
    );
}

#[test]
fn what_is_not_encrypted_stays_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    for length in [10, 300_000] {
        let (archive, _) = archive_of(vec![file("a", &random(length, 1))], &options(1, 1));
        fs::write(&path, &archive).unwrap();
        let encrypted = CompressOptions {
            encryption: Some(encryption()),
            ..options(1, 1)
        };
        let members = vec![file("b", b"x")];
        let replace = OutputOptions {
            overwrite: Overwrite::Replace,
            ..OutputOptions::default()
        };
        let added = if is_rewritten(&file_source(&path)).unwrap() {
            let mut sink = AtomicFile::create(&path, &replace).unwrap();
            let to = AddTo::Copy(Some(file_source(&path)), &mut sink);
            add(members, to, None, &encrypted, label(1, &[]), &Unwatched)
        } else {
            let mut growing = GrowingFile::open(&path).unwrap();
            let secrets = secrets(1, "latest");
            let to = AddTo::File(&mut growing, &secrets);
            add(members, to, None, &encrypted, label(1, &[]), &Unwatched)
        };
        assert_eq!(added.unwrap_err().kind, ErrorKind::Usage);
        assert!(fs::read(&path).unwrap() == archive);
    }
}

#[test]
fn what_was_forgotten_of_an_encrypted_archive_is_given_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let contents: Vec<_> = (1..=4).map(|seed| random(3_000_000, seed)).collect();
    for content in &contents {
        add_to(
            &path,
            vec![file("image", content)],
            &options(3, 2),
            &secrets(1, "latest"),
        )
        .unwrap();
    }
    let mut growing = GrowingFile::open(&path).unwrap();
    if growing.check_holes().is_err() {
        return;
    }
    forget(&mut growing, &[1, 3], &secrets(1, "latest")).unwrap();
    let locked = Compaction::plan(&mut growing, &secrets(2, "latest"), &Unwatched);
    assert_eq!(locked.err().map(|error| error.kind), Some(ErrorKind::Usage));
    let before = fs::read(&path).unwrap();
    let compaction = Compaction::plan(&mut growing, &secrets(1, "latest"), &Unwatched).unwrap();
    let numbers = *compaction.numbers();
    assert!(
        numbers.hole_bytes > 5_800_000 && numbers.record_bytes > 0,
        "{numbers:?}"
    );
    assert!(fs::read(&path).unwrap() == before, "a look changes nothing");
    let summary = compaction.run(&mut growing, &Unwatched).unwrap();
    assert!(summary.freed_bytes > 5_700_000, "{summary:?}");
    // As after a crash: the record is there, and not all holes are.
    let after = fs::read(&path).unwrap();
    assert_eq!(after.len() as u64, summary.archive_bytes);
    let undone = [&before[..], &after[before.len()..]].concat();
    for bytes in [&after, &undone] {
        assert_content(bytes, "2", &contents[1]);
        assert_content(bytes, "4", &contents[3]);
        let whole = MemorySource::new(bytes.clone());
        verify(Arc::new(whole), &secrets(1, "latest"), &Unwatched).unwrap();
        let whole = MemorySource::new(bytes.clone());
        verify_frames(Arc::new(whole), &secrets(1, "latest"), &Unwatched).unwrap();
    }
    let again = Compaction::plan(&mut growing, &secrets(1, "latest"), &Unwatched).unwrap();
    let (record_bytes, hole_bytes) = (again.numbers().record_bytes, again.numbers().hole_bytes);
    assert_eq!((record_bytes, hole_bytes), (0, 0));
    drop(growing);
    fs::write(&path, &undone).unwrap();
    let mut growing = GrowingFile::open(&path).unwrap();
    let again = Compaction::plan(&mut growing, &secrets(1, "latest"), &Unwatched).unwrap();
    assert!(again.numbers().record_bytes == 0 && again.numbers().hole_bytes > 5_800_000);
    again.run(&mut growing, &Unwatched).unwrap();
    assert!(fs::read(&path).unwrap() == after);
    drop(growing);
    // What is gone is stored again, not referred to.
    add_to(
        &path,
        vec![file("image", &contents[0])],
        &options(3, 2),
        &secrets(1, "latest"),
    )
    .unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_content(&bytes, "latest", &contents[0]);
    assert_content(&bytes, "2", &contents[1]);
    verify(file_source(&path), &secrets(1, "latest"), &Unwatched).unwrap();
    // A record with something that is needed is damaged when it is overwritten.
    let mut damaged = bytes.clone();
    damaged[4_500_000..4_540_000].fill(0);
    let whole = MemorySource::new(damaged);
    assert!(verify(Arc::new(whole), &secrets(1, "latest"), &Unwatched).is_err());
}
