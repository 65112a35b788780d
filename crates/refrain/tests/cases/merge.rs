//! Archives made of several, with the generations of all.

use std::fs;
use std::path::Path;

use refrain::storage::MemorySink;
use refrain::{
    Archive, CompressOptions, ErrorKind, GenerationLabel, Level, MEMORY_BYTES_MIN, Merge,
    MergeSource, MergeSummary, ReadOptions, Timestamp, Unwatched, forget, verify, verify_frames,
};
use refrain_storage::GrowingFile;
use refrain_testkit::Rng;
use refrain_testkit::data::{edited, far_duplicates, random, source_code};

use crate::common::{archive_of, extracted_of, file, options, read_options};
use crate::encrypted_generations::{self, encryption, secrets};
use crate::generations::{add_to, file_source, read};
use crate::layered_trees::{change, new_tree, own_view, tree_member};

/// A generation of a host, made at this time.
fn made(host: &str, seconds: i64) -> GenerationLabel {
    GenerationLabel {
        created: Some(Timestamp {
            seconds,
            nanoseconds: 5,
        }),
        host: host.into(),
        comment: format!("of {seconds}").into_bytes(),
        tags: vec![format!("tag{seconds}").into_bytes()],
    }
}

fn source_of(path: &Path, options: &ReadOptions) -> MergeSource {
    MergeSource {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        source: file_source(path),
        options: options.clone(),
    }
}

fn sources(paths: &[&Path]) -> Vec<MergeSource> {
    let source = |path: &&Path| source_of(path, &read_options(2));
    paths.iter().map(source).collect()
}

fn merged_by(
    sources: Vec<MergeSource>,
    options: &CompressOptions,
) -> refrain::Result<(Vec<u8>, MergeSummary)> {
    let mut sink = MemorySink::new();
    let output = sink.output();
    let merge = Merge::open(sources, None, options)?;
    let summary = merge.run(&mut sink, options, &Unwatched)?;
    Ok((output.published().unwrap(), summary))
}

/// Merges archives to `to`, and checks that every frame and content is intact.
#[track_caller]
fn merge(paths: &[&Path], to: &Path) -> MergeSummary {
    let before: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    let (bytes, summary) = merged_by(sources(paths), &options(3, 2)).unwrap();
    assert_eq!(summary.archive_bytes, bytes.len() as u64);
    for (path, before) in paths.iter().zip(before) {
        assert!(fs::read(path).unwrap() == before, "an archive was changed");
    }
    fs::write(to, &bytes).unwrap();
    verify(file_source(to), &read_options(2), &Unwatched).unwrap();
    verify_frames(file_source(to), &read_options(2), &Unwatched).unwrap();
    let last = Archive::open(file_source(to), &read_options(1)).unwrap();
    assert_eq!(last.info().unwrap().root_hash, Some(summary.root_hash));
    assert_eq!(last.generations().len(), summary.generations);
    summary
}

/// Members of a generation as they are extracted.
type Members = Vec<(String, Vec<u8>)>;

fn all_members(path: &Path) -> Vec<Members> {
    let archive = Archive::open(file_source(path), &read_options(1)).unwrap();
    let numbers = archive.generations().iter().map(|row| row.number);
    numbers
        .map(|number| read(path, &number.to_string()).unwrap())
        .collect()
}

