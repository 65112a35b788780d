//! The output of a round trip equals its input.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, UNIX_EPOCH};

use crate::support::{Case, REFRAIN, expect, incompressible, mixture, names_in};

#[test]
fn a_file_is_restored_with_mode_and_time() {
    let case = Case::new();
    let data = mixture(1 << 20);
    let path = case.write("data.bin", &data);
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let modified = UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(modified)
        .unwrap();

    let output = case.ok("compress data.bin");
    assert!(output.stdout.is_empty());
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(
        summary.starts_with("data.bin: ") && summary.contains(" -> "),
        "{summary}"
    );
    assert_eq!(summary.lines().count(), 1, "{summary}");
    assert!(case.exists("data.bin"), "sources are kept");
    let archive = fs::metadata(case.path("data.bin.rfn")).unwrap();
    assert_eq!(
        archive.mode() & 0o777,
        0o640,
        "an archive is as private as its source"
    );

    fs::rename(&path, case.path("original")).unwrap();
    case.ok("decompress data.bin.rfn");
    assert!(case.read("data.bin") == data);
    let restored = fs::metadata(&path).unwrap();
    assert_eq!(restored.mode() & 0o777, 0o640);
    assert_eq!(restored.modified().unwrap(), modified);
}

#[test]
fn small_files_of_many_lengths_are_restored() {
    for length in [0, 1, 2, 511, 4096, 65_537] {
        let case = Case::new();
        let data = incompressible(length as u64, length);
        case.write("x", &data);
        case.ok("compress -q x");
        case.ok("decompress -q x.rfn -o y");
        assert!(case.read("y") == data, "{length} bytes");
    }
}

#[test]
fn pipes_round_trip() {
    let case = Case::new();
    let data = mixture(3 << 20);
    let archive = expect(case.pipe(REFRAIN, "compress", &data), 0, "compress");
    let archive_too = expect(
        case.pipe(REFRAIN, "compress - -o -", &data),
        0,
        "compress - -o -",
    );
    assert!(archive.stdout == archive_too.stdout);
    assert!(archive.stdout.len() < data.len());
    let unpacked = expect(
        case.pipe(REFRAIN, "decompress", &archive.stdout),
        0,
        "decompress",
    );
    assert!(unpacked.stdout == data);
    expect(case.pipe(REFRAIN, "test -", &archive.stdout), 0, "test -");
    expect(
        case.pipe(REFRAIN, "decompress - -o out", &archive.stdout),
        0,
        "decompress - -o out",
    );
    assert!(case.read("out") == data);
    // The archive of a pipe is an archive like any other.
    case.write("packed.rfn", &archive.stdout);
    case.ok("test packed.rfn");
    case.ok("decompress packed.rfn");
    assert!(case.read("packed") == data);
}

#[test]
fn several_files_become_several_archives() {
    let case = Case::new();
    for name in ["a", "b"] {
        case.write(name, name.repeat(1000).as_bytes());
    }
    case.ok("compress a b");
    fs::remove_file(case.path("a")).unwrap();
    fs::remove_file(case.path("b")).unwrap();
    case.ok("decompress a.rfn b.rfn");
    assert_eq!(case.read("b"), b"b".repeat(1000));
    assert_eq!(case.read("a"), b"a".repeat(1000));
}

#[test]
fn several_members_are_restored_by_name() {
    let case = Case::new();
    let (one, two) = (mixture(200_000), incompressible(3, 70_000));
    case.write("in/one", &one);
    case.write("in/deep/two", &two);
    case.ok("compress in/one in/deep/two -o both.rfn");
    case.ok("decompress both.rfn -o out");
    assert!(case.read("out/in/one") == one);
    assert!(case.read("out/in/deep/two") == two);
    fs::remove_dir_all(case.path("in")).unwrap();
    case.ok("decompress both.rfn");
    assert!(case.read("in/one") == one);
    let both = case.ok("decompress both.rfn -o -");
    assert!(both.stdout == [one, two].concat());
    let twice = case.fails("compress in/one ./in/one -o twice.rfn", 1);
    assert!(twice.contains("second member"), "{twice}");
}

