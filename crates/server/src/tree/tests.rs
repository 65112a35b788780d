//! The tree compared with a naive reference: all paths in a map.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use refrain::directory::compare_paths;
use refrain::storage::MemorySource;
use refrain::{Archive, Entry, EntryKind, ReadOptions};
use refrain_testkit::entry_lists::{EntryListMember, MemberKind};

use super::navigation::LINK_STEPS_MAX;
use super::spelling::normal_form;
use super::*;

/// What the tree should hold under a path.
#[derive(Debug, Clone, PartialEq)]
enum Expected {
    Entry(Entry),
    /// A directory without an entry.
    Implied,
    /// A dangling hard link.
    Broken,
}

fn tree_of(kind: MemberKind, entries: &[Entry], frame_entries: usize) -> Tree {
    let list = EntryListMember {
        kind,
        frames: entries.chunks(frame_entries).map(<[_]>::to_vec).collect(),
        content: (0..=255).collect(),
    };
    let source = Arc::new(MemorySource::new(list.archive(|_| ())));
    let archive = Archive::open(source, &ReadOptions::default()).unwrap();
    // Too small for more than one frame.
    let options = TreeOptions {
        frame_bytes: 1000,
        ..TreeOptions::default()
    };
    Tree::open(Arc::new(archive), &options).unwrap()
}

/// The reference. Of several entries with one path the last wins.
fn expected(entries: &[Entry]) -> BTreeMap<Vec<u8>, Expected> {
    let mut named = BTreeMap::new();
    for entry in entries {
        if let Some(path) = normal_form(&entry.path) {
            named.insert(path, entry.clone());
        }
    }
    let resolve = |path: &[u8]| {
        let mut found = named.get(path)?;
        for _ in 0..LINK_STEPS_MAX {
            if found.kind != EntryKind::Hardlink {
                break;
            }
            found = named.get(&normal_form(found.link_target.as_deref()?)?)?;
        }
        let is_file = !matches!(found.kind, EntryKind::Hardlink | EntryKind::Directory);
        is_file.then(|| found.clone())
    };
    let mut all = BTreeMap::new();
    for (path, entry) in &named {
        let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        if path == b"." {
            continue;
        }
        let above = (1..parts.len()).map(|count| parts[..count].join(&b'/'));
        let is_below_file = above.clone().any(|directory| {
            let found = named.get(&directory);
            found.is_some_and(|found| found.kind != EntryKind::Directory)
        });
        if is_below_file {
            continue;
        }
        for directory in above {
            all.entry(directory).or_insert(Expected::Implied);
        }
        let entry = match entry.kind {
            EntryKind::Hardlink => resolve(path).map_or(Expected::Broken, Expected::Entry),
            _ => Expected::Entry(entry.clone()),
        };
        all.insert(path.clone(), entry);
    }
    all
}

/// Everything below a directory, by path, read in pages of `page` children.
fn walk(tree: &Tree, directory: NodeId, page: usize) -> BTreeMap<Vec<u8>, (NodeId, EntryKind)> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![(directory, vec![])];
    while let Some((node, path)) = waiting.pop() {
        let (mut cookie, mut names) = (0, vec![]);
        loop {
            let mut count = 0;
            tree.children(node, cookie, &mut |child| {
                names.push(child.name.to_vec());
                let path = [&path[..], child.name].concat();
                if child.kind == EntryKind::Directory {
                    waiting.push((child.node, [&path[..], b"/"].concat()));
                }
                all.insert(path, (child.node, child.kind));
                (cookie, count) = (child.cookie, count + 1);
                count < page
            })
            .unwrap();
            if count < page {
                break;
            }
        }
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }
    all
}

fn compare(tree: &Tree, entries: &[Entry], page: usize) {
    let root = tree.resolve(b"listed").unwrap().unwrap();
    let expected = expected(entries);
    let found = walk(tree, root, page);
    let paths = |keys: Vec<&Vec<u8>>| -> Vec<String> {
        let text = |path: &Vec<u8>| String::from_utf8_lossy(path).into_owned();
        keys.into_iter().map(text).collect()
    };
    assert_eq!(
        paths(found.keys().collect()),
        paths(expected.keys().collect())
    );
    let mut nodes = BTreeSet::new();
    for (path, (node, kind)) in found {
        let full = [b"/listed/", &path[..]].concat();
        let own = || tree.resolve(&full).unwrap().unwrap();
        match &expected[&path] {
            Expected::Broken => {
                assert!(tree.resolve(&full).is_err());
                assert_eq!(kind, EntryKind::File);
                continue;
            }
            Expected::Implied => {
                assert_eq!((own(), kind), (node, EntryKind::Directory));
                assert!(nodes.insert(node));
                assert_eq!(tree.entry(node).unwrap(), None);
            }
            Expected::Entry(entry) => {
                assert_eq!(own(), node);
                let mut entry = entry.clone();
                let is_link = normal_form(&entry.path).unwrap() != path;
                assert!(is_link || nodes.insert(node));
                let attributes = tree.attributes(node).unwrap();
                assert_eq!(attributes.kind, kind);
                assert_eq!(attributes.modified, entry.modified);
                entry.header_recipe.clear();
                assert_eq!(tree.entry(node).unwrap(), Some(entry));
                if !is_link {
                    let path = tree.path(node).unwrap();
                    assert_eq!([b"/", &path[..]].concat(), full);
                }
            }
        }
    }
}

