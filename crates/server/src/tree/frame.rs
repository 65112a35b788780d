//! The entries of a frame in compact form.

use std::ops::Range;
use std::sync::Arc;

use refrain::{Entry, EntryKind, ExtendedAttribute, Owner, Timestamp};

use super::attributes::Attributes;

/// The entries of a frame, a hundred bytes each instead of four hundred. Recipes for tar headers
/// are left out.
#[derive(Debug, Default)]
pub(super) struct EntryFrame {
    /// The paths, concatenated.
    paths: Vec<u8>,
    rows: Vec<EntryRow>,
    owners: Vec<Arc<Owner>>,
    rarities: Vec<Rarities>,
    rarities_bytes: usize,
}

/// Fields of every entry.
#[derive(Debug)]
struct EntryRow {
    path_end: u32,
    owner: u32,
    /// One more than the index of the entry's rarities; 0 without any.
    rarities: u32,
    mode: u32,
    modified_nanoseconds: u32,
    kind: EntryKind,
    is_rebased: bool,
    modified_seconds: i64,
    size_bytes: u64,
    content_offset: u64,
}

/// Fields that few entries have.
#[derive(Debug)]
struct Rarities {
    link_target: Option<Vec<u8>>,
    data_ranges: Option<Vec<Range<u64>>>,
    device: (u32, u32),
    attributes: Vec<ExtendedAttribute>,
}

impl EntryFrame {
    /// Packs entries. Entries without a path stay, so that rows keep their numbers.
    pub(super) fn pack(entries: Vec<Entry>) -> EntryFrame {
        let mut frame = EntryFrame::default();
        frame.rows.reserve_exact(entries.len());
        (frame.paths).reserve_exact(entries.iter().map(|entry| entry.path.len()).sum());
        for entry in entries {
            frame.add(entry);
        }
        frame
    }

