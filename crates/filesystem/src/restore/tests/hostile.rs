//! Paths and links that try to leave the target, and processes that try to help them.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags};

use super::state::states;
use super::{create, entry, file, link};
use crate::restore::{RestoreOptions, TreeRestore};
use refrain_entries::{Entry, EntryKind};

pub(super) fn restore_one(restore: &TreeRestore, entry: &Entry) {
    match entry.kind {
        EntryKind::Directory => restore.directory(entry),
        EntryKind::File => {
            restore.write_file(entry, b"evil");
        }
        _ => restore.other(entry),
    }
}

fn component() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just("a"), 3 => Just("b"), 1 => Just(".."), 1 => Just("."), 1 => Just(""),
    ]
}

pub(super) fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec(component(), 1..5).prop_map(|parts| parts.join("/"))
}

pub(super) fn hostile_entry() -> impl Strategy<Value = Entry> {
    let target = prop_oneof![
        Just("..".to_string()),
        Just("../victim".to_string()),
        Just("../../victim".to_string()),
        Just("/".to_string()),
        path(),
    ];
    let kind = prop_oneof![
        Just(EntryKind::File),
        Just(EntryKind::Directory),
        Just(EntryKind::Symlink),
        Just(EntryKind::Hardlink),
        Just(EntryKind::Fifo),
    ];
    (path(), kind, target).prop_map(|(path, kind, target)| match kind {
        EntryKind::File => file(&path, b"evil"),
        EntryKind::Symlink | EntryKind::Hardlink => link(&path, kind, &target),
        _ => entry(&path, kind),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_is_created_or_changed_outside_of_the_target(
        entries in proptest::collection::vec(hostile_entry(), 1..12),
        exists in any::<bool>(), overwrite in any::<bool>(), is_finished in any::<bool>(),
    ) {
        let temporary = tempfile::tempdir().unwrap();
        let outside = temporary.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "precious").unwrap();
        fs::write(temporary.path().join("victim"), "precious").unwrap();
        let out = temporary.path().join("out");
        let mut expected = states(temporary.path());
        if exists {
            fs::create_dir(&out).unwrap();
            symlink("../outside", out.join("b")).unwrap();
        }
        let options = RestoreOptions { overwrite, ..RestoreOptions::default() };
        let restore = TreeRestore::create(&out, options).unwrap();
        entries.iter().for_each(|entry| restore_one(&restore, entry));
        if is_finished { drop(restore.finish().unwrap()) } else { drop(restore) }
        // Writing to the target changes its time.
        expected.remove(&b"."[..]);
        let mut found = states(temporary.path());
        found.retain(|path, _| path != b"." && path != b"out" && !path.starts_with(b"out/"));
        prop_assert_eq!(expected, found);
        prop_assert_eq!(out.exists(), exists || is_finished);
        if exists && !is_finished && !overwrite {
            prop_assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
        }
    }
}

/// Another process keeps replacing a directory by a link.
#[test]
fn directories_that_become_links_lead_nowhere() {
    let temporary = tempfile::tempdir().unwrap();
    let (out, outside) = (
        temporary.path().join("out"),
        temporary.path().join("outside"),
    );
    for directory in [
        &out,
        &out.join("d"),
        &out.join("d/e"),
        &outside,
        &outside.join("e"),
    ] {
        fs::create_dir(directory).unwrap();
    }
    let stop = AtomicBool::new(false);
    let swap = || {
        let (real, link) = (out.join("d"), out.join("link"));
        symlink("../outside", &link).unwrap();
        let mut swaps = 0_u32;
        // Ends with the directory in its place.
        while swaps % 2 == 1 || !stop.load(Ordering::Relaxed) {
            rustix::fs::renameat_with(CWD, &real, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            swaps += 1;
        }
        swaps
    };
    let attack = |round: usize| {
        let options = RestoreOptions {
            overwrite: true,
            ..RestoreOptions::default()
        };
        let restore = TreeRestore::create(&out, options).unwrap();
        for name in ["d/file", "d/e/file"] {
            restore.write_file(&file(name, b"evil"), b"evil");
        }
        restore.directory(&Entry {
            mode: 0o777,
            ..entry("d/e", EntryKind::Directory)
        });
        restore.other(&entry(&format!("d/fifo{round}"), EntryKind::Fifo));
        restore.other(&link("d/hard", EntryKind::Hardlink, "d/file"));
        match round % 2 {
            0 => drop(restore),
            _ => drop(restore.finish().unwrap()),
        }
    };
    std::thread::scope(|scope| {
        let swapping = scope.spawn(swap);
        (0..300).for_each(attack);
        stop.store(true, Ordering::Relaxed);
        assert!(swapping.join().unwrap() > 10);
    });
    let left: Vec<_> = states(&outside).into_keys().collect();
    assert_eq!(left, [&b"."[..], b"e"]);
    let mode = fs::metadata(outside.join("e")).unwrap().mode();
    assert_ne!(mode & 0o7777, 0o777);
}

#[test]
fn links_in_the_way_are_problems_and_the_others_go_on() {
    let temporary = tempfile::tempdir().unwrap();
    let out = temporary.path().join("out");
    let restore = create(&out);
    restore.other(&link("up", EntryKind::Symlink, ".."));
    for path in ["up/evil", "/evil", "a/../../evil", "", "nul\0"] {
        restore_one(&restore, &file(path, b"evil"));
    }
    restore.directory(&entry("up/below", EntryKind::Directory));
    restore.other(&link("hard", EntryKind::Hardlink, "up/victim"));
    assert!(restore.write_file(&file("good", b"good"), b"good"));
    let summary = restore.finish().unwrap();
    assert_eq!(summary.problem_count, 7, "{:?}", summary.problems);
    let texts: Vec<_> = summary.problems.iter().map(ToString::to_string).collect();
    assert!(
        texts[0].contains("symbolic links are not followed"),
        "{}",
        texts[0]
    );
    assert!(texts[1].contains("absolute"), "{}", texts[1]);
    assert!(texts[2].contains("'..'"), "{}", texts[2]);
    assert_eq!(fs::read(out.join("good")).unwrap(), b"good");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
    assert!(fs::symlink_metadata(out.join("hard")).is_err());
}

/// Of several entries with one path, the last wins, whatever their kinds.
#[test]
fn the_last_of_several_entries_with_one_path_wins() {
    for exists in [false, true] {
        let temporary = tempfile::tempdir().unwrap();
        let out = temporary.path().join("out");
        if exists {
            fs::create_dir(&out).unwrap();
        }
        let restore = create(&out);
        assert!(restore.write_file(&file("x", b"first"), b"first"));
        restore.other(&link("x", EntryKind::Symlink, "../outside"));
        assert!(restore.write_file(&file("x", b"last"), b"last"));
        restore.other(&entry("y", EntryKind::Fifo));
        restore.directory(&entry("y", EntryKind::Directory));
        assert!(restore.write_file(&file("y/z", b"z"), b"z"));
        // Directories are not replaced.
        assert!(!restore.write_file(&file("y", b"file"), b"file"));
        let summary = restore.finish().unwrap();
        assert_eq!(summary.problem_count, 1, "{:?}", summary.problems);
        assert!(summary.problems[0].to_string().contains("is a directory"));
        assert_eq!(fs::read(out.join("x")).unwrap(), b"last");
        assert_eq!(fs::read(out.join("y/z")).unwrap(), b"z");
        let names: Vec<_> = states(&out).into_keys().collect();
        assert_eq!(names, [&b"."[..], b"x", b"y", b"y/z"]);
    }
}

#[test]
fn data_that_does_not_fit_the_entry_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let out = temporary.path().join("out");
    let restore = create(&out);
    let sparse = |path, ranges| Entry {
        data_ranges: Some(ranges),
        ..file(path, &[0; 100])
    };
    for (path, ranges) in [("a", vec![10..20, 15..30]), ("b", vec![0..5, 10..101])] {
        assert!(restore.file(&sparse(path, ranges)).is_none());
    }
    let long = restore.file(&file("long", b"12")).unwrap();
    assert!(long.write_at(1, b"23").is_err());
    assert!(long.finish().is_err());
    let short = restore.file(&file("short", b"12")).unwrap();
    short.write_at(0, b"1").unwrap();
    assert!(short.finish().is_err());
    let beyond = restore.file(&sparse("beyond", vec![0..2, 10..18])).unwrap();
    assert!(beyond.write_at(5, b"123456").is_err());
    drop(beyond);
    let whole = restore
        .file(&sparse("whole", vec![10..20, 99..100]))
        .unwrap();
    whole.write_at(5, b"67890A").unwrap();
    whole.write_at(0, b"12345").unwrap();
    whole.finish().unwrap();
    let summary = restore.finish().unwrap();
    assert_eq!(summary.problem_count, 5, "{:?}", summary.problems);
    let names: Vec<_> = states(&out).into_keys().collect();
    assert_eq!(names, [&b"."[..], b"whole"]);
    let mut expected = [0; 100];
    expected[10..20].copy_from_slice(b"1234567890");
    expected[99] = b'A';
    assert_eq!(fs::read(Path::new(&out).join("whole")).unwrap(), expected);
}
