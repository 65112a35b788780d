//! A window: consecutive entries of a tree whose files are read in an order of their own.

use std::sync::Arc;

use refrain_tree::Entry;

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

    /// The entries with their offsets, without those that could not be read.
    pub(crate) fn finish(self) -> Vec<Entry> {
        let mut entries = Arc::unwrap_or_clone(self.entries);
        let mut is_gone = vec![false; entries.len()];
        for (index, entry) in self.changed {
            match entry {
                Some(entry) => entries[index as usize] = *entry,
                None => is_gone[index as usize] = true,
            }
        }
        for (entry, offset) in entries.iter_mut().zip(self.offsets) {
            entry.content_offset = match entry.stored_bytes() {
                0 => 0,
                _ => offset,
            };
        }
        let mut gone = is_gone.into_iter();
        entries.retain(|_| !gone.next().unwrap_or_default());
        entries
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
        let mut window = Window::new(vec![file("a", 5), file("b", 7), file("c", 0)]);
        window.place(0, 100);
        window.place(2, 50);
        window.replace(0, Some(Box::new(file("a", 6))));
        window.replace(1, None);
        let entries = window.finish();
        let found: Vec<_> = entries
            .iter()
            .map(|entry| (&entry.path[..], entry.content_range()))
            .collect();
        assert_eq!(found, [(&b"a"[..], 100..106), (b"c", 0..0)]);
    }
}
