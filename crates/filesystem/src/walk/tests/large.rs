//! Deep and wide trees, and trees with many links.

use std::io::Write;
use std::os::fd::OwnedFd;

use refrain_storage::open_at;
use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::*;
use refrain_entries::EntryKind;

#[test]
fn paths_longer_than_the_system_allows_are_walked_and_read() {
    const DEPTH: usize = 200;
    let root = tempfile::tempdir().unwrap();
    let name = "n".repeat(100);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut directory: OwnedFd = rustix::fs::open(root.path(), flags, Mode::empty()).unwrap();
    for depth in 0..DEPTH {
        // A file before and after the next directory: the walk returns to each level.
        for file in ["a", "z"] {
            let flags = OFlags::CREATE | OFlags::WRONLY;
            let file = open_at(&directory, file, flags, Mode::RUSR).unwrap();
            fs::File::from(file)
                .write_all(depth.to_string().as_bytes())
                .unwrap();
        }
        rustix::fs::mkdirat(&directory, &*name, Mode::RWXU).unwrap();
        directory = open_at(&directory, &*name, flags, Mode::empty()).unwrap();
    }
    drop(directory);
    let (entries, problems) = walk(root.path(), WalkOptions::default());
    assert_eq!(problems, []);
    assert_eq!(entries.len(), 1 + 3 * DEPTH);
    let is_ordered =
        |pair: &[Entry]| refrain_entries::compare_paths(&pair[0].path, &pair[1].path).is_lt();
    assert!(entries.windows(2).all(is_ordered));
    let files = FileRoot::open(root.path()).unwrap();
    for entry in entries.iter().filter(|entry| entry.kind == EntryKind::File) {
        let opened = files.open_file(&entry.path).unwrap();
        let depth = entry.path.iter().filter(|byte| **byte == b'/').count();
        let mut buffer = [0; 8];
        let read = opened.read_at(0, &mut buffer).unwrap();
        assert_eq!(&buffer[..read], depth.to_string().as_bytes());
    }
    assert!(entries.iter().any(|entry| entry.path.len() > 20_000));
    let list = vec![entries[DEPTH].path.clone(), b"z".to_vec()];
    let walker = Walker::for_paths(root.path(), Path::new(""), list, WalkOptions::default());
    assert_eq!(read_all(walker.unwrap()).1, []);
}

#[test]
fn a_wide_directory_of_many_hard_links_is_walked() {
    const LINKS: usize = 10_000;
    let root = tree(&["0"]);
    for link in 1..LINKS {
        let name = root.path().join(format!("{link}"));
        fs::hard_link(root.path().join("0"), name).unwrap();
    }
    for fifo in 0..LINKS {
        let path = root.path().join(format!("f{fifo}"));
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    }
    let mut walker = Walker::open(root.path(), Path::new(""), WalkOptions::default()).unwrap();
    let entries = walker.next_entries(usize::MAX).unwrap();
    assert_eq!(entries.len(), 1 + 2 * LINKS);
    let links: Vec<_> = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Hardlink)
        .collect();
    assert_eq!(links.len(), LINKS - 1);
    assert!(
        links
            .iter()
            .all(|link| link.link_target.as_deref() == Some(b"0"))
    );
    assert_eq!(walker.links_held(), 0, "all links were seen");
}
