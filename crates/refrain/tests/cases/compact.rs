//! What no kept generation needs is given back, and everything else reads as before.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use refrain::{
    Archive, CompactNumbers, CompactSummary, Compaction, CompressOptions, Content,
    DirectoryContent, GenerationChoice, MemberInput, ReadOptions, Unwatched, damaged_places,
    forget, verify, verify_frames,
};
use refrain_storage::{GrowingFile, HOLE_BYTES};
use refrain_testkit::data::{edited, random, source_code};
use refrain_testkit::{Rng, scaled};

use crate::common::{extracted, file, member, options, pipe, read_options};
use crate::generations::{add_to, file_source, label, read};

type Members = Vec<(String, Vec<u8>)>;

fn small_blocks() -> CompressOptions {
    CompressOptions {
        block_bytes: Some(1 << 16),
        ..options(1, 2)
    }
}

fn plan(path: &Path) -> CompactNumbers {
    let mut file = GrowingFile::open(path).unwrap();
    *Compaction::plan(&mut file, &read_options(2), &Unwatched)
        .unwrap()
        .numbers()
}

fn compact(path: &Path) -> (CompactNumbers, CompactSummary) {
    let mut file = GrowingFile::open(path).unwrap();
    let compaction = Compaction::plan(&mut file, &read_options(2), &Unwatched).unwrap();
    let numbers = *compaction.numbers();
    (numbers, compaction.run(&mut file, &Unwatched).unwrap())
}

fn forget_all(path: &Path, numbers: &[u16]) {
    let mut file = GrowingFile::open(path).unwrap();
    forget(&mut file, numbers, &ReadOptions::default()).unwrap();
}

/// Every way to read all of an archive agrees with what was stored.
#[track_caller]
fn assert_reads(path: &Path, kept: &[(u16, Members)]) {
    for (number, expected) in kept {
        assert!(
            read_by_index(path, *number) == *expected,
            "generation {number} differs"
        );
    }
    verify(file_source(path), &read_options(2), &Unwatched).unwrap();
    verify_frames(file_source(path), &read_options(2), &Unwatched).unwrap();
    let archive = Archive::open(file_source(path), &read_options(2)).unwrap();
    // What follows a complete archive is told apart.
    if archive.size_bytes().unwrap() == fs::metadata(path).unwrap().len() {
        let places = damaged_places(&file_source(path), &read_options(2)).unwrap();
        assert_eq!(places, [], "nothing is damaged");
    }
    let numbers: Vec<_> = archive.generations().iter().map(|row| row.number).collect();
    let expected: Vec<_> = kept.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, expected);
    archive.info().unwrap();
}

fn read_by_index(path: &Path, number: u16) -> Members {
    let options = ReadOptions {
        generation: GenerationChoice::Number(number),
        ..read_options(2)
    };
    let archive = Archive::open(file_source(path), &options).unwrap();
    let members = (0..archive.member_count()).map(|number| {
        let member = archive.member(number).unwrap();
        let mut content = vec![0; member.content_bytes as usize];
        let count = archive.read_at(number, 0, &mut content).unwrap();
        assert_eq!(count, content.len());
        archive.check_member(number, &Unwatched).unwrap();
        (String::from_utf8(member.name.clone()).unwrap(), content)
    });
    members.collect()
}

struct Nights {
    _directory: tempfile::TempDir,
    path: PathBuf,
    kept: Vec<(u16, Members)>,
}

impl Nights {
    fn new() -> Nights {
        let directory = tempfile::tempdir().unwrap();
        Nights {
            path: directory.path().join("a.rfn"),
            _directory: directory,
            kept: Vec::new(),
        }
    }

    fn add(&mut self, members: Vec<MemberInput>) -> u64 {
        let seconds = self.kept.len() as i64;
        let added = add_to(&self.path, members, &small_blocks(), label(seconds, &[])).unwrap();
        let number = added.generation;
        let members = read(&self.path, &number.to_string()).unwrap();
        self.kept.push((number, members));
        added.added.store_bytes
    }

    fn forget(&mut self, numbers: &[u16]) {
        forget_all(&self.path, numbers);
        self.kept.retain(|(number, _)| !numbers.contains(number));
    }

    fn allocated_bytes(&self) -> u64 {
        fs::metadata(&self.path).unwrap().blocks() * 512
    }
}

/// Five nights of an image of which a third is new each night; the first three are forgotten.
fn images() -> Nights {
    let mut nights = Nights::new();
    for night in 0..5_u64 {
        let mut image = random(3_000_000, 1);
        image[..1_000_000].copy_from_slice(&random(1_000_000, 100 + night));
        nights.add(vec![file("image", &edited(&image, 5, night))]);
    }
    nights.forget(&[1, 2, 3]);
    nights
}

