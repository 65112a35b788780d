//! Which bytes of the store the kept generations of an archive need.
//!
//! All content of a member is needed, except that a layered tree needs of earlier content what its
//! entries refer to: they may be the only ones left that do. From the content, extents lead to the
//! store; all of them remain, whatever refers to them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use refrain_entries::EntryKind;
use refrain_format::{
    GenerationInfo, IndexBlock, IndexMember, TreeLayer, content_hash, member_hash,
};

use crate::damage::push_range;
use crate::error::{Error, Result};
use crate::progress::{Watch, is_cancelled};
use crate::read::epoch_map::Origin;
use crate::read::native::indexed::{IndexedArchive, RESOLVED_BYTES_MAX};
use crate::read::native::layered_content::LayeredContent;
use crate::read::native::stated_map::Piece;
use crate::read::range_set::{RangeCursor, RangeSet};

/// The share of the memory for the ranges of content, and for those of the store.
const RANGES_SHARE: u64 = 8;

/// The share of the memory for the paths that newer layers of a tree have, and the bytes of one.
const PATHS_SHARE: u64 = 8;
const PATH_BYTES: u64 = 64;

/// What is needed of the store.
pub(crate) struct LiveStore {
    ranges: Vec<Range<u64>>,
    /// Whether there was memory for all of them: else more is taken as needed than is.
    pub is_exact: bool,
}

impl IndexedArchive {
    /// What these generations need.
    ///
    /// # Errors
    /// From reading the index, entries and extents; `Cancelled`.
    pub(crate) fn live_store(
        self: &Arc<Self>,
        kept: &[GenerationInfo],
        memory_bytes: u64,
        watch: &dyn Watch,
    ) -> Result<LiveStore> {
        let mut content = RangeSet::within(memory_bytes / RANGES_SHARE);
        let is_exact = self.add_content_of_all(kept, &mut content, memory_bytes, watch)?;
        let (content, is_exact_content) = content.into_ranges();
        let mut store = RangeSet::within(memory_bytes / RANGES_SHARE);
        for range in content {
            self.add_store_of(
                range.start..range.end.min(self.end.content_bytes),
                &mut store,
                watch,
            )?;
        }
        let (ranges, is_exact_store) = store.into_ranges();
        Ok(LiveStore {
            ranges,
            is_exact: is_exact && is_exact_content && is_exact_store,
        })
    }

    /// Adds the content that all members of generations need. Returns whether no more was added,
    /// for want of memory.
    ///
    /// # Errors
    /// As [`live_store`](Self::live_store).
    pub(crate) fn add_content_of_all(
        self: &Arc<Self>,
        kept: &[GenerationInfo],
        content: &mut RangeSet,
        memory_bytes: u64,
        watch: &dyn Watch,
    ) -> Result<bool> {
        let mut is_exact = true;
        for row in kept {
            for id in row.first_member..row.first_member.saturating_add(row.member_count) {
                let member = self.member_with_id(id)?;
                let lost = || Error::damaged(format!("the index has no member {id}"));
                let member = member.ok_or_else(lost)?;
                is_exact &= self.add_content_of(&member, content, memory_bytes, watch)?;
            }
        }
        Ok(is_exact)
    }

    /// Adds the content that a member needs. Returns whether no more was added, for want of memory.
    fn add_content_of(
        self: &Arc<Self>,
        member: &IndexMember,
        content: &mut RangeSet,
        memory_bytes: u64,
        watch: &dyn Watch,
    ) -> Result<bool> {
        let start = member.start.content_start;
        content.add(start..start.saturating_add(member.end.content_bytes));
        let Some(below) = &member.start.layers else {
            return Ok(true);
        };
        let own = TreeLayer {
            member_id: member.start.member_id,
            hash: member_hash(&member.start, &member.end),
        };
        let layers: Vec<_> = std::iter::once(own)
            .chain(below.layers.iter().copied())
            .collect();
        let last = layers.len().saturating_sub(1);
        let mut newer = NewerPaths::within(memory_bytes / PATHS_SHARE);
        let tree = LayeredContent::of_layers(self, &layers)?;
        tree.for_each_frame(&mut |layer, entries| {
            check_cancelled(watch)?;
            for entry in &entries {
                let is_replaced = newer.contains(layer, &entry.path);
                if !is_replaced && entry.kind != EntryKind::Removed {
                    content.add(entry.content_range());
                }
                if !is_replaced && layer < last {
                    newer.add(layer, &entry.path);
                }
            }
            Ok(())
        })?;
        Ok(newer.is_complete)
    }

