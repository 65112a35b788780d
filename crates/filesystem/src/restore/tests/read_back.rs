//! Files that are read back from the disk before they get their names.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{create, entry, file, link};
use crate::restore::{RestoreOptions, TreeRestore};
use refrain_entries::{Entry, EntryKind};

const OPTIONS: fn() -> RestoreOptions = || RestoreOptions {
    reads_back: true,
    ..RestoreOptions::default()
};

/// A directory in memory, if there is such a thing: syncing a disk waits for other programs.
fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// A sparse file of two ranges of data, written from the back, and zeros between them.
fn sparse_file(restore: &TreeRestore) {
    let entry = Entry {
        size_bytes: 10_000_000,
        data_ranges: Some(vec![1000..2000, 5_000_000..5_300_000]),
        ..entry("sparse", EntryKind::File)
    };
    let file = restore.file(&entry).unwrap();
    file.write_at(101_000, &[3; 200_000]).unwrap();
    file.write_at(0, &[1; 500]).unwrap();
    file.write_zeros_at(500, 500).unwrap();
    file.write_at(1000, &[2; 100_000]).unwrap();
    file.finish().unwrap();
}

/// Restores into a target that exists, or does not. `lie` changes files before they are read back.
fn restore(out: &Path, lie: impl FnOnce(&Path)) -> crate::restore::RestoreSummary {
    let parent = out.parent().unwrap();
    let restore = TreeRestore::create(out, OPTIONS()).unwrap();
    restore.other(&link("hard", EntryKind::Hardlink, "d/0"));
    for name in 0..300 {
        let data = vec![name as u8; name];
        assert!(restore.write_file(&file(&format!("d/{name}"), &data), &data));
    }
    sparse_file(&restore);
    lie(parent);
    restore.finish().unwrap()
}

#[test]
fn files_are_read_back_and_get_their_names() {
    let temporary = in_memory();
    for exists in [false, true] {
        let out = temporary.path().join(format!("out-{exists}"));
        if exists {
            fs::create_dir(&out).unwrap();
        }
        let summary = restore(&out, |_| {});
        assert_eq!(summary.problem_count, 0, "{:?}", summary.problems);
        assert_eq!((summary.files, summary.entries), (302, 302));
        let found = summary.read_back.unwrap();
        let bytes = (0..300).sum::<u64>() + 10_000_000;
        assert_eq!((found.files, found.bytes), (301, bytes));
        assert_eq!(fs::read(out.join("d/299")).unwrap(), vec![43; 299]);
        assert_eq!(fs::read(out.join("hard")).unwrap(), b"");
        let sparse = fs::read(out.join("sparse")).unwrap();
        assert_eq!((sparse[1499], sparse[1500], sparse[5_100_000]), (1, 0, 3));
    }
    let restore = create(&temporary.path().join("not"));
    assert_eq!(restore.finish().unwrap().read_back, None);
}

#[test]
fn a_disk_is_read_past_the_cache() {
    let temporary = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let restore = TreeRestore::create(&temporary.path().join("out"), OPTIONS()).unwrap();
    assert!(restore.write_file(&file("a", b"data"), b"data"));
    let found = restore.finish().unwrap().read_back.unwrap();
    let is_cached = refrain_storage::is_in_memory(temporary.path());
    assert_eq!((found.files, found.cached_files), (1, u64::from(is_cached)));
}

/// The file that waits under this path in a hidden directory.
fn waiting(parent: &Path, path: &str) -> PathBuf {
    let hidden = fs::read_dir(parent).unwrap().next().unwrap().unwrap();
    hidden.path().join(path)
}

#[test]
fn files_that_differ_are_removed_and_named() {
    let temporary = in_memory();
    let out = temporary.path().join("out");
    let summary = restore(&out, |parent| {
        for (path, offset) in [("d/298", 297), ("sparse", 4_000_000)] {
            let options = OpenOptions::new().write(true).open(waiting(parent, path));
            options.unwrap().write_at(b"x", offset).unwrap();
        }
    });
    let mut problems: Vec<_> = summary.problems.iter().map(ToString::to_string).collect();
    problems.sort();
    assert_eq!(summary.problem_count, 2, "{problems:?}");
    assert!(
        problems[0].starts_with("restore \"d/298\": "),
        "{problems:?}"
    );
    assert!(
        problems[0].contains("bytes 0..298 were read back"),
        "{problems:?}"
    );
    assert!(
        problems[1].starts_with("restore \"sparse\": "),
        "{problems:?}"
    );
    assert!(!out.join("d/298").exists() && !out.join("sparse").exists());
    assert!(out.join("d/297").exists());
    assert_eq!(summary.read_back.unwrap().files, 299);
}

#[test]
fn files_that_wait_vanish_with_the_restore() {
    let temporary = in_memory();
    for exists in [false, true] {
        let out = temporary.path().join("out");
        if exists {
            fs::create_dir(&out).unwrap();
        }
        let restore = TreeRestore::create(&out, OPTIONS()).unwrap();
        assert!(restore.write_file(&file("a", b"data"), b"data"));
        drop(restore);
        let left = fs::read_dir(temporary.path()).unwrap().count();
        assert_eq!(left, usize::from(exists));
        if exists {
            assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
        }
    }
}
