//! Copies the members of one generation.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use refrain_format::{GenerationInfo, IndexMember, MemberEnd, MemberStart, TreeLayer, member_hash};
use refrain_longmatch::Extent;
use refrain_pool::Lock;
use refrain_protect::ContentHash;

use crate::error::{Error, Result};
use crate::merge::pieces::{MappedPiece, MappedPieces, Pair};
use crate::merge::store_map::{ContentMap, Covered, StoreMap};
use crate::merge::trees::{CopiedEntries, CopiedTrees, TreePlan};
use crate::progress::{Watch, is_cancelled};
use crate::store::memory::zeroed;
use crate::write::native::copied::{CopiedMembers, CopyStep};
use crate::write::pipeline::pieces::{EarlierPieces, PiecesWriter};
use crate::write::tree::order::EntriesFrame;

/// How much content is read at once to hash it.
const HASHED_BYTES: usize = 1 << 20;

/// What the new archive has of another one.
#[derive(Default)]
pub(crate) struct Copied {
    pub store: StoreMap,
    pub content: ContentMap,
    pub trees: CopiedTrees,
}

/// A generation to be copied.
#[derive(Clone)]
pub(crate) struct GenerationToCopy {
    pub pair: Pair,
    pub info: GenerationInfo,
    /// The id of its first member in the new archive, and where its content starts there.
    pub first_member: u64,
    pub content_start: u64,
    /// Whether a further generation is compared with this one: then digests of pieces are kept, of
    /// at most so many.
    pub pieces_max: usize,
}

/// What there is to do for a generation.
pub(crate) struct GenerationPlan {
    trees: HashMap<u64, TreePlan>,
    /// The ranges of the store that are new, in the order of their first occurrence.
    pub new: Vec<Range<u64>>,
    pub new_bytes: u64,
    pub content_bytes: u64,
}

impl GenerationToCopy {
    fn ids(&self) -> Range<u64> {
        let first = self.info.first_member;
        first..first.saturating_add(self.info.member_count)
    }

    /// Looks what of the generation the new archive lacks.
    ///
    /// # Errors
    /// From reading its lists; `Cancelled`.
    pub(crate) fn plan(&self, copied: &Copied, watch: &dyn Watch) -> Result<GenerationPlan> {
        let mut plan = GenerationPlan {
            trees: HashMap::new(),
            new: Vec::new(),
            new_bytes: 0,
            content_bytes: 0,
        };
        let mut planned = Covered::default();
        for id in self.ids() {
            let row = self.pair.from.copied_member(id)?;
            let tree = TreePlan::of(
                &self.pair.from,
                &row,
                &copied.trees,
                &copied.content,
                self.content_start,
            )?;
            plan.content_bytes +=
                (tree.as_ref()).map_or(row.end.content_bytes, |tree| tree.own_bytes);
            let mut pieces = MappedPieces::of(ranges(&row, tree.as_ref()));
            while let Some(piece) = pieces.next(&self.pair, &copied.content)? {
                if is_cancelled(watch) {
                    return Err(Error::cancelled());
                }
                if let MappedPiece::Store(range) = piece {
                    plan.add(range, &copied.store, &mut planned);
                }
            }
            plan.trees.extend(tree.map(|tree| (id, tree)));
        }
        Ok(plan)
    }
}

impl GenerationPlan {
    /// Adds what is new of a range of the store.
    fn add(&mut self, range: Range<u64>, known: &StoreMap, planned: &mut Covered) {
        let mut at = range.start;
        while at < range.end {
            if let Some(extent) = known.extent(at..range.end) {
                at += extent.length();
                continue;
            }
            if let Some(end) = planned.end_at(at) {
                at = end;
                continue;
            }
            let next = known.next_start(at).into_iter();
            let next = next.chain(planned.next_start(at)).chain([range.end]).min();
            let new = at..next.unwrap_or(range.end);
            at = new.end;
            self.new_bytes += new.end - new.start;
            planned.add(new.clone());
            match self.new.last_mut() {
                Some(last) if last.end == new.start => last.end = new.end,
                _ => self.new.push(new),
            }
        }
    }
}

