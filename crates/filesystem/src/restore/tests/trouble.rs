//! Full disks, killed processes, cancellation, many threads, long paths.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

use refrain_storage::open_at;
use rustix::fs::{Mode, OFlags};

use super::state::states;
use super::users::{directory_of_body, is_root, skip};
use super::{create, entry, file, link};
use crate::restore::TreeRestore;
use refrain_entries::{Entry, EntryKind};

/// A small file system, unmounted when dropped.
struct SmallFileSystem<'a>(&'a Path);

impl SmallFileSystem<'_> {
    fn mount(path: &Path) -> Option<SmallFileSystem<'_>> {
        let mut command = Command::new("mount");
        command
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(path);
        let is_mounted = command.status().is_ok_and(|status| status.success());
        is_mounted.then_some(SmallFileSystem(path))
    }
}

impl Drop for SmallFileSystem<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_keeps_what_is_complete() {
    let temporary = tempfile::tempdir().unwrap();
    if !is_root() {
        return skip("only root may mount a small file system");
    }
    for exists in [false, true] {
        let Some(_mounted) = SmallFileSystem::mount(temporary.path()) else {
            return skip("a small file system cannot be mounted here");
        };
        let out = temporary.path().join("out");
        if exists {
            fs::create_dir(&out).unwrap();
        }
        let restore = create(&out);
        restore.directory(&Entry {
            mode: 0o750,
            ..entry("d", EntryKind::Directory)
        });
        let data = vec![7; 300_000];
        let large = restore.file(&file("d/large", &vec![8; 900_000])).unwrap();
        assert!(restore.write_file(&file("d/first", &data), &data));
        large.write_at(0, &[8; 300_000]).unwrap();
        assert!(!restore.has_ended());
        let error = large.write_at(300_000, &vec![8; 600_000]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(restore.has_ended());
        assert!(large.finish().is_err());
        assert!(restore.file(&file("d/late", b"")).is_none());
        let summary = restore.finish().unwrap();
        let stopped = summary.stopped.unwrap();
        assert_eq!(stopped.kind(), io::ErrorKind::StorageFull);
        assert!(stopped.to_string().contains("d/large"), "{stopped}");
        assert_eq!(summary.problem_count, 0, "{:?}", summary.problems);
        assert_eq!(fs::read(out.join("d/first")).unwrap(), data);
        assert_eq!(fs::metadata(out.join("d")).unwrap().mode() & 0o777, 0o750);
        assert_eq!(fs::read_dir(out.join("d")).unwrap().count(), 1);
    }
}

/// The body runs in a process that kills itself halfway.
#[test]
fn what_a_killed_process_leaves_is_removed_by_the_next() {
    const NAME: &str =
        "restore::tests::trouble::what_a_killed_process_leaves_is_removed_by_the_next";
    if let Some(directory) = directory_of_body() {
        let mut restores = Vec::new();
        for name in ["new", "existing", "hidden"] {
            let restore = create(&directory.join(name));
            let is_hidden = name == "hidden";
            restore
                .shared
                .has_unnamed_files
                .store(!is_hidden, Ordering::Relaxed);
            assert!(restore.write_file(&file("complete", b"x"), b"x"));
            let unfinished = restore.file(&file("unfinished", b"xx")).unwrap();
            unfinished.write_at(0, b"x").unwrap();
            restores.push((restore, unfinished));
        }
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    }
    let temporary = tempfile::tempdir().unwrap();
    let names = |name: &str| {
        let entries = fs::read_dir(temporary.path().join(name)).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    for name in ["existing", "hidden"] {
        fs::create_dir(temporary.path().join(name)).unwrap();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", NAME])
        .env("REFRAIN_TEST_DIRECTORY", temporary.path());
    let status = command.output().unwrap().status;
    assert_eq!(status.signal(), Some(9));
    assert_eq!(names(".").len(), 3, "{:?}", names("."));
    assert_eq!(names("existing"), ["complete"]);
    assert_eq!(names("hidden").len(), 2, "{:?}", names("hidden"));
    for name in ["new", "hidden"] {
        let restore = create(&temporary.path().join(name));
        restore
            .shared
            .has_unnamed_files
            .store(false, Ordering::Relaxed);
        assert!(restore.write_file(&file("next", b"x"), b"x"));
        restore.finish().unwrap();
    }
    assert_eq!(names("."), ["existing", "hidden", "new"]);
    assert_eq!(names("hidden"), ["complete", "next"]);
    assert_eq!(names("new"), ["next"]);
}

/// In an existing directory, complete files appear at once, with and without unnamed files, and
/// nothing of the unfinished ones remains.
#[test]
fn files_appear_complete_in_an_existing_directory() {
    for (has_unnamed, overwrite) in [(true, false), (false, false), (true, true), (false, true)] {
        let temporary = tempfile::tempdir().unwrap();
        fs::write(temporary.path().join("old"), "old").unwrap();
        let restore = TreeRestore::create(
            temporary.path(),
            crate::restore::RestoreOptions {
                overwrite,
                ..Default::default()
            },
        );
        let restore = restore.unwrap();
        restore
            .shared
            .has_unnamed_files
            .store(has_unnamed, Ordering::Relaxed);
        let first = restore.file(&file("new", b"new")).unwrap();
        first.write_at(0, b"new").unwrap();
        assert!(!temporary.path().join("new").exists());
        first.finish().unwrap();
        assert_eq!(fs::read(temporary.path().join("new")).unwrap(), b"new");
        assert_eq!(
            restore.write_file(&file("old", b"changed"), b"changed"),
            overwrite
        );
        let raced = restore.file(&file("raced", b"ours")).unwrap();
        raced.write_at(0, b"ours").unwrap();
        fs::write(temporary.path().join("raced"), "theirs").unwrap();
        assert_eq!(raced.finish().is_ok(), overwrite);
        drop(restore.file(&file("dropped", b"x")).unwrap());
        let abandoned = restore.file(&file("abandoned", b"x")).unwrap();
        abandoned.abandon(io::Error::other("its data is damaged"));
        let summary = restore.finish().unwrap();
        assert_eq!(summary.problem_count, if overwrite { 1 } else { 3 });
        let read = |name| fs::read_to_string(temporary.path().join(name)).unwrap();
        let expected = if overwrite { ["changed", "ours"] } else { ["old", "theirs"] };
        assert_eq!([read("old"), read("raced")], expected);
        let names: Vec<_> = states(temporary.path()).into_keys().collect();
        assert_eq!(names, [&b"."[..], b"new", b"old", b"raced"]);
    }
}

#[test]
fn dropping_removes_what_was_created_unless_it_is_kept() {
    for (exists, keep) in [(false, false), (true, false), (false, true), (true, true)] {
        let temporary = tempfile::tempdir().unwrap();
        let out = temporary.path().join("out");
        if exists {
            fs::create_dir_all(out.join("d")).unwrap();
            fs::write(out.join("d/mine"), "mine").unwrap();
        }
        let restore = create(&out);
        restore.directory(&Entry {
            mode: 0o500,
            ..entry("d/e", EntryKind::Directory)
        });
        assert!(restore.write_file(&file("d/e/f", b"x"), b"x"));
        assert!(!restore.write_file(&file("d/mine", b""), b"too much"));
        restore.other(&link("d/soft", EntryKind::Symlink, "x"));
        restore.other(&link("d/hard", EntryKind::Hardlink, "d/e/f"));
        if keep {
            restore.keep_partial();
        }
        drop(restore);
        let names: Vec<_> =
            if out.exists() { states(&out).into_keys().collect() } else { Vec::new() };
        let expected: &[&[u8]] = match (exists, keep) {
            (false, false) => &[],
            (true, false) => &[b".", b"d", b"d/mine"],
            (false, true) => &[b".", b"d", b"d/e", b"d/e/f", b"d/hard", b"d/soft"],
            (true, true) => &[
                b".", b"d", b"d/e", b"d/e/f", b"d/hard", b"d/mine", b"d/soft",
            ],
        };
        assert_eq!(names, expected);
        if keep {
            let mode = fs::metadata(out.join("d/e")).unwrap().mode();
            assert_eq!(mode & 0o777, 0o500);
        }
        assert!(fs::read_dir(temporary.path()).unwrap().count() <= 1);
    }
}

#[test]
fn many_threads_restore_one_tree() {
    const THREADS: usize = 4;
    const PIECE: usize = 10_000;
    for exists in [false, true] {
        let temporary = tempfile::tempdir().unwrap();
        let out = temporary.path().join("out");
        if exists {
            fs::create_dir(&out).unwrap();
        }
        // With holes, also where pieces meet.
        let byte = |at: usize| {
            if at % 50_000 < 20_000 { 0 } else { (at % 251) as u8 }
        };
        let large: Vec<u8> = (0..THREADS * 7 * PIECE + 123).map(byte).collect();
        let restore = create(&out);
        let shared_file = restore.file(&file("large", &large)).unwrap();
        // More directories than are kept open; all threads use all of them.
        let path = |number: usize| format!("d{}/e{}/f{number}", number % 30, number % 70);
        let work = |thread: usize| {
            for number in (thread..3000).step_by(THREADS) {
                let (path, data) = (path(number), number.to_string().into_bytes());
                assert!(restore.write_file(&file(&path, &data), &data));
            }
            for number in (0..3000).skip(thread).step_by(311) {
                let path = path(number);
                let (directory, _) = path.rsplit_once('/').unwrap();
                restore.directory(&Entry {
                    mode: 0o705,
                    ..entry(directory, EntryKind::Directory)
                });
            }
            for (index, piece) in large.chunks(PIECE).enumerate() {
                if index % THREADS == thread {
                    shared_file.write_at((index * PIECE) as u64, piece).unwrap();
                }
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || work(thread));
            }
        });
        shared_file.finish().unwrap();
        let summary = restore.finish().unwrap();
        assert_eq!(summary.problem_count, 0, "{:?}", summary.problems);
        assert!(fs::read(out.join("large")).unwrap() == large);
        for number in 0..3000 {
            let data = fs::read(out.join(path(number))).unwrap();
            assert_eq!(data, number.to_string().into_bytes());
        }
        let mode = fs::metadata(out.join("d11/e31")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o705);
    }
}

/// Deeper than the system's limit for paths, with more directories than may be open.
#[test]
fn paths_may_be_longer_than_the_limit_of_the_system() {
    const DEPTH: usize = 700;
    let temporary = tempfile::tempdir().unwrap();
    let out = temporary.path().join("out");
    let directory = vec!["directory"; DEPTH].join("/");
    let path = format!("{directory}/file");
    for keep in [false, true] {
        let restore = create(&out);
        restore.other(&link("shallow", EntryKind::Hardlink, &path));
        assert!(restore.write_file(&file(&path, b"deep"), b"deep"));
        restore.directory(&Entry {
            mode: 0o711,
            ..entry(&directory, EntryKind::Directory)
        });
        if !keep {
            drop(restore)
        } else {
            assert_eq!(restore.finish().unwrap().problem_count, 0)
        }
        assert_eq!(
            fs::read_dir(temporary.path()).unwrap().count(),
            usize::from(keep)
        );
    }
    assert_eq!(fs::read(out.join("shallow")).unwrap(), b"deep");
    let mut open = rustix::fs::open(&out, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..DEPTH {
        open = open_at(&open, "directory", OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let found = rustix::fs::fstat(&open).unwrap();
    assert_eq!(found.st_mode & 0o7777, 0o711);
    assert!(rustix::fs::statat(&open, "file", rustix::fs::AtFlags::empty()).is_ok());
    // To remove it, the standard library would need every directory open at once.
    drop(open);
    let parent = fs::File::open(temporary.path()).unwrap();
    let parent = std::os::fd::AsFd::as_fd(&parent);
    refrain_storage::remove_tree(parent, "out".as_ref()).unwrap();
}

#[test]
fn hard_links_without_their_target_are_given_back() {
    let temporary = tempfile::tempdir().unwrap();
    fs::write(temporary.path().join("existing"), "other content").unwrap();
    let restore = create(temporary.path());
    for path in ["a", "b"] {
        restore.other(&link(path, EntryKind::Hardlink, "missing"));
    }
    restore.other(&link("c", EntryKind::Hardlink, "existing"));
    let missing = restore.link();
    let paths: Vec<_> = missing.iter().map(|link| &link.path[..]).collect();
    assert_eq!(paths, [b"a", b"b", b"c"]);
    // The caller restores the data under one name, and links the others to it.
    assert!(restore.write_file(&file("a", b"data"), b"data"));
    restore.other(&link("b", EntryKind::Hardlink, "a"));
    restore.other(&link("c", EntryKind::Hardlink, "existing"));
    let summary = restore.finish().unwrap();
    assert_eq!(summary.problem_count, 1, "{:?}", summary.problems);
    assert_eq!(summary.missing_targets.len(), 1);
    assert_eq!(fs::read(temporary.path().join("b")).unwrap(), b"data");
    assert_eq!(fs::metadata(temporary.path().join("a")).unwrap().nlink(), 2);
}
