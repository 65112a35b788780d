//! Archives that grow: generations, what they refer to, and what a reader sees of them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use refrain::storage::Source;
use refrain::{
    AddSummary, AddTo, Archive, CompressOptions, Content, DirectoryContent, ErrorKind,
    GenerationChoice, GenerationLabel, MemberInput, ReadOptions, Timestamp, Unwatched, add, forget,
    is_rewritten, verify, verify_frames,
};
use refrain_storage::{AtomicFile, FileSource, GrowingFile, OutputOptions, Overwrite};
use refrain_testkit::data::{edited, far_duplicates, random, source_code, text};

use crate::common::{as_published, extracted, file, member, options, pipe, read_options};

pub fn label(seconds: i64, tags: &[&str]) -> GenerationLabel {
    GenerationLabel {
        created: Some(Timestamp {
            seconds,
            nanoseconds: 0,
        }),
        host: b"host".to_vec(),
        comment: b"a comment".to_vec(),
        tags: tags.iter().map(|tag| tag.as_bytes().to_vec()).collect(),
    }
}

pub fn file_source(path: &Path) -> Arc<dyn Source> {
    Arc::new(FileSource::open(path).unwrap())
}

/// Adds to the archive at `path`, as the command does.
pub fn add_to(
    path: &Path,
    members: Vec<MemberInput>,
    options: &CompressOptions,
    label: GenerationLabel,
) -> refrain::Result<AddSummary> {
    let earlier = path.exists().then(|| file_source(path));
    let is_copied = match &earlier {
        None => true,
        Some(earlier) => is_rewritten(earlier)?,
    };
    if is_copied {
        let replace = OutputOptions {
            overwrite: Overwrite::Replace,
            ..OutputOptions::default()
        };
        let mut sink = AtomicFile::create(path, &replace).unwrap();
        let to = AddTo::Copy(earlier, &mut sink);
        return add(members, to, None, options, label, &Unwatched);
    }
    let mut growing = GrowingFile::open(path).unwrap();
    let to = AddTo::File(&mut growing, &ReadOptions::default());
    add(members, to, None, options, label, &Unwatched)
}

pub fn read(path: &Path, choice: &str) -> refrain::Result<Vec<(String, Vec<u8>)>> {
    let options = ReadOptions {
        generation: choice.parse()?,
        ..read_options(2)
    };
    let published = extracted(&fs::read(path).unwrap(), &options)?;
    Ok(published
        .into_iter()
        .map(|member| (member.name, member.content))
        .collect())
}

fn as_pairs(members: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    let pair = |&(name, content): &(&str, &[u8])| (name.to_owned(), content.to_vec());
    members.iter().map(pair).collect()
}

#[track_caller]
fn assert_members(path: &Path, choice: &str, expected: &[(&str, &[u8])]) {
    let found = read(path, choice).unwrap_or_else(|error| panic!("{choice}: {error}"));
    let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
    let expected_names: Vec<_> = expected.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, expected_names, "{choice}");
    assert!(found == as_pairs(expected), "{choice}: contents differ");
}

