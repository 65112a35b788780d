use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use std::os::unix::fs::PermissionsExt;

use super::*;

const BOTH: [Temporary; 2] = [Temporary::Unnamed, Temporary::Hidden];

fn options(temporary: Temporary, overwrite: Overwrite) -> OutputOptions {
    OutputOptions {
        overwrite,
        temporary,
        ..OutputOptions::default()
    }
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn publish(path: &Path, bytes: &[u8], options: &OutputOptions) -> io::Result<()> {
    let mut file = AtomicFile::create(path, options)?;
    file.write_all(bytes)?;
    file.publish()
}

#[test]
fn appears_complete_at_publishing_and_not_before() {
    for temporary in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let options = options(temporary, Overwrite::Refuse);
        let mut file = AtomicFile::create(&path, &options).unwrap();
        if temporary == Temporary::Hidden {
            assert!(!file.is_unnamed());
            assert!(entries(directory.path())[0].starts_with(".out."));
        } else if file.is_unnamed() {
            assert!(entries(directory.path()).is_empty());
        }
        let view = file.read_back().unwrap();
        file.write_all(b"header").unwrap();
        file.write_zeros(10_000).unwrap();
        file.write_all(&[5; 200_000]).unwrap();
        file.write_zeros(5_000).unwrap();
        assert!(!path.exists());
        file.publish().unwrap();
        assert_eq!(entries(directory.path()), ["out"]);
        let expected = [&b"header"[..], &[0; 10_000], &[5; 200_000], &[0; 5_000]].concat();
        assert_eq!(std::fs::read(&path).unwrap(), expected);
        assert_eq!(view.size_bytes().unwrap(), expected.len() as u64);
        // Used up: no second publishing, no more bytes, and dropping it removes nothing.
        assert!(
            file.publish()
                .unwrap_err()
                .to_string()
                .contains("already published")
        );
        assert!(file.write_all(b"late").is_err());
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), expected);
    }
}

#[test]
fn dropping_unpublished_removes_everything() {
    for temporary in BOTH {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("neighbor"), "n").unwrap();
        let path = directory.path().join("out");
        let options = options(temporary, Overwrite::Refuse);
        let mut file = AtomicFile::create(&path, &options).unwrap();
        file.write_all(&[1; 1 << 20]).unwrap();
        drop(file);
        assert_eq!(entries(directory.path()), ["neighbor"]);
    }
}

#[test]
fn an_existing_file_is_refused_at_once() {
    for temporary in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        std::fs::write(&path, "old").unwrap();
        let error = publish(&path, b"new", &options(temporary, Overwrite::Refuse)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let text = error.to_string();
        assert!(text.contains("create") && text.contains("out"), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(entries(directory.path()), ["out"]);
    }
}

#[test]
fn a_file_created_meanwhile_is_refused_at_publishing() {
    for temporary in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let mut file = AtomicFile::create(&path, &options(temporary, Overwrite::Refuse)).unwrap();
        file.write_all(b"ours").unwrap();
        std::fs::write(&path, "theirs").unwrap();
        let error = file.publish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        assert_eq!(entries(directory.path()), ["out"]);
    }
}

/// Many publish under one name at once: exactly one wins, and the name holds what it wrote.
#[test]
fn publishing_without_overwrite_has_no_race() {
    for temporary in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let quick = OutputOptions {
            durability: Durability::Unsynced,
            ..options(temporary, Overwrite::Refuse)
        };
        let mut files: Vec<AtomicFile> = (0..8u8)
            .map(|number| {
                let mut file = AtomicFile::create(&path, &quick).unwrap();
                file.write_all(&[number; 5000]).unwrap();
                file
            })
            .collect();
        let winners: Vec<usize> = std::thread::scope(|scope| {
            let publishing: Vec<_> = files
                .iter_mut()
                .map(|file| scope.spawn(|| file.publish().is_ok()))
                .collect();
            let won = publishing.into_iter().map(|thread| thread.join().unwrap());
            won.enumerate()
                .filter(|(_, won)| *won)
                .map(|(index, _)| index)
                .collect()
        });
        assert_eq!(winners.len(), 1);
        drop(files);
        assert_eq!(std::fs::read(&path).unwrap(), [winners[0] as u8; 5000]);
        assert_eq!(entries(directory.path()), ["out"]);
    }
}

#[test]
fn replacing_is_atomic_and_retains_the_mode() {
    for temporary in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let reader = File::open(&path).unwrap();
        let mut file = AtomicFile::create(&path, &options(temporary, Overwrite::Replace)).unwrap();
        file.write_all(b"new and longer").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        file.publish().unwrap();
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"new and longer");
        assert_eq!(std::io::read_to_string(reader).unwrap(), "old");
        let mode = std::fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(entries(directory.path()), ["out"]);
    }
}

#[test]
fn dropping_a_replacement_retains_the_old_file() {
    for temporary in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        std::fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path, &options(temporary, Overwrite::Replace)).unwrap();
        file.write_all(b"new").unwrap();
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(entries(directory.path()), ["out"]);
    }
}

#[test]
fn mode_and_time_are_set_before_it_is_visible() {
    for temporary in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let before_epoch = Duration::new(999_999, 876_543_300);
        let modified = SystemTime::UNIX_EPOCH - before_epoch;
        let options = OutputOptions {
            mode: Some(0o6751),
            modified: Some(modified),
            ..options(temporary, Overwrite::Refuse)
        };
        publish(&path, b"x", &options).unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.mode() & 0o7777, 0o751, "no set-user-id");
        assert_eq!(metadata.modified().unwrap(), modified);
    }
}

