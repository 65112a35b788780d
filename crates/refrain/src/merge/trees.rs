//! Directories: their lists of entries, with the places of their content in the new archive.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use refrain_entries::{Entry, EntryKind};
use refrain_format::{
    EntriesHasher, IndexMember, MemberEnd, MemberKind, MemberStart, TreeLayer, TreeLayers,
    member_hash,
};

use crate::error::{Error, Result};
use crate::merge::store_map::ContentMap;
use crate::read::native::copying::{RecordedFrames, TreeParts};
use crate::read::native::indexed::IndexedArchive;
use crate::read::range_set::RangeSet;
use crate::write::tree::entry_list::encode_entries;
use crate::write::tree::order::EntriesFrame;

/// Entries that are packed together.
const ENTRIES_AT_ONCE: usize = 1 << 14;

/// The trees of an archive that were copied.
#[derive(Default)]
pub(crate) struct CopiedTrees {
    /// By their ids: those with the same own entries.
    same: HashMap<u64, TreeLayer>,
    /// Those that have all entries, by the ids of the trees that these are from.
    whole: HashMap<Vec<u64>, TreeLayer>,
}

impl CopiedTrees {
    /// The layers of which a tree that consists of these consists in the new archive; `None` if
    /// that lacks some of them.
    fn layers(&self, layers: &[TreeLayer]) -> Option<Vec<TreeLayer>> {
        let ids: Vec<_> = layers.iter().map(|layer| layer.member_id).collect();
        let mut found = Vec::new();
        for (number, id) in ids.iter().enumerate() {
            if let Some(whole) = self.whole.get(ids.get(number..)?) {
                found.push(*whole);
                return Some(found);
            }
            found.push(*self.same.get(id)?);
        }
        Some(found)
    }

    /// Records a tree that was copied.
    pub(crate) fn add(&mut self, row: &IndexMember, plan: &TreePlan, copy: TreeLayer) {
        let own = (row.end.entry_count > 0).then_some(row.start.member_id);
        if plan.is_whole {
            let below = row.start.layers.iter().flat_map(|below| &below.layers);
            let all = own.into_iter().chain(below.map(|layer| layer.member_id));
            self.whole.insert(all.collect(), copy);
        } else {
            self.add_same(row, copy);
        }
    }

    /// Records a tree whose copy has the same own entries.
    pub(crate) fn add_same(&mut self, row: &IndexMember, copy: TreeLayer) {
        // One without changes is no layer.
        if row.end.entry_count > 0 {
            self.same.insert(row.start.member_id, copy);
        }
    }
}

/// How a directory is copied.
pub(crate) struct TreePlan {
    /// Its entries are those of these trees together.
    sources: Vec<TreeLayer>,
    /// Whether it has all entries itself, because the trees of which it consists are not copied.
    is_whole: bool,
    /// What it consists of in the new archive; `None` if it is an ordinary tree.
    layers: Option<TreeLayers>,
    own: Range<u64>,
    /// Content of members that are not copied, which becomes its own, ascending; and where in its
    /// own content each begins.
    pulled: Vec<(Range<u64>, u64)>,
    /// The length of its own content in the new archive.
    pub own_bytes: u64,
}

impl TreePlan {
    /// Of a member with entries; `None` if it is a tar stream, which is copied as it is.
    /// `earlier_bytes`: the content of the new archive before this generation.
    ///
    /// # Errors
    /// From reading its entries.
    pub(crate) fn of(
        archive: &Arc<IndexedArchive>,
        row: &IndexMember,
        trees: &CopiedTrees,
        known: &ContentMap,
        earlier_bytes: u64,
    ) -> Result<Option<TreePlan>> {
        if !row.start.kind.is_tree() {
            return Ok(None);
        }
        let this = TreeLayer {
            member_id: row.start.member_id,
            hash: member_hash(&row.start, &row.end),
        };
        let start = row.start.content_start;
        let mut plan = TreePlan {
            sources: vec![this],
            is_whole: false,
            layers: None,
            own: start..start.saturating_add(row.end.content_bytes),
            pulled: Vec::new(),
            own_bytes: row.end.content_bytes,
        };
        let Some(below) = &row.start.layers else {
            return Ok(Some(plan));
        };
        let copied = trees.layers(&below.layers);
        plan.is_whole = copied.is_none();
        if plan.is_whole {
            plan.sources.extend(&below.layers);
        }
        plan.layers = Some(TreeLayers {
            earlier_bytes,
            layers: copied.unwrap_or_default(),
        });
        // Without bounds: rounded ranges would be more than there is.
        let mut pulled = RangeSet::within(u64::MAX);
        let mut parts = TreeParts::of(archive, &plan.sources)?;
        while let Some(part) = parts.next()? {
            for (entry, _) in part {
                let range = entry.content_range();
                let is_own = plan.own.start <= range.start && range.end <= plan.own.end;
                if !is_own && known.place_of_all(range.clone()).is_none() {
                    pulled.add(range);
                }
            }
        }
        for range in pulled.into_ranges().0 {
            let at = plan.own_bytes;
            plan.own_bytes += range.end - range.start;
            plan.pulled.push((range, at));
        }
        Ok(Some(plan))
    }