#[test]
fn what_is_added_refers_to_everything_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let first = far_duplicates(3_000_000, 100_000, 1);
    let second = edited(&first, 40, 2);
    let third = edited(&second, 40, 3);
    let other = random(70_000, 4);
    let options = options(3, 2);
    let mut stored = Vec::new();
    for (number, members) in [
        vec![file("image", &first)],
        vec![file("image", &second), file("other", &other)],
        vec![pipe("image", &third)],
        vec![file("other", &other)],
    ]
    .into_iter()
    .enumerate()
    {
        let before = path.exists().then(|| fs::read(&path).unwrap());
        let summary = add_to(&path, members, &options, label(1000 + number as i64, &[])).unwrap();
        assert_eq!(summary.generation, number as u16 + 1);
        let bytes = fs::read(&path).unwrap();
        assert_eq!(summary.archive_bytes, bytes.len() as u64);
        if let Some(before) = before {
            assert!(bytes.starts_with(&before), "an earlier byte changed");
        }
        stored.push(summary.added.store_bytes);
    }
    let _ = crate::common::archive_of(
        vec![
            file("1", &first),
            file("2", &second),
            file("3", &third),
            file("4", &other),
        ],
        &options,
    );
    assert!(stored[1] < 200_000 && stored[2] < 100_000, "{stored:?}");
    assert_eq!(stored[3], 0);
    assert_members(&path, "latest", &[("other", &other)]);
    assert_members(&path, "1", &[("image", &first)]);
    assert_members(&path, "2", &[("image", &second), ("other", &other)]);
    assert_members(&path, "3", &[("image", &third)]);
    let archive = Archive::open(file_source(&path), &read_options(1)).unwrap();
    let known: Vec<_> = (archive.generations().iter())
        .map(|row| (row.number, row.member_count, row.host.clone()))
        .collect();
    let host = b"host".to_vec();
    let row = |number, members| (number, members, host.clone());
    assert_eq!(known, [row(1, 1), row(2, 2), row(3, 1), row(4, 1)]);
    // Everything is verified, and every frame.
    let verified = verify(file_source(&path), &read_options(2), &Unwatched).unwrap();
    assert_eq!(verified.members, 5);
    verify_frames(file_source(&path), &read_options(2), &Unwatched).unwrap();
}

#[test]
fn archives_of_every_kind_grow() {
    let large = source_code(5_000_000, 1);
    let small = text(3000, 2);
    for (what, content) in [("whole", &small), ("large", &large)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.rfn");
        let (archive, _) = crate::common::archive_of(vec![file("a", content)], &options(3, 2));
        fs::write(&path, &archive).unwrap();
        let next = edited(content, 10, 3);
        let added = add_to(
            &path,
            vec![file("a", &next)],
            &options(3, 2),
            label(5, &["x"]),
        );
        let added = added.unwrap();
        assert_eq!(added.generation, 1, "{what}");
        assert!(added.added.store_bytes < content.len() as u64 / 3, "{what}");
        assert_members(&path, "0", &[("a", content)]);
        assert_members(&path, "x", &[("a", &next)]);
        let again = add_to(&path, vec![file("b", &next)], &options(3, 2), label(6, &[])).unwrap();
        assert_eq!(again.generation, 2);
        // Passages too short for an anchor are stored again.
        assert!(again.added.store_bytes < 600, "{what}: {again:?}");
        assert_members(&path, "latest", &[("b", &next)]);
        verify(file_source(&path), &read_options(2), &Unwatched).unwrap();
    }
}

#[test]
fn the_bytes_do_not_depend_on_threads() {
    let first = far_duplicates(2_500_000, 50_000, 7);
    let second = edited(&first, 100, 8);
    let grown = |threads| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.rfn");
        for (seconds, content) in [(1, &first), (2, &second), (3, &first)] {
            let members = vec![file("a", content), file("b", &content[..1_000_000])];
            add_to(&path, members, &options(1, threads), label(seconds, &[])).unwrap();
        }
        fs::read(&path).unwrap()
    };
    let one = grown(1);
    assert!(one == grown(4));
}

#[test]
fn directories_grow_too() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, path) = (
        directory.path().join("tree"),
        directory.path().join("a.rfn"),
    );
    let write = |name: &str, content: &[u8]| {
        let file = tree.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    };
    let tree_member = || member("tree", Content::directory(DirectoryContent::all(&tree)));
    for number in 0..60 {
        write(
            &format!("d{}/f{number}", number % 7),
            &source_code(20_000, number),
        );
    }
    add_to(&path, vec![tree_member()], &options(3, 2), label(1, &[])).unwrap();
    write("d3/f3", &source_code(21_000, 100));
    fs::remove_file(tree.join("d5/f5")).unwrap();
    let added = add_to(&path, vec![tree_member()], &options(3, 2), label(2, &[])).unwrap();
    assert!(added.added.store_bytes < 30_000, "{added:?}");
    let count = |choice: &str| {
        let options = ReadOptions {
            generation: choice.parse().unwrap(),
            ..read_options(2)
        };
        let archive = Archive::open(file_source(&path), &options).unwrap();
        assert_eq!(archive.member_count(), 1);
        assert_eq!(archive.member(0).unwrap().name, b"tree");
        archive.check_member(0, &Unwatched).unwrap();
        archive.member(0).unwrap().entries
    };
    assert_eq!(count("1"), count("latest") + 1);
    verify(file_source(&path), &read_options(2), &Unwatched).unwrap();
}

