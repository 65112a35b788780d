//! Trees of later generations, which consist of earlier ones and what changed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use refrain::{
    Archive, CompressOptions, Content, DirectoryContent, Entry, EntryKind, MemberInput, Place,
    ReadOptions, Unwatched, verify,
};
use refrain_testkit::Rng;
use refrain_testkit::data::source_code;

use crate::common::{archive_of, extracted, file, member, options, read_options};
use crate::generations::{add_to, file_source, label, read};

const FILES: u64 = 80;

pub fn tree_member(tree: &Path) -> MemberInput {
    member("tree", Content::directory(DirectoryContent::all(tree)))
}

/// The tar view of the tree as an archive of its own has it.
pub fn own_view(tree: &Path) -> Vec<u8> {
    let archive = archive_of(vec![tree_member(tree)], &options(1, 2)).0;
    let mut members = extracted(&archive, &read_options(2)).unwrap();
    members.remove(0).content
}

fn write(tree: &Path, name: &str, content: &[u8]) {
    let path = tree.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub fn new_tree(tree: &Path) {
    for number in 0..FILES {
        let name = format!("d{}/f{number}", number % 7);
        write(tree, &name, &source_code(3000, number));
    }
    write(tree, "d0/empty", b"");
    symlink("d1", tree.join("link")).unwrap();
    // Younger files could change again unseen.
    std::thread::sleep(Duration::from_millis(2100));
}

/// What happens on one day, by a seed.
pub fn change(tree: &Path, night: u64, rng: &mut Rng) {
    let any_file = |rng: &mut Rng| {
        let number = rng.below(FILES);
        tree.join(format!("d{}/f{number}", number % 7))
    };
    match night % 6 {
        0 => write(tree, &format!("new{night}/f"), &source_code(500, night)),
        1 => drop(fs::remove_file(any_file(rng))),
        2 => {
            let gone = any_file(rng);
            fs::remove_file(&gone).ok();
            fs::create_dir_all(gone.join("below")).unwrap();
        }
        3 => {
            let (from, to) = (any_file(rng), tree.join(format!("name{night}")));
            drop(fs::hard_link(from, to));
        }
        4 => drop(fs::rename(tree.join("d3"), tree.join("d33"))),
        _ => {}
    }
    let changed = any_file(rng);
    if changed.is_file() {
        fs::write(changed, source_code(2000, 1000 + night)).unwrap();
    }
}

#[test]
fn every_night_reads_as_a_tree_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, path) = (
        directory.path().join("tree"),
        directory.path().join("a.rfn"),
    );
    new_tree(&tree);
    let mut views = vec![];
    let mut rng = Rng::new(7);
    for night in 0..14 {
        if night > 0 {
            change(&tree, night, &mut rng);
        }
        // Other members come and go beside it.
        let mut members = vec![tree_member(&tree)];
        if night % 3 == 1 {
            members.insert(0, file("other", &source_code(4000, 500 + night)));
        }
        let added = add_to(&path, members, &options(3, 2), label(night as i64, &[])).unwrap();
        if night > 1 && night % 3 != 1 {
            let read_bytes = added.added.store_bytes + added.added.matched_bytes;
            assert!(read_bytes < 60_000, "night {night}: {added:?}");
        }
        views.push(own_view(&tree));
    }
    for (night, view) in (1..).zip(&views) {
        let members = read(&path, &format!("{night}")).unwrap();
        let (_, found) = members.iter().find(|(name, _)| name == "tree").unwrap();
        assert!(found == view, "night {night} differs");
        let options = ReadOptions {
            generation: format!("{night}").parse().unwrap(),
            ..read_options(2)
        };
        let archive = Archive::open(file_source(&path), &options).unwrap();
        let number = members.iter().position(|(name, _)| name == "tree").unwrap();
        let stated = archive.member(number).unwrap();
        assert_eq!(
            stated.content_bytes,
            view.len() as u64,
            "the view of night {night}"
        );
        // Ranges of the view, and single files.
        let mut part = vec![0; view.len() / 3];
        let start = view.len() / 2;
        archive.read_at(number, start as u64, &mut part).unwrap();
        assert!(part == view[start..start + part.len()]);
        let mut count = 0;
        let list = archive.entry_list(number).unwrap();
        for frame in 0..list.frame_count().unwrap() {
            let entries = list.with_frame(frame, |entries| entries).unwrap();
            count += entries.len() as u64;
            for entry in entries {
                let frames = list.frames_for_path(&entry.path).unwrap();
                assert!(frames.contains(&frame), "night {night}: {entry:?}");
            }
        }
        assert_eq!(count, stated.entries, "night {night}");
        archive.check_member(number, &Unwatched).unwrap();
    }
    read_each_file(&path, &tree);
    verify(file_source(&path), &read_options(2), &Unwatched).unwrap();
}

/// Reads the files of the last generation one by one.
fn read_each_file(path: &Path, tree: &Path) {
    let archive = Archive::open(file_source(path), &read_options(2)).unwrap();
    let number = (0..archive.member_count())
        .find(|&number| archive.member(number).unwrap().name == b"tree")
        .unwrap();
    let mut entries = vec![];
    let each = &mut |entry: &Entry| {
        entries.push(entry.clone());
        Ok(())
    };
    archive.for_each_entry(number, each).unwrap();
    for entry in entries.iter().filter(|entry| entry.kind == EntryKind::File) {
        let expected = fs::read(tree.join(String::from_utf8_lossy(&entry.path).as_ref())).unwrap();
        let mut found = vec![0; expected.len()];
        let place = Place {
            member: number,
            entry: Some(entry),
        };
        let count = archive.read_at(place, 0, &mut found).unwrap();
        assert!(count == found.len() && found == expected, "{entry:?}");
    }
}

#[test]
fn an_unchanged_tree_takes_a_record_and_is_read_only_if_forced() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, path) = (
        directory.path().join("tree"),
        directory.path().join("a.rfn"),
    );
    new_tree(&tree);
    let mut hashes = vec![];
    for force_read in [false, false, false, true] {
        let content = DirectoryContent::all(&tree);
        let options = CompressOptions {
            force_read,
            ..options(3, 2)
        };
        let members = vec![member("tree", Content::directory(content))];
        let added = add_to(&path, members, &options, label(1, &[])).unwrap();
        let is_first = hashes.is_empty();
        assert_eq!(added.added.files > 0, is_first || force_read);
        assert_eq!(added.added.store_bytes > 0, is_first, "nothing new");
        if !is_first && !force_read {
            assert!(added.added.archive_bytes < 2000, "{added:?}");
        }
        let archive = Archive::open(file_source(&path), &read_options(2)).unwrap();
        hashes.push(archive.entry_list(0).unwrap().hash().unwrap());
        assert_eq!(archive.member(0).unwrap().entries, FILES + 7 + 3);
    }
    assert_eq!(
        hashes[1], hashes[2],
        "known to be equal without reading the lists"
    );
    assert!(read(&path, "2").unwrap() == read(&path, "4").unwrap());
}