/// The files after each file in walk order are those after it in the reference.
fn compare_walk_order(tree: &Tree, entries: &[Entry]) {
    let expected = expected(entries);
    let is_file = |entry: &&Entry| {
        let found = expected.get(&entry.path);
        entry.kind == EntryKind::File && matches!(found, Some(Expected::Entry(_)))
    };
    let files: Vec<Entry> = entries.iter().filter(is_file).cloned().collect();
    for (number, file) in files.iter().enumerate() {
        let path = [b"listed/", &file.path[..]].concat();
        let node = tree.resolve(&path).unwrap().unwrap();
        let position = tree.walk_position(node, 0).unwrap();
        let mut behind = vec![];
        let mut add = |found: WalkedFile| {
            assert_eq!(tree.walk_position(found.node, 0), Some(found.position));
            assert!(position.is_before(found.position) && !found.position.is_before(position));
            // An entry below a file is in the list, but in no directory.
            behind.extend(is_file(&&found.entry).then_some(found.entry));
            Ok(true)
        };
        tree.files_after(position, 1000, &mut add).unwrap();
        assert_eq!(behind, files[number + 1..]);
    }
}

const NAMES: [&str; 9] = ["a", "b", "a-b", "a\u{1}", "ab", "..", ".", "", "é"];

fn path() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![12 => 0..5_usize, 1 => 5..NAMES.len()];
    let components = proptest::collection::vec(name, 1..5);
    components.prop_map(|names| {
        let names: Vec<&str> = names.into_iter().map(|name| NAMES[name]).collect();
        let path = names.join("/").into_bytes();
        // The format allows any path except the empty one.
        if path.is_empty() { b".".to_vec() } else { path }
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    let kind = prop_oneof![
        4 => Just(EntryKind::File),
        4 => Just(EntryKind::Directory),
        1 => Just(EntryKind::Symlink),
        2 => Just(EntryKind::Hardlink),
        1 => Just(EntryKind::Fifo),
    ];
    (path(), kind, path(), 0..1000_u32).prop_map(|(path, kind, target, number)| Entry {
        path,
        kind,
        mode: number & 0o777,
        modified: refrain::Timestamp {
            seconds: number.into(),
            nanoseconds: number,
        },
        size_bytes: if kind == EntryKind::File { 100 } else { 0 },
        link_target: kind.is_link().then_some(target),
        ..Entry::default()
    })
}

fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by(|left, right| compare_paths(&left.path, &right.path));
    entries.dedup_by(|left, right| left.path == right.path);
    entries
}

proptest! {
    #[test]
    fn trees_equal_their_twin(
        entries in proptest::collection::vec(entry(), 1..60),
        frame_entries in 1..20_usize,
        page in 1..9_usize,
    ) {
        let mut entries = sorted(entries);
        // A tree has one spelling; other paths are not in it.
        entries.retain(|entry| entry.path == b"." || paths::is_safe(&entry.path));
        let tree = tree_of(MemberKind::Tree, &entries, frame_entries);
        compare(&tree, &entries, page);
        compare_walk_order(&tree, &entries);
    }

    #[test]
    fn tar_streams_equal_their_twin(
        entries in proptest::collection::vec(entry(), 1..60),
        frame_entries in 1..20_usize,
        page in 1..9_usize,
    ) {
        let tree = tree_of(MemberKind::Tar, &entries, frame_entries);
        compare(&tree, &entries, page);
    }

    /// Lists that break the rules of trees: walking them ends, and no name leaves the tree.
    #[test]
    fn forged_trees_are_walked_to_their_end(
        entries in proptest::collection::vec(entry(), 1..60),
        is_sorted in any::<bool>(),
        frame_entries in 1..20_usize,
        page in 1..9_usize,
    ) {
        // A tree's index states the order of its paths, a tar stream's does not.
        let (kind, entries) = if is_sorted { (MemberKind::Tree, sorted(entries)) } else { (MemberKind::Tar, entries) };
        let tree = tree_of(kind, &entries, frame_entries);
        let root = tree.resolve(b"listed").unwrap().unwrap();
        for (path, (node, _)) in walk(&tree, root, page) {
            prop_assert!(paths::is_safe(&path));
            tree.attributes(node).ok();
        }
    }

    #[test]
    fn numbers_of_no_node_are_refused(
        entries in proptest::collection::vec(entry(), 1..20),
        number in prop_oneof![any::<u64>(), 0..(1_u64 << 32), (1_u64 << 62)..(1 << 62) + 9999],
        cookie in any::<u64>(),
    ) {
        for kind in [MemberKind::Tree, MemberKind::Tar] {
            let entries = if kind == MemberKind::Tree { sorted(entries.clone()) } else { entries.clone() };
            let tree = tree_of(kind, &entries, 4);
            let node = NodeId(number);
            tree.attributes(node).ok();
            tree.lookup(node, b"a").ok();
            tree.content(node).ok();
            tree.path(node).ok();
            for node in [node, NodeId::ROOT, tree.resolve(b"listed").unwrap().unwrap()] {
                tree.children(node, cookie, &mut |_| true).ok();
            }
        }
    }
}

