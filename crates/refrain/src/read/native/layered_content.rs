//! A layered tree: its own entries, and those of earlier trees that it did not change.
//!
//! The tree with the most parts divides the paths into ranges; a part of the whole is what all of
//! them have in one range. So no more is decoded at once than one part of each.

use std::ops::{Deref, Range};
use std::sync::Arc;

use refrain_entries::{Entry, EntryKind, compare_paths};
use refrain_format::{TreeLayer, TreeLayers};
use refrain_protect::{ContentHash, HASH_BYTES};

use crate::error::{Error, Result};
use crate::read::lost_entries::LostEntries;
use crate::read::native::indexed::IndexedArchive;
use crate::read::native::member_content::MemberContent;
use crate::read::store_reader::Depth;
use crate::read::tree::content::TreeContent;
use crate::read::tree::frame_entries::FrameEntries;
use crate::read::work_meter::WorkMeter;
use crate::store::opened_code::OpenedCode;

/// Names what the hash of a layered tree's list is of.
const LIST_CONTEXT: &str = "refrain 1.0 layered entries";

/// An entry, and the tree that it is from: 0 the newest.
pub(crate) type EntryOfTree = (Entry, usize);

/// A layered tree. Its content is that of the whole archive up to its end: offsets of content are
/// offsets in the content space.
pub(crate) struct LayeredContent<A> {
    /// The member itself, and the earlier ones, by descending id.
    trees: Vec<MemberContent<A>>,
    /// Where the content of each is.
    places: Vec<ContentPlace>,
    /// The tree with the most parts.
    pivot: usize,
    opened_code: OpenedCode,
}

/// Where the content of a tree's own entries is.
struct ContentPlace {
    /// Offsets below are offsets in the content space.
    absolute_below: u64,
    /// The others are this far behind `absolute_below`.
    content_start: u64,
}

impl ContentPlace {
    fn of<A: Deref<Target = IndexedArchive>>(tree: &MemberContent<A>) -> ContentPlace {
        ContentPlace {
            absolute_below: tree.layers().map_or(0, |layers| layers.earlier_bytes),
            content_start: tree.outline().own_start,
        }
    }

    fn put_in_content_space(&self, entry: &mut Entry) {
        if entry.stored_bytes() > 0
            && let Some(own) = entry.content_offset.checked_sub(self.absolute_below)
        {
            entry.content_offset = own.saturating_add(self.content_start);
        }
    }
}

impl<A: Deref<Target = IndexedArchive> + Clone + Sync> LayeredContent<A> {
    /// Of a member that consists of these layers.
    ///
    /// # Errors
    /// `Damaged` if one of them is lost or no tree.
    pub(super) fn new(own: MemberContent<A>, layers: &TreeLayers) -> Result<LayeredContent<A>> {
        let mut trees = vec![own];
        for layer in &layers.layers {
            let own = trees.first().and_then(|own| own.layer(layer).transpose());
            let Some(tree) = own.transpose()? else {
                return Err(lost(layer));
            };
            trees.push(tree);
        }
        LayeredContent::of(trees)
    }

    /// What these trees, by descending id, are together.
    ///
    /// # Errors
    /// As [`LayeredContent::new`].
    pub(crate) fn of_layers(archive: &A, layers: &[TreeLayer]) -> Result<Self> {
        let meter = Arc::new(archive.meter());
        let mut trees = vec![];
        for layer in layers {
            let tree = MemberContent::of_layer(archive.clone(), layer, meter.clone())?;
            trees.push(tree.ok_or_else(|| lost(layer))?);
        }
        LayeredContent::of(trees)
    }

    fn of(trees: Vec<MemberContent<A>>) -> Result<Self> {
        let mut most = (0, 0);
        for (number, tree) in trees.iter().enumerate() {
            let parts = tree.entry_frames()?;
            if parts > most.1 {
                most = (number, parts);
            }
        }
        Ok(LayeredContent {
            places: trees.iter().map(ContentPlace::of).collect(),
            trees,
            pivot: most.0,
            opened_code: OpenedCode::default(),
        })
    }