/// The content of a member, in the order of the new archive.
fn ranges(row: &IndexMember, tree: Option<&TreePlan>) -> Vec<Range<u64>> {
    let start = row.start.content_start;
    match tree {
        Some(tree) => tree.ranges().collect(),
        None => std::iter::once(start..start.saturating_add(row.end.content_bytes)).collect(),
    }
}

/// A member that is being copied.
struct OpenMember {
    row: IndexMember,
    tree: Option<TreePlan>,
    start: MemberStart,
    pieces: MappedPieces,
    /// The rest of the range of the store that comes next.
    store: Range<u64>,
    /// Its entries, when its content is complete.
    entries: Option<CopiedEntries>,
}

/// Copies the members of a generation, as it was planned.
pub(crate) struct GenerationCopy {
    generation: GenerationToCopy,
    plan: GenerationPlan,
    copied: Copied,
    /// Where that goes in the end.
    returned: Arc<Lock<Option<Copied>>>,
    ids: Range<u64>,
    next_id: u64,
    content_at: u64,
    open: Option<OpenMember>,
    /// What follows before anything else is read.
    ready: VecDeque<CopyStep>,
    /// Where the bytes of the last step are in the store that is copied.
    new_at: u64,
    /// Content that was copied, and where it is now: for later generations.
    content: Vec<(Range<u64>, u64)>,
}

impl GenerationCopy {
    pub(crate) fn new(
        generation: GenerationToCopy,
        plan: GenerationPlan,
        copied: Copied,
        returned: Arc<Lock<Option<Copied>>>,
    ) -> GenerationCopy {
        GenerationCopy {
            ids: generation.ids(),
            next_id: generation.first_member,
            content_at: generation.content_start,
            generation,
            plan,
            copied,
            returned,
            open: None,
            ready: VecDeque::new(),
            new_at: 0,
            content: Vec::new(),
        }
    }

    fn begin(&mut self, id: u64) -> Result<CopyStep> {
        let row = self.generation.pair.from.copied_member(id)?;
        let tree = self.plan.trees.remove(&id);
        let start = MemberStart {
            member_id: self.next_id,
            ..row.start.clone()
        };
        let start = tree
            .as_ref()
            .map_or(start.clone(), |tree| tree.start(start));
        self.open = Some(OpenMember {
            pieces: MappedPieces::of(ranges(&row, tree.as_ref())),
            row,
            tree,
            start: start.clone(),
            store: 0..0,
            entries: None,
        });
        Ok(CopyStep::Start(Box::new(start)))
    }

    /// The next content of the open member; `None` if it is complete.
    fn content(&mut self) -> Result<Option<CopyStep>> {
        let Some(open) = &mut self.open else {
            return Ok(None);
        };
        let copied = &self.copied;
        while open.store.is_empty() {
            match open.pieces.next(&self.generation.pair, &copied.content)? {
                None => return Ok(None),
                Some(MappedPiece::Known(extent)) => return Ok(Some(CopyStep::Known(extent))),
                Some(MappedPiece::Store(range)) => open.store = range,
            }
        }
        if let Some(extent) = copied.store.extent(open.store.clone()) {
            open.store.start += extent.length();
            return Ok(Some(CopyStep::Known(extent)));
        }
        let next = copied.store.next_start(open.store.start);
        let end = next.map_or(open.store.end, |next| next.min(open.store.end));
        self.new_at = open.store.start;
        open.store.start = end;
        Ok(Some(CopyStep::New(end - self.new_at)))
    }

