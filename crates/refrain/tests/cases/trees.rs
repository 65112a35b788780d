//! Directories and tar streams as entries and content: equal files, order, holes, large files,
//! problems, and the ways back.

use std::fs;
use std::io::Cursor;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::Mutex;

use crate::common::{
    Below, MIB, archive_of, extracted, extracted_from_pipe, file, member, options, pipe,
    read_options, small_options, source,
};
use refrain::directory::{
    Problem, ProblemKind, RestoreOptions, Selection, TreeRestore, WalkOptions,
};
use refrain::storage::MemorySink;
use refrain::{
    Archive, Content, DirectoryContent, EntryKind, ErrorKind, MemberInput, MemberKind, Unwatched,
    Watch,
};
use refrain_testkit::{Rng, data};

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn tree(root: &Path) -> MemberInput {
    member("tree", Content::directory(DirectoryContent::all(root)))
}

fn open(archive: &[u8]) -> Archive {
    Archive::open(source(archive), &read_options(2)).unwrap()
}

/// Every file of a directory with its bytes, by path.
fn files(root: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = vec![];
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                directories.push(path)
            } else {
                let relative = path.strip_prefix(root).unwrap();
                let name = relative.as_os_str().as_bytes().to_vec();
                found.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Twelve versions of a tree: some files never change, some always do.
fn write_versions(root: &Path) {
    for version in 0..12 {
        for number in 0..40 {
            let seed = if number % 4 == 0 { version * 100 + number } else { number };
            let path = format!("pkg-1.{version}/lib/part{number}.txt");
            write(root, &path, &data::text(3000 + number as usize * 100, seed));
        }
    }
}

#[test]
fn equal_files_are_stored_once_and_sibling_versions_side_by_side() {
    let root = tempfile::tempdir().unwrap();
    write_versions(root.path());
    let (archive, summary) = archive_of(vec![tree(root.path())], &options(3, 2));
    assert!(archive == archive_of(vec![tree(root.path())], &options(3, 1)).0);
    assert!(archive == archive_of(vec![tree(root.path())], &options(3, 5)).0);
    let opened = open(&archive);
    let entries = opened.entries(0).unwrap();
    let offset = |version: u32, number: u32| {
        let path = format!("pkg-1.{version}/lib/part{number}.txt");
        let entry = entries.iter().find(|entry| entry.path == path.as_bytes());
        entry.unwrap().content_range()
    };
    for number in 0..40 {
        for version in 1..12 {
            match number % 4 {
                0 => assert_eq!(
                    offset(version, number).start,
                    offset(version - 1, number).end
                ),
                _ => assert_eq!(offset(version, number), offset(0, number)),
            }
        }
    }
    assert!(summary.store_bytes * 3 < summary.content_bytes);
}

/// A tree with equal, empty, large, sparse and ordinary files.
fn write_mixture(root: &Path) {
    write_versions(root);
    write(root, "empty", b"");
    write(root, "large/a", &data::random(11 * MIB, 1));
    write(root, "large/b", &data::random(9 * MIB + 17, 2));
    write(root, "large/again", &data::random(11 * MIB, 1));
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.write_all_at(b"begin", 0).unwrap();
    sparse
        .write_all_at(&data::text(100_000, 4), 40 << 20)
        .unwrap();
    sparse.set_len(90 << 20).unwrap();
    let mut link = fs::Permissions::from_mode(0o640);
    link.set_mode(0o640);
    fs::set_permissions(root.join("empty"), link).unwrap();
    fs::hard_link(root.join("large/a"), root.join("large/hard")).unwrap();
}

#[test]
fn a_tree_is_restored_from_a_file_and_from_a_pipe() {
    let root = tempfile::tempdir().unwrap();
    write_mixture(root.path());
    let expected = files(root.path());
    for options in [options(1, 2), small_options("zstd")] {
        let (archive, _) = archive_of(vec![tree(root.path())], &options);
        let out = tempfile::tempdir().unwrap();
        let (from_file, from_pipe) = (out.path().join("file"), out.path().join("pipe"));
        let reading = read_options(2);
        refrain::extract(
            source(&archive),
            &mut Below(&from_file),
            &reading,
            &Unwatched,
        )
        .unwrap();
        assert!(files(&from_file) == expected);
        let stream = Box::new(Cursor::new(archive.clone()));
        refrain::extract(stream, &mut Below(&from_pipe), &reading, &Unwatched).unwrap();
        assert!(files(&from_pipe) == expected);
        let blocks = fs::metadata(from_file.join("sparse")).unwrap();
        assert!(std::os::unix::fs::MetadataExt::blocks(&blocks) * 512 < 4 << 20);
        refrain::verify(source(&archive), &reading, &Unwatched).unwrap();
        // The tar view is the same in every way, and any range of it.
        let view = extracted(&archive, &reading).unwrap();
        assert_eq!(view, extracted_from_pipe(&archive, &reading).unwrap());
        let opened = open(&archive);
        assert_eq!(
            opened.members().unwrap()[0].content_bytes,
            view[0].content.len() as u64
        );
        for start in [0, 513, 5_000_000, view[0].content.len() - 700] {
            let mut range = vec![0; 100_000];
            let count = opened.read_at(0, start as u64, &mut range).unwrap();
            assert_eq!(count, range.len().min(view[0].content.len() - start));
            assert!(range[..count] == view[0].content[start..start + count]);
        }
    }
}

#[test]
fn a_part_of_a_tree_is_restored_and_one_entry_is_read() {
    let root = tempfile::tempdir().unwrap();
    write_mixture(root.path());
    let (archive, _) = archive_of(vec![tree(root.path())], &options(1, 2));
    let opened = open(&archive);
    // The tar stream is in another order than the content, and all of it is compared in one pass.
    let (mut sink, unwatched) = (MemorySink::new(), &Unwatched);
    assert!(opened.write_member(0, &mut sink, unwatched).unwrap());
    let out = tempfile::tempdir().unwrap();
    let restore = TreeRestore::create(&out.path().join("part"), RestoreOptions::default()).unwrap();
    let mut builder = Selection::builder();
    builder.path(b"pkg-1.3");
    let selection: Selection = builder.build().unwrap();
    opened
        .restore_tree(0, &restore, Some(&selection), &Unwatched)
        .unwrap();
    restore.finish().unwrap();
    let mut expected = files(root.path());
    expected.retain(|(path, _)| path.starts_with(b"pkg-1.3/"));
    assert!(files(&out.path().join("part")) == expected);
    for (path, bytes) in files(root.path()) {
        let entry = opened.find_entry(0, &path).unwrap().unwrap();
        if entry.kind == EntryKind::Hardlink {
            assert_eq!(entry.link_target.unwrap(), b"large/a");
            continue;
        }
        let mut read = vec![1; bytes.len() + 1];
        assert_eq!(
            opened.read_at((0, &entry), 0, &mut read).unwrap(),
            bytes.len()
        );
        assert!(
            read[..bytes.len()] == bytes,
            "{}",
            String::from_utf8_lossy(&path)
        );
        let middle = bytes.len() / 3;
        let mut read = vec![1; 1000.min(bytes.len() - middle)];
        opened
            .read_at((0, &entry), middle as u64, &mut read)
            .unwrap();
        assert!(read == bytes[middle..middle + read.len()]);
    }
    assert_eq!(opened.find_entry(0, b"pkg-1.3/lib/none").unwrap(), None);
}

/// Collects problems.
#[derive(Default)]
struct Problems(Mutex<Vec<(Vec<u8>, ProblemKind)>>);

impl Watch for Problems {
    fn problem(&self, _member: usize, problem: &Problem) {
        let found = (problem.path.clone(), problem.kind);
        self.0.lock().unwrap().push(found);
    }
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_stored() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "a", b"a");
    write(root.path(), "b", b"b");
    std::os::unix::net::UnixListener::bind(root.path().join("socket")).unwrap();
    let watch = Problems::default();
    let mut sink = MemorySink::new();
    let output = sink.output();
    let content = Content::directory(DirectoryContent {
        path: root.path().into(),
        paths: Some(vec![b"b".to_vec(), b"missing".to_vec(), b"socket".to_vec()]),
        walk: WalkOptions::default(),
        ..DirectoryContent::default()
    });
    let members = vec![member("tree", content)];
    let summary = refrain::compress(members, &mut sink, &options(1, 2), &watch).unwrap();
    assert_eq!(summary.problems, 1);
    let problems = watch.0.into_inner().unwrap();
    assert!(
        problems.contains(&(b"missing".to_vec(), ProblemKind::Vanished)),
        "{problems:?}"
    );
    assert!(
        problems.contains(&(b"socket".to_vec(), ProblemKind::Skipped)),
        "{problems:?}"
    );
    let opened = open(&output.published().unwrap());
    assert!(opened.find_entry(0, b"b").unwrap().is_some());
    assert!(opened.find_entry(0, b"a").unwrap().is_none());
}