    fn add(&mut self, entry: Entry) {
        self.paths.extend_from_slice(&entry.path);
        let last = self.owners.last();
        if last.is_none_or(|last| !Arc::ptr_eq(last, &entry.owner)) {
            self.owners.push(Arc::clone(&entry.owner));
        }
        let rare = Rarities {
            link_target: entry.link_target,
            data_ranges: entry.data_ranges,
            device: entry.device,
            attributes: entry.attributes,
        };
        // The format's limits of a frame are far below 32 bits.
        self.rows.push(EntryRow {
            path_end: self.paths.len() as u32,
            owner: (self.owners.len() - 1) as u32,
            rarities: if rare.is_none() { 0 } else { self.rarities.len() as u32 + 1 },
            mode: entry.mode,
            modified_nanoseconds: entry.modified.nanoseconds,
            kind: entry.kind,
            is_rebased: entry.is_rebased,
            modified_seconds: entry.modified.seconds,
            size_bytes: entry.size_bytes,
            content_offset: entry.content_offset,
        });
        if !rare.is_none() {
            self.rarities_bytes += rare.memory_bytes();
            self.rarities.push(rare);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let rows = self.rows.capacity() * size_of::<EntryRow>();
        let owners = self.owners.capacity() * size_of::<Arc<Owner>>();
        self.paths.capacity() + rows + owners + self.rarities_bytes
    }

    /// Empty if there is no such row.
    pub(super) fn path(&self, row: usize) -> &[u8] {
        let end_of = |row: usize| self.rows.get(row).map_or(0, |row| row.path_end as usize);
        let start = row.checked_sub(1).map_or(0, end_of);
        self.paths.get(start..end_of(row)).unwrap_or_default()
    }

    /// The first row that fails `is_below`; all rows before it satisfy it.
    pub(super) fn first_not_below(&self, is_below: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_below(self.path(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }

    pub(super) fn kind(&self, row: usize) -> Option<EntryKind> {
        self.rows.get(row).map(|row| row.kind)
    }

    pub(super) fn link_target(&self, row: usize) -> Option<&[u8]> {
        self.rarities_of(self.rows.get(row)?)?
            .link_target
            .as_deref()
    }

    /// The attributes of an entry, as a file with a single name.
    pub(super) fn attributes(&self, row: usize) -> Option<Attributes> {
        let found = self.rows.get(row)?;
        let owner = self.owners.get(found.owner as usize)?;
        let rare = self.rarities_of(found);
        let target = rare.and_then(|rare| rare.link_target.as_ref());
        let ranges = rare.and_then(|rare| rare.data_ranges.as_ref());
        let data_bytes = |ranges: &Vec<Range<u64>>| -> u64 {
            ranges.iter().map(|range| range.end - range.start).sum()
        };
        let (kind, size_bytes, stored_bytes) = match found.kind {
            EntryKind::File | EntryKind::Other => {
                let stored_bytes = ranges.map_or(found.size_bytes, data_bytes);
                (EntryKind::File, found.size_bytes, stored_bytes)
            }
            EntryKind::Symlink => {
                let length_bytes = target.map_or(0, Vec::len) as u64;
                (EntryKind::Symlink, length_bytes, length_bytes)
            }
            kind => (kind, 0, 0),
        };
        Some(Attributes {
            kind,
            mode: found.mode & 0o7777,
            owner: Some((owner.uid, owner.gid)),
            modified: Timestamp {
                seconds: found.modified_seconds,
                nanoseconds: found.modified_nanoseconds,
            },
            size_bytes,
            stored_bytes,
            links: 1,
            device: rare.map_or((0, 0), |rare| rare.device),
        })
    }

    pub(super) fn entry(&self, row: usize) -> Option<Entry> {
        let found = self.rows.get(row)?;
        let rare = self.rarities_of(found);
        Some(Entry {
            path: self.path(row).to_vec(),
            kind: found.kind,
            mode: found.mode,
            owner: Arc::clone(self.owners.get(found.owner as usize)?),
            modified: Timestamp {
                seconds: found.modified_seconds,
                nanoseconds: found.modified_nanoseconds,
            },
            size_bytes: found.size_bytes,
            content_offset: found.content_offset,
            data_ranges: rare.and_then(|rare| rare.data_ranges.clone()),
            link_target: rare.and_then(|rare| rare.link_target.clone()),
            device: rare.map_or((0, 0), |rare| rare.device),
            attributes: rare.map_or_else(Vec::new, |rare| rare.attributes.clone()),
            header_recipe: vec![],
            is_rebased: found.is_rebased,
            change_stamp: 0,
        })
    }

    fn rarities_of(&self, row: &EntryRow) -> Option<&Rarities> {
        self.rarities.get((row.rarities as usize).checked_sub(1)?)
    }
}

impl Rarities {
    fn is_none(&self) -> bool {
        self.link_target.is_none()
            && self.data_ranges.is_none()
            && self.device == (0, 0)
            && self.attributes.is_empty()
    }

    fn memory_bytes(&self) -> usize {
        let text = |attribute: &ExtendedAttribute| attribute.name.len() + attribute.value.len();
        let attributes = self.attributes.iter();
        size_of::<Rarities>()
            + self.link_target.as_ref().map_or(0, Vec::len)
            + self.data_ranges.as_ref().map_or(0, Vec::len) * size_of::<Range<u64>>()
            + attributes
                .map(|each| text(each) + size_of_val(each))
                .sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_testkit::entry_lists::{tar_entries, tree_entries};

    #[test]
    fn entries_are_the_same_after_packing() {
        for seed in 0..20 {
            for mut entries in [tree_entries(seed, 60, 1000), tar_entries(seed, 60, 1000)] {
                let frame = EntryFrame::pack(entries.clone());
                assert_eq!(frame.len(), entries.len());
                for entry in &mut entries {
                    entry.header_recipe = vec![];
                }
                let unpacked: Vec<_> = (0..frame.len()).map(|row| frame.entry(row)).collect();
                assert_eq!(unpacked, entries.into_iter().map(Some).collect::<Vec<_>>());
                assert_eq!(frame.entry(frame.len()), None);
                assert_eq!(frame.path(frame.len()), b"");
            }
        }
    }
}
