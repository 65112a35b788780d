//! Several members of one archive below one directory, and restores that end early.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use proptest::prelude::*;
use refrain_storage::{AtomicFile, ConfinedDirectory, OutputOptions, Overwrite, Sink};

use super::hostile::{hostile_entry, path, restore_one};
use super::state::states;
use super::{entry, file, link};
use crate::restore::{RestoreOptions, TreeRestore};
use refrain_entries::{Entry, EntryKind};

/// A member: a directory with entries, or a file.
#[derive(Debug, Clone)]
enum Member {
    Tree(String, Vec<Entry>, bool),
    File(String),
}

fn member() -> impl Strategy<Value = Member> {
    let entries = proptest::collection::vec(hostile_entry(), 0..6);
    prop_oneof![
        3 => (path(), entries, any::<bool>())
            .prop_map(|(name, entries, is_finished)| Member::Tree(name, entries, is_finished)),
        1 => path().prop_map(Member::File),
    ]
}

/// A refused member is skipped, so that the later ones are tried too.
fn restore_member(root: &ConfinedDirectory, member: &Member, overwrite: bool) {
    match member {
        Member::Tree(name, entries, is_finished) => {
            let options = RestoreOptions {
                overwrite,
                ..RestoreOptions::default()
            };
            let Ok(restore) = TreeRestore::create_below(root, Path::new(name), options) else {
                return;
            };
            entries
                .iter()
                .for_each(|entry| restore_one(&restore, entry));
            if *is_finished {
                let _ = restore.finish();
            }
        }
        Member::File(name) => {
            let options = OutputOptions {
                overwrite: if overwrite { Overwrite::Replace } else { Overwrite::Refuse },
                ..OutputOptions::default()
            };
            if let Ok(mut file) = AtomicFile::create_below(root, Path::new(name), &options) {
                let _ = file.write_all(b"evil").and_then(|()| file.publish());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_sequence_of_members_leaves_the_directory_or_removes_what_existed(
        members in proptest::collection::vec(member(), 1..6),
        overwrite in any::<bool>(),
    ) {
        let temporary = tempfile::tempdir().unwrap();
        let (outside, out) = (temporary.path().join("outside"), temporary.path().join("out"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "precious").unwrap();
        fs::write(temporary.path().join("victim"), "precious").unwrap();
        let mut expected = states(temporary.path());
        fs::create_dir_all(out.join("a")).unwrap();
        symlink("../outside", out.join("b")).unwrap();
        symlink("../../outside/victim", out.join("a/b")).unwrap();
        let before: Vec<_> = states(&out).into_iter().collect();
        let root = ConfinedDirectory::open(&out).unwrap();
        members.iter().for_each(|member| restore_member(&root, member, overwrite));
        // The parent directory's time changes.
        expected.remove(&b"."[..]);
        let mut found = states(temporary.path());
        found.retain(|path, _| path != b"." && path != b"out" && !path.starts_with(b"out/"));
        prop_assert_eq!(expected, found);
        let after = states(&out);
        for (path, state) in before {
            prop_assert!(after.contains_key(&path), "{} is gone", String::from_utf8_lossy(&path));
            let now = &after[&path];
            prop_assert!(overwrite || (now.kind, &now.content) == (state.kind, &state.content));
        }
    }

    /// Drops the restore after any entry, as an interrupted or damaged run does.
    #[test]
    fn a_restore_that_ends_early_leaves_every_path_that_existed(
        entries in proptest::collection::vec(hostile_entry(), 1..16),
        ends_inside_a_file in any::<bool>(),
    ) {
        let temporary = tempfile::tempdir().unwrap();
        let out = temporary.path().join("out");
        for path in ["a/a/a", "a/b", "b/a"] {
            fs::create_dir_all(out.join(path).parent().unwrap()).unwrap();
            fs::write(out.join(path), "old").unwrap();
        }
        symlink("a", out.join("a/a/b")).unwrap();
        fs::hard_link(out.join("a/b"), out.join("b/b")).unwrap();
        let before = states(&out);
        let options = RestoreOptions { overwrite: true, ..RestoreOptions::default() };
        let restore = TreeRestore::create(&out, options).unwrap();
        entries.iter().for_each(|entry| restore_one(&restore, entry));
        restore.link();
        let part = restore.file(&file("a/a/a", b"evil"));
        if let Some(part) = part && ends_inside_a_file {
            part.write_at(0, b"ev").unwrap();
        }
        drop(restore);
        let after = states(&out);
        for (path, state) in &before {
            let text = String::from_utf8_lossy(path);
            prop_assert!(after.contains_key(path), "{text} is gone");
            let now = &after[path];
            let is_whole = now.kind != EntryKind::File
                || now.content == b"evil" || now.content == state.content;
            prop_assert!(is_whole, "{text}: {now:?}");
        }
        // New paths are removed.
        let added: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
        prop_assert!(added.is_empty(), "{added:?} remain");
    }
}

#[test]
fn entries_that_replace_others_of_another_kind_do_so_at_once() {
    let temporary = tempfile::tempdir().unwrap();
    let out = temporary.path().join("out");
    fs::create_dir(&out).unwrap();
    for name in ["link", "directory", "fifo", "hard", "same"] {
        fs::write(out.join(name), "old").unwrap();
    }
    let options = RestoreOptions {
        overwrite: true,
        ..RestoreOptions::default()
    };
    let restore = TreeRestore::create(&out, options).unwrap();
    assert!(restore.write_file(&file("new", b"new"), b"new"));
    restore.other(&link("link", EntryKind::Symlink, "new"));
    restore.other(&entry("fifo", EntryKind::Fifo));
    restore.directory(&entry("directory", EntryKind::Directory));
    assert!(restore.write_file(&file("directory/x", b"x"), b"x"));
    for _ in 0..2 {
        // The second time, both names already belong to one file.
        restore.other(&link("hard", EntryKind::Hardlink, "new"));
        assert!(restore.link().is_empty());
    }
    // Cannot be created: the old one stays.
    let device = Entry {
        device: (u32::MAX, u32::MAX),
        ..link("same", EntryKind::Symlink, "")
    };
    restore.other(&device);
    let summary = restore.finish().unwrap();
    assert_eq!(summary.problem_count, 1, "{:?}", summary.problems);
    assert_eq!(fs::read(out.join("same")).unwrap(), b"old");
    assert_eq!(fs::read(out.join("hard")).unwrap(), b"new");
    assert_eq!(fs::metadata(out.join("new")).unwrap().nlink(), 2);
    let names: Vec<_> = states(&out).into_keys().collect();
    let expected = [
        "directory",
        "directory/x",
        "fifo",
        "hard",
        "link",
        "new",
        "same",
    ];
    let expected = expected.map(|name| name.as_bytes().to_vec());
    assert_eq!(names[1..], expected);
}

#[test]
fn what_has_no_room_in_memory_ends_the_restore() {
    let temporary = tempfile::tempdir().unwrap();
    // Room for a hundred paths in an existing directory.
    let options = RestoreOptions {
        memory_bytes: 100 * 4 * 21,
        ..RestoreOptions::default()
    };
    for exists in [false, true] {
        let out = temporary.path().join("out");
        if exists {
            fs::create_dir(&out).unwrap();
        }
        let restore = TreeRestore::create(&out, options).unwrap();
        for number in 0..150 {
            restore.write_file(&file(&number.to_string(), b"x"), b"x");
        }
        assert_eq!(restore.has_ended(), exists);
        let summary = restore.finish().unwrap();
        let stopped = summary.stopped.map(|error| error.kind());
        assert_eq!(stopped, exists.then_some(std::io::ErrorKind::OutOfMemory));
        let restored = fs::read_dir(&out).unwrap().count();
        assert_eq!(restored, if exists { 101 } else { 150 });
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn many_hard_links_are_made_early_or_end_the_restore() {
    let temporary = tempfile::tempdir().unwrap();
    // Room for about a hundred waiting links.
    let options = RestoreOptions {
        memory_bytes: 100 * 8 * 90,
        ..RestoreOptions::default()
    };
    for target in ["a", "missing"] {
        let out = temporary.path().join(target);
        let restore = TreeRestore::create(&out, options).unwrap();
        assert!(restore.write_file(&file("a", b"x"), b"x"));
        for number in 0..1000 {
            restore.other(&link(&format!("l{number}"), EntryKind::Hardlink, target));
            restore.link_if_many();
        }
        let summary = restore.finish().unwrap();
        let stopped = summary.stopped.map(|error| error.kind());
        let is_missing = target == "missing";
        assert_eq!(
            stopped,
            is_missing.then_some(std::io::ErrorKind::OutOfMemory)
        );
        let links = fs::metadata(out.join("a")).unwrap().nlink();
        assert_eq!(links, if is_missing { 1 } else { 1001 });
    }
}
