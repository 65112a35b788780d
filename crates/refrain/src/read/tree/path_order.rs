//! Finds the path order of a tree whose frames of entries are not in it, for a reader without an
//! index: merges the frames, each of which is in path order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use refrain_entries::Entry;
use refrain_format::{IndexSlice, compare_paths, entries_are_sorted};

use crate::error::{Error, Result, mebibytes};

/// Paths being merged may take 1/8 of the memory budget.
const PATHS_SHARE: u64 = 8;
/// The memory of a path besides its bytes.
const PATH_BYTES: usize = size_of::<usize>();

pub(crate) type DecodeFrame<'a> = dyn FnMut(usize) -> Result<Arc<Vec<Entry>>> + 'a;

/// The first and last path of a frame.
struct Span {
    frame: usize,
    count: usize,
    first: Vec<u8>,
    last: Vec<u8>,
}

/// Finds the slices of a tree's `frames` frames that are consecutive in path order. Only frames
/// with overlapping paths are merged, and their paths are in memory together.
///
/// # Errors
/// `Damaged` if the entries of a frame are not in path order, or a path occurs twice; `Limit` if
/// the paths of overlapping frames take more than a share of `memory_bytes`; errors of `decode`.
pub(crate) fn path_order(
    frames: Range<usize>,
    memory_bytes: u64,
    decode: &mut DecodeFrame<'_>,
) -> Result<Vec<IndexSlice>> {
    let mut spans = vec![];
    for frame in frames {
        let entries = decode(frame)?;
        if !entries_are_sorted(&entries) {
            return Err(Error::damaged("the paths of a tree do not ascend strictly"));
        }
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            spans.push(Span {
                frame,
                count: entries.len(),
                first: first.path.clone(),
                last: last.path.clone(),
            });
        }
    }
    spans.sort_by(|a, b| compare_paths(&a.first, &b.first));
    let mut order = Order::default();
    let mut spans = &spans[..];
    while let Some(first) = spans.first() {
        let (mut last, mut count) = (&first.last, 1);
        while let Some(span) = spans.get(count)
            && compare_paths(&span.first, last).is_le()
        {
            if compare_paths(last, &span.last).is_lt() {
                last = &span.last;
            }
            count += 1;
        }
        let (group, rest) = spans.split_at(count);
        match group {
            [only] => order.add(only.frame, 0..only.count, &only.first, &only.last)?,
            _ => merge(group, memory_bytes, decode, &mut order)?,
        }
        spans = rest;
    }
    Ok(order.slices)
}

/// The slices so far.
#[derive(Default)]
struct Order {
    slices: Vec<IndexSlice>,
    last: Vec<u8>,
}

impl Order {
    /// Adds entries of a frame with these first and last paths.
    fn add(
        &mut self,
        frame: usize,
        entries: Range<usize>,
        first: &[u8],
        last: &[u8],
    ) -> Result<()> {
        if !self.slices.is_empty() && compare_paths(&self.last, first).is_ge() {
            return Err(Error::damaged("a path occurs once in a tree"));
        }
        self.slices.push(IndexSlice {
            frame: frame as u64,
            first_entry: entries.start as u64,
            entry_count: entries.len() as u64,
            separator: if self.slices.is_empty() {
                Vec::new()
            } else {
                IndexSlice::separator_of(&self.last, first)
            },
        });
        self.last.clear();
        self.last.extend_from_slice(last);
        Ok(())
    }
}

/// The paths of a frame, in order.
struct Paths {
    frame: usize,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    next: usize,
}

impl Paths {
    fn path(&self, at: usize) -> Option<&[u8]> {
        let start = match at.checked_sub(1) {
            None => 0,
            Some(before) => *self.ends.get(before)?,
        };
        self.bytes.get(start..*self.ends.get(at)?)
    }
}

impl Ord for Paths {
    /// The frame with the lowest next path compares as the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.path(self.next), other.path(other.next)) {
            (Some(own), Some(other)) => compare_paths(other, own),
            (own, other) => own.is_some().cmp(&other.is_some()),
        }
    }
}

