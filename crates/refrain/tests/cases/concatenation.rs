//! Concatenated archives in a file are read as one.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use crate::common::appendix::appendix;
use crate::common::{
    Collect, Published, archive_of, as_published, assert_reads, extracted, file, member, options,
    pipe, read_options, small_options, source,
};
use refrain::{
    Archive, CompressOptions, Content, DigestAlgorithm, DirectoryContent, ErrorKind, MemberKind,
    Unwatched,
};
use refrain_format::TAIL_BYTES;
use refrain_testkit::{Rng, data};

/// Three archives with two, no and one member, and their members.
fn three() -> (Vec<Vec<u8>>, Vec<Published>) {
    let (long, text) = (data::random(700_000, 7), b"a short text\n".repeat(5000));
    let digests = CompressOptions {
        digests: vec![DigestAlgorithm::Sha256],
        ..small_options("zstd")
    };
    let archives = vec![
        archive_of(
            vec![file("one", &long), pipe("two", b"tiny")],
            &options(1, 2),
        )
        .0,
        archive_of(vec![], &options(1, 1)).0,
        archive_of(vec![file("three", &text)], &digests).0,
    ];
    let members = vec![
        as_published("one", &long),
        as_published("two", b"tiny"),
        as_published("three", &text),
    ];
    (archives, members)
}

/// What is extracted from a file before an error, and the error.
fn until_error(archive: &[u8], by_pipe: bool) -> (Vec<Published>, refrain::Error) {
    let mut targets = Collect::default();
    let options = read_options(2);
    let result = if by_pipe {
        let stream = Box::new(Cursor::new(archive.to_vec()));
        refrain::extract(stream, &mut targets, &options, &Unwatched)
    } else {
        refrain::extract(source(archive), &mut targets, &options, &Unwatched)
    };
    (targets.published, result.unwrap_err())
}

#[test]
fn the_members_of_all_archives_are_read_in_order() {
    let (archives, members) = three();
    let all = archives.concat();
    assert_reads(&all, &members, "three archives");
    let checked = refrain::verify(source(&all), &read_options(2), &Unwatched).unwrap();
    assert_eq!(checked.members, members.len());
    assert_eq!(checked.archive_bytes, all.len() as u64);

    let opened = Archive::open(source(&all), &read_options(1)).unwrap();
    assert_eq!(opened.member_count(), members.len());
    let info = opened.info().unwrap();
    assert_eq!((info.archives, info.members), (3, members.len()));
    assert_eq!(info.archive_bytes, all.len() as u64);
    let content_bytes: usize = members.iter().map(|member| member.content.len()).sum();
    assert_eq!(info.content_bytes, content_bytes as u64);
    assert_eq!(
        opened.find_member(b"three").unwrap(),
        Some(members.len() - 1)
    );
    assert_eq!(opened.find_member(b"four").unwrap(), None);
    assert_eq!(
        opened.member(members.len()).unwrap_err().kind,
        ErrorKind::Usage
    );
    // The offsets of blocks are offsets in the file.
    for block in opened.blocks().unwrap() {
        let frame = &all[block.archive_offset as usize..][..block.stored_bytes as usize];
        assert!(frame.starts_with(&refrain_format::SYNC));
    }
    for (number, member) in members.iter().enumerate() {
        let mut part = [0; 100];
        let offset = member.content.len() / 2;
        let count = opened.read_at(number, offset as u64, &mut part).unwrap();
        let expected = &member.content[offset..];
        assert_eq!(part[..count], expected[..expected.len().min(100)]);
    }
}