#[test]
fn generations_are_in_the_order_of_their_times() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (a, b, both) = (path("a.rfn"), path("b.rfn"), path("both.rfn"));
    let options = options(3, 2);
    let first = far_duplicates(3_000_000, 100_000, 1);
    let mut images = [first.clone(), edited(&first, 40, 2)];
    let (mut expected, mut stores) = (vec![], 0);
    for night in 0..6_u64 {
        let archive = (night % 2) as usize;
        let image = &mut images[archive];
        *image = edited(image, 20, 10 + night);
        let other = random(20_000 + night as usize, night);
        let members = vec![file("image", image), file("other", &other)];
        // Both hosts have one name.
        let label = made("host", 1000 + night as i64);
        let added = add_to([&a, &b][archive], members, &options, label).unwrap();
        stores += added.added.store_bytes;
        expected.push(vec![
            ("image".to_owned(), image.clone()),
            ("other".to_owned(), other),
        ]);
    }
    let summary = merge(&[&a, &b], &both);
    assert!(
        summary.store_bytes < 2_300_000 && stores > 4_200_000,
        "{summary:?} {stores}"
    );
    assert!(all_members(&both) == expected);
    let archive = Archive::open(file_source(&both), &read_options(1)).unwrap();
    for (number, row) in (1..).zip(archive.generations()) {
        let label = made("host", 999 + i64::from(number));
        let found = (row.number, row.created, &row.host, &row.comment, &row.tags);
        assert_eq!(
            found,
            (
                number,
                label.created,
                &label.host,
                &label.comment,
                &label.tags
            )
        );
    }
    // The same bytes in any order of threads; a tag and a time lead to the same generation.
    let by_one = merged_by(sources(&[&a, &b]), &crate::common::options(3, 1))
        .unwrap()
        .0;
    let by_four = merged_by(sources(&[&a, &b]), &crate::common::options(3, 4))
        .unwrap()
        .0;
    assert!(by_one == by_four && by_one == fs::read(&both).unwrap());
    assert!(read(&both, "tag1002").unwrap() == expected[2]);
    // The least memory suffices.
    let least = CompressOptions {
        memory_bytes: Some(MEMORY_BYTES_MIN),
        ..options.clone()
    };
    let small = merged_by(sources(&[&a, &b]), &least).unwrap().0;
    let small_path = path("small.rfn");
    fs::write(&small_path, small).unwrap();
    assert!(all_members(&small_path) == expected);
    // It grows as others do, and knows what did not change.
    let image = edited(&images[1], 3, 99);
    let label = made("host", 2000);
    let added = add_to(&both, vec![file("image", &image)], &options, label).unwrap();
    assert!(added.added.store_bytes < 40_000, "{added:?}");
    assert_eq!(
        read(&both, "latest").unwrap(),
        [("image".to_owned(), image)]
    );
}

#[test]
fn unchanged_content_costs_nothing_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (a, b, both) = (path("a.rfn"), path("b.rfn"), path("both.rfn"));
    let mut image = far_duplicates(2_000_000, 50_000, 1);
    let mut expected = vec![];
    for night in 0..30 {
        image = edited(&image, 3, night);
        for archive in [&a, &b] {
            let label = made("h", night as i64);
            add_to(archive, vec![file("image", &image)], &options(3, 2), label).unwrap();
            expected.push(vec![("image".to_owned(), image.clone())]);
        }
    }
    let summary = merge(&[&a, &b], &both);
    assert!(all_members(&both) == expected);
    let one = fs::metadata(&a).unwrap().len();
    assert!(
        summary.archive_bytes < one + one / 6,
        "{summary:?}, one alone {one}"
    );
}

/// Three archives of trees that change; of some nights only what `kept` says remains.
fn trees_are_merged(kept: &[u16]) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (a, b, both) = (path("a.rfn"), path("b.rfn"), path("both.rfn"));
    let (mut nights, mut views) = (vec![], vec![]);
    for (number, archive) in [&a, &b].into_iter().enumerate() {
        let tree = path(&format!("tree{number}"));
        new_tree(&tree);
        let mut rng = Rng::new(7 + number as u64);
        for night in 0..14_u64 {
            if night > 0 {
                change(&tree, night, &mut rng);
            }
            let mut members = vec![tree_member(&tree)];
            if night % 3 == 1 {
                members.insert(0, file("other", &source_code(4000, 500 + night)));
            }
            let label = made(["one", "two"][number], 10 * night as i64 + number as i64);
            add_to(archive, members, &options(3, 2), label).unwrap();
            if kept.contains(&(night as u16 + 1)) {
                nights.push((night, number));
                views.push(((night, number), own_view(&tree)));
            }
        }
        let forgotten: Vec<_> = (1..=14).filter(|number| !kept.contains(number)).collect();
        let mut growing = GrowingFile::open(archive).unwrap();
        forget(&mut growing, &forgotten, &ReadOptions::default()).unwrap();
    }
    views.sort();
    merge(&[&a, &b], &both);
    let merged = all_members(&both);
    assert_eq!(merged.len(), views.len());
    for (members, (night, view)) in merged.iter().zip(&views) {
        let (_, found) = members.iter().find(|(name, _)| name == "tree").unwrap();
        assert!(found == view, "{night:?} differs");
    }
    // The next night reads what changed only.
    let tree = path("tree1");
    fs::write(tree.join("d0/one_more"), b"is new").unwrap();
    let label = made("two", 1000);
    let added = add_to(&both, vec![tree_member(&tree)], &options(3, 2), label).unwrap();
    assert!(added.added.unchanged_files > 50, "{added:?}");
    assert!(read(&both, "latest").unwrap()[0].1 == own_view(&tree));
    verify(file_source(&both), &read_options(2), &Unwatched).unwrap();
}

