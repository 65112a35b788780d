//! Properties of the index that hold for any input, shared by the tests here and the fuzz target.
//! Each function panics if its property does not hold.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use super::builder::IndexBuilder;
use super::list::IndexList;
use super::node::{IndexNode, NodeRows, parse_roots};
use super::rows::{FrameSpan, IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexSlice};
use super::table::Index;
use super::tree::{IndexTree, NodeSource};
use crate::block_hash::BlockHash;
use crate::error::FormatError;
use crate::limits::FIRST_PATH_BYTES_MAX;
use crate::member::{MemberEnd, MemberKind, MemberStart};
use crate::property::Rng;

/// The offset of the first node of the index in an imaginary archive.
const INDEX_OFFSET: u64 = 1 << 40;

/// An index in memory, with the payload of each node.
#[derive(Debug, Default)]
pub struct NodesInMemory {
    payloads: Vec<(FrameSpan, Vec<u8>)>,
}

impl NodesInMemory {
    /// The payloads of all nodes but the roots.
    #[must_use]
    pub fn into_payloads(self) -> Vec<Vec<u8>> {
        self.payloads
            .into_iter()
            .map(|(_, payload)| payload)
            .collect()
    }
}

impl NodeSource for NodesInMemory {
    type Error = FormatError;

    fn node(&self, span: FrameSpan, _: bool) -> Result<Arc<IndexNode>, FormatError> {
        let missing = FormatError::Value {
            what: "offset of a node",
            value: span.0,
            rule: "the offset of a node",
        };
        let found = self.payloads.iter().find(|(known, _)| *known == span);
        let (_, payload) = found.ok_or(missing.clone())?;
        Ok(Arc::new(IndexNode::parse(payload)?.ok_or(missing)?))
    }
}

/// Builds the index of these rows with nodes of at most this many bytes of rows.
///
/// # Panics
/// If the rows are not valid.
#[must_use]
pub fn tree_of(index: &Index, node_bytes: usize) -> IndexTree<NodesInMemory> {
    let builder = IndexBuilder::with_node_bytes(node_bytes);
    finished(builder, index, [0; 5], usize::MAX, NodesInMemory::default())
}

/// As [`tree_of`], in generations of at most this many rows of each list.
#[must_use]
pub fn tree_in_generations(
    index: &Index,
    node_bytes: usize,
    rows_max: usize,
) -> IndexTree<NodesInMemory> {
    let lengths = [
        index.blocks.len(),
        index.epochs.len(),
        index.members.len(),
        index.entries.len(),
        index.slices.len(),
    ];
    let first = IndexBuilder::with_node_bytes(node_bytes);
    let mut tree = finished(first, index, [0; 5], rows_max, NodesInMemory::default());
    for generation in 1..=lengths.into_iter().max().unwrap_or(0) / rows_max {
        let edges = IndexList::ALL.map(|list| tree.right_edge(list).unwrap());
        let builder = IndexBuilder::resume_with(&edges, node_bytes).unwrap();
        let from = lengths.map(|length| length.min(generation * rows_max));
        tree = finished(builder, index, from, rows_max, tree.into_source());
    }
    tree
}

/// Adds at most `count` rows of each list to a builder, and its nodes to `nodes`.
fn finished(
    mut builder: IndexBuilder,
    index: &Index,
    [blocks, epochs, members, entries, slices]: [usize; 5],
    count: usize,
    mut nodes: NodesInMemory,
) -> IndexTree<NodesInMemory> {
    for row in index.blocks.iter().skip(blocks).take(count) {
        builder.push_block(row).unwrap();
    }
    for row in index.epochs.iter().skip(epochs).take(count) {
        builder.push_epoch(row).unwrap();
    }
    for row in index.members.iter().skip(members).take(count) {
        builder.push_member(row).unwrap();
    }
    for row in index.entries.iter().skip(entries).take(count) {
        builder.push_entries(row).unwrap();
    }
    for row in index.slices.iter().skip(slices).take(count) {
        builder.push_slice(row).unwrap();
    }
    let mut offset =
        (nodes.payloads.last()).map_or(INDEX_OFFSET, |((offset, bytes), _)| offset + bytes);
    let roots = builder.finish(&mut |payload| {
        let span = (offset, payload.len() as u64 + 32);
        offset += span.1;
        nodes.payloads.push((span, payload.to_vec()));
        Ok::<_, FormatError>(span)
    });
    IndexTree::new(parse_roots(&roots.unwrap()).unwrap(), nodes)
}

impl Index {
    /// Appends a block. Its store offset follows from the blocks before it.
    fn push_block(&mut self, span: FrameSpan, raw_bytes: u64, codec: u16, filter_ids: [u8; 2]) {
        // Some rows have a hash.
        let hash = (raw_bytes.is_multiple_of(3)).then(|| BlockHash::of(&raw_bytes.to_le_bytes()));
        let before = self.blocks.last();
        self.blocks.push(IndexBlock {
            frame_offset: span.0,
            frame_bytes: span.1,
            store_start: before.map_or(0, |last| last.store_start.saturating_add(last.raw_bytes)),
            raw_bytes,
            codec,
            filter_ids,
            hash,
        });
    }