/// More archives than are open at a time, read back and forth.
#[test]
fn many_archives_are_opened_again_when_they_are_needed() {
    let contents: Vec<Vec<u8>> = (0..20_u8).map(|number| vec![number; 3000]).collect();
    let archives = contents.iter().enumerate().map(|(number, content)| {
        archive_of(vec![file(&number.to_string(), content)], &options(1, 1)).0
    });
    let all: Vec<u8> = archives.flatten().collect();
    let opened = Archive::open(source(&all), &read_options(1)).unwrap();
    let mut rng = Rng::new(3);
    for _ in 0..100 {
        let number = rng.below(contents.len() as u64) as usize;
        let mut content = vec![0; 3001];
        assert_eq!(opened.read_at(number, 0, &mut content).unwrap(), 3000);
        assert!(content[..3000] == contents[number]);
    }
}

fn tree(root: &Path, name: &str) -> Vec<u8> {
    let content = Content::directory(DirectoryContent::all(root));
    archive_of(vec![member(name, content)], &options(1, 2)).0
}

#[test]
fn directories_in_any_of_the_archives_have_their_entries() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["x", "y"] {
        let root = directory.path().join(name);
        fs::create_dir(&root).unwrap();
        fs::write(root.join("file"), name.repeat(1000)).unwrap();
        fs::write(root.join(name), "own").unwrap();
    }
    let (x, y) = (directory.path().join("x"), directory.path().join("y"));
    let (middle, _) = archive_of(vec![file("middle", b"middle")], &options(1, 1));
    let all = [tree(&x, "x"), middle, tree(&y, "y")].concat();
    let opened = Archive::open(source(&all), &read_options(2)).unwrap();
    let kinds: Vec<_> = opened.members().unwrap();
    let kinds: Vec<_> = kinds.iter().map(|member| member.kind).collect();
    assert_eq!(
        kinds,
        [MemberKind::Tree, MemberKind::File, MemberKind::Tree]
    );
    for (number, name) in [(0, "x"), (2, "y")] {
        assert_eq!(opened.entries(number).unwrap().len(), 3);
        let entry = opened.find_entry(number, b"file").unwrap().unwrap();
        let mut content = vec![0; 2000];
        let count = opened.read_at((number, &entry), 0, &mut content);
        assert_eq!(count.unwrap(), 1000);
        assert_eq!(&content[..1000], name.repeat(1000).as_bytes());
        assert!(
            opened
                .find_entry(number, name.as_bytes())
                .unwrap()
                .is_some()
        );
    }
    // All of it, by file and by pipe: each directory as a tar stream.
    let by_file = extracted(&all, &read_options(2)).unwrap();
    let by_pipe = crate::common::extracted_from_pipe(&all, &read_options(2)).unwrap();
    assert!(by_file == by_pipe);
    assert_eq!(by_file.len(), 3);
}

#[test]
fn members_before_a_cut_are_published() {
    let (archives, members) = three();
    let second_cut = [&archives[0][..], &archives[2][..archives[2].len() / 2]].concat();
    let third_cut = [
        &archives[0][..],
        &archives[1][..],
        &archives[2][..archives[2].len() - 1],
    ]
    .concat();
    for (cut, whole) in [
        (second_cut, archives[0].len()),
        (third_cut, archives[0].len() + archives[1].len()),
    ] {
        for by_pipe in [false, true] {
            let (published, error) = until_error(&cut, by_pipe);
            assert!(published.len() >= 2 && published == members[..published.len()]);
            assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
            let offset = error.location.archive_offset.unwrap();
            assert!(offset >= whole as u64, "at {offset}: {error}");
        }
        let opened = Archive::open(source(&cut), &read_options(1));
        assert_eq!(opened.err().unwrap().kind, ErrorKind::Damaged);
    }
}

