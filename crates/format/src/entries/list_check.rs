//! Checks the entries of a member as a list: the promised order, how entries refer to one another,
//! and the totals in the member's end. docs/format.md, section 4.4, has the rules.

use std::collections::BTreeMap;

use refrain_entries::tar::TarView;
use refrain_entries::{Entry, EntryKind, compare_paths};
use refrain_protect::checksum64;

use crate::check::check_equal;
use crate::error::{FormatError, Result};
use crate::member::{MemberEnd, MemberKind};

/// The path that names the root of a tree whose paths have no prefix.
const ROOT_PATH: &[u8] = b".";

/// The memory of a link target in bytes, estimated.
const TARGET_BYTES: usize = 32;

/// Checks the entries of one member. They are fed in order: a tree's by path, a tar stream's frame
/// by frame.
///
/// The paths of a tree ascend strictly and have the normal form, only directories have entries
/// below them, a hard link leads to an earlier entry that is neither a directory nor a hard link,
/// and nothing occurs that only tar streams have. A tar stream may have any paths and links. For
/// both, the member's end states whether the paths ascend, the length of the tar stream, and the
/// length of the content, which must hold all data.
///
/// Memory: one path, and about 32 bytes for each path to which hard links of later frames lead;
/// while a frame is fed, also the tar header of one entry.
#[derive(Debug)]
pub struct EntryListChecker {
    is_tree: bool,
    /// Whether the entries are changes to the entries of earlier members.
    is_layered: bool,
    /// Whether frames were merged to put the entries in path order.
    is_merged: bool,
    entry_count: u64,
    /// Path and kind of the latest entry that has a path.
    latest: Option<(Vec<u8>, EntryKind)>,
    /// The first entry whose path does not follow its predecessor's.
    first_unsorted: Option<u64>,
    /// The largest end of an entry's data in the content, and the entry's number.
    data_end: (u64, u64),
    view_bytes: u64,
    targets: LinkTargets,
    targets_max: usize,
}

impl EntryListChecker {
    /// Creates a checker for a member of this kind. Once hard links lead to more than `targets_max`
    /// entries of other frames, further links are not checked.
    #[must_use]
    pub fn new(kind: MemberKind, targets_max: usize) -> Self {
        let is_tree = kind.is_tree();
        Self {
            is_tree,
            is_layered: kind == MemberKind::LayeredTree,
            is_merged: false,
            entry_count: 0,
            latest: None,
            first_unsorted: None,
            data_end: (0, 0),
            view_bytes: tar_view(is_tree).end().view_bytes(),
            targets: LinkTargets::default(),
            targets_max,
        }
    }

    /// Creates a checker for a tree whose frames are not in path order: they are merged, and fed in
    /// path order.
    #[must_use]
    pub fn for_merged_tree(kind: MemberKind, targets_max: usize) -> Self {
        Self {
            is_merged: true,
            ..Self::new(kind, targets_max)
        }
    }

    /// Checks the next entries, as [`unpack_entries`] returns them. For a tar stream, pass whole
    /// frames; for a tree, whole frames or whole slices.
    ///
    /// # Errors
    /// [`FormatError::EntryList`], with the number of the entry.
    ///
    /// [`unpack_entries`]: super::unpack_entries
    pub fn feed(&mut self, entries: &[Entry]) -> Result<()> {
        let latest = self.latest.take();
        let mut before = latest.as_ref().map(|(path, kind)| (path.as_slice(), *kind));
        let mut view = tar_view(self.is_tree);
        let (mut number, mut has_links) = (self.entry_count, false);
        for entry in entries {
            if entry.kind != EntryKind::Raw {
                self.check_path(number, entry, before)?;
                before = Some((&entry.path, entry.kind));
            }
            let is_removed = entry.kind == EntryKind::Removed;
            if is_removed && !self.is_layered {
                return Err(broken(number, "only a layered tree removes paths"));
            }
            if is_removed && !is_bare(entry) {
                return Err(broken(number, "a removed path has nothing else"));
            }
            if self.is_tree {
                check_tree_entry(number, entry)?;
                has_links |= entry.kind == EntryKind::Hardlink;
            }
            if !is_removed {
                let view_bytes = view.entry_bytes(entry);
                let view_bytes =
                    view_bytes.map_err(|_| broken(number, "its recipe gives a tar header"))?;
                self.view_bytes = self.view_bytes.saturating_add(view_bytes);
            }
            self.data_end = self.data_end.max((entry.content_range().end, number));
            number = number.saturating_add(1);
        }
        if has_links {
            self.add_targets(entries);
        }
        self.latest = before.map(|(path, kind)| (path.to_vec(), kind));
        self.entry_count = number;
        Ok(())
    }

