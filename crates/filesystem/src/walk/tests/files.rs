//! Opened files.

use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::fs::{CWD, FileType, Mode};

use super::*;

fn read_everything(file: &OpenedFile) -> Vec<u8> {
    let (mut content, mut buffer) = (Vec::new(), [0; 1000]);
    loop {
        let read = file.read_at(content.len() as u64, &mut buffer).unwrap();
        if read == 0 {
            return content;
        }
        content.extend_from_slice(&buffer[..read]);
    }
}

#[test]
fn files_are_read_at_offsets_and_other_things_are_refused() {
    let root = tree(&["a/b/file", "dir/"]);
    rustix::fs::mknodat(CWD, root.path().join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    symlink("a/b/file", root.path().join("link")).unwrap();
    symlink("a", root.path().join("through")).unwrap();
    symlink(root.path().join("a"), root.path().join("absolute")).unwrap();
    let files = FileRoot::open(root.path()).unwrap();
    let file = files.open_file(b"a/b/file").unwrap();
    assert_eq!((file.size_bytes(), file.is_of_unknown_size()), (8, false));
    let mut buffer = [0; 20];
    assert_eq!(file.read_at(4, &mut buffer).unwrap(), 4);
    assert_eq!(&buffer[..4], b"file");
    assert_eq!(file.read_at(8, &mut buffer).unwrap(), 0);
    assert_eq!(file.data_ranges().unwrap(), None);

    let kinds = [
        ("dir", ProblemKind::Changed),
        ("fifo", ProblemKind::Changed),
        ("link", ProblemKind::Changed),
        ("through/b/file", ProblemKind::Changed),
        ("absolute/b/file", ProblemKind::Changed),
        ("a/b/file/x", ProblemKind::Changed),
        ("../a", ProblemKind::Changed),
        ("missing", ProblemKind::Vanished),
        ("missing/too", ProblemKind::Vanished),
    ];
    for (path, kind) in kinds {
        let error = files.open_file(path.as_bytes()).unwrap_err();
        let problem = Problem::from_error(path.as_bytes(), &error);
        assert_eq!(problem.kind, kind, "{path}: {error}");
        assert_eq!(problem.path, path.as_bytes());
    }
}

#[test]
fn both_ways_to_resolve_a_path_give_the_same() {
    let root = tree(&["a/b/file", "dir/"]);
    symlink("a", root.path().join("through")).unwrap();
    let files = FileRoot::open(root.path()).unwrap();
    let stepwise = FileRoot::open(root.path()).unwrap();
    stepwise.resolve_stepwise_only();
    for path in ["a/b/file", "a/b", "a/x", "through/b/file", "dir", "../a"] {
        let results = [&files, &stepwise].map(|files| {
            let opened = files.open_file(path.as_bytes());
            opened
                .map(|file| file.size_bytes())
                .map_err(|error| Problem::from_error(b"", &error).kind)
        });
        assert_eq!(
            results[0].is_ok(),
            results[1].is_ok(),
            "{path}: {results:?}"
        );
    }
}

#[test]
fn the_data_of_sparse_files_is_found() {
    const MIB: u64 = 1 << 20;
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("sparse");
    let mut file = fs::File::create(&path).unwrap();
    for (offset, bytes) in [(0, 4096), (3 * MIB, 100_000)] {
        file.seek(SeekFrom::Start(offset)).unwrap();
        file.write_all(&vec![1; bytes]).unwrap();
    }
    file.set_len(10 * MIB).unwrap();
    drop(file);
    fs::File::create(root.path().join("empty"))
        .unwrap()
        .set_len(5 * MIB)
        .unwrap();
    let files = FileRoot::open(root.path()).unwrap();
    let file = files.open_file(b"sparse").unwrap();
    let Some(ranges) = file.data_ranges().unwrap() else {
        return; // A file system without holes.
    };
    let content = read_everything(&file);
    assert_eq!(content.len() as u64, 10 * MIB);
    let mut covered = vec![false; content.len()];
    for range in &ranges {
        covered[range.start as usize..range.end as usize].fill(true);
    }
    assert!(
        content
            .iter()
            .zip(&covered)
            .all(|(byte, covered)| *byte == 0 || *covered)
    );
    let data: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    assert!((104_096..200_000).contains(&data), "{ranges:?}");
    assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
    let empty = files.open_file(b"empty").unwrap();
    assert_eq!(empty.data_ranges().unwrap(), Some(vec![]));
    assert!(!empty.is_of_unknown_size());
}

#[test]
fn an_entry_is_refreshed_from_the_open_file_and_changes_are_noticed() {
    let root = tree(&["file"]);
    let path = root.path().join("file");
    let (mut entries, _) = walk(root.path(), WalkOptions::default());
    fs::write(&path, "longer content").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4700)).unwrap();
    let has_owner = std::os::unix::fs::chown(&path, Some(1), Some(1)).is_ok();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4700)).unwrap();
    let files = FileRoot::open(root.path()).unwrap();
    let file = files.open_file(b"file").unwrap();
    file.refresh(&mut entries[1]).unwrap();
    assert_eq!(entries[1], walk(root.path(), WalkOptions::default()).0[1]);
    assert_eq!((entries[1].size_bytes, entries[1].mode), (14, 0o4700));
    assert_eq!(entries[1].owner.uid == 1, has_owner);
    assert!(!file.has_changed().unwrap());
    let mut appended = fs::OpenOptions::new().append(true).open(&path).unwrap();
    appended.write_all(b".").unwrap();
    assert!(file.has_changed().unwrap());
    assert_eq!(file.size_bytes(), 14);

    let file = files.open_file(b"file").unwrap();
    assert!(!file.has_changed().unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(file.has_changed().unwrap(), "the status time changed");
}