#[test]
fn mode_and_time_can_be_set_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let mut file = AtomicFile::create(&path, &OutputOptions::default()).unwrap();
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_modified(modified);
    file.set_mode(0o640);
    file.publish().unwrap();
    let metadata = std::fs::metadata(&path).unwrap();
    assert_eq!(metadata.mode() & 0o777, 0o640);
    assert_eq!(metadata.modified().unwrap(), modified);
}

#[test]
fn symbolic_links_are_followed_only_with_overwrite() {
    for temporary in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("inside/target", &link).unwrap();
        let error = publish(&link, b"no", &options(temporary, Overwrite::Refuse)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(entries(&inside).is_empty());
        // Dangling: creates the target.
        publish(&link, b"first", &options(temporary, Overwrite::Replace)).unwrap();
        assert_eq!(std::fs::read(inside.join("target")).unwrap(), b"first");
        let error = publish(&link, b"no", &options(temporary, Overwrite::Refuse)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        publish(&link, b"second", &options(temporary, Overwrite::Replace)).unwrap();
        assert_eq!(std::fs::read(inside.join("target")).unwrap(), b"second");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(entries(&inside), ["target"]);
    }
}

#[test]
fn publishes_into_its_directory_after_the_directory_was_moved() {
    for temporary in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let (before, after) = (
            directory.path().join("before"),
            directory.path().join("after"),
        );
        std::fs::create_dir(&before).unwrap();
        let path = before.join("out");
        let mut file = AtomicFile::create(&path, &options(temporary, Overwrite::Refuse)).unwrap();
        std::fs::rename(&before, &after).unwrap();
        file.write_all(b"x").unwrap();
        file.publish().unwrap();
        assert_eq!(entries(&after), ["out"]);
    }
}

#[test]
fn long_names_work_and_missing_directories_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    for temporary in BOTH {
        let path = directory.path().join("n".repeat(255));
        publish(&path, b"x", &options(temporary, Overwrite::Replace)).unwrap();
        let missing = directory.path().join("missing/out");
        let error = publish(&missing, b"x", &options(temporary, Overwrite::Refuse)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("missing/out"), "{error}");
    }
    for special in [Path::new("/dev/null"), directory.path()] {
        assert!(AtomicFile::create(special, &OutputOptions::default()).is_err());
    }
}

/// A failed write sticks: output with a gap is never published.
#[test]
fn after_a_failure_nothing_is_published() {
    for temporary in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let mut file = AtomicFile::create(&path, &options(temporary, Overwrite::Refuse)).unwrap();
        file.write_all(b"x").unwrap();
        let error = file.write_zeros(u64::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let error = file.publish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        drop(file);
        assert!(entries(directory.path()).is_empty());
    }
}

#[test]
fn the_mode_limit_closes_new_and_replaced_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    for temporary in [Temporary::Unnamed, Temporary::Hidden] {
        let write = |limit| {
            let options = OutputOptions {
                overwrite: Overwrite::Replace,
                mode_limit: limit,
                temporary,
                ..OutputOptions::default()
            };
            let mut file = AtomicFile::create(&path, &options).unwrap();
            let found = std::fs::read_dir(directory.path()).unwrap();
            for hidden in found.map(|entry| entry.unwrap()) {
                let mode = hidden.metadata().unwrap().permissions().mode();
                let is_hidden = hidden.file_name() != "out";
                assert!(!is_hidden || mode & 0o077 == 0, "{hidden:?} {mode:o}");
            }
            file.publish().unwrap();
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777
        };
        let usual = write(None);
        assert_eq!(write(Some(0o640)), usual & 0o640);
        assert_eq!(write(Some(0o604)), usual & 0o600);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(write(Some(0o600)), 0o600);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(write(None), usual);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn below_a_directory_links_are_replaced_and_never_followed() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(path("root/d")).unwrap();
    std::fs::write(path("victim"), "precious").unwrap();
    std::os::unix::fs::symlink("../victim", path("root/link")).unwrap();
    std::os::unix::fs::symlink("..", path("root/d/up")).unwrap();
    let root = ConfinedDirectory::open(&path("root")).unwrap();
    let write = |relative: &str, overwrite| {
        let options = OutputOptions {
            overwrite,
            ..OutputOptions::default()
        };
        let mut file = AtomicFile::create_below(&root, Path::new(relative), &options)?;
        file.write_all(b"new")?;
        file.publish()
    };
    let kind = |relative, overwrite| write(relative, overwrite).unwrap_err().kind();
    assert_eq!(
        kind("link", Overwrite::Refuse),
        io::ErrorKind::AlreadyExists
    );
    for relative in ["d/up/x", "../victim", "/victim"] {
        assert_eq!(
            kind(relative, Overwrite::Replace),
            io::ErrorKind::InvalidData
        );
    }
    write("link", Overwrite::Replace).unwrap();
    write("new/sub/file", Overwrite::Refuse).unwrap();
    assert_eq!(std::fs::read(path("victim")).unwrap(), b"precious");
    assert!(!path("root/link").is_symlink() && !path("root/x").exists());
    assert_eq!(std::fs::read(path("root/new/sub/file")).unwrap(), b"new");
}
