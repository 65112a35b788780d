//! The second reader (`tools/reader`), written only from the documents, reads what the engine
//! writes: the same contents and entries, and all its checks pass.
//!
//! It needs Python 3.11 and a few packages. `REFRAIN_READER_PYTHON` names a Python that has them
//! (as in CI); without it, the tests are skipped if `python3` lacks them.

// A skipped test says so.
#![allow(clippy::print_stderr)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::common::*;
use proptest::prelude::*;
use refrain::{
    Archive, CodecChoice, CompressOptions, Content, DirectoryContent, Entry, EntryKind, Member,
    MemberInput, MemberKind,
};
use refrain_entries::tar::property::with_valid_checksums;
use refrain_testkit::{Rng, data, sample_archive, scaled};

/// The Python that runs the second reader; none if it cannot run here.
fn python() -> Option<&'static OsString> {
    static PYTHON: OnceLock<Option<OsString>> = OnceLock::new();
    PYTHON
        .get_or_init(|| {
            let named = std::env::var_os("REFRAIN_READER_PYTHON");
            let python = named.clone().unwrap_or_else(|| "python3".into());
            let works = run(
                &python,
                &["-c".as_ref(), "import refrain_reader.coding".as_ref()],
            )
            .is_ok_and(|output| output.status.success());
            assert!(
                works || named.is_none(),
                "{python:?} cannot run the second reader"
            );
            if !works {
                eprintln!("skipped: python3 has not the packages of tools/reader/requirements.txt");
            }
            works.then_some(python)
        })
        .as_ref()
}

fn run(python: &OsString, arguments: &[&std::ffi::OsStr]) -> std::io::Result<Output> {
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/reader");
    Command::new(python)
        .args(arguments)
        .env("PYTHONPATH", reader)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
}

/// What a command of the second reader prints.
fn second(command: &str, archive: &Path, options: &[&str]) -> Vec<u8> {
    let mut arguments = vec!["-m".as_ref(), "refrain_reader".as_ref(), command.as_ref()];
    arguments.push(archive.as_os_str());
    arguments.extend(options.iter().map(std::ffi::OsStr::new));
    let output = run(python().unwrap(), &arguments).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command} {options:?}: {errors}");
    output.stdout
}

/// Bytes as one word, as `list --exact` writes them.
fn quoted(bytes: &[u8]) -> String {
    match bytes {
        b"" => "-".into(),
        b"-" => "%2D".into(),
        _ => bytes.iter().map(|&byte| quoted_byte(byte)).collect(),
    }
}