    /// The entries in a part, by path, with those that say what is removed.
    ///
    /// # Errors
    /// From reading any of the trees.
    pub(crate) fn part(&self, part: usize) -> Result<Vec<EntryOfTree>> {
        let from = self.start_of(part)?;
        let to = if part + 1 < self.entry_frames()? { self.start_of(part + 1)? } else { None };
        let mut entries = vec![];
        for number in 0..self.trees.len() {
            let frames = if number == self.pivot {
                part..part + 1
            } else {
                self.frames_between(number, from.as_deref(), to.as_deref())?
            };
            for frame in frames {
                self.add_between(
                    (number, frame),
                    (from.as_deref(), to.as_deref()),
                    &mut entries,
                )?;
            }
        }
        // The newest comes first among equal paths.
        entries.sort_by(|a, b| compare_paths(&a.0.path, &b.0.path));
        entries.dedup_by(|later, kept| later.0.path == kept.0.path);
        Ok(entries)
    }

    /// Calls `each` for the entries of every frame, each of which is decoded once, tree by tree,
    /// the newest first. Their content is in the content space; those that say what is removed are
    /// among them.
    ///
    /// # Errors
    /// From reading any of the trees; from `each`.
    pub(crate) fn for_each_frame(
        &self,
        each: &mut dyn FnMut(usize, Vec<Entry>) -> Result<()>,
    ) -> Result<()> {
        for (number, (tree, place)) in self.trees.iter().zip(&self.places).enumerate() {
            for frame in tree.frames() {
                let mut entries = tree.frame(frame)?;
                entries
                    .iter_mut()
                    .for_each(|entry| place.put_in_content_space(entry));
                each(number, entries)?;
            }
        }
        Ok(())
    }

    /// The path at which a part begins; `None` for the first, which has all paths before it.
    fn start_of(&self, part: usize) -> Result<Option<Vec<u8>>> {
        match self.trees.get(self.pivot) {
            Some(pivot) if part > 0 => pivot.start_of(part).map(Some),
            _ => Ok(None),
        }
    }

    /// The frames of a tree that may have paths in a range.
    fn frames_between(
        &self,
        tree: usize,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<Range<usize>> {
        let Some(tree) = self.trees.get(tree) else {
            return Ok(0..0);
        };
        let start = match from {
            Some(path) => tree.frames_for_path(path)?.start,
            None => 0,
        };
        let end = match to {
            Some(path) => tree.frames_for_path(path)?.end,
            None => tree.entry_frames()?,
        };
        // A path between two frames is in none, or in both.
        Ok(start.saturating_sub(1)..end.max(start))
    }

    /// Adds the entries of a frame of one tree that are in a range, with their places in the whole
    /// content.
    fn add_between(
        &self,
        (tree, frame): (usize, usize),
        (from, to): (Option<&[u8]>, Option<&[u8]>),
        entries: &mut Vec<EntryOfTree>,
    ) -> Result<()> {
        let (Some(content), Some(place)) = (self.trees.get(tree), self.places.get(tree)) else {
            return Ok(());
        };
        let all = content.entries_again(frame)?;
        let before =
            |path: &[u8]| all.partition_point(|entry| compare_paths(&entry.path, path).is_lt());
        let range = from.map_or(0, before)..to.map_or(all.len(), before);
        for entry in all.get(range).unwrap_or_default() {
            let mut entry = entry.clone();
            place.put_in_content_space(&mut entry);
            entries.push((entry, tree));
        }
        Ok(())
    }
}

impl<A: Deref<Target = IndexedArchive> + Clone + Sync> TreeContent for LayeredContent<A> {
    fn content_bytes(&self) -> u64 {
        let own = self.trees.first().map(MemberContent::outline);
        own.map_or(0, |own| own.content_bytes)
    }

    fn opened_code(&self) -> &OpenedCode {
        &self.opened_code
    }

    fn own_content(&self) -> Result<Option<(Range<u64>, [u8; HASH_BYTES])>> {
        self.trees
            .first()
            .map_or(Ok(None), MemberContent::stated_content)
    }

    fn has_all_content(&self) -> bool {
        false
    }

    fn read(&self, offset: u64, buffer: &mut [u8], depth: Depth) -> Result<()> {
        let own = self.trees.first();
        own.map_or(Ok(()), |own| own.read_archive(offset, buffer, depth))
    }

    fn read_remains(&self, offset: u64, buffer: &mut [u8]) -> Result<Vec<Range<u64>>> {
        let own = self.trees.first();
        own.map_or(Ok(Vec::new()), |own| own.archive_remains(offset, buffer))
    }