#[test]
fn directories_keep_their_entries() {
    trees_are_merged(&(1..=14).collect::<Vec<_>>());
}

#[test]
fn directories_whose_first_nights_are_forgotten_are_whole() {
    trees_are_merged(&[6, 7, 8, 11, 12, 13, 14]);
    trees_are_merged(&[14]);
}

#[test]
fn archives_of_compress_are_one_generation() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let tree = path("tree");
    new_tree(&tree);
    let tar = own_view(&tree);
    let large = source_code(3_000_000, 1);
    let zeros = vec![0; 5_000_000];
    let plain = archive_of(
        vec![tree_member(&tree), file("large", &large)],
        &options(6, 2),
    )
    .0;
    fs::write(path("plain.rfn"), plain).unwrap();
    let whole = archive_of(
        vec![file("small", b"small"), file("zeros", &zeros)],
        &options(3, 2),
    )
    .0;
    fs::write(path("whole.rfn"), whole).unwrap();
    let of_tar = archive_of(
        vec![file("x.tar", &tar), file("empty", b"")],
        &options(3, 2),
    )
    .0;
    fs::write(path("tar.rfn"), of_tar).unwrap();
    add_to(
        &path("more.rfn"),
        vec![file("large", &large)],
        &options(3, 2),
        made("h", 5),
    )
    .unwrap();
    let names = ["more.rfn", "plain.rfn", "whole.rfn", "tar.rfn"].map(path);
    let paths: Vec<_> = names.iter().map(|path| &**path).collect();
    let summary = merge(&paths, &path("all.rfn"));
    assert_eq!(summary.generations, 4);
    // Those without a time are the first.
    let of = |name: &str| all_members(&path(name)).remove(0);
    let expected = ["plain.rfn", "whole.rfn", "tar.rfn", "more.rfn"].map(|name| {
        if name == "more.rfn" { of(name) } else { read(&path(name), "latest").unwrap() }
    });
    assert!(all_members(&path("all.rfn")) == expected);
    assert!(summary.store_bytes < 3_600_000, "{summary:?}");
}

#[test]
fn encrypted_archives_are_merged_with_their_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (plain, sealed, both) = (path("a.rfn"), path("b.rfn"), path("both.rfn"));
    let image = random(1_000_000, 1);
    let changed = edited(&image, 10, 1);
    let to_seal = vec![file("image", &changed)];
    add_to(
        &plain,
        vec![file("image", &image)],
        &options(3, 2),
        made("h", 5),
    )
    .unwrap();
    encrypted_generations::add_to(&sealed, to_seal, &options(3, 2), &secrets(1, "latest")).unwrap();
    let open = |byte: u8| {
        vec![
            source_of(&plain, &read_options(2)),
            source_of(&sealed, &secrets(byte, "latest")),
        ]
    };
    let error = merged_by(open(2), &options(3, 2)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    let encrypted = CompressOptions {
        encryption: Some(encryption()),
        ..options(3, 2)
    };
    let (bytes, summary) = merged_by(open(1), &encrypted).unwrap();
    assert!(summary.archive_bytes == bytes.len() as u64 && bytes.len() < 1_200_000);
    fs::write(&both, &bytes).unwrap();
    for (choice, content) in [("1", &image), ("2", &changed)] {
        let (found, _) = extracted_of(&bytes, &secrets(1, choice)).unwrap();
        assert!(found[0].content == *content, "{choice}");
    }
    assert!(extracted_of(&bytes, &read_options(1)).is_err());
    let more = vec![file("image", &edited(&image, 1, 5))];
    encrypted_generations::add_to(&both, more, &options(3, 2), &secrets(1, "latest")).unwrap();
    verify(file_source(&both), &secrets(1, "latest"), &Unwatched).unwrap();
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (a, b) = (path("a.rfn"), path("b.rfn"));
    add_to(
        &a,
        vec![file("x", &random(90_000, 1))],
        &options(3, 2),
        made("h", 5),
    )
    .unwrap();
    let refused = |paths: &[&Path]| merged_by(sources(paths), &options(3, 2)).unwrap_err().kind;
    assert_eq!(refused(&[]), ErrorKind::Usage);
    fs::write(&b, random(5000, 1)).unwrap();
    assert_eq!(refused(&[&a, &b]), ErrorKind::Damaged);
    let mut bytes = fs::read(&a).unwrap();
    fs::write(&b, [&bytes[..], &bytes].concat()).unwrap();
    assert_eq!(refused(&[&a, &b]), ErrorKind::Unsupported);
    // What is damaged ends the run, and nothing is published.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&b, &bytes).unwrap();
    let mut sink = MemorySink::new();
    let output = sink.output();
    let merge = Merge::open(sources(&[&a, &b]), None, &options(3, 2)).unwrap();
    let error = merge
        .run(&mut sink, &options(3, 2), &Unwatched)
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
    assert!(output.published().is_none());
    let merge = Merge::open(sources(&[&a, &a]), None, &options(3, 2)).unwrap();
    let mut pipe = MemorySink::new().as_pipe();
    let error = merge
        .run(&mut pipe, &options(3, 2), &Unwatched)
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
}