    /// The start of the copy.
    pub(crate) fn start(&self, start: MemberStart) -> MemberStart {
        MemberStart {
            layers: self.layers.clone(),
            ..start
        }
    }

    /// Whether content becomes its own that was not.
    pub(crate) fn pulls(&self) -> bool {
        !self.pulled.is_empty()
    }

    /// Its content, in its order in the new archive.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let pulled = self.pulled.iter().map(|(range, _)| range.clone());
        std::iter::once(self.own.clone()).chain(pulled)
    }

    /// Where content is in its own content.
    fn own_offset(&self, range: &Range<u64>) -> Option<u64> {
        if self.own.start <= range.start && range.end <= self.own.end {
            return Some(range.start - self.own.start);
        }
        let after = (self.pulled).partition_point(|(pulled, _)| pulled.start <= range.start);
        let (pulled, at) = self.pulled.get(after.checked_sub(1)?)?;
        (range.end <= pulled.end).then(|| at + (range.start - pulled.start))
    }

    /// Puts the content of an entry where the new archive has it.
    fn place(&self, entry: &mut Entry, known: &ContentMap) -> Result<()> {
        let range = entry.content_range();
        let Some(layers) = &self.layers else {
            if !range.is_empty() {
                entry.content_offset = self.own_offset(&range).ok_or_else(not_inside)?;
            }
            return Ok(());
        };
        entry.content_offset = if range.is_empty() {
            0
        } else if let Some(own) = self.own_offset(&range) {
            layers.earlier_bytes + own
        } else {
            known.place_of_all(range).ok_or_else(not_inside)?
        };
        Ok(())
    }
}

fn not_inside() -> Error {
    Error::damaged("the data of an entry is not in the content")
}

/// The frames of entries of a copied member.
pub(crate) struct CopiedEntries {
    source: Source,
    member_id: u64,
    count: u64,
    hasher: EntriesHasher,
    is_done: bool,
}

enum Source {
    Tree(TreeParts),
    Tar(RecordedFrames),
}

impl CopiedEntries {
    /// # Errors
    /// From the index.
    pub(crate) fn of(
        archive: &Arc<IndexedArchive>,
        row: &IndexMember,
        plan: Option<&TreePlan>,
        member_id: u64,
    ) -> Result<CopiedEntries> {
        let source = match plan {
            Some(plan) => Source::Tree(TreeParts::of(archive, &plan.sources)?),
            None => Source::Tar(RecordedFrames::of(archive, row.start.member_id)?),
        };
        Ok(CopiedEntries {
            source,
            member_id,
            count: 0,
            hasher: EntriesHasher::new(),
            is_done: false,
        })
    }

    /// The next frames; `None` at the end.
    ///
    /// # Errors
    /// From reading and packing them.
    pub(crate) fn next(
        &mut self,
        plan: Option<&TreePlan>,
        known: &ContentMap,
    ) -> Result<Option<Vec<EntriesFrame>>> {
        if self.is_done {
            return Ok(None);
        }
        let mut entries = Vec::new();
        match (&mut self.source, plan) {
            (Source::Tree(parts), Some(plan)) => {
                while entries.len() < ENTRIES_AT_ONCE {
                    let Some(part) = parts.next()? else {
                        self.is_done = true;
                        break;
                    };
                    for (mut entry, _) in part {
                        if plan.is_whole && entry.kind == EntryKind::Removed {
                            continue;
                        }
                        plan.place(&mut entry, known)?;
                        entries.push(entry);
                    }
                }
            }
            (Source::Tar(frames), _) => match frames.next()? {
                Some(frame) => entries = frame,
                None => self.is_done = true,
            },
            (Source::Tree(_), None) => return Err(not_inside()),
        }
        if entries.is_empty() && self.is_done {
            return Ok(None);
        }
        self.hasher.update(&entries);
        let frames = encode_entries(self.member_id, self.count, &entries)?;
        self.count += entries.len() as u64;
        Ok(Some(frames))
    }

    /// The end of the copy of a member that ends like this; `content` is the length and the hash of
    /// the content, if it has another one.
    ///
    /// # Errors
    /// `Damaged` if the entries are not those that the member had.
    pub(crate) fn end(
        &self,
        row: &IndexMember,
        plan: Option<&TreePlan>,
        content: Option<(u64, [u8; 32])>,
    ) -> Result<MemberEnd> {
        let mut end = row.end.clone();
        let entries_hash = self.hasher.value();
        let is_same = end.entries_hash == Some(entries_hash) && end.entry_count == self.count;
        if row.start.kind != MemberKind::LayeredTree && !is_same {
            let name = String::from_utf8_lossy(&row.start.name).into_owned();
            return Err(Error::damaged("the entries have another hash").in_file(name));
        }
        end.entry_count = self.count;
        end.entries_hash = Some(entries_hash);
        if plan.is_some() {
            end.entries_are_sorted = self.count > 0;
        }
        if let Some((content_bytes, hash)) = content {
            (end.content_bytes, end.blake3) = (content_bytes, hash);
            end.digests.clear();
        }
        Ok(end)
    }
}
