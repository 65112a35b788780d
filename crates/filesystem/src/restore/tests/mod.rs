//! Trees restored entry by entry.

mod hostile;
mod kinds;
mod members;
mod peers;
mod read_back;
mod state;
mod trouble;
mod users;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use super::*;
use refrain_entries::{Entry, EntryKind, Owner, Timestamp};

pub(super) const TIME: Timestamp = Timestamp {
    seconds: 1_000_000_000,
    nanoseconds: 123_456_789,
};

/// An entry of the user who runs the test.
pub(super) fn entry(path: &str, kind: EntryKind) -> Entry {
    Entry {
        path: path.as_bytes().to_vec(),
        kind,
        mode: if kind == EntryKind::Directory { 0o755 } else { 0o644 },
        owner: Arc::new(Owner {
            uid: rustix::process::geteuid().as_raw().into(),
            gid: rustix::process::getegid().as_raw().into(),
            ..Owner::default()
        }),
        modified: TIME,
        ..Entry::default()
    }
}

pub(super) fn file(path: &str, data: &[u8]) -> Entry {
    Entry {
        size_bytes: data.len() as u64,
        ..entry(path, EntryKind::File)
    }
}

pub(super) fn link(path: &str, kind: EntryKind, target: &str) -> Entry {
    Entry {
        link_target: Some(target.as_bytes().to_vec()),
        ..entry(path, kind)
    }
}

pub(super) fn create(target: &Path) -> TreeRestore {
    TreeRestore::create(target, RestoreOptions::default()).unwrap()
}

#[test]
fn a_tree_is_restored_entry_by_entry() {
    let temporary = tempfile::tempdir().unwrap();
    let out = temporary.path().join("out");
    let restore = create(&out);
    restore.directory(&entry(".", EntryKind::Directory));
    restore.other(&link("hard", EntryKind::Hardlink, "deep/er/file"));
    assert!(restore.write_file(&file("deep/er/file", b"content"), b"content"));
    restore.directory(&Entry {
        mode: 0o500,
        ..entry("deep", EntryKind::Directory)
    });
    restore.other(&link("soft", EntryKind::Symlink, "nowhere"));
    restore.other(&entry("fifo", EntryKind::Fifo));
    assert!(!out.exists());
    let summary = restore.finish().unwrap();
    assert_eq!(summary.problem_count, 0, "{:?}", summary.problems);
    assert!(summary.left_out.is_empty(), "{}", summary.left_out);
    assert_eq!(summary.entries, 6);
    assert_eq!(fs::read(out.join("hard")).unwrap(), b"content");
    assert_eq!(fs::metadata(out.join("hard")).unwrap().nlink(), 2);
    assert_eq!(
        fs::metadata(out.join("deep")).unwrap().mode() & 0o7777,
        0o500
    );
    assert_eq!(
        fs::read_link(out.join("soft")).unwrap(),
        Path::new("nowhere")
    );
    let fifo = fs::symlink_metadata(out.join("fifo")).unwrap();
    assert!(fifo.file_type().is_fifo());
    for name in [".", "deep", "hard", "soft", "fifo"] {
        let found = fs::symlink_metadata(out.join(name)).unwrap();
        let time = (found.mtime(), found.mtime_nsec());
        assert_eq!(time, (TIME.seconds, TIME.nanoseconds.into()), "{name}");
    }
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
}
