//! Programs in directories and tar streams: their code is rebased in the content, and nobody who
//! reads sees it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::recovery::{name_of, pass};
use crate::common::{
    self, Below, MIB, archive_of, extracted, extracted_from_pipe, file, member, pipe, read_options,
    source,
};
use refrain::storage::MemorySink;
use refrain::{Archive, CompressOptions, Content, DirectoryContent, MemberInput, Unwatched};
use refrain_testkit::{Rng, data};

/// The code from which on programs are rebased here.
const CODE_BYTES_MIN: u64 = 3 << 20;

fn options(level: u8, threads: usize) -> CompressOptions {
    CompressOptions {
        rebased_code_bytes_min: CODE_BYTES_MIN,
        ..common::options(level, threads)
    }
}

fn small_options(codec: &str) -> CompressOptions {
    CompressOptions {
        rebased_code_bytes_min: CODE_BYTES_MIN,
        ..common::small_options(codec)
    }
}

/// Programs of two sizes, one twice and one with a few other bytes; one with holes, and others that
/// are too small or no programs.
fn programs() -> Vec<(&'static str, Vec<u8>)> {
    let small = data::program(5 * MIB + 3, 4 * MIB, 1);
    let large = data::program(9 * MIB + 70_001, 9 * MIB, 2);
    let mut changed = large.clone();
    changed.splice(6 * MIB..6 * MIB, [0x90; 40]);
    vec![
        ("again", small.clone()),
        ("changed", changed),
        ("large", large),
        ("short", data::program(3 * MIB, 2 * MIB, 3)),
        ("small", small),
        ("text", data::text(5 * MIB, 4)),
    ]
}

fn write(root: &Path) {
    for (name, bytes) in programs() {
        fs::write(root.join(name), bytes).unwrap();
    }
    // Its data alone is that of a program.
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    let small = &programs()[0].1;
    let (first, second) = small.split_at(MIB);
    sparse.write_all_at(first, 0).unwrap();
    sparse.write_all_at(second, 40 << 20).unwrap();
}

fn tree(root: &Path) -> MemberInput {
    member("tree", Content::directory(DirectoryContent::all(root)))
}

fn open(archive: &[u8]) -> Archive {
    Archive::open(source(archive), &read_options(2)).unwrap()
}

/// The tar stream of a member, written at once.
fn stream_of(archive: &Archive) -> Vec<u8> {
    let mut sink = MemorySink::new();
    let output = sink.output();
    archive.write_member(0, &mut sink, &Unwatched).unwrap();
    refrain::storage::Sink::publish(&mut sink).unwrap();
    output.published().unwrap()
}

fn assert_is_restored(root: &Path) {
    for (name, bytes) in programs() {
        assert!(fs::read(root.join(name)).unwrap() == bytes, "{name}");
    }
}

/// Compares ranges of every entry and of the tar stream.
fn assert_ranges(archive: &Archive, stream: &[u8]) {
    let mut rng = Rng::new(9);
    let mut range = |length: usize| {
        let start = rng.below(length as u64) as usize;
        start..(start + 1 + rng.below(90_000) as usize).min(length)
    };
    for (name, bytes) in programs() {
        let entry = archive.find_entry(0, name.as_bytes()).unwrap().unwrap();
        assert_eq!(
            entry.is_rebased,
            !matches!(name, "short" | "text"),
            "{name}"
        );
        for _ in 0..40 {
            let range = range(bytes.len());
            let mut read = vec![1; range.len()];
            let count = archive.read_at((0, &entry), range.start as u64, &mut read);
            assert_eq!(count.unwrap(), range.len());
            assert!(read == bytes[range.clone()], "{name} {range:?}");
        }
    }
    for _ in 0..200 {
        let range = range(stream.len());
        let mut read = vec![1; range.len()];
        let count = archive.read_at(0, range.start as u64, &mut read).unwrap();
        assert_eq!(count, range.len());
        assert!(read == stream[range.clone()], "{range:?}");
    }
}