#[test]
fn data_that_is_no_archive_is_refused_before_between_and_behind() {
    let (archives, members) = three();
    let garbage = b"these are not the bytes of an archive, and they are more than forty".to_vec();
    let behind = [archives[0].clone(), garbage.clone()].concat();
    let between = [archives[0].clone(), garbage.clone(), archives[2].clone()].concat();
    for bytes in [behind, between] {
        for by_pipe in [false, true] {
            let (published, error) = until_error(&bytes, by_pipe);
            assert!(published == members[..2]);
            assert_eq!(error.kind, ErrorKind::Damaged);
            let offset = error.location.archive_offset.unwrap();
            assert_eq!(offset, archives[0].len() as u64, "{error}");
        }
        let opened = Archive::open(source(&bytes), &read_options(1));
        assert_eq!(opened.err().unwrap().kind, ErrorKind::Damaged);
    }
    let before = [garbage, archives[0].clone()].concat();
    assert_eq!(until_error(&before, false).1.kind, ErrorKind::Damaged);
    assert_eq!(until_error(&before, true).1.kind, ErrorKind::Damaged);
    // Fewer bytes than a magic.
    let short = [archives[0].clone(), vec![0; 3]].concat();
    assert_eq!(until_error(&short, false).1.kind, ErrorKind::Damaged);
    assert_eq!(until_error(&short, true).1.kind, ErrorKind::Damaged);
}

#[test]
fn a_damaged_digest_of_a_later_archive_is_found() {
    let (mut archives, _) = three();
    let flip = archives[2].len() / 3;
    archives[2][flip] ^= 1;
    let all = archives.concat();
    let checked = refrain::verify(source(&all), &read_options(1), &Unwatched);
    assert_eq!(checked.unwrap_err().kind, ErrorKind::Damaged);
}

#[test]
fn the_number_of_archives_is_limited() {
    let (empty, _) = archive_of(vec![], &options(1, 1));
    let most = empty.repeat(refrain_format::ARCHIVES_MAX);
    let opened = Archive::open(source(&most), &read_options(1)).unwrap();
    assert_eq!(
        opened.info().unwrap().archives,
        refrain_format::ARCHIVES_MAX
    );
    let checked = refrain::verify(source(&most), &read_options(1), &Unwatched).unwrap();
    assert_eq!(checked.archive_bytes, most.len() as u64);
    let more = source(&empty.repeat(refrain_format::ARCHIVES_MAX + 1));
    let opened = Archive::open(more.clone(), &read_options(1));
    assert_eq!(opened.err().unwrap().kind, ErrorKind::Limit);
    let checked = refrain::verify(more, &read_options(1), &Unwatched);
    assert_eq!(checked.unwrap_err().kind, ErrorKind::Limit);
}

#[test]
fn skippable_frames_may_follow_an_archive() {
    let (archives, members) = three();
    let large = [&[2, 0, 0][..], &data::random(3_000_000, 3)].concat();
    let frames = [&[2, 0, 0][..], &large, &[2, 0, 0, 9]];
    let mut all = Vec::new();
    for archive in &archives {
        all.extend_from_slice(archive);
        all.extend(appendix(archive, &frames, 1));
    }
    assert_reads(&all, &members, "archives with appendices");
    let scanned = Archive::open_by_scan(source(&all), &read_options(1)).unwrap();
    assert!(scanned.member_count() > 0);
    // A Whole archive, and concatenated ones without members.
    let one = &archives[2];
    let with_appendix = [one.clone(), appendix(one, &frames[..1], 1)].concat();
    assert_reads(
        &with_appendix,
        &members[2..],
        "one archive with an appendix",
    );
}

#[test]
fn damaged_appendices_are_damage() {
    let (archives, _) = three();
    let one = &archives[0];
    let frame: &[&[u8]] = &[&[2, 0, 0, 5]];
    let good = appendix(one, frame, 1);
    let bad_sequence = appendix(one, frame, 2);
    let mut bad_payload = good.clone();
    bad_payload[35] ^= 1;
    let mut of_another = appendix(&archives[2], frame, 1);
    let tail = of_another.len() - TAIL_BYTES;
    of_another[tail..].copy_from_slice(&good[good.len() - TAIL_BYTES..]);
    let cut = good[..good.len() - TAIL_BYTES].to_vec();
    for appended in [bad_sequence, bad_payload, of_another, cut] {
        let file = [one.clone(), appended].concat();
        for by_pipe in [false, true] {
            let (_, error) = until_error(&file, by_pipe);
            assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
        }
    }
}