    fn lost_entries(&self) -> LostEntries {
        self.trees.iter().fold(LostEntries::default(), |sum, tree| {
            let lost = tree.lost_entries();
            LostEntries {
                count: sum.count + lost.count,
                may_be_more: sum.may_be_more || lost.may_be_more,
            }
        })
    }

    fn is_open(&self) -> bool {
        self.trees.first().is_some_and(TreeContent::is_open)
    }

    fn stated_count(&self, frame: usize) -> Result<u64> {
        let pivot = self.trees.get(self.pivot);
        pivot.map_or(Ok(0), |pivot| pivot.stated_count(frame))
    }

    fn decoded_count(&self, frame: usize) -> Result<u64> {
        let from = self.start_of(frame)?;
        let to = if frame + 1 < self.entry_frames()? { self.start_of(frame + 1)? } else { None };
        let mut count = 0_u64;
        for (number, tree) in self.trees.iter().enumerate() {
            let frames = if number == self.pivot {
                frame..frame + 1
            } else {
                self.frames_between(number, from.as_deref(), to.as_deref())?
            };
            for frame in frames {
                count = count.saturating_add(tree.decoded_count(frame)?);
            }
        }
        Ok(count)
    }

    fn entry_frames(&self) -> Result<usize> {
        let pivot = self.trees.get(self.pivot);
        pivot.map_or(Ok(0), TreeContent::entry_frames)
    }

    fn entries_of(&self, frame: usize) -> Result<FrameEntries> {
        let part = self.part(frame)?.into_iter();
        let kept = part.filter(|(entry, _)| entry.kind != EntryKind::Removed);
        Ok(FrameEntries::from(
            kept.map(|(entry, _)| entry).collect::<Vec<_>>(),
        ))
    }

    fn stated_entries(&self) -> Result<Option<(u64, [u8; HASH_BYTES])>> {
        // The members' own lists have hashes.
        Ok(None)
    }

    fn list_hash(&self) -> Result<Option<[u8; HASH_BYTES]>> {
        let mut hash = ContentHash::with_context(LIST_CONTEXT);
        for (tree, place) in self.trees.iter().zip(&self.places) {
            let Some((count, entries_hash)) = tree.stated_entries()? else {
                return Ok(None);
            };
            // A tree without changes is as the one before it.
            if count > 0 {
                hash.update(&place.absolute_below.to_le_bytes());
                hash.update(&place.content_start.to_le_bytes());
                hash.update(&entries_hash);
            }
        }
        Ok(Some(hash.value()))
    }

    fn frames_for_path(&self, path: &[u8]) -> Result<Range<usize>> {
        let Some(pivot) = self.trees.get(self.pivot) else {
            return Ok(0..0);
        };
        let found = pivot.frames_for_path(path)?;
        let end = found.end.max(found.start + 1).min(pivot.entry_frames()?);
        Ok(found.start.saturating_sub(1)..end)
    }

    fn is_sorted(&self) -> bool {
        true
    }

    fn is_recorded(&self) -> bool {
        false
    }

    fn blocks_to_prefetch(&self, content: Range<u64>) -> Result<Vec<u64>> {
        let own = self.trees.first();
        own.map_or(Ok(Vec::new()), |own| own.blocks_of_archive(content))
    }

    fn decode_block(&self, block: u64) -> Result<()> {
        self.trees
            .first()
            .map_or(Ok(()), |own| own.decode_block(block))
    }
}

fn lost(layer: &TreeLayer) -> Error {
    let id = layer.member_id;
    Error::damaged(format!("member {id}, of which a tree consists, is lost"))
}

/// The content and entries of a member; `None` if it has no entries.
///
/// # Errors
/// `Usage` if there is no such member; `Damaged` if it consists of members that are lost.
pub(super) fn tree_content<'a, A>(
    archive: A,
    number: usize,
    meter: WorkMeter,
) -> Result<Option<Box<dyn TreeContent + 'a>>>
where
    A: Deref<Target = IndexedArchive> + Clone + Sync + 'a,
{
    let Some(own) = MemberContent::new(archive, number, meter)? else {
        return Ok(None);
    };
    Ok(Some(match own.layers().cloned() {
        Some(layers) => Box::new(LayeredContent::new(own, &layers)?),
        None => Box::new(own),
    }))
}
