//! Encrypted archives that grow on a machine without a secret.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain::{
    AddSummary, Compaction, CompressOptions, Encryption, ErrorKind, MemberInput, PasswordSource,
    ReadOptions, Unwatched, WriterState, forget, recovery_info, verify,
};
use refrain_storage::{GrowingFile, MemorySource};
use refrain_testkit::data::{edited, random, source_code};

use super::encrypted_generations::{add_to, encryption, secrets};
use crate::common::recovery::repaired;
use crate::common::{Published, extracted_of, file, options, read_options};

struct Archive {
    directory: tempfile::TempDir,
}

impl Archive {
    fn new() -> Archive {
        Archive {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("a.rfn")
    }

    fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    fn options(&self) -> CompressOptions {
        CompressOptions {
            writer_state: Some(WriterState::new(self.state())),
            ..options(3, 2)
        }
    }

    fn add_with(
        &self,
        members: Vec<MemberInput>,
        secrets: &ReadOptions,
    ) -> refrain::Result<AddSummary> {
        add_to(&self.path(), members, &self.options(), secrets)
    }

    /// Adds without a secret.
    fn add(&self, members: Vec<MemberInput>) -> refrain::Result<AddSummary> {
        self.add_with(members, &read_options(2))
    }

    #[track_caller]
    fn assert_content(&self, choice: &str, expected: &[u8]) {
        let found = contents_of(&self.bytes(), &secrets(1, choice)).unwrap();
        assert!(found[0].content == expected, "{choice}");
    }

    /// What is given back is known to who reads the end first.
    #[track_caller]
    fn verify_file(&self) {
        let source = Arc::new(MemorySource::new(self.bytes()));
        verify(source, &secrets(1, "latest"), &Unwatched).unwrap();
    }

    #[track_caller]
    fn verify(&self) {
        self.verify_file();
        let stream: Box<dyn std::io::Read + Send> = Box::new(std::io::Cursor::new(self.bytes()));
        verify(stream, &secrets(1, "latest"), &Unwatched).unwrap();
    }
}

fn contents_of(archive: &[u8], options: &ReadOptions) -> refrain::Result<Vec<Published>> {
    Ok(extracted_of(archive, options)?.0)
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_machine_adds_without_a_secret_and_stores_what_is_new() {
    let archive = Archive::new();
    let mut content = random(6_000_000, 1);
    archive.add(vec![file("disk", &content)]).unwrap();
    let mut contents = vec![content.clone()];
    for night in 0..5_u64 {
        let before = archive.bytes();
        content[1_000_000 * night as usize..][..5000].copy_from_slice(&random(5000, 9 + night));
        let added = archive.add(vec![file("disk", &content)]).unwrap();
        let bytes = archive.bytes();
        assert!(bytes.starts_with(&before));
        assert_eq!(added.archive_bytes, bytes.len() as u64);
        let grown = bytes.len() - before.len();
        assert!(grown < 400_000, "night {night}: {grown}");
        contents.push(content.clone());
        let kept: u64 = (names(&archive.state()).iter())
            .map(|name| fs::metadata(archive.state().join(name)).unwrap().len())
            .sum();
        assert!(kept < 200_000, "{kept} of {}", bytes.len());
    }
    for (number, content) in contents.iter().enumerate() {
        archive.assert_content(&format!("{}", number + 1), content);
    }
    archive.verify();
    // Nothing here reads the archive.
    let locked = contents_of(&archive.bytes(), &read_options(1)).map(|_| ());
    assert_eq!(locked.unwrap_err().kind, ErrorKind::Usage);
}

#[test]
fn many_nights_have_a_few_files_of_state() {
    let archive = Archive::new();
    let mut content = random(300_000, 1);
    for night in 0..70_usize {
        content[2000 * night..][..50].copy_from_slice(&random(50, 9 + night as u64));
        archive.add(vec![file("disk", &content)]).unwrap();
        let files = names(&archive.state()).len();
        assert!(files <= 33, "night {night}: {files}");
        if night % 23 == 5 {
            let mut growing = GrowingFile::open(archive.path()).unwrap();
            let number = night as u16;
            forget(&mut growing, &[number], &secrets(1, "latest")).unwrap();
        }
    }
    archive.assert_content("latest", &content);
    archive.verify();
}

#[test]
fn secrets_and_states_take_turns() {
    let archive = Archive::new();
    let first = source_code(400_000, 1);
    let contents: Vec<_> = (0..9).map(|number| edited(&first, 30, number)).collect();
    for (number, content) in contents.iter().enumerate() {
        let members = vec![file("a", content)];
        let added = match number % 3 {
            0 => archive.add_with(members, &secrets(1, "latest")),
            _ => archive.add(members),
        };
        added.unwrap_or_else(|error| panic!("{number}: {error}"));
    }
    for (number, content) in contents.iter().enumerate() {
        archive.assert_content(&format!("{}", number + 1), content);
    }
    archive.verify();
}

#[test]
fn a_state_that_the_archive_left_behind_is_renewed_by_a_secret() {
    let archive = Archive::new();
    let contents: Vec<_> = (0..5).map(|seed| source_code(200_000, seed)).collect();
    archive.add(vec![file("a", &contents[0])]).unwrap();
    archive.add(vec![file("a", &contents[1])]).unwrap();
    // Somebody else adds.
    let plain = options(3, 1);
    let members = vec![file("a", &contents[2])];
    add_to(&archive.path(), members, &plain, &secrets(1, "latest")).unwrap();
    let before = archive.bytes();
    let stale = archive.add(vec![file("a", &contents[3])]).unwrap_err();
    assert_eq!(stale.kind, ErrorKind::Usage);
    assert!(stale.to_string().contains("state"), "{stale}");
    assert!(archive.bytes() == before);
    // Without a state, a secret is asked for.
    let locked = add_to(
        &archive.path(),
        vec![file("a", b"x")],
        &plain,
        &read_options(1),
    );
    assert!(locked.unwrap_err().to_string().contains("secret key"));
    let members = vec![file("a", &contents[3])];
    archive.add_with(members, &secrets(1, "latest")).unwrap();
    archive.add(vec![file("a", &contents[4])]).unwrap();
    for (number, content) in contents.iter().enumerate() {
        archive.assert_content(&format!("{}", number + 1), content);
    }
    archive.verify();
}

#[test]
fn what_is_forgotten_and_given_back_elsewhere_needs_no_new_state() {
    let archive = Archive::new();
    let contents: Vec<_> = (0..7).map(|seed| random(300_000, seed)).collect();
    archive.add(vec![file("a", &contents[0])]).unwrap();
    archive.add(vec![file("a", &contents[1])]).unwrap();
    let mut number = 2;
    for (night, content) in contents.iter().enumerate().skip(2) {
        let mut growing = GrowingFile::open(archive.path()).unwrap();
        forget(&mut growing, &[number], &secrets(1, "latest")).unwrap();
        if night % 2 == 1 {
            let compaction =
                Compaction::plan(&mut growing, &secrets(1, "latest"), &Unwatched).unwrap();
            compaction.run(&mut growing, &Unwatched).unwrap();
        }
        drop(growing);
        let added = archive.add(vec![file("a", content)]).unwrap();
        archive.assert_content("latest", content);
        number = added.generation;
    }
    archive.assert_content("1", &contents[0]);
    assert!(contents_of(&archive.bytes(), &secrets(1, "2")).is_err());
    archive.verify_file();
    let states = names(&archive.state());
    assert!(states.len() > 9, "{states:?}");
}

#[test]
fn what_a_killed_run_left_is_cut_off_and_its_state_removed() {
    let archive = Archive::new();
    let contents: Vec<_> = (0..4).map(|seed| source_code(300_000, seed)).collect();
    archive.add(vec![file("a", &contents[0])]).unwrap();
    archive.add(vec![file("a", &contents[1])]).unwrap();
    let complete = archive.bytes();
    archive.add(vec![file("a", &contents[2])]).unwrap();
    let bytes = archive.bytes();
    let states = names(&archive.state());
    for cut in (complete.len()..bytes.len())
        .step_by(1999)
        .chain([bytes.len() - 1])
    {
        let other = Archive::new();
        fs::write(other.path(), &bytes[..cut]).unwrap();
        fs::create_dir(other.state()).unwrap();
        for name in &states {
            fs::copy(archive.state().join(name), other.state().join(name)).unwrap();
        }
        let added = other.add(vec![file("a", &contents[3])]);
        if let Err(error) = &added {
            // The end is there, and cut.
            assert_eq!(error.kind, ErrorKind::Damaged, "{cut}: {error}");
            assert!(bytes.len() - cut < 3000, "{cut}");
            continue;
        }
        other.assert_content("3", &contents[3]);
        other.assert_content("2", &contents[1]);
        assert_eq!(names(&other.state()).len(), 3);
        other.verify();
    }
}

#[test]
fn every_secret_of_the_archive_reads_what_was_added_without() {
    let archive = Archive::new();
    let with_password = || Some(PasswordSource::from_bytes(b"secret"));
    let options = CompressOptions {
        encryption: Some(Encryption {
            passwords: vec![PasswordSource::from_bytes(b"secret")],
            is_padded: true,
            ..encryption()
        }),
        memory_bytes: Some(128 << 20),
        ..archive.options()
    };
    let content = source_code(300_000, 1);
    let none = read_options(1);
    add_to(&archive.path(), vec![file("a", b"first")], &options, &none).unwrap();
    archive.add(vec![file("a", &content)]).unwrap();
    for secrets in [
        secrets(1, "latest"),
        ReadOptions {
            password: with_password(),
            ..read_options(1)
        },
    ] {
        let found = contents_of(&archive.bytes(), &secrets).unwrap();
        assert!(found[0].content == content);
    }
}

#[test]
fn damaged_states_and_states_of_other_archives_are_refused() {
    let (archive, other) = (Archive::new(), Archive::new());
    for archive in [&archive, &other] {
        archive
            .add(vec![file("a", &source_code(50_000, 1))])
            .unwrap();
        archive
            .add(vec![file("a", &source_code(60_000, 2))])
            .unwrap();
    }
    let before = archive.bytes();
    let refused = |kind: ErrorKind, what: &str| {
        let error = archive.add(vec![file("a", b"x")]).unwrap_err();
        assert_eq!(error.kind, kind, "{what}: {error}");
        assert!(archive.bytes() == before, "{what}");
    };
    for name in names(&archive.state()) {
        let path = archive.state().join(&name);
        let state = fs::read(&path).unwrap();
        let end = state.len() - 20;
        for (changed, what) in [
            (
                [&state[..end], &[state[end] ^ 1], &state[end + 1..]].concat(),
                "a bit",
            ),
            (state[..state.len() - 1].to_vec(), "a cut"),
            (vec![], "nothing"),
        ] {
            fs::write(&path, changed).unwrap();
            refused(ErrorKind::Damaged, what);
        }
        fs::write(&path, &state).unwrap();
    }
    fs::rename(archive.state(), archive.directory.path().join("aside")).unwrap();
    refused(ErrorKind::Usage, "no state");
    fs::rename(other.state(), archive.state()).unwrap();
    refused(ErrorKind::Usage, "another one's");
}

#[test]
fn what_is_added_without_a_secret_gets_recovery_data() {
    let archive = Archive::new();
    let contents = [random(200_000, 1), random(100_000, 2), random(50_000, 3)];
    let protected = CompressOptions {
        recovery: Some("10%".parse().unwrap()),
        ..archive.options()
    };
    let first = vec![file("a", &contents[0])];
    add_to(&archive.path(), first, &protected, &secrets(1, "latest")).unwrap();
    for content in &contents[1..] {
        let added = archive.add(vec![file("a", content)]).unwrap();
        assert!(added.recovery_bytes > 0);
        assert_eq!(added.archive_bytes, archive.bytes().len() as u64);
    }
    let whole = archive.bytes();
    let info = recovery_info(&MemorySource::new(whole.clone()))
        .unwrap()
        .unwrap();
    assert_eq!((info.sets, info.unprotected_bytes), (3, 0));
    for (number, content) in contents.iter().enumerate() {
        archive.assert_content(&(number + 1).to_string(), content);
    }
    archive.verify();
    let mut damaged = whole.clone();
    damaged[5_000..20_000].fill(0);
    damaged[250_000..255_000].fill(0);
    damaged.drain(380_000..381_000);
    assert!(repaired(&[&damaged]).unwrap().0 == whole);
    // The recovery data of the last night was not written completely.
    fs::write(archive.path(), &whole[..whole.len() - 1000]).unwrap();
    archive.add(vec![file("a", &contents[1])]).unwrap();
    let info = recovery_info(&MemorySource::new(archive.bytes()))
        .unwrap()
        .unwrap();
    assert_eq!((info.sets, info.unprotected_bytes), (3, 0));
    archive.assert_content("3", &contents[2]);
    archive.assert_content("4", &contents[1]);
}