    /// Compares the entries with the end of their member. Returns the targets of hard links that
    /// were not found yet: look them up in all frames.
    ///
    /// # Errors
    /// [`FormatError::EntryList`], with the number of the entry; [`FormatError::Mismatch`].
    pub fn finish(self, end: &MemberEnd) -> Result<LinkTargets> {
        check_equal("entries of a member", self.entry_count, end.entry_count)?;
        let rule = "the paths of sorted entries ascend strictly";
        if let (true, Some(entry)) = (end.entries_are_sorted, self.first_unsorted) {
            return Err(broken(entry, rule));
        }
        let are_sorted = self.entry_count > 0 && self.first_unsorted.is_none();
        check_equal(
            "mark of sorted entries",
            u64::from(end.entries_are_sorted),
            u64::from(are_sorted && !self.is_merged),
        )?;
        let (data_end, entry) = self.data_end;
        if self.is_layered {
            // The data may be earlier content, and the tar stream has other entries as well.
            return Ok(self.targets);
        }
        if data_end > end.content_bytes {
            return Err(broken(
                entry,
                "its data is inside the content of the member",
            ));
        }
        check_equal(
            "bytes of a member as a tar stream",
            end.view_bytes,
            self.view_bytes,
        )?;
        Ok(self.targets)
    }

    /// The length in bytes of the tar stream of the entries so far, including its end.
    #[must_use]
    pub fn view_bytes(&self) -> u64 {
        self.view_bytes
    }

    /// The memory in bytes that the checker holds between two frames.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let path = self.latest.as_ref().map_or(0, |(path, _)| path.len());
        path.saturating_add(TARGET_BYTES.saturating_mul(self.targets.missing.len()))
    }

    fn check_path(
        &mut self,
        number: u64,
        entry: &Entry,
        before: Option<(&[u8], EntryKind)>,
    ) -> Result<()> {
        let Some((path, kind)) = before else {
            return Ok(());
        };
        let order = compare_paths(path, &entry.path);
        if order.is_ge() {
            if self.is_tree {
                return Err(broken(
                    number,
                    if order.is_eq() {
                        "a path occurs once in a tree"
                    } else {
                        "the paths of a tree ascend strictly"
                    },
                ));
            }
            self.first_unsorted.get_or_insert(number);
        }
        // Paths below a directory follow it directly.
        let may_be_above = kind == EntryKind::Directory || entry.kind == EntryKind::Removed;
        if self.is_tree && !may_be_above && is_below(&entry.path, path) {
            return Err(broken(number, "only a directory has entries below it"));
        }
        Ok(())
    }

    /// Adds the targets of a frame's hard links, except for those in the same frame.
    fn add_targets(&mut self, entries: &[Entry]) {
        for (number, entry) in (self.entry_count..).zip(entries) {
            let target = entry.link_target.as_ref();
            if let Some(target) = target.filter(|_| entry.kind == EntryKind::Hardlink)
                && self.targets.missing.len() < self.targets_max
            {
                let hash = checksum64(target);
                self.targets.missing.entry(hash).or_insert(number);
            }
        }
        self.targets.look_up(entries);
    }
}

/// Targets of hard links that have not been found among the entries.
#[derive(Debug, Default)]
pub struct LinkTargets {
    /// The number of the first link to each path, by the checksum of the path.
    missing: BTreeMap<u64, u64>,
}

impl LinkTargets {
    /// Whether all have been found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty()
    }

    /// Removes the targets that a frame contains.
    pub fn look_up(&mut self, entries: &[Entry]) {
        for entry in entries {
            if self.missing.is_empty() {
                return;
            }
            if may_be_target(entry.kind) {
                self.missing.remove(&checksum64(&entry.path));
            }
        }
    }

    /// Call it after all frames were looked up.
    ///
    /// # Errors
    /// [`FormatError::EntryList`], with the number of the first link that leads nowhere.
    pub fn finish(self) -> Result<()> {
        match self.missing.into_values().min() {
            None => Ok(()),
            Some(link) => Err(broken(link, LINK_RULE)),
        }
    }
}

const LINK_RULE: &str =
    "a hard link of a tree leads to an earlier entry, neither a directory nor a hard link";

fn may_be_target(kind: EntryKind) -> bool {
    !matches!(
        kind,
        EntryKind::Directory | EntryKind::Hardlink | EntryKind::Raw | EntryKind::Removed
    )
}

/// Whether an entry has a path and a kind alone.
fn is_bare(entry: &Entry) -> bool {
    let bare = Entry {
        path: entry.path.clone(),
        kind: entry.kind,
        ..Entry::default()
    };
    *entry == bare
}

/// Checks the fields of a tree's entry, and that its link leads back.
fn check_tree_entry(number: u64, entry: &Entry) -> Result<()> {
    if entry.kind == EntryKind::Raw || !entry.header_recipe.is_empty() {
        let rule = "only tar streams have raw bytes and header recipes";
        return Err(broken(number, rule));
    }
    if !is_normal(&entry.path) {
        let rule = "no component of a path in a tree is empty, `.` or `..`";
        return Err(broken(number, rule));
    }
    let target = entry.link_target.as_ref();
    let leads_on = target.is_some_and(|target| compare_paths(target, &entry.path).is_ge());
    if entry.kind == EntryKind::Hardlink && leads_on {
        Err(broken(number, LINK_RULE))
    } else {
        Ok(())
    }
}

