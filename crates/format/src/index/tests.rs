use super::property::{index_from_seed, tree_answers_as_its_table, tree_of};
use super::*;
use crate::bytes::put_varints;
use crate::error::ErrorClass;
use crate::head::head_of;
use crate::limits::FIRST_PATH_BYTES_MAX;
use proptest::prelude::*;
use refrain_entries::compare_paths;

fn entries(paths: &[&[u8]]) -> Index {
    let mut index = Index::default();
    for (number, path) in paths.iter().enumerate() {
        index.entries.push(IndexEntries {
            frame_offset: 100 + 200 * number as u64,
            frame_bytes: 100,
            member_id: 3,
            first_entry: number as u64,
            entry_count: 1,
            packed_checksum: 0,
            first_path: path.to_vec(),
        });
    }
    index
}

/// The answer of the table, after comparing it with trees of many and of few nodes.
fn frames_for_path(index: &Index, path: &[u8]) -> std::ops::Range<u64> {
    let found = index.frames_for_path(3, path);
    for node_bytes in [1, 60, 10_000] {
        let tree = tree_of(index, node_bytes);
        assert_eq!(tree.frames_for_path(3, path), Ok(found.clone()));
        assert_eq!(tree.frames_for_path(2, path), Ok(0..0));
        assert_eq!(tree.frames_for_path(4, path), Ok(0..0));
    }
    found
}

#[test]
fn a_path_of_sorted_entries_is_in_one_frame() {
    let sorted = entries(&[b"a", b"a/x", b"a-b"]);
    let find = |path: &[u8]| frames_for_path(&sorted, path);
    assert_eq!(find(b"."), 0..0);
    assert_eq!(find(b"a"), 0..1);
    assert_eq!(find(b"a/w"), 0..1);
    assert_eq!(find(b"a/x"), 1..2);
    assert_eq!(find(b"a/y/z"), 1..2);
    assert_eq!(find(b"a-b"), 2..3);
    assert_eq!(find(b"zzz"), 2..3);
    let without = entries(&[b"", b"a", b"", b"b", b""]);
    let find = |path: &[u8]| frames_for_path(&without, path);
    assert_eq!(find(b"."), 0..0);
    assert_eq!(find(b"a/x"), 1..2);
    assert_eq!(find(b"c"), 3..4);
    assert_eq!(frames_for_path(&entries(&[]), b"a"), 0..0);
}

/// Compared with a search of the whole paths; the rows have only their beginnings.
#[test]
fn first_paths_that_were_cut_add_frames_and_lose_none() {
    let long = |end: &[u8]| [&[b'p'; FIRST_PATH_BYTES_MAX - 1][..], end].concat();
    let paths = [
        b"a".to_vec(),
        long(b"b"),
        long(b"bc"),
        long(b"bd"),
        long(b"c"),
    ];
    let rows: Vec<&[u8]> = paths
        .iter()
        .map(|path| &path[..path.len().min(FIRST_PATH_BYTES_MAX)])
        .collect();
    let sorted = entries(&rows);
    for searched in [
        b"a".to_vec(),
        long(b"a"),
        long(b"b"),
        long(b"bc"),
        long(b"bcx"),
        long(b"be"),
        long(b"cx"),
    ] {
        let holder = paths
            .iter()
            .rposition(|path| compare_paths(path, &searched).is_le())
            .unwrap();
        let found = frames_for_path(&sorted, &searched);
        assert!(
            found.contains(&(holder as u64)),
            "{found:?} without {holder}"
        );
    }
    assert_eq!(frames_for_path(&sorted, &long(b"cx")), 3..5);
    assert_eq!(frames_for_path(&sorted, b"b"), 0..1);
}

#[test]
fn a_path_is_in_one_slice_of_its_member() {
    let slice = |frame, separator: &[u8]| IndexSlice {
        frame,
        first_entry: 0,
        entry_count: 1,
        separator: separator.to_vec(),
    };
    let long = [b'p'; FIRST_PATH_BYTES_MAX];
    let index = Index {
        slices: vec![
            slice(1, b""),
            slice(0, b"b"),
            slice(1, b"b/x"),
            slice(0, &long),
            slice(1, &long),
            slice(2, b""),
            slice(2, b"a"),
        ],
        ..Index::default()
    };
    for node_bytes in [1, 60, 10_000] {
        let tree = tree_of(&index, node_bytes);
        let find = |frames: std::ops::Range<u64>, path: &[u8]| {
            let found = tree.slices_for_path(&frames, path).unwrap();
            assert_eq!(index.slices_for_path(&frames, path), found);
            found
        };
        assert_eq!(find(0..2, b"."), 0..1);
        assert_eq!(find(0..2, b"a/z"), 0..1);
        assert_eq!(find(0..2, b"b/w"), 1..2);
        assert_eq!(find(0..2, b"c"), 2..3);
        assert_eq!(find(0..2, &[&long[..], b"q"].concat()), 2..5);
        assert_eq!(find(0..2, b"z"), 4..5);
        assert_eq!(find(2..3, b"0"), 5..6);
        assert_eq!(find(2..3, b"z"), 6..7);
        assert_eq!(find(3..4, b"z"), 0..0);
    }
}