#[test]
fn the_beginning_of_an_archive_is_copied_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (a, b, both) = (path("a.rfn"), path("b.rfn"), path("both.rfn"));
    let tree = path("tree");
    new_tree(&tree);
    let plain = archive_of(vec![tree_member(&tree)], &options(6, 2)).0;
    fs::write(&a, plain).unwrap();
    let mut image = random(1_000_000, 1);
    for night in 1..=4 {
        image = edited(&image, 5, night);
        let members = vec![file("image", &image), tree_member(&tree)];
        let archive = if night < 4 { &a } else { &b };
        add_to(
            archive,
            members,
            &options(3, 2),
            made("h", 10 * night as i64),
        )
        .unwrap();
    }
    let before = fs::read(&a).unwrap();
    let expected: Vec<_> = all_members(&a).into_iter().chain(all_members(&b)).collect();
    let summary = merge(&[&b, &a], &both);
    assert!(fs::read(&both).unwrap().starts_with(&before));
    assert!(all_members(&both) == expected);
    assert!(
        summary.archive_bytes < before.len() as u64 + 30_000,
        "{summary:?}"
    );
    // With a level all of it is compressed anew.
    let anew = Merge::open(sources(&[&b, &a]), Some(Level(1)), &options(3, 2)).unwrap();
    assert_eq!(anew.first_number(), 1);
    let mut sink = MemorySink::new();
    let output = sink.output();
    anew.run(&mut sink, &options(3, 2), &Unwatched).unwrap();
    fs::write(&both, output.published().unwrap()).unwrap();
    assert!(all_members(&both) == expected);
    let archive = Archive::open(file_source(&both), &read_options(1)).unwrap();
    assert_eq!(archive.info().unwrap().level, 1);
    // What was forgotten is not copied, nor what only it needs.
    let mut growing = GrowingFile::open(&a).unwrap();
    forget(&mut growing, &[0, 2], &ReadOptions::default()).unwrap();
    drop(growing);
    merge(&[&b, &a], &both);
    let kept: Vec<_> = [1, 3, 4]
        .map(|number: usize| expected[number].clone())
        .into();
    assert!(all_members(&both) == kept);
    assert!(
        !fs::read(&both)
            .unwrap()
            .starts_with(&before[..before.len() / 2])
    );
}

#[test]
fn a_copy_of_one_archive_has_only_what_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (
        directory.path().join("a.rfn"),
        directory.path().join("b.rfn"),
    );
    // Each night replaces passages all over the image, so that each block is needed in part.
    let mut image = random(3_000_000, 1);
    let mut expected = vec![];
    for night in 0..8 {
        for (number, piece) in image.chunks_mut(30_000).enumerate() {
            if number % 4 == night % 4 {
                piece.copy_from_slice(&random(piece.len(), (night * 1000 + number) as u64));
            }
        }
        add_to(
            &a,
            vec![file("image", &image)],
            &options(3, 2),
            made("h", night as i64),
        )
        .unwrap();
        expected.push(vec![("image".to_owned(), image.clone())]);
    }
    let whole = fs::metadata(&a).unwrap().len();
    let copy = merge(&[&a], &b);
    assert!(fs::read(&a).unwrap() == fs::read(&b).unwrap(), "{copy:?}");
    let mut growing = GrowingFile::open(&a).unwrap();
    forget(&mut growing, &[1, 2, 3, 4, 5, 6], &ReadOptions::default()).unwrap();
    drop(growing);
    let copy = merge(&[&a], &b);
    assert!(all_members(&b) == expected[6..]);
    assert!(
        whole > 8_000_000 && copy.archive_bytes < 3_900_000,
        "{whole} {copy:?}"
    );
}
