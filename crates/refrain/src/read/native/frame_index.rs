//! Locates the frames of an opened archive: the only way in which random reads look up blocks,
//! epochs, members and entries.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use refrain_format::{
    Index, IndexBlock, IndexEntries, IndexEpoch, IndexList, IndexMember, IndexNode, IndexSlice,
    IndexTree, MemberEnd, MemberKind, MemberStart, NodeRows, TreeLayers,
};

use refrain_pool::Lock;

use crate::error::{Error, Result};
use crate::read::lost_entries::LostEntries;
use crate::read::native::index_nodes::IndexNodes;
use crate::read::proven_members::ProvenMembers;

/// What reading a member's content requires.
#[derive(Debug, Clone)]
pub(crate) struct MemberOutline {
    pub kind: MemberKind,
    /// Where its content starts in the content of all members. That of a layered tree is all
    /// content up to the end of its own.
    pub content_start: u64,
    /// The length of its content in bytes.
    pub content_bytes: u64,
    /// The member's id, used by its frames of entries.
    pub member_id: u64,
    /// Whether its frames of entries are in path order.
    pub entries_are_sorted: bool,
    /// Whether slices of its frames of entries are in path order.
    pub has_slices: bool,
    /// Whether its end is lost: then the length is what was found.
    pub is_open: bool,
    /// What a layered tree consists of besides its own entries.
    pub layers: Option<TreeLayers>,
    /// Where the content that no other member has begins.
    pub own_start: u64,
}

impl MemberOutline {
    /// The length of the content that its own entries may refer to.
    pub(super) fn inner_bytes(&self) -> u64 {
        let Some(layers) = &self.layers else {
            return self.content_bytes;
        };
        let own_bytes = self.content_bytes.saturating_sub(self.own_start);
        layers.earlier_bytes.saturating_add(own_bytes)
    }

    fn new(row: &IndexMember) -> MemberOutline {
        let own_start = row.start.content_start;
        let (content_start, content_bytes) = match &row.start.layers {
            None => (own_start, row.end.content_bytes),
            Some(_) => (0, own_start.saturating_add(row.end.content_bytes)),
        };
        MemberOutline {
            is_open: false,
            kind: row.start.kind,
            content_start,
            content_bytes,
            own_start,
            member_id: row.start.member_id,
            entries_are_sorted: row.end.entries_are_sorted,
            has_slices: row.start.kind.has_slices(&row.end),
            layers: row.start.layers.clone(),
        }
    }
}

/// Finds the frames of an archive. Each lookup may fail, because it may have to read a part of the
/// index first.
pub(crate) struct FrameIndex {
    rows: Arc<Rows>,
    /// Where the archive starts in the file. Rows have offsets in the archive, this interface has
    /// offsets in the file.
    archive_start: u64,
    /// The members that are shown, if not all, and whether the index lists their names.
    shown: Option<(Range<u64>, bool)>,
    /// What members are compared with, if somebody vouched for them.
    proven: Lock<Option<Arc<ProvenMembers>>>,
}

enum Rows {
    /// The archive's index: the roots, and recently used nodes.
    Tree(IndexTree<IndexNodes>),
    /// The result of a scan.
    Scanned {
        rows: Index,
        /// The number of each block.
        block_ids: Vec<u64>,
        /// The ids of members with lost ends.
        open_members: BTreeSet<u64>,
    },
}

impl FrameIndex {
    /// The index at the end of an archive that starts here.
    pub(crate) fn from_tree(tree: IndexTree<IndexNodes>, archive_start: u64) -> FrameIndex {
        FrameIndex {
            rows: Arc::new(Rows::Tree(tree)),
            archive_start,
            shown: None,
            proven: Lock::default(),
        }
    }