    /// Appends an epoch. Its offsets in content and store follow from the epochs before it.
    fn push_epoch(
        &mut self,
        span: FrameSpan,
        content_bytes: u64,
        fresh_bytes: u64,
        extent_count: u64,
    ) {
        let starts = self.epochs.last().map_or((0, 0), |last| {
            (
                last.content_start.saturating_add(last.content_bytes),
                last.store_start.saturating_add(last.fresh_bytes),
            )
        });
        self.epochs.push(IndexEpoch {
            frame_offset: span.0,
            frame_bytes: span.1,
            content_start: starts.0,
            content_bytes,
            store_start: starts.1,
            fresh_bytes,
            extent_count,
        });
    }
}

/// Returns valid rows: some members with entries whose first paths ascend, are cut, or are missing.
#[must_use]
pub fn index_from_seed(seed: u64, rows_max: u64) -> Index {
    let mut rng = Rng::new(seed);
    let mut index = Index::default();
    let mut offset = 8;
    let mut next_span = |rng: &mut Rng| {
        let span = (offset + rng.below(5), 33 + rng.below(5000));
        offset = span.0 + span.1;
        span
    };
    for _ in 0..rng.below(rows_max) {
        let raw_bytes = 1 + rng.below(1 << 30);
        let filters = [rng.below(4) as u8, rng.below(4) as u8];
        index.push_block(next_span(&mut rng), raw_bytes, rng.below(9) as u16, filters);
    }
    let mut content_bytes = 0;
    for _ in 0..rng.below(rows_max) {
        let bytes = 1 + rng.below(1 << 24);
        content_bytes += bytes;
        index.push_epoch(
            next_span(&mut rng),
            bytes,
            rng.below(bytes),
            rng.below(1000),
        );
    }
    let member_count = rng.below(rows_max / 2 + 2);
    let mut content_start = 0;
    for id in 0..member_count {
        let length = if id + 1 == member_count {
            content_bytes - content_start
        } else {
            rng.below(content_bytes - content_start + 1)
        };
        let mut member = member_of(&mut rng, id, (content_start, length));
        (member.start_frame_offset, _) = next_span(&mut rng);
        if member.start.kind.has_entries() {
            let paths = first_paths(&mut rng);
            member.end.entries_are_sorted = true;
            for path in paths {
                let (frame_offset, frame_bytes) = next_span(&mut rng);
                index.entries.push(IndexEntries {
                    frame_offset,
                    frame_bytes,
                    member_id: id,
                    first_entry: member.end.entry_count,
                    entry_count: 1 + rng.below(100),
                    packed_checksum: rng.any(),
                    first_path: path,
                });
                let count = index.entries.last().map_or(0, |row| row.entry_count);
                member.end.entry_count += count;
            }
            let frames = index.entries_of_member(id);
            if rng.below(2) == 0 && !frames.is_empty() {
                member.end.entries_are_sorted = false;
                index.slices.extend(slices_of(&mut rng, frames));
            }
        }
        (member.end_frame_offset, _) = next_span(&mut rng);
        content_start += length;
        index.members.push(member);
    }
    index
}

fn member_of(rng: &mut Rng, id: u64, (content_start, content_bytes): (u64, u64)) -> IndexMember {
    let has_entries = rng.below(2) == 0;
    // Few names, so that some occur twice.
    let name = format!("name-{}", rng.below(400)).into_bytes();
    IndexMember {
        start_frame_offset: 0,
        end_frame_offset: 0,
        start: MemberStart {
            member_id: id,
            content_start,
            kind: if has_entries { MemberKind::Tree } else { MemberKind::File },
            name,
            mode: None,
            modified: None,
            content_bytes_hint: None,
            is_sparse: false,
            layers: None,
            extensions: Vec::new(),
        },
        end: MemberEnd {
            entries_hash: has_entries.then_some([1; 32]),
            blake3: [id as u8; 32],
            ..MemberEnd::of_content(id, content_bytes)
        },
    }
}

fn first_paths(rng: &mut Rng) -> Vec<Vec<u8>> {
    let stem_bytes = match rng.below(3) {
        0 => FIRST_PATH_BYTES_MAX - 1,
        _ => 2,
    };
    let mut paths: Vec<Vec<u8>> = (0..rng.below(40))
        .map(|_| path_of(rng, stem_bytes))
        .collect();
    paths.sort_by(|a, b| refrain_entries::compare_paths(a, b));
    for path in &mut paths {
        path.truncate(FIRST_PATH_BYTES_MAX);
        if rng.below(4) == 0 {
            path.clear();
        }
    }
    paths
}

