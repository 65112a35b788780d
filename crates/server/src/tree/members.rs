//! The names of the members, and data about those with entries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use refrain::{Archive, EntryKind, Member, MemberKind};
use refrain_pool::OnceValue;

use super::frames::{TreeMemory, with_intact_entries};
use super::links::LinkCounts;
use super::node::{MemberPages, Numbering};
use super::options::TreeOptions;
use super::paths::below;
use super::position::Position;
use super::spelling::normal_form;
use super::table::{PathTable, TableBuilder, Winner};
use crate::error::Result;

pub(super) struct Members {
    /// The names, with the members' numbers.
    pub names: Arc<PathTable>,
    /// The number of members that no name leads to.
    pub hidden: u64,
    pub pages: MemberPages,
    /// The number of all members and entries, and the bytes of all members.
    pub totals: (u64, u64),
    lists: BTreeMap<usize, MemberList>,
    unnamed: Vec<u8>,
    memory: Arc<TreeMemory>,
    /// The memory of the tables of paths, in bytes, which the archive knows.
    table_bytes: AtomicUsize,
    /// What was taken of the memory for tables, in bytes.
    taken_bytes: AtomicUsize,
}

/// A member with entries.
pub(super) struct MemberList {
    pub frame_count: usize,
    /// Whether the paths of the frames ascend and have one spelling.
    pub is_sorted: bool,
    table: OnceValue<Arc<PathTable>>,
    links: OnceValue<LinkCounts>,
}

/// The name of a member in the tree; empty if a directory cannot hold it.
fn spelled(stated: &[u8], unnamed: &[u8]) -> Vec<u8> {
    let stated = if stated.is_empty() { unnamed } else { stated };
    let name = normal_form(stated).filter(|name| name != b".");
    name.unwrap_or_default()
}

fn has_entries(member: &Member) -> bool {
    matches!(member.kind, MemberKind::Tree | MemberKind::Tar)
}

impl Members {
    pub(super) fn new(
        archive: &Archive,
        options: &TreeOptions,
        memory: &Arc<TreeMemory>,
        numbering: Numbering,
    ) -> Result<Members> {
        let mut names = TableBuilder::new(memory.table_bytes_left.load(Ordering::Relaxed));
        let mut failure = None;
        let (mut with_entries, mut unnameable) = (vec![], 0);
        let mut totals = (0_u64, 0_u64);
        archive.for_each_member(&mut |number, member| {
            let name = spelled(&member.name, &options.unnamed);
            if name.is_empty() {
                unnameable += 1
            } else {
                let added = names.add(&name, number as u64);
                failure = failure.take().or(added.err());
            }
            totals.0 = totals.0.saturating_add(1).saturating_add(member.entries);
            totals.1 = totals.1.saturating_add(member.content_bytes);
            if has_entries(member) {
                with_entries.push((number, member.kind));
            }
            Ok(())
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        let names = names.finish(Winner::First);
        let mut members = Members {
            hidden: unnameable + names.dropped() + below_others(&names),
            pages: MemberPages::new(numbering),
            totals,
            lists: BTreeMap::new(),
            unnamed: options.unnamed.clone(),
            memory: Arc::clone(memory),
            table_bytes: AtomicUsize::new(0),
            taken_bytes: AtomicUsize::new(0),
            names: Arc::new(names),
        };
        members.take_table_bytes(members.names.memory_bytes());
        for (number, kind) in with_entries {
            let list = archive.entry_list(number)?;
            let frame_count = list.frame_count()?;
            let is_sorted = kind == MemberKind::Tree && list.is_sorted();
            members.pages.add(number, frame_count as u64);
            let list = MemberList {
                frame_count,
                is_sorted,
                table: OnceValue::default(),
                links: OnceValue::default(),
            };
            members.lists.insert(number, list);
        }
        Ok(members)
    }

    /// The name in the tree of a member with this name in the archive; empty if it has none.
    pub(super) fn name_of(&self, stated: &[u8]) -> Vec<u8> {
        spelled(stated, &self.unnamed)
    }

    /// A member with entries; `None` for others.
    pub(super) fn list(&self, member: usize) -> Option<&MemberList> {
        self.lists.get(&member)
    }

    /// The path table of a member whose frames do not ascend, built on first use.
    ///
    /// # Errors
    /// If the archive cannot be read; `Limit` if it exceeds the memory for tables.
    pub(super) fn table<'a>(
        &self,
        archive: &Archive,
        member: usize,
        list: &'a MemberList,
    ) -> Result<&'a Arc<PathTable>> {
        list.table.get_or_try_init(|| {
            let left = self.memory.table_bytes_left.load(Ordering::Relaxed);
            let table = table_of(archive, member, list, left).map_err(|error| {
                let name = archive.member(member).map(|found| found.name);
                error.in_file(String::from_utf8_lossy(&name.unwrap_or_default()))
            })?;
            self.note_table(archive, table.memory_bytes());
            Ok(Arc::new(table))
        })
    }