#[test]
fn separators_tell_slices_apart() {
    for (before, path, expected) in [
        (&b"a"[..], &b"b"[..], &b"b"[..]),
        (b"a", b"a/b", b"a/"),
        (b"dir/file-1", b"dir/file-23", b"dir/file-2"),
        (b".", b".git/x", b".g"),
        (b"-x", b".git", b".g"),
    ] {
        let found = IndexSlice::separator_of(before, path);
        assert_eq!(found, expected);
        assert!(compare_paths(&found, before).is_gt() && compare_paths(&found, path).is_le());
    }
    let long = [b'p'; 300];
    let cut = IndexSlice::separator_of(&long[..299], &long);
    assert_eq!(cut, long[..FIRST_PATH_BYTES_MAX]);
}

#[test]
fn an_index_without_rows_answers() {
    let tree = tree_of(&Index::default(), 100);
    assert_eq!(tree.block_at(0), Ok(None));
    assert_eq!(tree.epoch_at(0), Ok(None));
    assert_eq!(tree.member(0), Ok(None));
    assert_eq!(tree.member_named(b"a"), Ok(None));
    assert_eq!(tree.entries_of_member(0), Ok(0..0));
}

#[test]
fn a_node_of_another_place_is_damage() {
    let index = index_from_seed(5, 4000);
    let other = index_from_seed(6, 4000);
    let (tree, other) = (tree_of(&index, 200), tree_of(&other, 200));
    // The roots of one index with the nodes of the other: no lookup is wrong, all fail.
    let mixed = tree.with_source_of(other);
    let error = mixed.block_at(7).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Damaged);
    assert!(Index::read(&mixed).is_err());
}

fn payload(head: &[u64], rows: &[u64]) -> Vec<u8> {
    let mut fields = Vec::new();
    put_varints(&mut fields, head);
    let mut payload = head_of(&fields);
    put_varints(&mut payload, rows);
    payload
}

#[test]
fn rows_have_ranges() {
    let block = |rows: &[u64]| IndexNode::parse(&payload(&[1, 0, 1, 0, 0, 0], rows));
    assert!(block(&[8, 100, 20, 0, 0]).is_ok());
    let class = |rows: &[u64]| block(rows).unwrap_err().class();
    assert_eq!(class(&[8, 31, 20, 0, 0]), ErrorClass::Damaged);
    assert_eq!(class(&[8, 100, 0, 0, 0]), ErrorClass::Damaged);
    assert_eq!(class(&[8, 100, 1 << 32, 0, 0]), ErrorClass::Limit);
    assert_eq!(class(&[8, 100, 20, 0]), ErrorClass::Damaged);
    assert_eq!(class(&[8, 100, 20, 0, 0, 0]), ErrorClass::Damaged);
    assert_eq!(class(&[u64::MAX, 100, 20, 0, 0]), ErrorClass::Limit);
}

#[test]
fn heads_have_ranges() {
    let parse = |head: &[u64]| IndexNode::parse(&payload(head, &[8, 100, 20, 0, 0]));
    assert_eq!(parse(&[6, 0, 1, 0, 0, 0]), Ok(None), "a list to ignore");
    let class = |head: &[u64]| parse(head).unwrap_err().class();
    assert_eq!(class(&[9, 0, 1, 0, 0, 0]), ErrorClass::Unsupported);
    assert_eq!(class(&[1, 9, 1, 0, 0, 0]), ErrorClass::Limit);
    assert_eq!(class(&[1, 0, 0, 0, 0, 0]), ErrorClass::Damaged);
    assert_eq!(class(&[1, 0, u64::MAX, 0, 0, 0]), ErrorClass::Damaged);
    assert_eq!(class(&[1, 0, 1, u64::MAX, 0, 0]), ErrorClass::Limit);
    assert_eq!(class(&[1, 0, 1, 0, u64::MAX, 0]), ErrorClass::Limit);
}

#[test]
fn roots_are_in_the_order_of_lists() {
    let root = |list: u64| {
        let mut bytes = Vec::new();
        put_varints(&mut bytes, &[list, 0, 1, 5, 8, 100, 20, 0, 0]);
        bytes
    };
    assert_eq!(parse_roots(&root(1)).unwrap().len(), 1);
    assert_eq!(parse_roots(&[root(1), root(6)].concat()).unwrap().len(), 1);
    let class = |bytes: &[u8]| parse_roots(bytes).unwrap_err().class();
    assert_eq!(class(&[root(1), root(1)].concat()), ErrorClass::Damaged);
    assert_eq!(class(&root(9)), ErrorClass::Unsupported);
    assert_eq!(class(&root(1)[..8]), ErrorClass::Damaged);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(128)))]
    #[test]
    fn trees_answer_as_their_tables(seed: u64, rows_max in 0_u64..1500, node_bytes in 1_usize..3000) {
        tree_answers_as_its_table(seed, rows_max, node_bytes);
    }

    #[test]
    fn any_payload_is_an_error_or_a_node(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        super::property::parse_any_node(&payload);
    }

    #[test]
    fn flipped_payloads_are_errors_or_nodes(seed: u64, flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        let tree = tree_of(&index_from_seed(seed, 200), 300);
        for mut payload in tree.into_source().into_payloads() {
            for (at, value) in &flips {
                let at = at.index(payload.len());
                payload[at] = *value;
            }
            super::property::parse_any_node(&payload);
        }
    }
}