#[test]
fn what_was_forgotten_is_given_back_and_the_rest_reads_as_before() {
    let mut nights = images();
    let path = nights.path.clone();
    let before = fs::read(&path).unwrap();
    let (known, allocated) = (plan(&path), nights.allocated_bytes());
    assert_eq!(fs::read(&path).unwrap(), before, "a look changes nothing");
    assert!(
        (2_500_000..3_000_000).contains(&known.hole_bytes),
        "{known:?}"
    );
    assert!(known.is_exact && known.record_bytes < 2000, "{known:?}");
    let (numbers, summary) = compact(&path);
    assert_eq!(numbers, known);
    let after = fs::read(&path).unwrap();
    assert_eq!(after.len() as u64, before.len() as u64 + known.record_bytes);
    assert_eq!(summary.archive_bytes, after.len() as u64);
    let freed = allocated - nights.allocated_bytes();
    assert_eq!(summary.freed_bytes, freed as i64);
    // The record takes space, too, and the file system some for its own lists.
    let difference = known.hole_bytes.abs_diff(freed);
    assert!(
        difference <= known.record_bytes + 4 * HOLE_BYTES,
        "{difference}"
    );
    assert_reads(&path, &nights.kept);
    for gone in ["1", "3", "6"] {
        assert!(read(&path, gone).is_err(), "generation {gone}");
    }
    let archive = Archive::open(file_source(&path), &read_options(1)).unwrap();
    assert!(archive.given_back_bytes() > known.hole_bytes);
    // There is nothing more to do.
    let (again, summary) = compact(&path);
    assert_eq!(
        (again.blocks, again.hole_bytes, again.record_bytes),
        (0, 0, 0)
    );
    assert_eq!(again.gone_bytes, archive.given_back_bytes());
    assert_eq!(
        (summary.freed_bytes, fs::read(&path).unwrap() == after),
        (0, true)
    );
    // What was given back is stored again when it comes again.
    let first = random(1_000_000, 100);
    let stored = nights.add(vec![file("again", &first)]);
    assert!(stored >= 900_000, "{stored}");
    assert!(nights.kept.last().unwrap().1[0].1 == first);
    let stored = nights.add(vec![
        file("again", &first),
        pipe("x", &random(200_000, 104)),
    ]);
    assert!(stored < 100_000, "what is kept is referred to: {stored}");
    nights.forget(&[4]);
    assert_reads(&path, &nights.kept);
    compact(&path);
    assert_reads(&path, &nights.kept);
}

/// The record goes behind a signature, as a generation does. Recovery data would no longer fit.
#[test]
fn signed_archives_are_compacted_and_protected_ones_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let content = |seed| random(2_000_000, seed);
    for seed in 0..3 {
        let members = vec![file("image", &content(seed))];
        add_to(&path, members, &small_blocks(), label(1, &[])).unwrap();
    }
    let archive = fs::read(&path).unwrap();
    let key = refrain_testkit::signing_keys::SSH;
    let signed = crate::signing::signed(&archive, key, &read_options(2));
    fs::write(&path, &signed).unwrap();
    forget_all(&path, &[1, 2]);
    let (numbers, _) = compact(&path);
    assert!(numbers.hole_bytes > 3_000_000, "{numbers:?}");
    assert_reads(&path, &[(3, vec![("image".to_owned(), content(2))])]);
    let found = fs::read(&path).unwrap();
    assert!(found[archive.len()..].starts_with(&signed[archive.len()..]));
    let members = vec![file("image", &content(2))];
    let added = add_to(&path, members, &small_blocks(), label(1, &[])).unwrap();
    assert_eq!(added.added.store_bytes, 0);

    let (protected, _) = crate::common::recovery::protected(&archive, "5%").unwrap();
    fs::write(&path, &protected).unwrap();
    let mut file = GrowingFile::open(&path).unwrap();
    let refused = Compaction::plan(&mut file, &read_options(2), &Unwatched);
    let error = refused.map(|_| ()).unwrap_err();
    assert_eq!(error.kind, refrain::ErrorKind::Unsupported, "{error}");
    drop(file);
    assert!(fs::read(&path).unwrap() == protected);
}