#[test]
fn hard_links_share_a_node_and_are_counted() {
    let file = |path: &str, kind, target: Option<&str>| Entry {
        path: path.into(),
        kind,
        link_target: target.map(Into::into),
        size_bytes: if kind == EntryKind::File { 256 } else { 0 },
        ..Entry::default()
    };
    let entries = [
        file("a", EntryKind::File, None),
        file("d/b", EntryKind::Hardlink, Some("a")),
        file("d/c", EntryKind::Hardlink, Some("a")),
        file("d/lost", EntryKind::Hardlink, Some("b")),
        file("e", EntryKind::Symlink, Some("d/b")),
    ];
    let tree = tree_of(MemberKind::Tree, &entries, 2);
    let node = |path: &str| tree.resolve(path.as_bytes()).unwrap().unwrap();
    let file = node("listed/a");
    assert_eq!([node("listed/d/b"), node("listed/d/c")], [file, file]);
    assert_eq!(tree.attributes(file).unwrap().links, 3);
    assert_eq!(tree.attributes(node("listed/e")).unwrap().links, 1);
    assert_eq!(tree.attributes(node("listed/e")).unwrap().size_bytes, 3);
    let lost = tree.resolve(b"listed/d/lost").unwrap_err().to_string();
    assert!(
        lost.contains("\"d/lost\" is a hard link to \"b\""),
        "{lost}"
    );
    let content = tree.content(file).unwrap().unwrap();
    let mut buffer = [0; 300];
    assert_eq!(tree.read_at(&content, 250, &mut buffer).unwrap(), 6);
    assert_eq!(buffer[..6], [250, 251, 252, 253, 254, 255]);
    for other in ["listed", "listed/d", "listed/e"] {
        assert_eq!(tree.content(node(other)).unwrap(), None);
    }
}

#[test]
fn what_is_known_of_a_member_before_its_entries_are_read() {
    let entries = [Entry {
        path: b".".to_vec(),
        kind: EntryKind::Directory,
        mode: 0o750,
        ..Entry::default()
    }];
    let tree = tree_of(MemberKind::Tree, &entries, 1);
    let root = tree.resolve(b"listed").unwrap().unwrap();
    let (early, is_final) = tree.attributes_at_once(root).unwrap();
    assert_eq!((early.kind, is_final), (EntryKind::Directory, false));
    assert_eq!(tree.attributes(root).unwrap().mode, 0o750);
    let (late, is_final) = tree.attributes_at_once(root).unwrap();
    assert_eq!((late.mode, is_final), (0o750, true));
}

#[test]
fn a_tar_table_beyond_its_memory_is_an_error_with_the_name() {
    let entry = |number: u32| Entry {
        path: format!("file-{number}").into_bytes(),
        ..Entry::default()
    };
    let entries: Vec<Entry> = (0..100).map(entry).collect();
    let full = tree_of(MemberKind::Tar, &entries, 10);
    let options = TreeOptions {
        table_bytes: 1000,
        ..TreeOptions::default()
    };
    let tree = Tree::open(Arc::clone(full.archive()), &options).unwrap();
    assert!(full.resolve(b"listed/file-7").unwrap().is_some());
    let refused = tree.resolve(b"listed/file-7").unwrap_err().to_string();
    assert!(refused.contains("listed"), "{refused}");
    assert!(refused.contains("bytes that it may"), "{refused}");
}

#[test]
fn trees_that_share_memory_make_room_when_they_are_closed() {
    let entries: Vec<Entry> = (0..100)
        .map(|number| Entry {
            path: format!("file-{number}").into_bytes(),
            ..Entry::default()
        })
        .collect();
    let archive = Arc::clone(tree_of(MemberKind::Tar, &entries, 10).archive());
    // Enough for the table of one of them.
    let options = TreeOptions {
        table_bytes: 4000,
        ..TreeOptions::default()
    };
    let memory = TreeMemory::new(&options);
    let open = || Tree::open_sharing(Arc::clone(&archive), &options, &memory).unwrap();
    let (first, second) = (open(), open());
    let found = |tree: &Tree| tree.resolve(b"listed/file-7");
    let of_first = found(&first).unwrap();
    assert!(of_first.is_some());
    let refused = found(&second).unwrap_err().to_string();
    assert!(refused.contains("bytes that it may"), "{refused}");
    drop(first);
    assert_eq!(found(&second).unwrap(), of_first);
    drop(second);
    assert_eq!(found(&open()).unwrap(), of_first);
}