#[test]
fn the_name_before_the_paths_of_a_directory_is_put_into_normal_form() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "file", b"content");
    let named = |name: &str| {
        let content = Content::directory(DirectoryContent {
            name: name.into(),
            ..DirectoryContent::all(root.path())
        });
        let mut sink = MemorySink::new();
        let output = sink.output();
        let members = vec![member("tree", content)];
        refrain::compress(members, &mut sink, &options(1, 1), &Unwatched)?;
        let archive = output.published().unwrap();
        refrain::verify(source(&archive), &read_options(1), &Unwatched)?;
        let entries = open(&archive).entries(0)?;
        let paths = entries.into_iter().map(|entry| entry.path);
        Ok::<_, refrain::Error>(paths.map(|path| String::from_utf8(path).unwrap()))
    };
    for (name, paths) in [
        ("", [".", "file"]),
        (".", [".", "file"]),
        ("./a//b/./", ["a/b", "a/b/file"]),
    ] {
        assert!(named(name).unwrap().eq(paths), "{name}");
    }
    for name in ["..", "a/../b", "/a"] {
        assert_eq!(named(name).err().unwrap().kind, ErrorKind::Usage, "{name}");
    }
}

/// A tar stream of a tree, made by the view of a directory member.
fn sample_tar() -> Vec<u8> {
    let root = tempfile::tempdir().unwrap();
    write_mixture(root.path());
    let (archive, _) = archive_of(vec![tree(root.path())], &options(1, 2));
    extracted(&archive, &read_options(2))
        .unwrap()
        .remove(0)
        .content
}