fn quoted_byte(byte: u8) -> String {
    match byte {
        b'%' | b',' | b':' | b'=' => format!("%{byte:02X}"),
        0x21..0x7f => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".into() } else { text }
}

fn entry_line(entry: &Entry) -> String {
    let kind = match entry.kind {
        EntryKind::File => "file",
        EntryKind::Directory => "dir",
        EntryKind::Symlink => "symlink",
        EntryKind::Hardlink => "hardlink",
        EntryKind::CharacterDevice => "char",
        EntryKind::BlockDevice => "block",
        EntryKind::Fifo => "pipe",
        _ => "other",
    };
    let ranges = entry.data_ranges.as_ref().map_or("-".into(), |ranges| {
        let ranges = ranges.iter();
        let pairs = ranges.map(|range| format!("{}:{}", range.start, range.end - range.start));
        let pairs = pairs.collect::<Vec<_>>().join(",");
        if pairs.is_empty() { "0".into() } else { pairs }
    });
    let attributes = entry.attributes.iter();
    let attributes = attributes.map(|one| format!("{}={}", quoted(&one.name), quoted(&one.value)));
    format!(
        "entry {kind} {:o} {} {} {} {} {} {} {} {} {ranges} {} {} {} {} {} {}\n",
        entry.mode,
        entry.owner.uid,
        entry.owner.gid,
        quoted(&entry.owner.user),
        quoted(&entry.owner.group),
        entry.modified.seconds,
        entry.modified.nanoseconds,
        entry.size_bytes,
        entry.content_offset,
        quoted(entry.link_target.as_deref().unwrap_or_default()),
        entry.device.0,
        entry.device.1,
        or_dash(attributes.collect::<Vec<_>>().join(",")),
        or_dash(hex(&entry.header_recipe)),
        quoted(&entry.path),
    )
}

/// What `list --exact` prints, except ids, which count in each archive of a file, and content
/// bytes: the engine knows only the length of views.
fn member_words(member: &Member) -> Vec<String> {
    let kind = match member.kind {
        MemberKind::File => "file",
        MemberKind::Stream => "stream",
        MemberKind::Tree => "tree",
        _ => "tar",
    };
    let (mode, modified) = (member.mode, member.modified);
    vec![
        "member".into(),
        kind.into(),
        member.content_bytes.to_string(),
        mode.map_or("-".into(), |mode| format!("{mode:o}")),
        modified.map_or("-".into(), |time| time.seconds.to_string()),
        modified.map_or("-".into(), |time| time.nanoseconds.to_string()),
        hex(&member.blake3),
        quoted(&member.name),
    ]
}

/// Reads an archive with both readers, with the second one in all its ways.
fn compare(archive: &[u8]) {
    compare_in(archive, &["index", "stream", "scan"]);
}

/// Reads an archive with both readers, with the second one in these ways.
fn compare_in(archive: &[u8], modes: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rfn");
    fs::write(&path, archive).unwrap();
    second("test", &path, &[]);
    let listed = String::from_utf8(second("list", &path, &["--exact"])).unwrap();
    // The engine does not list bytes of tar streams that belong to no entry.
    let mut listed = listed
        .lines()
        .filter(|line| !line.starts_with("entry raw "));
    let opened = Archive::open(source(archive), &read_options(2)).unwrap();
    let mut views = vec![];
    let members = opened.members().unwrap();
    for (id, member) in members.iter().enumerate() {
        let mut words: Vec<_> = listed
            .next()
            .unwrap()
            .split(' ')
            .map(String::from)
            .collect();
        words.remove(3);
        words.remove(1);
        assert_eq!(words, member_words(member));
        for entry in opened.entries(id).unwrap() {
            assert_eq!(format!("{}\n", listed.next().unwrap()), entry_line(&entry));
        }
        let start = views.len();
        views.resize(start + member.content_bytes as usize, 0);
        let count = opened.read_at(id, 0, &mut views[start..]).unwrap();
        assert_eq!(start + count, views.len());
    }
    assert_eq!(listed.next(), None);
    for mode in modes {
        let content = second("cat", &path, &["--mode", mode]);
        assert_eq!(first_difference(&content, &views), None, "{mode}");
    }
}

/// A directory with files of every kind, equal ones, holes, links and deep paths.
fn write_tree(root: &Path, seed: u64) {
    let mut rng = Rng::new(seed);
    let files = data::source_tree(rng.length(1, 30), seed);
    for (number, (_, bytes)) in files.iter().enumerate() {
        let folder = root.join(format!("d{}/v{}", "long".repeat(number % 60), number % 3));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("file {number} ü"));
        fs::write(&path, bytes).unwrap();
        if rng.once_in(4) {
            fs::write(folder.join("equal"), bytes).unwrap();
        }
        if rng.once_in(5) {
            fs::hard_link(&path, folder.join(format!("hard-{number}"))).unwrap();
        }
        let link = folder.join(format!("link-{number}"));
        if rng.once_in(5) {
            std::os::unix::fs::symlink(&path, link).unwrap();
        }
    }
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(rng.below(1 << 21)).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"data", rng.below(1 << 20)).unwrap();
}

/// A member of any kind. `root` is a folder of its own.
fn any_member(root: PathBuf, number: usize, rng: &mut Rng) -> MemberInput {
    let name = format!("member {number}");
    let length = *rng.choose(&[0, 1, 300, 70_000, 200_000]);
    let kinds = data::all_kinds(length, rng.below(1 << 40));
    let (_, bytes) = rng.choose(&kinds);
    match rng.below(4) {
        0 => {
            fs::create_dir_all(&root).unwrap();
            write_tree(&root, rng.below(1 << 40));
            member(&name, Content::directory(DirectoryContent::all(&root)))
        }
        1 => pipe(&name, bytes),
        _ => file(&name, bytes),
    }
}

fn any_options(rng: &mut Rng) -> CompressOptions {
    let codecs = [
        "none", "lz4", "zstd", "lzma", "bzip2", "deflate", "ppmd", "bwt", "bwt2",
    ];
    let codec = rng.once_in(2).then(|| CodecChoice {
        name: (*rng.choose(&codecs)).into(),
        level: None,
    });
    CompressOptions {
        codec,
        block_bytes: rng.once_in(2).then_some(1 << 16),
        ..options(*rng.choose(&[1, 2, 3, 4, 5, 6, 7]), 2)
    }
}