    /// From a scan.
    pub(crate) fn from_rows(
        rows: Index,
        block_ids: Vec<u64>,
        open_members: BTreeSet<u64>,
    ) -> FrameIndex {
        FrameIndex {
            rows: Arc::new(Rows::Scanned {
                rows,
                block_ids,
                open_members,
            }),
            archive_start: 0,
            shown: None,
            proven: Lock::default(),
        }
    }

    /// Shows only these members. `lists_names`: whether the names in the index are theirs.
    pub(crate) fn showing(&self, members: Range<u64>, lists_names: bool) -> FrameIndex {
        FrameIndex {
            rows: Arc::clone(&self.rows),
            archive_start: self.archive_start,
            shown: Some((members, lists_names)),
            proven: Lock::default(),
        }
    }

    /// Where the archive starts in the file.
    pub(crate) fn archive_start(&self) -> u64 {
        self.archive_start
    }

    /// The right edges of all lists of the index, which a later generation continues.
    pub(crate) fn right_edges(&self) -> Result<Vec<Vec<Arc<IndexNode>>>> {
        match &*self.rows {
            Rows::Tree(tree) => {
                let lists = IndexList::ALL.into_iter();
                lists.map(|list| tree.right_edge(list)).collect()
            }
            Rows::Scanned { .. } => Ok(Vec::new()),
        }
    }

    /// The number of rows of a list, of all generations.
    pub(crate) fn row_count(&self, list: IndexList) -> u64 {
        match &*self.rows {
            Rows::Tree(tree) => tree.row_count(list),
            Rows::Scanned { .. } => 0,
        }
    }

    /// Compares members with these whenever they are read from now on.
    pub(crate) fn expect_members(&self, proven: ProvenMembers) {
        *self.proven.lock() = Some(Arc::new(proven));
    }

    pub(crate) fn expects_members(&self) -> bool {
        self.proven().is_some()
    }

    fn proven(&self) -> Option<Arc<ProvenMembers>> {
        self.proven.lock().clone()
    }

    /// The block with this store byte, and its number.
    pub(crate) fn block_at(&self, offset_in_store: u64) -> Result<Option<(u64, IndexBlock)>> {
        let found = match &*self.rows {
            Rows::Tree(tree) => tree.block_at(offset_in_store)?,
            Rows::Scanned {
                rows, block_ids, ..
            } => rows
                .block_at(offset_in_store)
                .and_then(|at| Some((*block_ids.get(at)?, *rows.blocks.get(at)?))),
        };
        Ok(found.map(|(number, row)| (number, self.in_file(row))))
    }

    /// The epoch with this content byte, and its number.
    pub(crate) fn epoch_at(&self, offset_in_content: u64) -> Result<Option<(u64, IndexEpoch)>> {
        let found = match &*self.rows {
            Rows::Tree(tree) => tree.epoch_at(offset_in_content)?,
            Rows::Scanned { rows, .. } => rows
                .epoch_at(offset_in_content)
                .and_then(|at| Some((at as u64, *rows.epochs.get(at)?))),
        };
        Ok(found.map(|(number, mut row)| {
            row.frame_offset += self.archive_start;
            (number, row)
        }))
    }

    /// Where the next block starts after a store offset in no block.
    pub(crate) fn next_block_start(&self, offset_in_store: u64) -> Option<u64> {
        let Rows::Scanned { rows, .. } = &*self.rows else {
            return None;
        };
        let blocks = &rows.blocks;
        let after = blocks.partition_point(|row| row.store_start <= offset_in_store);
        blocks.get(after).map(|row| row.store_start)
    }

    /// Where the epoch with this content, or the gap between epochs, ends.
    pub(crate) fn epoch_end(&self, offset_in_content: u64) -> Result<Option<u64>> {
        if let Some((_, row)) = self.epoch_at(offset_in_content)? {
            return Ok(Some(row.content_start + row.content_bytes));
        }
        let Rows::Scanned { rows, .. } = &*self.rows else {
            return Ok(None);
        };
        let epochs = &rows.epochs;
        let after = epochs.partition_point(|row| row.content_start <= offset_in_content);
        Ok(epochs.get(after).map(|row| row.content_start))
    }