#[test]
fn after_a_kill_at_any_byte_the_archive_is_as_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let first = source_code(200_000, 1);
    let second = edited(&first, 5, 2);
    add_to(
        &path,
        vec![file("a", &first)],
        &options(1, 1),
        label(1, &[]),
    )
    .unwrap();
    let before = fs::read(&path).unwrap();
    add_to(
        &path,
        vec![file("b", &second)],
        &options(1, 1),
        label(2, &[]),
    )
    .unwrap();
    let after = fs::read(&path).unwrap();
    for length in before.len()..=after.len() {
        let torn = &after[..length];
        let options = read_options(1);
        let archive = Archive::open(crate::common::source(torn), &options);
        let archive = archive.unwrap_or_else(|error| panic!("{length}: {error}"));
        let is_whole = length == after.len();
        assert_eq!(archive.generation(), 1 + u16::from(is_whole), "{length}");
        if length % 97 == 0 || is_whole {
            verify(crate::common::source(torn), &options, &Unwatched).unwrap();
            fs::write(&path, torn).unwrap();
            let added = add_to(
                &path,
                vec![file("c", &second)],
                &crate::common::options(1, 1),
                label(3, &[]),
            );
            assert_eq!(added.unwrap().generation, 2 + u16::from(is_whole));
            assert_members(&path, "latest", &[("c", &second)]);
            assert_members(&path, "1", &[("a", &first)]);
        }
    }
}

#[test]
fn forgetting_takes_a_small_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let contents: Vec<_> = (0..5).map(|seed| source_code(100_000, seed)).collect();
    for (number, content) in contents.iter().enumerate() {
        let members = vec![file("a", content)];
        add_to(&path, members, &options(1, 1), label(number as i64, &[])).unwrap();
    }
    let before = fs::metadata(&path).unwrap().len();
    let forget_these = |numbers: &[u16]| {
        let mut growing = GrowingFile::open(&path).unwrap();
        let gone = forget(&mut growing, numbers, &ReadOptions::default())?;
        Ok::<_, refrain::Error>(gone.iter().map(|row| row.number).collect::<Vec<_>>())
    };
    assert_eq!(forget_these(&[2, 3, 77]).unwrap(), [2, 3]);
    assert!(fs::metadata(&path).unwrap().len() - before < 2000);
    assert!(forget_these(&[2]).unwrap().is_empty());
    let error = forget_these(&[1, 4, 5]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    for (number, content) in contents.iter().enumerate() {
        let choice = format!("{}", number + 1);
        match number + 1 {
            2 | 3 => assert_eq!(read(&path, &choice).unwrap_err().kind, ErrorKind::Usage),
            _ => assert_members(&path, &choice, &[("a", content)]),
        }
    }
    assert_members(&path, "latest", &[("a", &contents[4])]);
    // What was forgotten is still referred to.
    let again = vec![file("b", &contents[1])];
    let added = add_to(&path, again, &options(1, 1), label(9, &[])).unwrap();
    assert_eq!((added.generation, added.added.store_bytes), (7, 0));
    verify(file_source(&path), &read_options(1), &Unwatched).unwrap();
}