/// The tars of other programs.
fn sample_tars() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../entries/tests/data/tars");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "tar"));
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// A tar of an empty file with a path of 255 bytes.
fn tar_with_long_path(number: usize) -> Vec<u8> {
    let mut tar = vec![0; 3 * 512];
    let fields = [
        (0, "n".repeat(100)),
        (100, "0000644".into()),
        (108, "0000000".into()),
        (116, "0000000".into()),
        (124, "00000000000".into()),
        (136, "00000000000".into()),
        (156, "0".into()),
        (257, "ustar\x0000".into()),
        (345, format!("{number:0>154}")),
    ];
    for (at, text) in fields {
        tar[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    with_valid_checksums(&mut tar);
    tar
}

/// Parts of tars of several programs, with bytes of their headers changed.
fn odd_tar(samples: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut tar = rng.choose(samples).clone();
    tar.truncate(512 * rng.length(1, 80));
    for _ in 0..rng.below(4) {
        let other = rng.choose(samples);
        let records = other.len() / 512;
        let start = rng.below(records as u64) as usize;
        let end = records.min(start + rng.length(1, 30));
        tar.extend_from_slice(&other[512 * start..512 * end]);
    }
    let is_header = |record: &usize| tar[512 * record + 257..].starts_with(b"ustar");
    let headers: Vec<_> = (0..tar.len() / 512).filter(is_header).collect();
    for _ in 0..rng.below(12) {
        let record = if rng.once_in(6) || headers.is_empty() {
            rng.below(tar.len() as u64 / 512) as usize
        } else {
            *rng.choose(&headers)
        };
        let at = 512 * record + rng.below(512) as usize;
        tar[at] = match rng.below(3) {
            0 => rng.below(256) as u8,
            1 => *rng.choose(b"\0 07/.xLKS=\n\x80\xff"),
            _ => tar[512 * record + rng.below(512) as usize],
        };
    }
    with_valid_checksums(&mut tar);
    tar
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..ProptestConfig::with_cases(scaled(6)) })]

    #[test]
    fn the_second_reader_reads_what_the_engine_writes(seed: u64) {
        if python().is_none() {
            return Ok(());
        }
        let mut rng = Rng::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let members = (0..rng.below(4) as usize)
            .map(|number| any_member(folder.path().join(number.to_string()), number, &mut rng))
            .collect();
        let options = any_options(&mut rng);
        let (archive, _) = if rng.once_in(2) {
            archive_of(members, &options)
        } else {
            piped_archive_of(members, &options)
        };
        compare(&archive);
    }

    #[test]
    fn the_second_reader_rebuilds_odd_tar_streams(seed: u64) {
        if python().is_none() {
            return Ok(());
        }
        let mut rng = Rng::new(seed);
        let samples = sample_tars();
        let tars = (0..10).map(|_| file("tar", &odd_tar(&samples, &mut rng)));
        let (archive, _) = archive_of(tars.collect(), &options(1, 2));
        let opened = Archive::open(source(&archive), &read_options(2)).unwrap();
        let members = opened.members().unwrap();
        prop_assert!(members.iter().any(|member| member.kind == MemberKind::Tar));
        compare(&archive);
    }

    /// Indexes of one node and of many small ones, empty members, skippable frames, repeats.
    #[test]
    fn the_second_reader_reads_sample_archives(seed: u64) {
        if python().is_none() {
            return Ok(());
        }
        // Concatenated: one start of Python for all of them.
        let archives = (0..40).flat_map(|number| sample_archive(seed.wrapping_add(number)).bytes);
        compare(&archives.collect::<Vec<_>>());
    }
}

#[test]
fn the_second_reader_reads_many_members_and_tar_streams() {
    if python().is_none() {
        return;
    }
    let members = (0..300).map(|i| match i % 3 {
        0 => file(&format!("{i}"), &tar_with_long_path(i)),
        _ => file(&format!("{i}"), &data::text(i, 7)),
    });
    compare(&archive_of(members.collect(), &options(1, 2)).0);
    let tars = sample_tars();
    let members = tars.iter().map(|tar| file("tar", tar));
    compare(&archive_of(members.collect(), &options(3, 2)).0);
}

/// `.ci/run reader` reads all of them, including codecs that are slow in Python.
#[test]
fn the_second_reader_reads_golden_archives_as_the_engine_does() {
    if python().is_none() {
        return;
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/archives");
    let slow = ["codec-bwt", "codec-bwt2", "codec-cm", "level-8", "level-9"];
    let mut count = 0;
    for version in fs::read_dir(golden).unwrap() {
        for entry in fs::read_dir(version.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            let is_slow = slow.iter().any(|name| path.file_stem().unwrap() == *name);
            if path.extension().unwrap() == "rfn" && !is_slow {
                compare_in(&fs::read(&path).unwrap(), &["index"]);
                count += 1;
            }
        }
    }
    assert!(count > 30);
}
