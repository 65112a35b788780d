//! Chooses the entries of a tree to restore: selected ones, the directories above them, and what
//! their hard links need.

use std::collections::BTreeMap;

use refrain_entries::{Decision, Entry, EntryKind, Selection};
use refrain_filesystem::restore::{HardLink, TreeRestore};
use refrain_format::entry_bytes;

use crate::error::{Error, Result};
use crate::read::tree::content::TreeContent;

/// Chooses entries one by one, in list order.
pub(crate) struct Chosen<'a> {
    /// `None`: all are chosen.
    selection: Option<&'a Selection>,
    /// Whether a directory without the present entry has none of the later ones either.
    is_sorted: bool,
    /// Directories to choose if an entry inside is chosen, by their names.
    parents: BTreeMap<Vec<Vec<u8>>, Entry>,
    parents_bytes: usize,
    parents_bytes_max: usize,
}

/// Directories that may be chosen later may take 1/8 of the memory budget.
const PARENTS_SHARE: u64 = 8;

/// The memory of a component's name.
const NAME_BYTES: usize = 48;

pub(crate) fn memory_bytes(entry: &Entry) -> usize {
    size_of::<Entry>() + entry_bytes(entry)
}

impl<'a> Chosen<'a> {
    /// `memory_bytes` is the run's memory.
    pub(crate) fn new(
        selection: Option<&'a Selection>,
        content: &dyn TreeContent,
        memory_bytes: u64,
    ) -> Chosen<'a> {
        Chosen {
            is_sorted: !content.is_recorded(),
            ..Chosen::for_recorded(selection, memory_bytes)
        }
    }

    /// Chooses the entries of a tar stream.
    pub(crate) fn for_recorded(selection: Option<&'a Selection>, memory_bytes: u64) -> Chosen<'a> {
        let parents_bytes_max = memory_bytes / PARENTS_SHARE;
        Chosen {
            selection,
            is_sorted: false,
            parents: BTreeMap::new(),
            parents_bytes: 0,
            parents_bytes_max: usize::try_from(parents_bytes_max).unwrap_or(usize::MAX),
        }
    }

    /// Passes the next entry to `take` if it is chosen, after the directories above it that were
    /// not passed yet.
    ///
    /// # Errors
    /// `Limit` if too many directories may be chosen later.
    pub(crate) fn choose(&mut self, entry: Entry, mut take: impl FnMut(Entry)) -> Result<()> {
        let is_directory = entry.kind == EntryKind::Directory;
        let decision = match self.selection {
            _ if entry.kind == EntryKind::Raw => Decision::Exclude,
            None => Decision::Include,
            Some(selection) => selection.decide(&entry.path, is_directory),
        };
        if self.selection.is_none() {
            if decision == Decision::Include {
                take(entry);
            }
            return Ok(());
        }
        let names = names(&entry.path);
        let bytes = &mut self.parents_bytes;
        if self.is_sorted {
            self.parents.retain(|parent, entry| {
                let is_above = names.starts_with(parent);
                if !is_above {
                    *bytes -= parent_bytes(parent, entry);
                }
                is_above
            });
        }
        match decision {
            Decision::Exclude => {}
            Decision::Descend => {
                *bytes += parent_bytes(&names, &entry);
                if *bytes > self.parents_bytes_max {
                    let message = "more directories that may hold selected entries than the memory \
                                   limit has room for: raise it, or select paths";
                    return Err(Error::limit(message.to_string()));
                }
                let bytes_of_names = names.clone();
                if let Some(before) = self.parents.insert(names, entry) {
                    *bytes -= parent_bytes(&bytes_of_names, &before);
                }
            }
            Decision::Include => {
                for depth in 0..names.len() {
                    let parent = names.get(..depth).unwrap_or_default();
                    if let Some(entry) = self.parents.remove(parent) {
                        *bytes -= parent_bytes(parent, &entry);
                        take(entry);
                    }
                }
                take(entry);
            }
        }
        Ok(())
    }
}

/// The memory of a directory that may be chosen later.
fn parent_bytes(names: &[Vec<u8>], entry: &Entry) -> usize {
    memory_bytes(entry) + entry.path.len() + names.len() * NAME_BYTES
}

/// The components of a path, without meaningless ones.
fn names(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|byte| *byte == b'/');
    let names = names.filter(|name| !matches!(*name, b"" | b"."));
    names.map(<[u8]>::to_vec).collect()
}

/// The files that hard links among the restored entries need, because the files that they link to
/// were not selected: each under the path of the first such link. The other links are given to the
/// target again, as links to that path; so are links without any file, which the target reports.
///
/// # Errors
/// From reading entries.
/// Those of reading entries.
pub(crate) fn files_of_links(
    content: &dyn TreeContent,
    target: &TreeRestore,
) -> Result<Vec<Entry>> {
    let mut waiting: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for HardLink { path, target } in target.link() {
        waiting.entry(target).or_default().push(path);
    }
    let mut files = vec![];
    for (linked, paths) in waiting {
        let file = find_file(content, &linked)?;
        let mut paths = paths.into_iter();
        let link_target = match (file, paths.next()) {
            (Some(file), Some(first)) => {
                files.push(Entry {
                    path: first.clone(),
                    ..file
                });
                first
            }
            (_, first) => {
                first
                    .into_iter()
                    .for_each(|path| target.other(&link(path, &linked)));
                linked
            }
        };
        paths.for_each(|path| target.other(&link(path, &link_target)));
    }
    Ok(files)
}

fn link(path: Vec<u8>, target: &[u8]) -> Entry {
    Entry {
        path,
        kind: EntryKind::Hardlink,
        link_target: Some(target.to_vec()),
        ..Entry::default()
    }
}

/// The last entry with this path, if it is a file.
fn find_file(content: &dyn TreeContent, path: &[u8]) -> Result<Option<Entry>> {
    for frame in content.frames_for_path(path)?.rev() {
        let entries = content.entries_of(frame)?;
        if let Some(found) = entries.iter().rev().find(|entry| entry.path == path) {
            return Ok((found.kind == EntryKind::File).then(|| found.clone()));
        }
    }
    Ok(None)
}
