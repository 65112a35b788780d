//! Images and dumps that change from night to night: what is the same at the same place is known by
//! its digest, and the rest is compared with what was there.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use refrain::{CompressOptions, Content, MemberInput, Unwatched, verify, verify_frames};
use refrain_testkit::{Rng, data, scaled};

use crate::common::{file, member, options, pipe, read_options};
use crate::generations::{add_to, file_source, label, read};

const PIECE: usize = 64 << 10;

/// The bytes that the last generation added to the archive, and to its store.
fn added(path: &Path, members: Vec<MemberInput>, options: &CompressOptions) -> (u64, u64) {
    let summary = add_to(path, members, options, label(1, &[])).unwrap();
    (summary.added.archive_bytes, summary.added.store_bytes)
}

#[track_caller]
fn assert_generation(path: &Path, number: usize, expected: &[u8]) {
    let found = read(path, &number.to_string()).unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].1 == expected, "generation {number} differs");
}

fn assert_verified(path: &Path) {
    verify(file_source(path), &read_options(2), &Unwatched).unwrap();
    verify_frames(file_source(path), &read_options(2), &Unwatched).unwrap();
}

#[test]
fn what_did_not_change_takes_references_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    // Passages too short to have an anchor of their own between others that repeat.
    let parts = (0..400).map(|part| data::far_duplicates(20_000, 90, part / 2));
    let first = parts.collect::<Vec<_>>().concat();
    let mut second = first.clone();
    let changed = data::random(5000, 1);
    second[40 * PIECE + 77..][..changed.len()].copy_from_slice(&changed);
    let options = options(3, 2);
    added(&path, vec![file("image", &first)], &options);
    let mut sizes = vec![];
    for image in [&first, &second, &second, &first] {
        sizes.push(added(&path, vec![file("image", image)], &options));
    }
    for (number, image) in [&first, &first, &second, &second, &first]
        .into_iter()
        .enumerate()
    {
        assert_generation(&path, number + 1, image);
    }
    assert_eq!([sizes[0].1, sizes[2].1, sizes[3].1], [0, 0, 0], "{sizes:?}");
    let (bytes, store_bytes) = sizes[1];
    assert!(store_bytes < 5200 && bytes < 12_000, "{sizes:?}");
    assert!(sizes[0].0 < 4000 && sizes[2].0 < 4000, "{sizes:?}");
    // All is read and compared on demand, with the same result.
    let forced = CompressOptions {
        force_read: true,
        ..options
    };
    assert_eq!(added(&path, vec![file("image", &first)], &forced).1, 0);
    assert_generation(&path, 6, &first);
    assert_verified(&path);
}

/// The next night of a content: bytes that change in place, move, come and go.
fn next_night(content: &mut Vec<u8>, random: &mut Rng) {
    for _ in 0..random.below(6) {
        let at = random.below(content.len() as u64) as usize;
        let length = (random.below(3 * PIECE as u64) as usize).min(content.len() - at);
        match random.below(6) {
            0 => content[at..at + length].fill(0),
            1 => drop(content.drain(at..at + length / 3)),
            2 => {
                let inserted = data::random(length / 5, random.below(99));
                content.splice(at..at, inserted);
            }
            3 => content.rotate_left(length),
            4 => content.extend(data::text(length, random.below(9))),
            _ => {
                let changed = data::random(length / 9, random.below(99));
                content[at..at + changed.len()].copy_from_slice(&changed);
            }
        }
    }
}

/// A sparse file for content with zeros.
fn sparse_file(path: &Path, content: &[u8]) -> MemberInput {
    let file = File::create(path).unwrap();
    file.set_len(content.len() as u64).unwrap();
    for (number, piece) in content.chunks(PIECE).enumerate() {
        if piece.iter().any(|&byte| byte != 0) {
            file.write_all_at(piece, (number * PIECE) as u64).unwrap();
        }
    }
    member("image", Content::Source(file_source(path)))
}

#[test]
fn random_nights_are_read_as_they_were() {
    for seed in 0..u64::from(scaled(6)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.rfn");
        let random = &mut Rng::new(seed);
        let mut content = [
            data::versions(200_000, 4, 9, seed),
            vec![0; 1 << 20],
            data::random(900_000, seed),
        ]
        .concat();
        let mut nights = vec![];
        for night in 0..14 {
            let members = match random.below(3) {
                0 => vec![pipe("image", &content)],
                1 => vec![sparse_file(
                    &directory.path().join(night.to_string()),
                    &content,
                )],
                _ => vec![file("image", &content)],
            };
            let options = CompressOptions {
                force_read: random.below(8) == 0,
                ..options(3, 1 + (seed as usize + night) % 3)
            };
            added(&path, members, &options);
            nights.push(content.clone());
            if random.below(4) > 0 {
                next_night(&mut content, random);
            }
        }
        for (number, night) in nights.iter().enumerate() {
            assert_generation(&path, number + 1, night);
        }
        assert_verified(&path);
    }
}

#[test]
fn the_bytes_of_nights_do_not_depend_on_threads() {
    let archives: Vec<_> = [1, 2, 5]
        .map(|threads| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a.rfn");
            let mut content = data::versions(500_000, 6, 30, 3);
            let random = &mut Rng::new(5);
            for _ in 0..5 {
                added(&path, vec![file("image", &content)], &options(3, threads));
                next_night(&mut content, random);
            }
            fs::read(&path).unwrap()
        })
        .into();
    assert!(archives[0] == archives[1] && archives[1] == archives[2]);
}

/// A digest that does not belong to what is there makes an archive whose content has another hash
/// than it states: what was read is hashed, and a reader finds out.
#[test]
fn damaged_digests_are_not_known() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    let content = data::random(3_000_000, 4);
    added(&path, vec![file("image", &content)], &options(3, 2));
    let before = fs::read(&path).unwrap();
    added(&path, vec![file("image", &content)], &options(3, 2));
    let after = fs::read(&path).unwrap();
    // The frame of digests is the longest run of bytes that no generation needs to be read.
    let digest = refrain_protect::content_hash(&content[..PIECE]);
    let at = before
        .windows(32)
        .position(|bytes| bytes == digest)
        .unwrap();
    let mut damaged = before.clone();
    damaged[at] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let (_, store_bytes) = added(&path, vec![file("image", &content)], &options(3, 2));
    assert_eq!(store_bytes, 0, "it is compared instead");
    let found = fs::read(&path).unwrap();
    assert!(found.len() > after.len(), "all digests are stored again");
    assert_generation(&path, 2, &content);
}