#[test]
fn nothing_is_given_back_while_all_is_kept() {
    let mut nights = Nights::new();
    nights.add(vec![file("a", &random(500_000, 1))]);
    nights.add(vec![file("b", &random(500_000, 2))]);
    let before = fs::read(&nights.path).unwrap();
    let (numbers, _) = compact(&nights.path);
    assert_eq!(
        (numbers.blocks, numbers.hole_bytes, numbers.record_bytes),
        (0, 0, 0)
    );
    assert!(fs::read(&nights.path).unwrap() == before);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.rfn");
    let (archive, _) =
        crate::common::archive_of(vec![file("a", &random(300_000, 1))], &options(1, 1));
    fs::write(&path, archive).unwrap();
    let mut file = GrowingFile::open(&path).unwrap();
    let error = Compaction::plan(&mut file, &read_options(1), &Unwatched)
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("nothing was added"), "{error}");
}

/// The holes of a compacted file that were none before.
fn new_holes(before: &[u8], after: &[u8]) -> Vec<Range<usize>> {
    let block = HOLE_BYTES as usize;
    let blocks = (0..before.len() / block).map(|number| number * block..(number + 1) * block);
    blocks
        .filter(|range| before[range.clone()] != after[range.clone()])
        .collect()
}

#[test]
fn a_run_that_is_killed_anywhere_is_finished_by_the_next() {
    let nights = images();
    let path = &nights.path;
    let before = fs::read(path).unwrap();
    compact(path);
    let after = fs::read(path).unwrap();
    let record = &after[before.len()..];
    let holes = new_holes(&before, &after);
    assert!(holes.len() > 500);
    let finishes = |what: &str| {
        assert_reads(path, &nights.kept);
        compact(path);
        assert!(fs::read(path).unwrap() == after, "{what}");
        assert_reads(path, &nights.kept);
    };
    // While the record is written.
    for length in [
        0,
        1,
        31,
        32,
        100,
        record.len() / 2,
        record.len() - 8,
        record.len() - 1,
    ] {
        fs::write(path, [&before[..], &record[..length]].concat()).unwrap();
        finishes(&format!("{length} bytes of the record"));
    }
    // Between holes, in any order in which the disk gets them.
    let mut rng = Rng::new(5);
    for share in [0, 1, 3, 9] {
        fs::write(path, [&before[..], record].concat()).unwrap();
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        for hole in &holes {
            if rng.below(10) < share {
                file.write_all_at(&vec![0; hole.len()], hole.start as u64)
                    .unwrap();
            }
        }
        finishes(&format!("{share} of ten holes"));
    }
    // `add` does not refer to what is gone, although it is still there.
    fs::write(path, [&before[..], record].concat()).unwrap();
    let image = random(1_000_000, 101);
    let added = add_to(
        path,
        vec![file("x", &image)],
        &small_blocks(),
        label(99, &[]),
    )
    .unwrap();
    assert!(added.added.store_bytes >= 900_000, "{added:?}");
    compact(path);
    assert!(read(path, "latest").unwrap()[0].1 == image);
}

#[test]
fn damage_is_told_from_what_was_given_back() {
    let nights = images();
    let path = &nights.path;
    compact(path);
    let archive = fs::read(path).unwrap();
    // The end is lost: a scan finds the rest, and the catalog of an earlier record or this one.
    let opened = Archive::open_or_scan(file_source(path), &read_options(2)).unwrap();
    assert!(!opened.is_scanned());
    let mut cut = archive.clone();
    let at = cut.len() - 20;
    cut[at] ^= 1;
    fs::write(path, &cut).unwrap();
    let places = damaged_places(&file_source(path), &read_options(2)).unwrap();
    assert_eq!(places.len(), 1, "{places:?}");
    let scanned = Archive::open_or_scan(file_source(path), &read_options(2)).unwrap();
    assert!(scanned.is_scanned());
    assert_eq!(scanned.member_count(), 5);
    let mut image = vec![0; 3_000_000];
    let length = scanned.read_at(4, 0, &mut image).unwrap();
    assert!(image[..length] == nights.kept[1].1[0].1[..length]);
    let error = scanned.read_at(1, 0, &mut image).unwrap_err();
    assert!(error.is_given_back(), "{error}");
}

#[test]
fn nothing_is_given_back_where_the_index_leads_to_no_block() {
    let nights = images();
    let path = &nights.path;
    let archive = Archive::open(file_source(path), &read_options(1)).unwrap();
    let layout = archive.layout();
    let mut at = 0;
    let block = loop {
        let offset = layout.frame_after(at).unwrap().unwrap();
        let frame = layout.frame_at(offset).unwrap();
        if frame.kind.eq_ignore_ascii_case("block") {
            break offset;
        }
        at = frame.end();
    };
    let mut bytes = fs::read(path).unwrap();
    bytes[block as usize + 14] ^= 1;
    fs::write(path, &bytes).unwrap();
    let mut file = GrowingFile::open(path).unwrap();
    let planned = Compaction::plan(&mut file, &read_options(1), &Unwatched);
    let error = planned.map(|_| ()).unwrap_err();
    assert!(
        error.to_string().contains("a block that is not there"),
        "{error}"
    );
    assert!(fs::read(path).unwrap() == bytes);
}

