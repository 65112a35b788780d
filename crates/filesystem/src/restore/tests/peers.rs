//! A tree walked and restored, judged by rsync.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{CWD, FileType, Mode, XattrFlags};

use super::create;
use super::state::states;
use super::users::{is_root, skip};
use crate::restore::TreeRestore;
use crate::walk::{FileRoot, WalkOptions, Walker};
use refrain_entries::{Entry, EntryKind};

/// Creates a tree with everything that the user may create.
fn make_tree(root: &Path) {
    let path = |name: &str| root.join(name);
    let set_mode = |name: &str, mode| {
        fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    let set_attribute = |name: &str, attribute: &str, value: &[u8]| {
        // Not every file system supports all of them.
        let _ = rustix::fs::lsetxattr(path(name), attribute, value, XattrFlags::empty());
    };
    fs::create_dir_all(path("deep/er/still")).unwrap();
    fs::create_dir(path("empty")).unwrap();
    for (number, name) in ["a", "deep/b", "deep/er/c", "deep/er/still/d"]
        .iter()
        .enumerate()
    {
        fs::write(path(name), vec![number as u8; number * 5000]).unwrap();
        let time = UNIX_EPOCH + Duration::new(1_000_000_000, 1 + number as u32);
        File::open(path(name)).unwrap().set_modified(time).unwrap();
    }
    fs::write(path(".hidden \u{fc} \n\" name"), "x").unwrap();
    fs::hard_link(path("a"), path("deep/a again")).unwrap();
    fs::hard_link(path("a"), path("z")).unwrap();
    symlink("nowhere at all", path("soft")).unwrap();
    fs::hard_link(path("soft"), path("soft again")).unwrap();
    let fifo = Mode::from_raw_mode(0o620);
    rustix::fs::mknodat(CWD, path("fifo"), FileType::Fifo, fifo, 0).unwrap();
    let sparse = File::create(path("sparse")).unwrap();
    sparse.write_all_at(&[1; 10_000], 3_000_000).unwrap();
    sparse.write_all_at(&[2; 1], 5_000_000).unwrap();
    sparse.set_len(9_000_001).unwrap();
    File::create(path("all hole"))
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    set_attribute("a", "user.comment", b"bytes\0\xff");
    set_attribute("deep", "user.comment", b"");
    if is_root() {
        chown(path("deep/b"), Some(1234), Some(4321)).unwrap();
        chown(path("empty"), Some(1234), Some(0)).unwrap();
        lchown(path("soft"), Some(99), Some(98)).unwrap();
        let device = rustix::fs::makedev(1, 7);
        let kind = FileType::CharacterDevice;
        rustix::fs::mknodat(CWD, path("device"), kind, Mode::RUSR, device).unwrap();
        set_attribute("soft", "trusted.comment", b"of a link");
        set_attribute("fifo", "trusted.comment", b"of a FIFO");
    }
    set_mode("deep/er/c", 0o4711);
    set_mode("deep/b", 0o6555);
    set_mode("empty", 0o3775);
    set_mode("deep/er/still", 0o500);
}

fn read_data(files: &FileRoot, entry: &mut Entry) -> Vec<u8> {
    let file = files.open_file(&entry.path).unwrap();
    entry.data_ranges = file.data_ranges().unwrap();
    let whole = std::iter::once(0..entry.size_bytes).collect::<Vec<_>>();
    let ranges = entry.data_ranges.as_deref().unwrap_or(&whole);
    let mut data = Vec::new();
    for range in ranges {
        let mut offset = range.start;
        while offset < range.end {
            let mut buffer = vec![0; (range.end - offset) as usize];
            let read = file.read_at(offset, &mut buffer).unwrap();
            assert!(read > 0);
            data.extend_from_slice(&buffer[..read]);
            offset += read as u64;
        }
    }
    data
}

fn restore_walked(source: &Path, restore: &TreeRestore) {
    let files = FileRoot::open(source).unwrap();
    let mut walker = Walker::open(source, Path::new(""), WalkOptions::default()).unwrap();
    loop {
        let entries = walker.next_entries(100).unwrap();
        if entries.is_empty() {
            break;
        }
        for mut entry in entries {
            match entry.kind {
                EntryKind::Directory => restore.directory(&entry),
                EntryKind::File => {
                    let data = read_data(&files, &mut entry);
                    assert!(restore.write_file(&entry, &data));
                }
                _ => restore.other(&entry),
            }
        }
    }
    assert!(walker.take_problems().is_empty());
}

#[test]
fn rsync_finds_no_difference_between_a_tree_and_its_restored_copy() {
    let temporary = tempfile::tempdir().unwrap();
    let (source, copy) = (
        temporary.path().join("source"),
        temporary.path().join("copy"),
    );
    fs::create_dir(&source).unwrap();
    make_tree(&source);
    let restore = create(&copy);
    restore_walked(&source, &restore);
    let summary = restore.finish().unwrap();
    assert!(summary.problems.is_empty(), "{:?}", summary.problems);
    assert!(summary.left_out.is_empty(), "{}", summary.left_out);
    assert_eq!(states(&source), states(&copy));
    for name in ["sparse", "all hole"] {
        let blocks = |root: &Path| fs::metadata(root.join(name)).unwrap().blocks();
        assert!(blocks(&copy) <= blocks(&source), "{name}");
    }
    let Some(found) = differences(&source, &copy) else {
        return skip("rsync is not installed");
    };
    assert_eq!(found, "");
    // It does find a difference if there is one.
    fs::set_permissions(copy.join("a"), fs::Permissions::from_mode(0o612)).unwrap();
    assert!(differences(&source, &copy).is_some_and(|text| text.contains(" a")));
}

/// What rsync would do; `None` without rsync.
fn differences(source: &Path, copy: &Path) -> Option<String> {
    let mut rsync = Command::new("rsync");
    rsync.args(["-aHAXS", "--checksum", "--delete", "-n", "-i"]);
    rsync.arg(source.join("")).arg(copy.join(""));
    let output = rsync.output().ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