    /// The frames behind the content of the open member: one of entries, or its end.
    fn rest(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let tree = open.tree.as_ref();
        if open.start.kind.has_entries() {
            if open.entries.is_none() {
                let from = &self.generation.pair.from;
                let entries = CopiedEntries::of(from, &open.row, tree, self.next_id)?;
                open.entries = Some(entries);
            }
            let frames: Option<Vec<EntriesFrame>> = match &mut open.entries {
                Some(entries) => entries.next(tree, &self.copied.content)?,
                None => None,
            };
            if let Some(frames) = frames {
                self.ready.extend(frames.into_iter().map(CopyStep::Entries));
                return Ok(());
            }
        }
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let end = self.end_of(&open)?;
        let start = open.row.start.content_start;
        let copied = start..start.saturating_add(open.row.end.content_bytes);
        let mut at = self.content_at;
        let ranges = open
            .tree
            .as_ref()
            .map_or(vec![copied], |tree| tree.ranges().collect());
        for range in ranges {
            let length = range.end - range.start;
            self.content.push((range, at));
            at += length;
        }
        if let Some(tree) = &open.tree {
            let copy = TreeLayer {
                member_id: self.next_id,
                hash: member_hash(&open.start, &end),
            };
            self.copied.trees.add(&open.row, tree, copy);
        }
        self.content_at += end.content_bytes;
        let pieces = self.pieces_of(&open)?;
        self.ready.push_back(CopyStep::End(Box::new(end)));
        self.ready.extend(pieces);
        self.next_id += 1;
        Ok(())
    }

    fn end_of(&self, open: &OpenMember) -> Result<MemberEnd> {
        let end = match &open.entries {
            None => open.row.end.clone(),
            Some(entries) => {
                let tree = open.tree.as_ref();
                let content = tree.filter(|tree| tree.pulls());
                let content = content.map(|tree| self.hash(tree)).transpose()?;
                entries.end(&open.row, tree, content)?
            }
        };
        Ok(MemberEnd {
            member_id: self.next_id,
            ..end
        })
    }

    /// The length and the hash of the content of a tree that has more than before.
    fn hash(&self, tree: &TreePlan) -> Result<(u64, [u8; 32])> {
        let mut hash = ContentHash::new();
        let mut buffer = zeroed(HASHED_BYTES)?;
        for range in tree.ranges() {
            let mut at = range.start;
            while at < range.end {
                let count = (range.end - at).min(HASHED_BYTES as u64);
                let piece = &mut buffer[..count as usize];
                self.generation.pair.from.read_content_at(at, piece)?;
                hash.update(piece);
                at += count;
            }
        }
        Ok((tree.own_bytes, hash.value()))
    }

    /// The digests of the pieces of a file, if a further generation needs them.
    fn pieces_of(&self, open: &OpenMember) -> Result<Vec<CopyStep>> {
        let pieces_max = self.generation.pieces_max;
        if open.start.kind.has_entries() || pieces_max == 0 {
            return Ok(Vec::new());
        }
        let (from, row) = (&self.generation.pair.from, &open.row);
        let (end_offset, id) = (row.end_frame_offset, row.start.member_id);
        let found = EarlierPieces::read(&**from.bytes(), end_offset, id, pieces_max)?;
        let mut writer = PiecesWriter::new(pieces_max, None);
        let numbers = 0..found.count() as u64;
        let pieces = numbers.filter_map(|number| Some((number, *found.digest(number)?)));
        writer.add(&pieces.collect::<Vec<_>>());
        Ok((writer.finish(self.next_id).into_iter())
            .map(CopyStep::Pieces)
            .collect())
    }
}

impl CopiedMembers for GenerationCopy {
    fn next(&mut self) -> Result<CopyStep> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Ok(step);
            }
            if self.open.is_none() {
                match self.ids.next() {
                    Some(id) => return self.begin(id),
                    None => {
                        // Earlier content is that of earlier generations.
                        let mut copied = std::mem::take(&mut self.copied);
                        for (range, to) in self.content.drain(..) {
                            copied.content.add(range, to);
                        }
                        *self.returned.lock() = Some(copied);
                        return Ok(CopyStep::Done);
                    }
                }
            }
            match self.content()? {
                Some(step) => return Ok(step),
                None => self.rest()?,
            }
        }
    }

    fn stored(&mut self, extent: &Extent) {
        self.copied.store.add(self.new_at, extent);
        self.new_at += extent.length();
    }
}
