//! Entries of a tree that are as in an earlier generation: their files are not read, and they are
//! not stored again.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Range;

use refrain_entries::tar::TarView;
use refrain_entries::{Entry, EntryKind, compare_paths};
use refrain_format::TreeLayers;

use crate::error::{Error, ErrorKind, Result};

/// Entries that are compared at once.
const ENTRIES_AT_ONCE: usize = 4096;

/// An entry of an earlier tree.
pub(crate) struct EarlierEntry {
    /// Its content offset is in the content space.
    pub entry: Entry,
    /// Whether the new tree consists of the layer that it is from, so that it needs no copy.
    pub is_kept: bool,
}

/// The entries of an earlier tree, by path, those among them that say what is removed.
pub(crate) trait EarlierEntries: Send {
    /// The next ones; `None` at the end.
    ///
    /// # Errors
    /// From reading the archive.
    fn next(&mut self) -> Result<Option<Vec<EarlierEntry>>>;
}

/// The tree of an earlier generation on which a new one is based.
pub(crate) struct EarlierTree {
    /// What the new tree will consist of.
    pub layers: TreeLayers,
    pub entries: Box<dyn EarlierEntries>,
}

/// What is to be stored of a tree.
#[derive(Default)]
pub(crate) struct ChangedEntries {
    /// In path order, with those that say what is removed.
    pub entries: Vec<Entry>,
    /// The positions of those whose content is stored already.
    pub known: Vec<u32>,
    /// Where the earlier content of files that changed is, by their positions.
    pub predecessors: BTreeMap<u32, Range<u64>>,
    /// The number of the other entries of the tree.
    pub more_entries: u64,
    /// The length of the other entries in the tar view, in bytes.
    pub more_view_bytes: u64,
    /// The number of files that need not be read.
    pub unchanged_files: u64,
}

/// Compares a walk with an earlier tree.
pub(crate) struct Unchanged {
    earlier: Box<dyn EarlierEntries>,
    ready: Peekable<std::vec::IntoIter<EarlierEntry>>,
    /// Whether entries of other layers must be hidden where paths are gone.
    has_layers: bool,
}

impl Unchanged {
    pub(crate) fn new(tree: EarlierTree) -> Unchanged {
        Unchanged {
            has_layers: !tree.layers.layers.is_empty(),
            earlier: tree.entries,
            ready: Vec::new().into_iter().peekable(),
        }
    }

    /// The next entries to be stored: about `count`, none only at the end of the walk. `walk`
    /// returns the next entries that were found, in path order, none at the end.
    ///
    /// # Errors
    /// From the walk, and from reading the earlier tree.
    pub(crate) fn next(
        &mut self,
        count: usize,
        walk: &mut dyn FnMut(usize) -> Result<Vec<Entry>>,
    ) -> Result<ChangedEntries> {
        let mut changed = ChangedEntries::default();
        while changed.entries.len() < count {
            let found = walk(ENTRIES_AT_ONCE.min(count))?;
            if found.is_empty() {
                while self.has_next()? {
                    let gone = self.ready.next();
                    gone.into_iter()
                        .for_each(|gone| self.remove(gone, &mut changed));
                }
                break;
            }
            for entry in found {
                self.compare(entry, &mut changed)?;
            }
        }
        Ok(changed)
    }

