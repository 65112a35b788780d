//! The golden encrypted archive: each kind of slot opens it. See `golden/README.md`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::*;
use crate::encrypted_generations::{add_to, secrets};
use refrain::{
    Archive, CompressOptions, Encryption, Identity, KeySlots, PasswordSource, ReadOptions,
    Unwatched, WriterState, forget,
};
use refrain_testkit::data;

/// Its password. The keys are in `all.keys`.
const PASSWORD: &[u8] = b"password";

fn golden(extension: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/encrypted");
    folder.join("all").with_extension(extension)
}

fn content() -> Vec<u8> {
    let mut content = data::text(50_000, 4);
    content.extend(data::random(20_000, 5));
    content
}

fn keys() -> Vec<Identity> {
    let text = fs::read_to_string(golden("keys")).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn each_slot_opens_the_golden_encrypted_archive() {
    let archive = fs::read(golden("rfn")).unwrap();
    let slots = KeySlots::read(&*source(&archive)).unwrap().unwrap();
    assert_eq!(slots.kinds().len(), 3);
    let with_password = ReadOptions {
        password: Some(PasswordSource::from_bytes(PASSWORD)),
        ..read_options(2)
    };
    let keys = keys();
    assert_eq!(keys.len(), 2);
    let with_keys = keys.into_iter().map(|key| ReadOptions {
        identities: vec![key],
        ..read_options(2)
    });
    for options in with_keys.chain([with_password]) {
        let stream = Box::new(std::io::Cursor::new(archive.clone()));
        refrain::verify(stream, &options, &Unwatched).unwrap();
        let opened = Archive::open(source(&archive), &options).unwrap();
        let mut read = vec![0; content().len()];
        assert_eq!(opened.read_at(0, 0, &mut read).unwrap(), read.len());
        assert!(read == content());
    }
}

/// Writes the files unless they exist. Not a test; see `golden/README.md` for when to use it.
#[test]
#[ignore = "writes golden files"]
fn make_golden_encrypted() {
    if golden("rfn").exists() {
        return;
    }
    let identities = [
        Identity::X25519([0x42; 32].into()),
        refrain::new_identity(true).unwrap(),
    ];
    let options = CompressOptions {
        encryption: Some(Encryption {
            passwords: vec![PasswordSource::from_bytes(PASSWORD)],
            recipients: identities.iter().map(Identity::recipient).collect(),
            is_padded: true,
        }),
        memory_bytes: Some(refrain::MEMORY_BYTES_MIN),
        ..options(1, 1)
    };
    let (archive, _) = archive_of(vec![file("content", &content())], &options);
    let keys = identities.each_ref().map(Identity::to_text);
    let keys: String = keys.iter().map(|key| format!("{}\n", **key)).collect();
    fs::create_dir_all(golden("rfn").parent().unwrap()).unwrap();
    fs::write(golden("keys"), keys).unwrap();
    fs::write(golden("rfn"), archive).unwrap();
}

/// The generations of these archives, by a file of 2,000 and one of some hundred bytes.
fn nights() -> Vec<[Vec<u8>; 2]> {
    let night = |seed| [data::source_code(2000, seed), data::text(300, seed)];
    (0..3).map(night).collect()
}

#[test]
fn golden_encrypted_generations_are_read() {
    for name in ["nights", "small", "writers"] {
        let path = golden("rfn").with_file_name(format!("{name}.rfn"));
        let archive = fs::read(&path).unwrap();
        for (number, contents) in nights().iter().enumerate() {
            let generation = if name == "small" { number } else { number + 1 };
            let options = secrets(0x42, &generation.to_string());
            let (found, _) = extracted_of(&archive, &options).unwrap();
            assert_eq!(found.len(), 2, "{name} {generation}");
            let is_same = found
                .iter()
                .zip(contents)
                .all(|(one, two)| one.content == *two);
            assert!(is_same, "{name} {generation}");
        }
        refrain::verify(source(&archive), &secrets(0x42, "latest"), &Unwatched).unwrap();
    }
}

/// Writes the files unless they exist: an archive that `add` began, one of a single frame that
/// `compress` wrote, and one that grew without a secret; of that, a fourth generation is forgotten.
#[test]
#[ignore = "writes golden files"]
fn make_golden_encrypted_generations() {
    for name in ["nights", "small", "writers"] {
        let path = golden("rfn").with_file_name(format!("{name}.rfn"));
        if path.exists() {
            continue;
        }
        let state = tempfile::tempdir().unwrap();
        let encrypted = CompressOptions {
            encryption: Some(Encryption {
                recipients: vec![Identity::X25519([0x42; 32].into()).recipient()],
                ..Encryption::default()
            }),
            ..options(3, 1)
        };
        for (number, [code, text]) in nights().iter().enumerate() {
            let members = vec![file("code", code), file("text", text)];
            if name == "small" && number == 0 {
                fs::write(&path, archive_of(members, &encrypted).0).unwrap();
                continue;
            }
            let mut options = if number == 0 { encrypted.clone() } else { options(3, 1) };
            let mut secrets = secrets(0x42, "latest");
            if name == "writers" {
                secrets = read_options(1);
                options.writer_state = Some(WriterState::new(state.path()));
            }
            add_to(&path, members, &options, &secrets).unwrap();
        }
        if name == "writers" {
            forget_a_fourth(&path, state.path());
        }
    }
}

/// Adds a generation without a secret, forgets it with one, and adds the third one again.
fn forget_a_fourth(path: &Path, state: &Path) {
    let options = CompressOptions {
        writer_state: Some(WriterState::new(state)),
        ..options(3, 1)
    };
    let add = |members| add_to(path, members, &options, &read_options(1)).unwrap();
    add(vec![file("forgotten", b"content")]);
    let mut growing = refrain_storage::GrowingFile::open(path).unwrap();
    forget(&mut growing, &[4], &secrets(0x42, "latest")).unwrap();
    drop(growing);
    let [code, text] = &nights()[2];
    add(vec![file("code", code), file("text", text)]);
}