/// Slices of these frames with ascending separators, some of them cut.
fn slices_of(rng: &mut Rng, frames: std::ops::Range<u64>) -> Vec<IndexSlice> {
    let mut separators = first_paths(rng);
    separators.retain(|path| !path.is_empty());
    let is_same = |a: &mut Vec<u8>, b: &mut Vec<u8>| a == b && a.len() < FIRST_PATH_BYTES_MAX;
    separators.dedup_by(is_same);
    separators.insert(0, Vec::new());
    let slice = |separator| IndexSlice {
        frame: frames.start + rng.below(frames.end - frames.start),
        first_entry: rng.below(1000),
        entry_count: 1 + rng.below(100),
        separator,
    };
    separators.into_iter().map(slice).collect()
}

fn path_of(rng: &mut Rng, stem_bytes: usize) -> Vec<u8> {
    let mut path = vec![b'p'; stem_bytes];
    path.extend((0..1 + rng.below(3)).map(|_| b'a' + rng.below(5) as u8));
    path
}

/// A tree gives the same answers as the table of its rows, whatever the size of its nodes.
///
/// # Panics
/// If it does not.
pub fn tree_answers_as_its_table(seed: u64, rows_max: u64, node_bytes: usize) {
    let index = index_from_seed(seed, rows_max);
    let mut rng = Rng::new(seed ^ 1);
    answers_as_its_table(&tree_of(&index, node_bytes), &index, true, &mut rng);
    let rows_each = (rows_max / 6 + 1 + rng.below(rows_max)) as usize;
    let tree = tree_in_generations(&index, node_bytes, rows_each);
    // Its names are those of the last generation.
    answers_as_its_table(&tree, &index, false, &mut rng);
}

fn answers_as_its_table(
    tree: &IndexTree<NodesInMemory>,
    index: &Index,
    has_names: bool,
    rng: &mut Rng,
) {
    assert_eq!(Index::read(tree).unwrap(), *index);
    let ends = [
        tree.end_of(IndexList::Blocks)[0],
        tree.end_of(IndexList::Epochs)[0],
    ];
    for _ in 0..20 {
        let at = rng.below(ends[0] + 10);
        let found = tree.block_at(at).unwrap();
        let expected = index.block_at(at).map(|at| (at as u64, index.blocks[at]));
        assert_eq!(found, expected);
        let at = rng.below(ends[1] + 10);
        let found = tree.epoch_at(at).unwrap();
        let expected = index.epoch_at(at).map(|at| (at as u64, index.epochs[at]));
        assert_eq!(found, expected);
        let name = format!("name-{}", rng.below(400)).into_bytes();
        let expected = index.members.iter().position(|row| row.start.name == name);
        assert!(!has_names || tree.member_named(&name).unwrap() == expected.map(|at| at as u64));
        let id = rng.below(index.members.len() as u64 + 2);
        assert_eq!(
            tree.member(id).unwrap().as_ref(),
            index.members.get(id as usize)
        );
        let rows = tree.entries_of_member(id).unwrap();
        let expected = index.entries_of_member(id);
        assert!(rows == expected || (rows.is_empty() && expected.is_empty()));
        for number in rows {
            let expected = index.entries.get(number as usize);
            assert_eq!(tree.entries(number).unwrap().as_ref(), expected);
        }
        let stem_bytes = [2, FIRST_PATH_BYTES_MAX - 1][rng.below(2) as usize];
        let path = path_of(rng, stem_bytes);
        assert_eq!(
            tree.frames_for_path(id, &path).unwrap(),
            index.frames_for_path(id, &path)
        );
        let frames = index.entries_of_member(id);
        let slices = index.slices_of_frames(&frames);
        let found = tree.slices_of_frames(&frames).unwrap();
        assert!(found == slices || (found.is_empty() && slices.is_empty()));
        for number in slices {
            let expected = index.slices.get(number as usize);
            assert_eq!(tree.slice(number).unwrap().as_ref(), expected);
        }
        assert_eq!(
            tree.slices_for_path(&frames, &path).unwrap(),
            index.slices_for_path(&frames, &path)
        );
    }
}

/// Any bytes as the payload of an Index frame, or as roots, give an error or nodes that agree with
/// their own rows.
///
/// # Panics
/// If they do not.
pub fn parse_any_node(payload: &[u8]) {
    if let Ok(Some(node)) = IndexNode::parse(payload) {
        check_node(&node);
    }
    for root in parse_roots(payload).unwrap_or_default() {
        check_node(&root);
    }
}

fn check_node(node: &IndexNode) {
    let span = (1 << 40, 100);
    let child = node.as_child(span).unwrap();
    assert!(!node.rows.is_empty() && child.row_count >= 1);
    node.check_child(node.list, node.depth + 1, &child).unwrap();
    assert!(node.check_child(node.list, node.depth, &child).is_err());
    let mut other = child;
    other.row_count += 1;
    assert!(node.check_child(node.list, node.depth + 1, &other).is_err());
    if let NodeRows::Children(rows) = &node.rows {
        let mut ends = rows.iter().map(|row| row.first_row + row.row_count);
        assert_eq!(ends.next_back(), Some(node.next_row));
    }
}
