//! A golden archive with generations: a directory, two nights of changes, and a file beside it.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use refrain::{
    Archive, Compaction, CompressOptions, Content, DirectoryContent, Unwatched, damaged_places,
    forget, recovery_info, verify, verify_frames,
};
use refrain_format::content_hash;
use refrain_storage::GrowingFile;
use refrain_testkit::data::{random, source_code};

use crate::common::recovery::repaired;
use crate::common::{file, member, options, read_options};
use crate::generations::{add_to, file_source, label, read};

fn golden(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/generations");
    directory.join(name)
}

/// A line for each member of each generation: number, name, and hash of the content, which is a
/// tar stream for a directory.
fn described(path: &Path, generations: u16) -> String {
    let mut lines = String::new();
    for number in 1..=generations {
        for (name, content) in read(path, &number.to_string()).unwrap() {
            let hash = content_hash(&content).map(|byte| format!("{byte:02x}"));
            writeln!(lines, "{number} {name} {}", hash.concat()).unwrap();
        }
    }
    lines
}

#[test]
fn generations_of_earlier_versions_are_read() {
    let path = golden("nights.rfn");
    let expected = fs::read_to_string(golden("nights.members")).unwrap();
    assert_eq!(described(&path, 3), expected);
    verify(file_source(&path), &read_options(2), &Unwatched).unwrap();
}

#[test]
fn what_earlier_versions_gave_back_is_no_damage() {
    let path = golden("compacted.rfn");
    let archive = Archive::open(file_source(&path), &read_options(2)).unwrap();
    assert!(archive.given_back_bytes() > 10_000);
    let numbers: Vec<_> = archive.generations().iter().map(|row| row.number).collect();
    assert_eq!(numbers, [2, 3, 5]);
    for (number, seeds) in [(2, [1, 7]), (3, [2, 7]), (5, [3, 7])] {
        let found = read(&path, &number.to_string()).unwrap();
        assert!(found[0].1 == random(15_000, seeds[0]), "{number}");
        assert!(found[1].1 == random(15_000, seeds[1]), "{number}");
    }
    verify(file_source(&path), &read_options(2), &Unwatched).unwrap();
    verify_frames(file_source(&path), &read_options(2), &Unwatched).unwrap();
    let places = damaged_places(&file_source(&path), &read_options(2)).unwrap();
    assert_eq!(places, []);
}

/// Two nights with recovery data of 10 % each.
fn protected_nights() -> [Vec<u8>; 2] {
    [random(9_000, 1), random(5_000, 2)]
}

#[test]
fn recovery_data_of_generations_of_earlier_versions_heals_them() {
    let path = golden("protected.rfn");
    for (number, content) in protected_nights().into_iter().enumerate() {
        let found = read(&path, &(number + 1).to_string()).unwrap();
        assert!(found[0].1 == content, "{number}");
    }
    verify(file_source(&path), &read_options(2), &Unwatched).unwrap();
    let whole = fs::read(&path).unwrap();
    let info = recovery_info(&*file_source(&path)).unwrap().unwrap();
    assert_eq!((info.sets, info.unprotected_bytes), (2, 0));
    let mut damaged = whole.clone();
    damaged[500..900].fill(0);
    damaged.drain(whole.len() - 7000..whole.len() - 6500);
    assert!(repaired(&[&damaged]).unwrap().0 == whole);
    // The same bytes are still written.
    let again = tempfile::tempdir().unwrap();
    write_protected(&again.path().join("a.rfn"));
    assert!(fs::read(again.path().join("a.rfn")).unwrap() == whole);
}

fn write_protected(path: &Path) {
    let with_recovery = CompressOptions {
        recovery: Some("10%".parse().unwrap()),
        ..options(1, 1)
    };
    for (night, content) in (0..).zip(protected_nights()) {
        let chosen = if night == 0 { &with_recovery } else { &options(1, 1) };
        add_to(
            path,
            vec![file("disk", &content)],
            chosen,
            label(night, &[]),
        )
        .unwrap();
    }
}

/// Makes the archive, if it does not exist.
#[test]
#[ignore = "writes files"]
fn make_golden_protected() {
    let path = golden("protected.rfn");
    if !path.exists() {
        write_protected(&path);
    }
}

/// Makes the archive, if it does not exist: four nights, of which the first is given back.
#[test]
#[ignore = "writes files"]
fn make_golden_compacted() {
    let path = golden("compacted.rfn");
    if path.exists() {
        return;
    }
    let night = |seed| {
        let mut members = vec![file("disk", &random(15_000, seed))];
        if seed > 0 {
            members.push(file("same", &random(15_000, 7)));
        }
        add_to(&path, members, &options(1, 1), label(seed as i64, &[])).unwrap();
    };
    (0..3).for_each(night);
    let mut grown = GrowingFile::open(&path).unwrap();
    forget(&mut grown, &[1], &read_options(1)).unwrap();
    drop(grown);
    night(3);
    let mut grown = GrowingFile::open(&path).unwrap();
    let compaction = Compaction::plan(&mut grown, &read_options(1), &Unwatched).unwrap();
    compaction.run(&mut grown, &Unwatched).unwrap();
}

/// Makes the archive, if it does not exist. Its bytes depend on the file system.
#[test]
#[ignore = "writes files"]
fn make_golden_generations() {
    let path = golden("nights.rfn");
    if path.exists() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    let write = |name: &str, seed: u64| {
        let file = tree.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, source_code(2000, seed)).unwrap();
    };
    (0..12).for_each(|number| write(&format!("d{}/f{number}", number % 3), number));
    // Files that just changed have no stamps.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for night in 0..3 {
        match night {
            1 => write("d1/f1", 100),
            2 => fs::remove_file(tree.join("d2/f5")).unwrap(),
            _ => {}
        }
        let content = Content::directory(DirectoryContent::all(&tree));
        let members = vec![
            member("tree", content),
            file("notes", &source_code(500, night)),
        ];
        add_to(
            &path,
            members,
            &options(3, 2),
            label(1000 + night as i64, &["nightly"]),
        )
        .unwrap();
    }
    fs::write(golden("nights.members"), described(&path, 3)).unwrap();
}