    /// Whether there is a next earlier entry.
    fn has_next(&mut self) -> Result<bool> {
        while self.ready.peek().is_none() {
            match self.earlier.next()? {
                Some(next) => self.ready = next.into_iter().peekable(),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The next earlier entry up to this path.
    fn pop_up_to(&mut self, path: &[u8]) -> Result<Option<EarlierEntry>> {
        let is_up_to = |next: &EarlierEntry| compare_paths(&next.entry.path, path).is_le();
        Ok(if self.has_next()? { self.ready.next_if(is_up_to) } else { None })
    }

    fn compare(&mut self, found: Entry, changed: &mut ChangedEntries) -> Result<()> {
        while let Some(earlier) = self.pop_up_to(&found.path)? {
            if earlier.entry.path != found.path {
                self.remove(earlier, changed);
            } else if is_unchanged(&found, &earlier.entry) {
                return keep(earlier, changed);
            } else if found.kind == EntryKind::File && earlier.entry.kind == EntryKind::File {
                let start = earlier.entry.content_offset;
                let content = start..start.saturating_add(earlier.entry.stored_bytes());
                let position = changed.entries.len() as u32;
                changed.predecessors.insert(position, content);
            }
        }
        changed.entries.push(found);
        Ok(())
    }

    /// An earlier entry whose path was not found.
    fn remove(&self, earlier: EarlierEntry, changed: &mut ChangedEntries) {
        let is_hidden = earlier.entry.kind == EntryKind::Removed;
        // What a layer hides stays hidden as long as the tree consists of it.
        if self.has_layers && !(is_hidden && earlier.is_kept) {
            changed.entries.push(removed(earlier.entry.path));
        }
    }
}

/// The entry that hides what earlier trees have at a path.
pub(crate) fn removed(path: Vec<u8>) -> Entry {
    Entry {
        path,
        kind: EntryKind::Removed,
        ..Entry::default()
    }
}

fn keep(earlier: EarlierEntry, changed: &mut ChangedEntries) -> Result<()> {
    if earlier.entry.kind == EntryKind::File && earlier.entry.size_bytes > 0 {
        changed.unchanged_files += 1;
    }
    if earlier.is_kept {
        let item = TarView::canonical().entry(&earlier.entry);
        let item = item.map_err(|error| Error::new(ErrorKind::Internal, error))?;
        changed.more_view_bytes += item.view_bytes();
        changed.more_entries += 1;
    } else {
        changed.known.push(changed.entries.len() as u32);
        changed.entries.push(earlier.entry);
    }
    Ok(())
}

/// Whether an entry is as before. Attributes of files with data count as unchanged with the stamp:
/// they are not read before the file is opened.
fn is_unchanged(found: &Entry, earlier: &Entry) -> bool {
    if found.kind != earlier.kind || found.kind == EntryKind::Hardlink {
        return false;
    }
    let is_alike = found.mode == earlier.mode
        && found.modified == earlier.modified
        && found.size_bytes == earlier.size_bytes
        && found.owner == earlier.owner;
    if found.kind == EntryKind::File && found.size_bytes > 0 {
        is_alike && found.change_stamp != 0 && found.change_stamp == earlier.change_stamp
    } else {
        is_alike
            && found.link_target == earlier.link_target
            && found.device == earlier.device
            && found.attributes == earlier.attributes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_format::TreeLayer;
    use std::collections::VecDeque;

    /// Entries in batches.
    struct Listed(VecDeque<Vec<EarlierEntry>>);

    impl EarlierEntries for Listed {
        fn next(&mut self) -> Result<Option<Vec<EarlierEntry>>> {
            Ok(self.0.pop_front())
        }
    }

    fn file(path: &str, size_bytes: u64, change_stamp: u32) -> Entry {
        Entry {
            path: path.into(),
            size_bytes,
            change_stamp,
            ..Entry::default()
        }
    }

    fn compared(earlier: Vec<(Entry, bool)>, found: Vec<Entry>, layers: &[u64]) -> ChangedEntries {
        let batches = earlier
            .into_iter()
            .map(|(entry, is_kept)| vec![EarlierEntry { entry, is_kept }]);
        let mut unchanged = Unchanged::new(EarlierTree {
            layers: TreeLayers {
                earlier_bytes: 0,
                layers: layers
                    .iter()
                    .map(|&member_id| TreeLayer {
                        member_id,
                        hash: [0; 32],
                    })
                    .collect(),
            },
            entries: Box::new(Listed(batches.collect())),
        });
        let mut found = VecDeque::from(found);
        let mut walk = |_| Ok(found.pop_front().into_iter().collect());
        unchanged.next(100, &mut walk).unwrap()
    }

    fn shown(changed: &ChangedEntries) -> Vec<(String, EntryKind)> {
        let shown = |entry: &Entry| {
            (
                String::from_utf8_lossy(&entry.path).into_owned(),
                entry.kind,
            )
        };
        changed.entries.iter().map(shown).collect()
    }

    #[test]
    fn only_what_differs_is_stored_and_what_is_gone_is_hidden() {
        let earlier = ["a", "b", "c", "d", "e"].map(|path| (file(path, 9, 7), true));
        let hard_link = Entry {
            kind: EntryKind::Hardlink,
            link_target: Some(b"a".to_vec()),
            ..file("e", 0, 0)
        };
        let found = vec![
            file("a", 9, 7),
            file("b", 9, 8),
            file("c", 9, 0),
            file("cc", 1, 7),
            hard_link,
        ];
        let changed = compared(earlier.to_vec(), found, &[0]);
        let expected = [
            ("b", EntryKind::File),
            ("c", EntryKind::File),
            ("cc", EntryKind::File),
            ("d", EntryKind::Removed),
            ("e", EntryKind::Hardlink),
        ];
        assert_eq!(
            shown(&changed),
            expected.map(|(path, kind)| (path.to_owned(), kind))
        );
        assert_eq!((changed.more_entries, changed.unchanged_files), (1, 1));
        assert!(changed.known.is_empty() && changed.more_view_bytes > 0);
    }

    #[test]
    fn entries_of_layers_that_end_are_stored_again_without_being_read() {
        let earlier = [
            (file("a", 9, 7), false),
            (removed(b"b".to_vec()), false),
            (removed(b"c".to_vec()), true),
            (file("d", 9, 7), true),
        ];
        let found = || vec![file("a", 9, 7), file("d", 9, 7)];
        let changed = compared(earlier.to_vec(), found(), &[0]);
        let expected = [("a", EntryKind::File), ("b", EntryKind::Removed)];
        assert_eq!(
            shown(&changed),
            expected.map(|(path, kind)| (path.to_owned(), kind))
        );
        assert_eq!((changed.known, changed.more_entries), (vec![0], 1));
        let whole = earlier
            .into_iter()
            .map(|(entry, _)| (entry, false))
            .collect();
        let changed = compared(whole, found(), &[]);
        assert_eq!(
            shown(&changed).len(),
            2,
            "nothing is hidden in a whole tree"
        );
        assert_eq!((changed.known, changed.more_entries), (vec![0, 1], 0));
    }

    #[test]
    fn attributes_and_targets_count_where_nothing_is_read() {
        let link = |target: &str, stamp| Entry {
            kind: EntryKind::Symlink,
            link_target: Some(target.into()),
            ..file("l", 0, stamp)
        };
        assert!(is_unchanged(&link("x", 0), &link("x", 0)));
        assert!(!is_unchanged(&link("x", 0), &link("y", 0)));
        assert!(is_unchanged(&file("empty", 0, 3), &file("empty", 0, 4)));
        assert!(
            !is_unchanged(&file("new", 1, 0), &file("new", 1, 0)),
            "no stamp"
        );
    }
}
