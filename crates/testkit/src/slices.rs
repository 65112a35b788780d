//! The reference implementation of the path order of a tree: all paths are sorted.

use refrain_format::{Entry, IndexSlice, compare_paths};

/// The slices of a tree in path order, with the numbers of its own frames.
pub(crate) fn slices_of(frames: &[Vec<Entry>]) -> Vec<IndexSlice> {
    let places = |(frame, entries)| {
        let entries: &Vec<Entry> = entries;
        (0..)
            .zip(entries)
            .map(move |(at, entry)| (&entry.path[..], frame, at))
    };
    let mut order: Vec<_> = (0..).zip(frames).flat_map(places).collect();
    order.sort_by(|a, b| compare_paths(a.0, b.0));
    let (mut slices, mut before) = (Vec::<IndexSlice>::new(), None);
    for (path, frame, first_entry) in order {
        match slices.last_mut() {
            Some(last)
                if last.frame == frame && last.first_entry + last.entry_count == first_entry =>
            {
                last.entry_count += 1;
            }
            _ => slices.push(IndexSlice {
                frame,
                first_entry,
                entry_count: 1,
                separator: before
                    .map_or(Vec::new(), |before| IndexSlice::separator_of(before, path)),
            }),
        }
        before = Some(path);
    }
    slices
}
