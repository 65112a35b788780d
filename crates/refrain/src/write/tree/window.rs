//! A window: consecutive entries of a tree whose files are read in their own order.
//!
//! While they are read, entries of files with complete content are picked for a run, together with
//! the directories above them and preceding entries without content.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use refrain_entries::{Entry, EntryKind, compare_paths};
use refrain_format::check_storable;

use refrain_filesystem::{Problem, ProblemKind};

use crate::write::tree::unchanged::removed;

/// Entries of a tree as listed.
pub(crate) struct ListedWindow {
    entries: Vec<Entry>,
    /// The position of the nearest directory above each, if it is in the window.
    parents: Vec<Option<u32>>,
    /// The positions of the files in the order of their contents.
    pub order: Vec<u32>,
    /// Where the earlier content of files is, by their positions.
    predecessors: BTreeMap<u32, Range<u64>>,
}

impl ListedWindow {
    /// `order`: the files in the order of their contents, without those whose content is stored.
    /// `predecessors`: where the earlier content of files is.
    pub(crate) fn new(
        entries: Vec<Entry>,
        order: Vec<u32>,
        predecessors: BTreeMap<u32, Range<u64>>,
    ) -> ListedWindow {
        ListedWindow {
            parents: parents(&entries),
            entries,
            order,
            predecessors,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn parents(entries: &[Entry]) -> Vec<Option<u32>> {
    let mut open: Vec<u32> = vec![];
    let mut parents = Vec::with_capacity(entries.len());
    for (position, entry) in (0..).zip(entries) {
        let is_above = |above: &u32| {
            let above = entries.get(*above as usize);
            above.is_some_and(|above| is_below(&entry.path, &above.path))
        };
        while open.last().is_some_and(|above| !is_above(above)) {
            open.pop();
        }
        parents.push(open.last().copied());
        if entry.kind == EntryKind::Directory {
            open.push(position);
        }
    }
    parents
}

/// Whether a path is below a directory's; `.` is the root.
fn is_below(path: &[u8], directory: &[u8]) -> bool {
    let rest = path.strip_prefix(directory);
    directory == b"." || rest.is_some_and(|rest| rest.starts_with(b"/"))
}

/// What is known about an entry besides its listing.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Whether it is a file whose content is read.
    has_content: bool,
    /// Whether all of its content was taken, or it could not be read.
    is_settled: bool,
    /// The run for which it was picked.
    run: Option<u32>,
}

/// Entries of a tree, and what is known about them while their files are read.
pub(crate) struct Window {
    /// As listed. Jobs share them.
    entries: Arc<Vec<Entry>>,
    parents: Vec<Option<u32>>,
    states: Vec<State>,
    /// The offset of each in the member's content.
    offsets: Vec<u64>,
    /// Entries that differed when read; `None`: they could not be read.
    changed: BTreeMap<u32, Option<Box<Entry>>>,
    predecessors: BTreeMap<u32, Range<u64>>,
}

/// An entry of a window that is complete.
pub(crate) struct Pick {
    /// Its position in the window.
    pub index: u32,
    offset: u64,
    /// The entry, if it differs from the listing.
    changed: Option<Box<Entry>>,
}

/// Some entries of a window, in path order.
pub(crate) struct PickedEntries {
    pub listed: Arc<Vec<Entry>>,
    pub picks: Vec<Pick>,
}

impl PickedEntries {
    pub(crate) fn into_entries(self) -> Vec<Entry> {
        let PickedEntries { listed, picks } = self;
        let entry = |pick: Pick| {
            let listed = listed.get(pick.index as usize);
            let entry = pick.changed.map(|entry| *entry).or(listed.cloned());
            Some(placed(entry?, pick.offset))
        };
        picks.into_iter().filter_map(entry).collect()
    }
}

/// All entries of a window that can be stored, in path order.
pub(crate) struct CompleteWindow {
    pub entries: Vec<Entry>,
    /// The run of each, if it was picked for one.
    pub runs: Vec<Option<u32>>,
}

/// An entry whose content starts at this offset.
fn placed(mut entry: Entry, offset: u64) -> Entry {
    entry.content_offset = match entry.stored_bytes() {
        0 => 0,
        _ => offset,
    };
    entry
}

impl Window {
    pub(crate) fn new(listed: ListedWindow) -> Window {
        let ListedWindow {
            entries,
            parents,
            order,
            predecessors,
        } = listed;
        let mut states = vec![State::default(); entries.len()];
        for position in order {
            if let Some(state) = states.get_mut(position as usize) {
                state.has_content = true;
            }
        }
        Window {
            offsets: entries.iter().map(|entry| entry.content_offset).collect(),
            entries: Arc::new(entries),
            parents,
            states,
            changed: BTreeMap::new(),
            predecessors,
        }
    }

    pub(crate) fn entries(&self) -> &Arc<Vec<Entry>> {
        &self.entries
    }

    /// Where the earlier content of a file is, from an offset in the file on.
    pub(crate) fn predecessor(&self, index: u32, offset_in_file: u64) -> Option<Range<u64>> {
        let content = self.predecessors.get(&index)?;
        let rest = content.start.saturating_add(offset_in_file)..content.end;
        (!rest.is_empty()).then_some(rest)
    }

    /// The data of an entry is at `offset` of the member's content.
    pub(crate) fn place(&mut self, index: u32, offset: u64) {
        if let Some(place) = self.offsets.get_mut(index as usize) {
            *place = offset;
        }
    }

    /// The entry differed when it was read.
    pub(crate) fn replace(&mut self, index: u32, entry: Option<Box<Entry>>) {
        self.changed.insert(index, entry);
    }

    /// All data of the entry was taken, or it could not be read.
    pub(crate) fn settle(&mut self, index: u32) {
        if let Some(state) = self.states.get_mut(index as usize) {
            state.is_settled = true;
        }
    }

    /// Picks for a run the complete files not picked before, the directories above them, and
    /// entries without content that precede a complete file: then most of what is picked is
    /// consecutive in path order. Hard links are picked after their files. `lost` are unreadable
    /// files of earlier windows.
    pub(crate) fn pick(&mut self, run: u32, lost: &BTreeSet<Vec<u8>>) -> PickedEntries {
        let mut picked = vec![];
        let mut is_followed = false;
        for index in (0..self.entries.len() as u32).rev() {
            let state = self.state(index);
            if state.has_content {
                is_followed = state.is_settled;
            }
            let is_gone = matches!(self.changed.get(&index), Some(None));
            if is_followed && state.run.is_none() && !is_gone {
                picked.push(index);
            }
        }
        let mut all = Vec::with_capacity(picked.len());
        for index in picked.into_iter().rev() {
            if self.is_link_without_file(index, lost) {
                continue;
            }
            let mut next = Some(index);
            while let Some(index) = next.filter(|&index| self.state(index).run.is_none()) {
                if self.is_storable(index)
                    && let Some(state) = self.states.get_mut(index as usize)
                {
                    state.run = Some(run);
                    all.push(index);
                }
                next = self.parents.get(index as usize).copied().flatten();
            }
        }
        all.sort_unstable();
        let pick = |index: u32| Pick {
            index,
            offset: self
                .offsets
                .get(index as usize)
                .copied()
                .unwrap_or_default(),
            changed: self.changed.get(&index).cloned().flatten(),
        };
        PickedEntries {
            listed: self.entries.clone(),
            picks: all.into_iter().map(pick).collect(),
        }
    }

    fn state(&self, index: u32) -> State {
        self.states.get(index as usize).copied().unwrap_or_default()
    }

    /// Whether the format can hold the entry; if not, it is reported when the window is complete.
    fn is_storable(&self, index: u32) -> bool {
        let changed = self.changed.get(&index).and_then(Option::as_deref);
        let entry = changed.or(self.entries.get(index as usize));
        entry.is_some_and(|entry| check_storable(entry).is_ok())
    }

    /// Whether the entry is a hard link to a file that was not picked, or is lost.
    fn is_link_without_file(&self, index: u32, lost: &BTreeSet<Vec<u8>>) -> bool {
        let entry = self.entries.get(index as usize);
        let entry = entry.filter(|entry| entry.kind == EntryKind::Hardlink);
        let Some(target) = entry.and_then(|entry| entry.link_target.as_ref()) else {
            return false;
        };
        let found = self
            .entries
            .binary_search_by(|other| compare_paths(&other.path, target));
        match found {
            Ok(found) => self.state(found as u32).run.is_none(),
            Err(_) => lost.contains(target),
        }
    }

    /// The entries with their offsets, without unreadable ones and those that the format cannot
    /// hold, which are reported. Their paths are added to `lost`. Further names of files lost in
    /// this window or an earlier one are also left out and reported.
    /// In a tree with layers, these must be hidden there (`is_layered`).
    pub(crate) fn finish(
        self,
        lost: &mut BTreeSet<Vec<u8>>,
        is_layered: bool,
    ) -> (CompleteWindow, Vec<Problem>) {
        let Window {
            entries: listed,
            states,
            offsets,
            mut changed,
            ..
        } = self;
        let listed = Arc::unwrap_or_clone(listed);
        let mut complete = CompleteWindow {
            entries: Vec::with_capacity(listed.len()),
            runs: Vec::with_capacity(listed.len()),
        };
        let mut problems = vec![];
        let leave_out = |path: Vec<u8>, complete: &mut CompleteWindow| {
            if is_layered {
                complete.entries.push(removed(path));
                complete.runs.push(None);
            }
        };
        let known = listed.into_iter().zip(offsets).zip(states);
        for (index, ((listed, offset), state)) in (0..).zip(known) {
            let entry = match changed.remove(&index) {
                Some(None) => {
                    lost.insert(listed.path.clone());
                    leave_out(listed.path, &mut complete);
                    continue;
                }
                Some(Some(entry)) => *entry,
                None => listed,
            };
            let entry = placed(entry, offset);
            if let Err(error) = check_storable(&entry) {
                problems.push(Problem {
                    path: entry.path.clone(),
                    kind: ProblemKind::Unreadable,
                    text: format!("cannot be stored: {error}"),
                });
                lost.insert(entry.path.clone());
                leave_out(entry.path, &mut complete);
                continue;
            }
            let target = entry.link_target.as_ref();
            let is_link = entry.kind == EntryKind::Hardlink;
            if is_link && target.is_some_and(|target| lost.contains(target)) {
                problems.push(Problem {
                    path: entry.path.clone(),
                    kind: ProblemKind::Unreadable,
                    text: "the file, which has several names, could not be read".into(),
                });
                leave_out(entry.path, &mut complete);
                continue;
            }
            complete.entries.push(entry);
            complete.runs.push(state.run);
        }
        (complete, problems)
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
        let window = |entries| Window::new(ListedWindow::new(entries, vec![], BTreeMap::new()));
        let mut lost_file = window(vec![file("a", 5), file("b", 7), file("c", 0), link("d")]);
        lost_file.place(0, 100);
        lost_file.place(2, 50);
        lost_file.replace(0, Some(Box::new(file("a", 6))));
        lost_file.replace(1, None);
        let mut lost = BTreeSet::new();
        let (complete, problems) = lost_file.finish(&mut lost, false);
        assert!(problems.len() == 1 && problems[0].path == b"d");
        let found: Vec<_> = (complete.entries.iter())
            .map(|entry| (&entry.path[..], entry.content_range()))
            .collect();
        assert_eq!(found, [(&b"a"[..], 100..106), (b"c", 0..0)]);
        let (later, problems) = window(vec![file("e", 0), link("f")]).finish(&mut lost, false);
        assert!(later.entries.len() == 1 && later.entries[0].path == b"e");
        assert!(problems.len() == 1 && problems[0].path == b"f");
    }

    fn entry(kind: EntryKind, path: &str, target: Option<&str>) -> Entry {
        Entry {
            path: path.into(),
            kind,
            link_target: target.map(Into::into),
            size_bytes: u64::from(kind == EntryKind::File),
            ..Entry::default()
        }
    }

    #[test]
    fn complete_files_are_picked_with_directories_and_what_is_before_them() {
        let file = |path| entry(EntryKind::File, path, None);
        let directory = |path| entry(EntryKind::Directory, path, None);
        let entries = vec![
            directory("."),
            directory("a"),
            file("a/1"),
            entry(EntryKind::Symlink, "a/2", Some("x")),
            file("a/3"),
            entry(EntryKind::Hardlink, "a/4", Some("a/1")),
            directory("b"),
            entry(EntryKind::Hardlink, "b/1", Some("a/3")),
            entry(EntryKind::Hardlink, "b/2", Some("gone")),
            file("b/3"),
            directory("c"),
        ];
        let mut window = Window::new(ListedWindow::new(entries, vec![4, 9, 2], BTreeMap::new()));
        let lost = BTreeSet::from([b"gone".to_vec()]);
        let mut pick = |run, settled: &[u32]| {
            settled.iter().for_each(|&index| window.settle(index));
            let entries = window.pick(run, &lost).into_entries();
            let paths = entries
                .iter()
                .map(|entry| String::from_utf8_lossy(&entry.path));
            paths.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(pick(0, &[]), "");
        assert_eq!(pick(1, &[4]), ". a a/2 a/3");
        // `a/4` waits for the file that it names.
        assert_eq!(pick(2, &[9]), "b b/1 b/3");
        assert_eq!(pick(3, &[2]), "a/1 a/4");
        let (rest, problems) = window.finish(&mut lost.clone(), false);
        assert_eq!(problems.len(), 1);
        let runs: Vec<_> = rest.runs.iter().map(|run| run.unwrap_or(9)).collect();
        assert_eq!(runs, [1, 1, 3, 1, 1, 3, 2, 2, 2, 9]);
    }
}
