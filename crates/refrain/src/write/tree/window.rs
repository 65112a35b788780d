//! A window: consecutive entries of a tree whose files are read in an order of their own.

use std::collections::BTreeSet;
use std::sync::Arc;

use refrain_format::check_storable;
use refrain_tree::{Entry, EntryKind, Problem, ProblemKind};

/// Entries of a tree, and what is known of them after their files were read.
pub(crate) struct Window {
    /// As they were listed. Jobs share them.
    entries: Arc<Vec<Entry>>,
    /// The offset in the member's content of each.
    offsets: Vec<u64>,
    /// Entries that were different when they were read; `None`: they could not be read.
    changed: Vec<(u32, Option<Box<Entry>>)>,
}

impl Window {
    pub(crate) fn new(entries: Vec<Entry>) -> Window {
        Window {
            offsets: vec![0; entries.len()],
            entries: Arc::new(entries),
            changed: Vec::new(),
        }
    }

    pub(crate) fn entries(&self) -> &Arc<Vec<Entry>> {
        &self.entries
    }

    /// The data of an entry is at `offset` of the member's content.
    pub(crate) fn place(&mut self, index: u32, offset: u64) {
        if let Some(place) = self.offsets.get_mut(index as usize) {
            *place = offset;
        }
    }

    /// The entry was different when it was read.
    pub(crate) fn replace(&mut self, index: u32, entry: Option<Box<Entry>>) {
        self.changed.push((index, entry));
    }

    /// The entries with their offsets, without those that could not be read, and those that the
    /// format cannot hold, which are reported. Their paths are added to `lost`. Further names of
    /// files that are lost, in this window or an earlier one, are left out, too, and reported.
    pub(crate) fn finish(self, lost: &mut BTreeSet<Vec<u8>>) -> (Vec<Entry>, Vec<Problem>) {
        let mut entries = Arc::unwrap_or_clone(self.entries);
        let mut is_gone = vec![false; entries.len()];
        for (index, entry) in self.changed {
            match entry {
                Some(entry) => entries[index as usize] = *entry,
                None => is_gone[index as usize] = true,
            }
        }
        let mut problems = vec![];
        for ((entry, offset), is_gone) in entries.iter_mut().zip(self.offsets).zip(&mut is_gone) {
            entry.content_offset = match entry.stored_bytes() {
                0 => 0,
                _ => offset,
            };
            if let (false, Err(error)) = (*is_gone, check_storable(entry)) {
                *is_gone = true;
                problems.push(Problem {
                    path: entry.path.clone(),
                    kind: ProblemKind::Unreadable,
                    text: format!("cannot be stored: {error}"),
                });
            }
        }
        let gone = (entries.iter().zip(&is_gone)).filter(|(_, is_gone)| **is_gone);
        lost.extend(gone.map(|(entry, _)| entry.path.clone()));
        let mut gone = is_gone.into_iter();
        entries.retain(|entry| {
            let target = entry.link_target.as_ref();
            let is_link = entry.kind == EntryKind::Hardlink;
            let is_lost = is_link && target.is_some_and(|target| lost.contains(target));
            if is_lost {
                problems.push(Problem {
                    path: entry.path.clone(),
                    kind: ProblemKind::Unreadable,
                    text: "the file, which has several names, could not be read".into(),
                });
            }
            !gone.next().unwrap_or_default() && !is_lost
        });
        (entries, problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_get_their_offsets_and_unreadable_ones_are_left_out() {
        let file = |path: &str, size_bytes| Entry {
            path: path.into(),
            size_bytes,
            ..Entry::default()
        };
        let link = |path| Entry {
            kind: EntryKind::Hardlink,
            link_target: Some(b"b".to_vec()),
            ..file(path, 0)
        };
        let mut window = Window::new(vec![file("a", 5), file("b", 7), file("c", 0), link("d")]);
        window.place(0, 100);
        window.place(2, 50);
        window.replace(0, Some(Box::new(file("a", 6))));
        window.replace(1, None);
        let mut lost = BTreeSet::new();
        let (entries, problems) = window.finish(&mut lost);
        assert!(problems.len() == 1 && problems[0].path == b"d");
        let found: Vec<_> = entries
            .iter()
            .map(|entry| (&entry.path[..], entry.content_range()))
            .collect();
        assert_eq!(found, [(&b"a"[..], 100..106), (b"c", 0..0)]);
        let later = Window::new(vec![file("e", 0), link("f")]);
        let (entries, problems) = later.finish(&mut lost);
        assert!(entries.len() == 1 && entries[0].path == b"e");
        assert!(problems.len() == 1 && problems[0].path == b"f");
    }
}