impl PartialOrd for Paths {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Paths {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Paths {}

fn merge(
    group: &[Span],
    memory_bytes: u64,
    decode: &mut DecodeFrame<'_>,
    order: &mut Order,
) -> Result<()> {
    let allowed = memory_bytes / PATHS_SHARE;
    let mut used = 0_u64;
    let mut heap = BinaryHeap::with_capacity(group.len());
    for span in group {
        let entries = decode(span.frame)?;
        let mut paths = Paths {
            frame: span.frame,
            bytes: Vec::with_capacity(entries.iter().map(|entry| entry.path.len()).sum()),
            ends: Vec::with_capacity(entries.len()),
            next: 0,
        };
        for entry in entries.iter() {
            paths.bytes.extend_from_slice(&entry.path);
            paths.ends.push(paths.bytes.len());
        }
        used += (paths.bytes.len() + PATH_BYTES * paths.ends.len()) as u64;
        if used > allowed {
            return Err(Error::limit(format!(
                "sorting the names of a directory takes more than {} of memory: raise the memory limit",
                mebibytes(allowed)
            )));
        }
        heap.push(paths);
    }
    while let Some(mut paths) = heap.pop() {
        let start = paths.next;
        let bound = heap.peek().and_then(|other| other.path(other.next));
        let is_next = |path: &[u8]| bound.is_none_or(|bound| compare_paths(path, bound).is_lt());
        // Equal paths, which are damage, are handled one by one.
        paths.next += 1;
        while paths.path(paths.next).is_some_and(is_next) {
            paths.next += 1;
        }
        if let (Some(first), Some(last)) = (paths.path(start), paths.path(paths.next - 1)) {
            order.add(paths.frame, start..paths.next, first, last)?;
        }
        if paths.path(paths.next).is_some() {
            heap.push(paths);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries(paths: &[&str]) -> Arc<Vec<Entry>> {
        let entry = |path: &&str| Entry {
            path: path.as_bytes().to_vec(),
            ..Entry::default()
        };
        Arc::new(paths.iter().map(entry).collect())
    }

    fn order_of(frames: &[Arc<Vec<Entry>>], memory_bytes: u64) -> Result<Vec<IndexSlice>> {
        path_order(0..frames.len(), memory_bytes, &mut |frame| {
            Ok(frames[frame].clone())
        })
    }

    #[test]
    fn frames_that_overlap_are_merged() {
        let frames = [
            entries(&["x", "y"]),
            entries(&["a", "a/b", "c"]),
            entries(&["b", "d"]),
            entries(&["e"]),
        ];
        let found: Vec<_> = (order_of(&frames, 1 << 20).unwrap().iter())
            .map(|slice| (slice.frame, slice.first_entry, slice.entry_count))
            .collect();
        let expected = [
            (1, 0, 2),
            (2, 0, 1),
            (1, 2, 1),
            (2, 1, 1),
            (3, 0, 1),
            (0, 0, 2),
        ];
        assert_eq!(found, expected);
        assert!(order_of(&frames, 100).is_err(), "little memory");
        assert!(order_of(&[entries(&["b", "a"])], 1 << 20).is_err());
        assert!(order_of(&[entries(&["a", "b"]), entries(&["b"])], 1 << 20).is_err());
        assert!(order_of(&[entries(&["b"]), entries(&["b"])], 1 << 20).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(64)))]
        /// Compared with sorting all paths; and every separator distinguishes its slice from the
        /// previous one.
        #[test]
        fn slices_give_the_sorted_paths(
            paths in proptest::collection::btree_map("[a/.]{1,5}[b-d]", 0_usize..5, 0..60),
        ) {
            let mut sorted: Vec<&str> = paths.keys().map(String::as_str).collect();
            sorted.sort_by(|a, b| compare_paths(a.as_bytes(), b.as_bytes()));
            let frame = |number: usize| {
                let own = sorted.iter().copied().filter(|&path| paths[path] == number);
                entries(&own.collect::<Vec<_>>())
            };
            let frames: Vec<_> = (0..5).map(frame).filter(|frame| !frame.is_empty()).collect();
            let slices = order_of(&frames, 1 << 20).unwrap();
            let (mut found, mut last) = (vec![], vec![]);
            for (number, slice) in slices.iter().enumerate() {
                let start = slice.first_entry as usize;
                let part = &frames[slice.frame as usize][start..start + slice.entry_count as usize];
                prop_assert!(part[0].path.starts_with(&slice.separator));
                prop_assert_eq!(number == 0, slice.separator.is_empty());
                prop_assert!(number == 0 || compare_paths(&slice.separator, &last).is_gt());
                last = part[part.len() - 1].path.clone();
                found.extend(part.iter().map(|entry| String::from_utf8(entry.path.clone()).unwrap()));
            }
            prop_assert_eq!(found, sorted);
        }
    }
}