    /// Reads the whole index.
    pub(crate) fn check(&self) -> Result<()> {
        let lists = [
            IndexList::Blocks,
            IndexList::Epochs,
            IndexList::Members,
            IndexList::Entries,
            IndexList::Names,
        ];
        let mut lists = lists.into_iter();
        match &*self.rows {
            Rows::Tree(tree) => {
                lists.try_for_each(|list| tree.for_each_leaf(list, &mut |_| Ok(())))
            }
            Rows::Scanned { .. } => Ok(()),
        }
    }

    /// The entries of a member lost with their frames. An index has the frames of all of them.
    pub(crate) fn lost_entries(&self, member: &MemberOutline) -> LostEntries {
        let Rows::Scanned {
            rows, open_members, ..
        } = &*self.rows
        else {
            return LostEntries::default();
        };
        let mut lost = LostEntries::default();
        let mut next_entry = 0;
        for number in rows.entries_of_member(member.member_id) {
            let Some(row) = rows.entries.get(number as usize) else {
                continue;
            };
            lost.count += row.first_entry.saturating_sub(next_entry);
            next_entry = next_entry.max(row.first_entry.saturating_add(row.entry_count));
        }
        if open_members.contains(&member.member_id) {
            lost.may_be_more = member.kind.has_entries();
        } else {
            let members = &rows.members;
            let at = members.partition_point(|row| row.start.member_id < member.member_id);
            let stated = members.get(at).map_or(0, |row| row.end.entry_count);
            lost.count += stated.saturating_sub(next_entry);
        }
        lost
    }

    fn in_file(&self, mut row: IndexBlock) -> IndexBlock {
        row.frame_offset += self.archive_start;
        row
    }

    /// Calls `each` for every block, in store order.
    pub(crate) fn for_each_block(
        &self,
        each: &mut dyn FnMut(&IndexBlock) -> Result<()>,
    ) -> Result<()> {
        self.for_each_leaf(IndexList::Blocks, &mut |rows| match rows {
            LeafRows::Blocks(rows) => rows.iter().try_for_each(|row| each(&self.in_file(*row))),
            _ => Ok(()),
        })
    }

    /// Calls `each` for every epoch, in content order, with offsets in the archive.
    pub(crate) fn for_each_epoch(
        &self,
        each: &mut dyn FnMut(&IndexEpoch) -> Result<()>,
    ) -> Result<()> {
        self.for_each_leaf(IndexList::Epochs, &mut |rows| match rows {
            LeafRows::Epochs(rows) => rows.iter().try_for_each(&mut *each),
            _ => Ok(()),
        })
    }

    /// Calls `each` for every Entries frame, in archive order, with offsets in the archive.
    pub(crate) fn for_each_entries_frame(
        &self,
        each: &mut dyn FnMut(&IndexEntries) -> Result<()>,
    ) -> Result<()> {
        self.for_each_leaf(IndexList::Entries, &mut |rows| match rows {
            LeafRows::Entries(rows) => rows.iter().try_for_each(&mut *each),
            _ => Ok(()),
        })
    }

    /// Calls `each` for every member, in archive order.
    pub(crate) fn for_each_member(
        &self,
        each: &mut dyn FnMut(usize, &MemberStart, &MemberEnd) -> Result<()>,
    ) -> Result<()> {
        if self.shown.is_some() {
            for number in 0..self.member_count() {
                if let Some(row) = self.member(number)? {
                    each(number, &row.start, &row.end)?;
                }
            }
            return Ok(());
        }
        let mut number = 0;
        let proven = self.proven();
        self.for_each_leaf(IndexList::Members, &mut |rows| {
            let LeafRows::Members(rows) = rows else {
                return Ok(());
            };
            rows.iter().try_for_each(|row| {
                if let Some(proven) = &proven {
                    proven.check_listed(number as u64, &row.start, &row.end)?;
                }
                number += 1;
                each(number - 1, &row.start, &row.end)
            })
        })
    }