fn tree_member(tree: &Path) -> MemberInput {
    member("tree", Content::directory(DirectoryContent::all(tree)))
}

fn write(tree: &Path, name: &str, content: &[u8]) {
    let path = tree.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// The tree as an archive of its own has it.
fn own_view(tree: &Path) -> Vec<u8> {
    let archive = crate::common::archive_of(vec![tree_member(tree)], &options(1, 2)).0;
    extracted(&archive, &read_options(2))
        .unwrap()
        .remove(0)
        .content
}

#[test]
fn trees_keep_what_they_refer_to_in_forgotten_nights() {
    let mut nights = Nights::new();
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path();
    for number in 0..40 {
        write(
            tree,
            &format!("d{}/f{number}", number % 5),
            &random(50_000, number),
        );
    }
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let mut views = vec![];
    for night in 0..8_u64 {
        if night > 0 {
            // The same file changes every night, and another one once.
            write(tree, "d0/f0", &random(200_000, 1000 + night));
            write(
                tree,
                &format!("d1/once{night}"),
                &random(30_000, 2000 + night),
            );
        }
        nights.add(vec![tree_member(tree)]);
        views.push(own_view(tree));
    }
    nights.forget(&[1, 2, 3, 4, 5, 6]);
    let (numbers, _) = compact(&nights.path);
    // The file of five nights, less the blocks that it shares with others.
    assert!(
        (500_000..1_100_000).contains(&numbers.hole_bytes),
        "{numbers:?}"
    );
    assert_reads(&nights.path, &nights.kept);
    assert!(nights.kept[1].1[0].1 == views[7]);
    // The next night refers to the same content.
    write(tree, "d2/new", &random(1000, 7));
    let stored = nights.add(vec![tree_member(tree)]);
    assert!(stored < 300_000, "{stored}");
    assert!(nights.kept.last().unwrap().1[0].1 == own_view(tree));
    compact(&nights.path);
    nights.forget(&[7, 8]);
    compact(&nights.path);
    assert_reads(&nights.path, &nights.kept);
    let options = ReadOptions {
        generation: "latest".parse().unwrap(),
        ..read_options(2)
    };
    let archive = Archive::open(file_source(&nights.path), &options).unwrap();
    archive.check_member(0, &Unwatched).unwrap();
}

#[test]
fn nights_in_any_order_read_as_they_were_stored() {
    for seed in 0..u64::from(scaled(4)) {
        let mut rng = Rng::new(seed);
        let mut nights = Nights::new();
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().join("tree");
        let mut image = random(600_000, seed);
        for night in 0..14 {
            let mut members = vec![];
            for _ in 0..1 + rng.below(6) {
                let (name, length) = (rng.below(30), 1 + rng.below(60_000) as usize);
                let kind = if rng.below(2) == 0 { random } else { source_code };
                write(
                    &tree,
                    &format!("d{}/f{name}", name % 4),
                    &kind(length, rng.below(40)),
                );
                drop(fs::remove_file(tree.join(format!("d1/f{}", rng.below(30)))));
            }
            members.push(tree_member(&tree));
            if rng.below(2) == 0 {
                let at = rng.below(400_000) as usize;
                image[at..at + 150_000].copy_from_slice(&random(150_000, 50 + rng.below(6)));
                members.push(file("image", &image));
            }
            nights.add(members);
            if rng.below(3) == 0 {
                let last = nights.kept.len() - 1;
                let rows = nights.kept[..last].iter().map(|(number, _)| *number);
                let gone: Vec<u16> = rows.filter(|_| rng.below(2) == 0).collect();
                nights.forget(&gone);
            }
            if rng.below(3) == 0 {
                compact(&nights.path);
            }
            if night % 5 == 4 {
                assert_reads(&nights.path, &nights.kept);
            }
        }
        let last = nights.kept.last().unwrap().0;
        let rows: Vec<u16> = nights.kept.iter().map(|(number, _)| *number).collect();
        nights.forget(&rows[..rows.len() - 1]);
        compact(&nights.path);
        assert_eq!(nights.kept.last().unwrap().0, last);
        assert_reads(&nights.path, &nights.kept);
    }
}