#[test]
fn many_generations_keep_few_frames_of_anchors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let mut content = random(300_000, 1);
    for number in 0..40 {
        content.extend(random(20_000, 100 + number));
        let members = vec![file("a", &content)];
        let added = add_to(&path, members, &options(1, 2), label(number as i64, &[])).unwrap();
        assert!(
            number == 0 || added.added.store_bytes < 22_000,
            "{number}: {added:?}"
        );
    }
    assert_members(&path, "latest", &[("a", &content)]);
    assert_members(&path, "3", &[("a", &content[..360_000])]);
    verify(file_source(&path), &read_options(1), &Unwatched).unwrap();
}

#[test]
fn what_cannot_grow_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let content = random(300_000, 1);
    let (archive, _) = crate::common::archive_of(vec![file("a", &content)], &options(1, 1));
    let several = [archive.clone(), archive.clone()].concat();
    let followed = [&archive[..], b"something else"].concat();
    for bytes in [
        several,
        followed,
        b"no archive at all, but some bytes".to_vec(),
    ] {
        fs::write(&path, &bytes).unwrap();
        let mut growing = GrowingFile::open(&path).unwrap();
        let to = AddTo::File(&mut growing, &ReadOptions::default());
        let members = vec![file("b", &content)];
        let added = add(members, to, None, &options(1, 1), label(1, &[]), &Unwatched);
        assert!(added.is_err());
        drop(growing);
        assert!(fs::read(&path).unwrap() == bytes);
    }
    // A failing member leaves the archive as it was.
    fs::write(&path, &archive).unwrap();
    let missing = DirectoryContent::all(directory.path().join("missing"));
    let added = add_to(
        &path,
        vec![member("x", Content::directory(missing))],
        &options(1, 1),
        label(1, &[]),
    );
    assert!(added.is_err());
    assert!(fs::read(&path).unwrap() == archive);
    let choice: GenerationChoice = "1".parse().unwrap();
    let options = ReadOptions {
        generation: choice,
        ..read_options(1)
    };
    let error = Archive::open(file_source(&path), &options).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(as_published("a", &content).content == content);
}

#[test]
fn an_archive_opened_once_shows_all_its_generations() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let tree = directory.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let shared = random(200_000, 1);
    for night in 0..3_u8 {
        fs::write(tree.join("file"), [&[night][..], &shared].concat()).unwrap();
        let member = member("tree", Content::directory(DirectoryContent::all(&tree)));
        add_to(
            &path,
            vec![member],
            &options(3, 1),
            label(night.into(), &[]),
        )
        .unwrap();
    }
    let last = Arc::new(Archive::open(file_source(&path), &read_options(2)).unwrap());
    let file_of = |archive: &Archive| {
        let entry = archive.find_entry(0, b"file").unwrap().unwrap();
        let mut bytes = vec![0; entry.size_bytes as usize];
        archive.read_at((0, &entry), 0, &mut bytes).unwrap();
        bytes
    };
    let view_of = |archive: &Archive| {
        let mut bytes = vec![0; archive.member(0).unwrap().content_bytes as usize];
        archive.read_at(0, 0, &mut bytes).unwrap();
        bytes
    };
    for number in [2, 1, 3, 1] {
        let shown = last.at_generation(number).unwrap();
        assert_eq!(shown.generation(), number);
        let options = ReadOptions {
            generation: GenerationChoice::Number(number),
            ..read_options(2)
        };
        let alone = Archive::open(file_source(&path), &options).unwrap();
        assert!(file_of(&shown) == [&[number as u8 - 1][..], &shared].concat());
        assert!(view_of(&shown) == view_of(&alone), "{number}");
        let root_hash = |archive: &Archive| archive.info().unwrap().root_hash;
        assert_eq!(root_hash(&shown), root_hash(&alone));
    }
    // What the first one decoded served the others.
    let decoded = last.read_statistics().decoded_bytes;
    assert!(decoded < 2 * shared.len() as u64, "{decoded}");
    let missing = last.at_generation(4).err().unwrap();
    assert_eq!(missing.kind, ErrorKind::Usage);
}