    fn for_each_leaf(
        &self,
        list: IndexList,
        each: &mut dyn FnMut(LeafRows<'_>) -> Result<()>,
    ) -> Result<()> {
        match &*self.rows {
            Rows::Tree(tree) => tree.for_each_leaf(list, &mut |leaf| match &leaf.rows {
                NodeRows::Blocks(rows) => each(LeafRows::Blocks(rows)),
                NodeRows::Epochs(rows) => each(LeafRows::Epochs(rows)),
                NodeRows::Members(rows) => each(LeafRows::Members(rows)),
                NodeRows::Entries(rows) => each(LeafRows::Entries(rows)),
                NodeRows::Names(_) | NodeRows::Slices(_) | NodeRows::Children(_) => Ok(()),
            }),
            Rows::Scanned { rows, .. } => match list {
                IndexList::Blocks => each(LeafRows::Blocks(&rows.blocks)),
                IndexList::Epochs => each(LeafRows::Epochs(&rows.epochs)),
                IndexList::Members => each(LeafRows::Members(&rows.members)),
                IndexList::Entries => each(LeafRows::Entries(&rows.entries)),
                IndexList::Names | IndexList::Slices => Ok(()),
            },
        }
    }

    pub(crate) fn member_count(&self) -> usize {
        if let Some((members, _)) = &self.shown {
            return (members.end - members.start) as usize;
        }
        match &*self.rows {
            // An index has no more members than frames, whose number has 32 bits.
            Rows::Tree(tree) => tree.row_count(IndexList::Members) as usize,
            Rows::Scanned { rows, .. } => rows.members.len(),
        }
    }

    /// The outline of member `number`.
    pub(crate) fn outline(&self, number: usize) -> Result<Option<MemberOutline>> {
        Ok(match &*self.rows {
            Rows::Tree(_) => self.member(number)?.as_ref().map(MemberOutline::new),
            Rows::Scanned {
                rows, open_members, ..
            } => rows.members.get(number).map(|row| MemberOutline {
                is_open: open_members.contains(&row.start.member_id),
                ..MemberOutline::new(row)
            }),
        })
    }

    /// The member with this id, whether or not it is shown.
    pub(crate) fn member_with_id(&self, member_id: u64) -> Result<Option<IndexMember>> {
        match &*self.rows {
            Rows::Tree(tree) => tree.member(member_id),
            Rows::Scanned { rows, .. } => {
                let mut found = rows.members.iter();
                Ok(found.find(|row| row.start.member_id == member_id).cloned())
            }
        }
    }

    /// The outline of the member with this id, whether or not it is shown.
    pub(super) fn outline_of(&self, member_id: u64) -> Result<Option<MemberOutline>> {
        match &*self.rows {
            Rows::Tree(tree) => Ok(tree.member(member_id)?.as_ref().map(MemberOutline::new)),
            Rows::Scanned { rows, .. } => {
                let found =
                    (rows.members).binary_search_by_key(&member_id, |row| row.start.member_id);
                found.map_or(Ok(None), |number| self.outline(number))
            }
        }
    }

    /// Member `number`.
    pub(crate) fn member(&self, number: usize) -> Result<Option<IndexMember>> {
        let row = match (&*self.rows, &self.shown) {
            (Rows::Tree(tree), Some((members, _))) => {
                let id = members.start.saturating_add(number as u64);
                if members.contains(&id) { tree.member(id)? } else { None }
            }
            (Rows::Tree(tree), None) => tree.member(number as u64)?,
            (Rows::Scanned { rows, .. }, _) => rows.members.get(number).cloned(),
        };
        if let (Some(row), Some(proven)) = (&row, self.proven()) {
            proven.check(number as u64, &row.start, &row.end)?;
        }
        Ok(row)
    }

    /// The first member with this name, byte for byte.
    pub(crate) fn member_named(&self, name: &[u8]) -> Result<Option<usize>> {
        if let Some((members, lists_names)) = &self.shown {
            return self.shown_member_named(name, members, *lists_names);
        }
        match &*self.rows {
            Rows::Tree(tree) => Ok(tree.member_named(name)?.map(|id| id as usize)),
            Rows::Scanned { rows, .. } => {
                let mut members = rows.members.iter();
                Ok(members.position(|row| row.start.name == name))
            }
        }
    }

    fn shown_member_named(
        &self,
        name: &[u8],
        members: &Range<u64>,
        lists_names: bool,
    ) -> Result<Option<usize>> {
        if let Rows::Tree(tree) = &*self.rows
            && lists_names
            && tree.row_count(IndexList::Names) > 0
        {
            let id = tree.member_named(name)?;
            return Ok(id.and_then(|id| Some(id.checked_sub(members.start)? as usize)));
        }
        for number in 0..self.member_count() {
            let row = self.member(number)?;
            if row.is_some_and(|row| row.start.name == name) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    pub(crate) fn entries_frames(&self, member: &MemberOutline) -> Result<Range<u64>> {
        match &*self.rows {
            Rows::Tree(tree) => tree.entries_of_member(member.member_id),
            Rows::Scanned { rows, .. } => Ok(rows.entries_of_member(member.member_id)),
        }
    }

    /// The numbers of a member's Entries frames that may have the entry with this path. In an
    /// unsorted member several entries may have the path; the last one wins, as in tar.
    pub(crate) fn frames_for_path(
        &self,
        member: &MemberOutline,
        path: &[u8],
    ) -> Result<Range<u64>> {
        if !member.entries_are_sorted {
            return self.entries_frames(member);
        }
        match &*self.rows {
            Rows::Tree(tree) => tree.frames_for_path(member.member_id, path),
            Rows::Scanned { rows, .. } => Ok(rows.frames_for_path(member.member_id, path)),
        }
    }

    /// The numbers of the slices of a member with these Entries frames.
    pub(crate) fn slices(&self, frames: &Range<u64>) -> Result<Range<u64>> {
        match &*self.rows {
            Rows::Tree(tree) => tree.slices_of_frames(frames),
            Rows::Scanned { rows, .. } => Ok(rows.slices_of_frames(frames)),
        }
    }

    /// The numbers of the slices of a member with these Entries frames that may have the entry with
    /// this path.
    pub(crate) fn slices_for_path(&self, frames: &Range<u64>, path: &[u8]) -> Result<Range<u64>> {
        match &*self.rows {
            Rows::Tree(tree) => tree.slices_for_path(frames, path),
            Rows::Scanned { rows, .. } => Ok(rows.slices_for_path(frames, path)),
        }
    }

    /// `None` if there are fewer.
    pub(crate) fn slice(&self, number: u64) -> Result<Option<IndexSlice>> {
        match &*self.rows {
            Rows::Tree(tree) => tree.slice(number),
            Rows::Scanned { rows, .. } => {
                let number = usize::try_from(number).ok();
                Ok(number.and_then(|number| rows.slices.get(number).cloned()))
            }
        }
    }

    pub(crate) fn entries_frame(&self, number: u64) -> Result<IndexEntries> {
        let found = match &*self.rows {
            Rows::Tree(tree) => tree.entries(number)?,
            Rows::Scanned { rows, .. } => usize::try_from(number)
                .ok()
                .and_then(|number| rows.entries.get(number).cloned()),
        };
        let mut found =
            found.ok_or_else(|| Error::damaged("the index has no such frame of entries"))?;
        found.frame_offset += self.archive_start;
        Ok(found)
    }
}

/// Some rows of a list.
enum LeafRows<'a> {
    Blocks(&'a [IndexBlock]),
    Epochs(&'a [IndexEpoch]),
    Members(&'a [IndexMember]),
    Entries(&'a [IndexEntries]),
}