#[test]
fn programs_of_a_directory_are_restored() {
    let root = tempfile::tempdir().unwrap();
    write(root.path());
    let all: [CompressOptions; 2] = [options(3, 2), small_options("zstd")];
    for options in all {
        let (archive, _) = archive_of(vec![tree(root.path())], &options);
        let others = CompressOptions {
            threads: 5,
            ..options.clone()
        };
        assert!(archive_of(vec![tree(root.path())], &others).0 == archive);
        let reading = read_options(2);
        refrain::verify(source(&archive), &reading, &Unwatched).unwrap();
        let out = tempfile::tempdir().unwrap();
        let (from_file, from_pipe) = (out.path().join("file"), out.path().join("pipe"));
        let target = &mut Below(&from_file);
        refrain::extract(source(&archive), target, &reading, &Unwatched).unwrap();
        assert_is_restored(&from_file);
        let stream = Box::new(Cursor::new(archive.clone()));
        refrain::extract(stream, &mut Below(&from_pipe), &reading, &Unwatched).unwrap();
        assert_is_restored(&from_pipe);
        let sparse = fs::read(root.path().join("sparse")).unwrap();
        assert!(fs::read(from_file.join("sparse")).unwrap() == sparse);
        let opened = open(&archive);
        let stream = stream_of(&opened);
        assert_ranges(&opened, &stream);
    }
}

#[test]
fn programs_of_a_tar_stream_are_restored() {
    let root = tempfile::tempdir().unwrap();
    write(root.path());
    let (directory, _) = archive_of(vec![tree(root.path())], &options(1, 2));
    let tar = stream_of(&open(&directory));
    for options in [options(3, 2), small_options("zstd")] {
        let (archive, _) = archive_of(vec![file("programs.tar", &tar)], &options);
        assert!(archive_of(vec![pipe("programs.tar", &tar)], &options).0 == archive);
        let reading = read_options(3);
        assert!(extracted(&archive, &reading).unwrap()[0].content == tar);
        assert!(extracted_from_pipe(&archive, &reading).unwrap()[0].content == tar);
        assert_ranges(&open(&archive), &tar);
    }
    // Cut off inside the code of a large file.
    let at = tar.windows(5).position(|name| name == b"large").unwrap() + 8 * MIB + 12_345;
    let (archive, _) = archive_of(vec![file("cut.tar", &tar[..at])], &options(3, 2));
    assert!(extracted(&archive, &read_options(2)).unwrap()[0].content == tar[..at]);
}

/// Damage leaves whole pages of code unknown, and nothing else is wrong.
#[test]
fn what_damage_leaves_of_programs_is_right() {
    let root = tempfile::tempdir().unwrap();
    for (name, bytes) in programs().into_iter().filter(|(name, _)| *name != "again") {
        fs::write(root.path().join(name), bytes).unwrap();
    }
    let (archive, _) = archive_of(vec![tree(root.path())], &small_options("zstd"));
    for part in 1..6 {
        let mut damaged = archive.clone();
        damaged[archive.len() * part / 6] ^= 0x10;
        for keep_broken in [false, true] {
            let delivered = pass(&damaged, false, keep_broken).unwrap();
            let broken = delivered.damage.files.iter();
            let missing: BTreeMap<_, _> = broken
                .map(|file| (name_of(file), file.missing.clone()))
                .collect();
            assert!(!missing.is_empty(), "{part}");
            for (name, bytes) in programs() {
                let name = format!("tree/{name}");
                let Some(found) = delivered.files.get(&name) else {
                    assert!(
                        name == "tree/again" || missing.contains_key(&name),
                        "{name}"
                    );
                    continue;
                };
                let mut expected = bytes;
                for lost in missing.get(&name).into_iter().flatten() {
                    expected[lost.start as usize..lost.end as usize].fill(0);
                }
                assert!(*found == expected, "{name} {part} {keep_broken}");
            }
        }
    }
}