#[test]
fn several_members_of_a_pipe_are_restored_as_from_a_file() {
    let case = Case::new();
    let (one, two) = (mixture(100_000), incompressible(3, 70_000));
    case.write("tree/deep/one", &one);
    case.write("two", &two);
    case.write("full/mine", b"stays");
    std::fs::create_dir(case.path("empty")).unwrap();
    for (number, inputs) in ["two tree", "tree two"].into_iter().enumerate() {
        let archive = case.ok(&format!("compress {inputs} -o -")).stdout;
        let new = format!("new{number}");
        for place in [new.as_str(), "new/", "empty"] {
            let line = format!("decompress - -o {place}");
            expect(case.pipe(REFRAIN, &line, &archive), 0, &line);
            assert!(case.read(&format!("{place}/tree/deep/one")) == one);
            assert!(case.read(&format!("{place}/two")) == two);
            let root = case.path(place);
            assert_eq!(names_in(&root), ["tree", "two"], "{inputs} to {place}");
            let mode = std::fs::metadata(&root).unwrap().mode() & 0o777;
            let usual = std::fs::metadata(case.path("tree")).unwrap().mode() & 0o777;
            assert_eq!(mode, usual, "{inputs} to {place}");
            std::fs::remove_dir_all(&root).unwrap();
            if place == "empty" {
                std::fs::create_dir(&root).unwrap();
            }
        }
        assert!(
            !case.names().iter().any(|name| name.starts_with('.')),
            "left behind: {:?}",
            case.names()
        );
    }
    // The entries of a directory that was merged into another cannot be told from the earlier ones.
    let archive = case.ok("compress tree two -o -").stdout;
    let output = expect(
        case.pipe(REFRAIN, "decompress - -o full", &archive),
        1,
        "full",
    );
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("several members"), "{message}");
    assert_eq!(case.read("full/mine"), b"stays");
    assert!(
        case.read("full/deep/one") == one,
        "the complete member remains"
    );
}

#[test]
fn a_single_file_below_a_directory_is_named_like_its_archive() {
    let case = Case::new();
    case.write("x", b"data");
    let archive = case.ok("compress x -o -").stdout;
    case.write("backup.rfn", &archive);
    case.write("no-suffix", &archive);
    std::fs::create_dir(case.path("out")).unwrap();
    case.ok("decompress backup.rfn -o out");
    case.ok("decompress no-suffix -o out");
    case.ok("decompress backup.rfn -o made/");
    assert_eq!(case.read("out/backup"), b"data");
    assert_eq!(case.read("out/x"), b"data");
    assert_eq!(case.read("made/backup"), b"data");
}

#[test]
fn threads_do_not_change_the_bytes() {
    let case = Case::new();
    case.write("x", &mixture(6 << 20));
    let archives = [1, 2, 7].map(|threads| {
        let output = case.ok(&format!("compress -q x -o - -T{threads}"));
        let file = format!("file{threads}.rfn");
        case.ok(&format!("compress -q x -o {file} --threads {threads}"));
        (output.stdout, case.read(&file))
    });
    assert!(archives[0] == archives[1]);
    assert!(archives[1] == archives[2]);
    for threads in [1, 2, 7] {
        let output = case.ok(&format!("decompress -q file1.rfn -o - -T{threads}"));
        assert!(output.stdout == case.read("x"));
    }
}

#[test]
fn every_level_and_codec_round_trips() {
    let case = Case::new();
    let data = mixture(300_000);
    case.write("x", &data);
    let levels = (1..=9).map(|level| format!("-{level}"));
    let codecs = ["none", "lz4", "zstd", "zstd:19", "lzma", "bzip2", "deflate"];
    for option in levels.chain(codecs.map(|codec| format!("--codec {codec}"))) {
        case.ok(&format!("compress -q x -o x.rfn --force {option}"));
        case.ok("test -q x.rfn");
        let output = case.ok("decompress -q x.rfn -o -");
        assert!(output.stdout == data, "{option}");
    }
    assert!(case.fails("compress x -o - --codec mp3", 1).contains("mp3"));
}

#[test]
fn zeros_become_holes() {
    let case = Case::new();
    let mut data = incompressible(1, 100_000);
    data.resize(32 << 20, 0);
    data.extend_from_slice(&incompressible(2, 100_000));
    case.write("x", &data);
    case.ok("compress -q x");
    case.ok("decompress -q x.rfn -o y");
    assert!(case.read("y") == data);
    let allocated = fs::metadata(case.path("y")).unwrap().blocks() * 512;
    assert!(
        allocated < 4 << 20,
        "{allocated} bytes on disk for a file that is a hole"
    );
}