    /// Adds the store that a range of content needs.
    fn add_store_of(
        &self,
        range: Range<u64>,
        store: &mut RangeSet,
        watch: &dyn Watch,
    ) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            check_cancelled(watch)?;
            // Every epoch may cost what a read may cost.
            let meter = self.meter();
            let stated = self.map_of(at, &meter)?;
            let end = stated.content().end.min(range.end);
            let mut add = |offset: u64, length: u64| store.add(offset..offset + length);
            if !stated.has_references() {
                for piece in stated.pieces(at..end)? {
                    if let (Piece::Store(offset), length) = piece? {
                        add(offset, length);
                    }
                }
                at = end;
                continue;
            }
            let stop = end.min(at + RESOLVED_BYTES_MAX);
            let map = self.resolved(at..stop, &meter)?;
            for (origin, length) in map.origins(at..stop) {
                if let Origin::Store(offset) = origin {
                    add(offset, length);
                }
            }
            at = stop;
        }
        Ok(())
    }

    /// Calls `each` for every block, with the number of its bytes that are needed.
    ///
    /// # Errors
    /// From the index, and from `each`.
    pub(crate) fn for_each_block_use(
        &self,
        live: &LiveStore,
        each: &mut dyn FnMut(&IndexBlock, u64) -> Result<()>,
    ) -> Result<()> {
        let mut cursor = RangeCursor::new(&live.ranges);
        self.index.for_each_block(&mut |block| {
            let end = block.store_start.saturating_add(block.raw_bytes);
            each(block, cursor.common_bytes(block.store_start..end))
        })
    }

    /// Whether a member of a kept generation is a layered tree.
    ///
    /// # Errors
    /// From the index.
    pub(crate) fn keeps_layers(&self) -> Result<bool> {
        let rows = self
            .generations
            .iter()
            .flat_map(|kept| &kept.catalog.generations);
        for row in rows {
            for id in row.first_member..row.first_member.saturating_add(row.member_count) {
                let member = self.member_with_id(id)?;
                if member.is_some_and(|member| member.start.layers.is_some()) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a block was given back before.
    pub(crate) fn is_given_back(&self, block: &IndexBlock) -> bool {
        self.given_back.contains(block.frame_offset)
    }

    /// The ranges of the store that were given back, ascending.
    ///
    /// # Errors
    /// From the index.
    pub(crate) fn store_given_back(&self) -> Result<Vec<Range<u64>>> {
        let mut ranges = Vec::new();
        if self.given_back.frame_bytes() == 0 {
            return Ok(ranges);
        }
        self.index.for_each_block(&mut |block| {
            if self.is_given_back(block) {
                let end = block.store_start.saturating_add(block.raw_bytes);
                push_range(&mut ranges, block.store_start..end);
            }
            Ok(())
        })?;
        Ok(ranges)
    }

    /// Calls `each` for every block.
    ///
    /// # Errors
    /// From the index, and from `each`.
    pub(crate) fn for_each_indexed_block(
        &self,
        each: &mut dyn FnMut(&IndexBlock) -> Result<()>,
    ) -> Result<()> {
        self.index.for_each_block(each)
    }

    /// The bytes of all frames of entries and extents.
    ///
    /// # Errors
    /// From the index.
    pub(crate) fn list_bytes(&self) -> Result<u64> {
        let mut bytes = 0_u64;
        self.index.for_each_epoch(&mut |row| {
            bytes = bytes.saturating_add(row.frame_bytes);
            Ok(())
        })?;
        self.index.for_each_entries_frame(&mut |row| {
            bytes = bytes.saturating_add(row.frame_bytes);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Checks that nothing was given back that the kept generations need.
    ///
    /// # Errors
    /// `Damaged` if something was; otherwise from reading the index, entries and extents.
    pub(crate) fn check_live(self: &Arc<Self>, memory_bytes: u64, watch: &dyn Watch) -> Result<()> {
        let Some(generations) = &self.generations else {
            return Ok(());
        };
        if generations.catalog.gone.is_empty() {
            return Ok(());
        }
        let live = self.live_store(&generations.catalog.generations, memory_bytes, watch)?;
        self.for_each_block_use(&live, &mut |block, live_bytes| {
            // A range that was rounded may reach into the next block.
            let is_needed = live_bytes > 0 && live.is_exact;
            if is_needed && self.is_given_back(block) {
                return Err(Error::given_back().at_offset(block.frame_offset));
            }
            Ok(())
        })
    }
}

/// The paths of which newer trees have entries, by their hashes: two paths with one hash cannot be
/// made. Without memory for all of them, entries that were replaced pass for those of the tree, so
/// that more stays than must.
struct NewerPaths {
    /// The newest tree with each path.
    layers: HashMap<u128, usize>,
    paths_max: usize,
    is_complete: bool,
}

impl NewerPaths {
    fn within(memory_bytes: u64) -> NewerPaths {
        NewerPaths {
            layers: HashMap::new(),
            paths_max: (memory_bytes / PATH_BYTES) as usize,
            is_complete: true,
        }
    }

    fn key(path: &[u8]) -> u128 {
        let hash = content_hash(path);
        hash.iter()
            .take(size_of::<u128>())
            .fold(0, |key, &byte| key << 8 | u128::from(byte))
    }

    /// Whether a newer tree than this layer has the path.
    fn contains(&self, layer: usize, path: &[u8]) -> bool {
        layer > 0
            && self
                .layers
                .get(&Self::key(path))
                .is_some_and(|&newest| newest < layer)
    }

    fn add(&mut self, layer: usize, path: &[u8]) {
        if self.layers.len() < self.paths_max {
            self.layers.entry(Self::key(path)).or_insert(layer);
        } else {
            self.is_complete = false;
        }
    }
}

fn check_cancelled(watch: &dyn Watch) -> Result<()> {
    if is_cancelled(watch) { Err(Error::cancelled()) } else { Ok(()) }
}