    /// Takes the memory of a table from that for tables, and from that of the archive.
    fn note_table(&self, archive: &Archive, bytes: usize) {
        self.take_table_bytes(bytes);
        self.table_bytes.fetch_add(bytes, Ordering::Relaxed);
        archive.reserve_memory(0, bytes as u64);
    }

    /// Takes memory for a table, or all that is left.
    fn take_table_bytes(&self, wanted: usize) {
        let reduce = |left: usize| Some(left.saturating_sub(wanted));
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let before = (self.memory.table_bytes_left).fetch_update(set, fetch, reduce);
        let taken = before.map_or(0, |left| left.min(wanted));
        self.taken_bytes.fetch_add(taken, Ordering::Relaxed);
    }

    /// Gives back the memory of all tables.
    pub(super) fn release_tables(&self, archive: &Archive) {
        archive.reserve_memory(self.table_bytes.load(Ordering::Relaxed) as u64, 0);
        let taken = self.taken_bytes.load(Ordering::Relaxed);
        (self.memory.table_bytes_left).fetch_add(taken, Ordering::Relaxed);
    }

    /// Whether it is known that no entry has extended attributes.
    pub(super) fn have_no_attributes(&self) -> bool {
        let mut counted = self.lists.values().map(|list| list.links.get());
        counted.all(|links| links.is_some_and(|links| !links.has_attributes))
    }

    /// The link counts of a member's files, computed on first use.
    ///
    /// # Errors
    /// If the archive cannot be read; `Limit`.
    pub(super) fn links<'a>(
        &self,
        archive: &Archive,
        member: usize,
        list: &'a MemberList,
    ) -> Result<&'a LinkCounts> {
        let left = self.memory.table_bytes_left.load(Ordering::Relaxed);
        list.links.get_or_try_init(|| {
            let links = LinkCounts::count(archive, member, left)?;
            self.note_table(archive, links.memory_bytes());
            Ok(links)
        })
    }
}

impl MemberList {
    /// Whether its paths can be looked up without reading all of them.
    pub(super) fn is_ready(&self) -> bool {
        self.is_sorted || self.table.get().is_some()
    }
}

fn table_of(
    archive: &Archive,
    member: usize,
    list: &MemberList,
    memory_bytes_max: usize,
) -> Result<PathTable> {
    let mut builder = TableBuilder::new(memory_bytes_max);
    let entry_list = archive.entry_list(member)?;
    for frame in 0..list.frame_count {
        with_intact_entries(&entry_list, frame, |entries| {
            let rows = entries.iter().enumerate();
            for (row, entry) in rows.filter(|(_, entry)| entry.kind != EntryKind::Raw) {
                if let Some(path) = normal_form(&entry.path) {
                    builder.add(&path, Position::new(frame, row).number())?;
                }
            }
            Ok(())
        })?;
    }
    // In a tar stream the last entry with a path wins.
    Ok(builder.finish(Winner::Last))
}

/// The number of names that lead through another member.
fn below_others(names: &PathTable) -> u64 {
    let (mut top, mut count): (&[u8], u64) = (&[], 0);
    for row in 0..names.len() {
        let name = names.path(row);
        if !top.is_empty() && below(top, name).is_some() {
            count += 1
        } else {
            top = name
        }
    }
    count
}