fn is_normal(path: &[u8]) -> bool {
    let mut components = path.split(|byte| *byte == b'/');
    path == ROOT_PATH || components.all(|component| !matches!(component, b"" | b"." | b".."))
}

fn is_below(path: &[u8], above: &[u8]) -> bool {
    let rest = path.strip_prefix(above);
    above == ROOT_PATH || rest.is_some_and(|rest| rest.starts_with(b"/"))
}

/// The view of a member's entries. Each frame is independent of earlier ones.
fn tar_view(is_tree: bool) -> TarView {
    if is_tree { TarView::canonical() } else { TarView::recorded() }
}

fn broken(entry: u64, rule: &'static str) -> FormatError {
    FormatError::EntryList { entry, rule }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: EntryKind, path: &str, target: &str) -> Entry {
        Entry {
            path: path.into(),
            kind,
            link_target: (!target.is_empty()).then(|| target.into()),
            ..Entry::default()
        }
    }

    fn file(path: &str) -> Entry {
        entry(EntryKind::File, path, "")
    }

    fn link(path: &str, target: &str) -> Entry {
        entry(EntryKind::Hardlink, path, target)
    }

    /// The end that agrees with these entries.
    fn end_of(checker: &EntryListChecker) -> MemberEnd {
        MemberEnd {
            view_bytes: checker.view_bytes(),
            entry_count: checker.entry_count,
            entries_hash: Some([0; 32]),
            entries_are_sorted: checker.entry_count > 0,
            ..MemberEnd::of_content(0, 0)
        }
    }

    /// Feeds the frames and looks up the remaining targets in all of them. Returns how many targets
    /// remained, and the result.
    fn check(frames: &[Vec<Entry>], targets_max: usize) -> (usize, Result<()>) {
        let mut checker = EntryListChecker::new(MemberKind::Tree, targets_max);
        for frame in frames {
            checker.feed(frame).unwrap();
            assert!(checker.memory_bytes() <= TARGET_BYTES * targets_max + 10);
        }
        let end = end_of(&checker);
        let mut targets = checker.finish(&end).unwrap();
        let left = targets.missing.len();
        frames.iter().for_each(|frame| targets.look_up(frame));
        (left, targets.finish())
    }

    #[test]
    fn only_targets_in_other_frames_are_left_and_not_more_than_allowed() {
        let first = vec![file("a"), file("b"), link("c", "a")];
        let second = vec![file("d"), link("e", "d"), link("f", "b"), link("g", "a")];
        let frames = [first.clone(), second, vec![link("h", "a")]];
        assert_eq!(check(&frames, 100), (2, Ok(())));
        assert_eq!(check(&frames, 1), (1, Ok(())));
        assert_eq!(check(&frames, 0), (0, Ok(())));
        let lost = vec![link("d", "b"), link("e", "0"), link("f", "1")];
        let frames = [first, lost];
        assert_eq!(check(&frames, 100), (3, Err(broken(4, LINK_RULE))));
        assert_eq!(check(&frames, 1), (1, Ok(())));
    }

    #[test]
    fn the_number_of_entries_is_compared() {
        let mut checker = EntryListChecker::new(MemberKind::Tree, 0);
        checker.feed(&[file("a"), file("b")]).unwrap();
        let end = MemberEnd {
            entry_count: 3,
            ..end_of(&checker)
        };
        let error = checker.finish(&end).unwrap_err();
        assert!(matches!(error, FormatError::Mismatch { found: 2, .. }));
    }

    #[test]
    fn only_layered_trees_remove_paths_and_say_nothing_else_of_them() {
        let removed = |path: &[u8]| Entry {
            path: path.to_vec(),
            kind: EntryKind::Removed,
            ..Entry::default()
        };
        let fed = |kind, entries: &[Entry]| EntryListChecker::new(kind, 9).feed(entries);
        let entries = [removed(b"a"), removed(b"a/b")];
        assert!(fed(MemberKind::LayeredTree, &entries).is_ok());
        assert!(fed(MemberKind::Tree, &entries).is_err());
        let with_mode = Entry {
            mode: 0o644,
            ..removed(b"a")
        };
        assert!(fed(MemberKind::LayeredTree, &[with_mode]).is_err());
    }

    #[test]
    fn an_error_names_the_entry_in_its_member() {
        let mut checker = EntryListChecker::new(MemberKind::Tree, 0);
        checker.feed(&[file("a"), file("b")]).unwrap();
        let error = checker.feed(&[file("c"), file("c/d")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "entry 3 of its member breaks a rule: only a directory has entries below it"
        );
    }
}