#[test]
fn files_of_proc_and_sys_are_of_unknown_size() {
    for (root, path) in [
        ("/proc", "self/../version"),
        ("/proc", "version"),
        ("/sys", "kernel/profiling"),
    ] {
        let files = FileRoot::open(Path::new(root)).unwrap();
        let opened = files.open_file(path.as_bytes());
        match opened {
            Err(error) if path.contains("self") => {
                assert_ne!(error.kind(), ErrorKind::NotFound, "a link is not followed");
            }
            // Some machines lack this file.
            Err(error) if root == "/sys" => assert_eq!(error.kind(), ErrorKind::NotFound),
            opened => {
                let file = opened.unwrap();
                assert!(file.is_of_unknown_size());
                assert_eq!(file.data_ranges().unwrap(), None);
                let content = read_everything(&file);
                assert_eq!(content, fs::read(Path::new(root).join(path)).unwrap());
                assert!(!content.is_empty() && content.len() as u64 != file.size_bytes());
            }
        }
    }
}

#[test]
fn files_that_state_no_size_count_as_files_with_data() {
    let root = tree(&["empty", "full"]);
    fs::write(root.path().join("empty"), "").unwrap();
    let (entries, _) = walk(root.path(), WalkOptions::default());
    assert_eq!(
        (
            entries[1].size_bytes,
            refrain_entries::content_order(&entries)
        ),
        (0, vec![2])
    );
    let listed = vec![b"version".to_vec(), b"self".to_vec()];
    let walker = Walker::for_paths(
        Path::new("/proc"),
        Path::new(""),
        listed,
        WalkOptions::default(),
    );
    let (mut entries, problems) = read_all(walker.unwrap());
    assert_eq!(problems, []);
    assert_eq!(paths(&entries), [".", "self", "version"]);
    assert_eq!(
        (
            entries[2].size_bytes,
            refrain_entries::content_order(&entries)
        ),
        (4096, vec![2])
    );
    let files = FileRoot::open(Path::new("/proc")).unwrap();
    let file = files.open_file(b"version").unwrap();
    file.refresh(&mut entries[2]).unwrap();
    assert_eq!(entries[2].size_bytes, 0, "what is read tells the size");
}