fn assert_tar_comes_back(tar: &[u8], kind: MemberKind) {
    for input in [file as fn(&str, &[u8]) -> MemberInput, pipe] {
        let (archive, _) = archive_of(vec![file("first", b"1"), input("t", tar)], &options(1, 2));
        let reading = read_options(2);
        let restored = extracted(&archive, &reading).unwrap();
        assert!(restored[1].content == tar, "{} bytes", tar.len());
        assert!(extracted_from_pipe(&archive, &reading).unwrap() == restored);
        refrain::verify(source(&archive), &reading, &Unwatched).unwrap();
        let opened = open(&archive);
        assert_eq!(opened.members().unwrap()[1].kind, kind);
        assert_eq!(opened.members().unwrap()[1].content_bytes, tar.len() as u64);
    }
}

#[test]
fn a_tar_stream_is_taken_apart_and_comes_back() {
    let tar = sample_tar();
    assert_tar_comes_back(&tar, MemberKind::Tar);
    let (archive, _) = archive_of(vec![pipe("t", &tar)], &options(1, 2));
    let opened = open(&archive);
    let entry = opened
        .find_entry(0, b"pkg-1.3/lib/part7.txt")
        .unwrap()
        .unwrap();
    let mut read = vec![0; entry.size_bytes as usize];
    opened.read_at((0, &entry), 0, &mut read).unwrap();
    assert!(read == data::text(3000 + 700, 7));
}

#[test]
fn cut_mutated_and_joined_tars_come_back() {
    let tar = sample_tar();
    let small = &tar[..(2 << 20).min(tar.len())];
    let mut rng = Rng::new(5);
    for length in [512, 513, 10_000, 1_000_001] {
        assert_tar_comes_back(&small[..length], MemberKind::Tar);
    }
    let mut mutated = small.to_vec();
    for _ in 0..300 {
        let at = 512 + rng.below(mutated.len() as u64 - 512) as usize;
        mutated[at] ^= 1 << rng.below(8);
    }
    assert_tar_comes_back(&mutated, MemberKind::Tar);
    let joined = [&tar[..], &data::random(70_000, 3), small].concat();
    assert_tar_comes_back(&joined, MemberKind::Tar);
    // Within a large file.
    let cut = &tar[..tar.len() - (10 << 20)];
    assert_tar_comes_back(cut, MemberKind::Tar);
}

#[test]
fn what_is_no_tar_remains_a_stream() {
    for bytes in [vec![], vec![0; 600], data::text(3 * MIB, 1)] {
        let (archive, _) = archive_of(vec![pipe("p", &bytes)], &options(1, 2));
        let opened = open(&archive);
        assert_eq!(opened.members().unwrap()[0].kind, MemberKind::Stream);
        assert!(extracted(&archive, &read_options(1)).unwrap()[0].content == bytes);
    }
}

#[test]
fn the_root_hash_does_not_depend_on_how_an_archive_was_compressed() {
    let root = tempfile::tempdir().unwrap();
    for (number, (_, content)) in data::source_tree(40, 3).iter().enumerate() {
        fs::write(root.path().join(format!("file-{number}")), content).unwrap();
    }
    let mixed = [data::text(300_000, 1), data::executable(200_000, 2)].concat();
    let root_hash = |level, threads, content: &[u8]| {
        let tree = Content::directory(DirectoryContent::all(root.path()));
        let members = vec![member("tree", tree), file("mixed", content)];
        let (archive, _) = archive_of(members, &options(level, threads));
        let opened = Archive::open(source(&archive), &read_options(1)).unwrap();
        opened.info().unwrap().root_hash.unwrap()
    };
    let expected = root_hash(1, 1, &mixed);
    for (level, threads) in [(1, 4), (3, 1), (3, 4), (6, 2), (8, 1)] {
        assert_eq!(root_hash(level, threads, &mixed), expected, "level {level}");
    }
    let mut changed = mixed.clone();
    changed[250_000] ^= 1;
    assert_ne!(root_hash(1, 1, &changed), expected);
}
