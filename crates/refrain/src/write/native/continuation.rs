//! What a run continues: the end of an archive, its store, and the anchors that it keeps of it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use refrain_format::{
    Anchor, AnchorsFrame, AnchorsPlace, FRAME_HEADER_BYTES, FrameKind, IndexNode,
};
use refrain_longmatch::{Rules, SegmentScan, scan_segment};
use refrain_pool::pool::checkpoint;
use refrain_pool::stages::stage;
use refrain_storage::Source;

use crate::error::{Error, Result};
use crate::progress::{Watch, is_cancelled};
use crate::store::appendix::header_at;
use crate::store::memory::zeroed;
use crate::write::input::MemberPlan;
use crate::write::native::assemble::Assembler;
use crate::write::native::carried::EarlierDecoders;
use crate::write::native::generation::GenerationPlan;
use crate::write::pipeline::assembly::Assembly;
use crate::write::pipeline::commit::MatchState;
use crate::write::pipeline::earlier::EarlierPages;
use crate::write::pipeline::pieces::pieces_max;
use crate::write::pipeline::trails::{EarlierContent, MemberTrail, Predecessor, Trails};
use crate::write::tree::unchanged::EarlierTree;

/// How much of an earlier store is scanned at once, in bytes.
const SCAN_BYTES: usize = 1 << 20;

/// Pieces of the store overlap by this much, so that every anchor is within one.
const OVERLAP_BYTES: usize = 63;

/// An archive to be continued by a generation.
pub(crate) struct Continuation {
    pub plan: GenerationPlan,
    /// The right edges of the lists of its index.
    pub edges: Vec<Vec<Arc<IndexNode>>>,
    /// The store of earlier generations; `None` if it is empty.
    pub store: Option<Arc<dyn Source>>,
    /// The decoders that it carries, if it is to carry some.
    pub decoders: Option<EarlierDecoders>,
    /// Memory for reading it, in bytes, and for pages of it that are used again.
    pub read_bytes: u64,
    pub cache_bytes: u64,
    /// Trees of earlier generations, by the names of the members that are stored as changes to
    /// them.
    pub trees: HashMap<Vec<u8>, EarlierTree>,
    pub anchors: KnownAnchors,
    /// The content of earlier generations, and where in it the predecessors of members are, by
    /// their names.
    pub content: Arc<dyn EarlierContent>,
    pub predecessors: HashMap<Vec<u8>, Predecessor>,
}

impl Continuation {
    /// What these members probably repeat.
    pub(crate) fn trails(&mut self, members: &[MemberPlan], memory_bytes: u64) -> Trails {
        let trail = |plan: &MemberPlan| MemberTrail {
            has_pieces: !plan.start.kind.is_tree(),
            earlier: self.predecessors.remove(&plan.start.name),
        };
        let trails = members.iter().map(trail).collect();
        Trails::new(self.content.clone(), trails, pieces_max(memory_bytes))
    }
}

impl Continuation {
    /// This for a writer that cannot read the store of earlier generations: nothing in it is found
    /// by anchors, and their frames stay as they are.
    pub(crate) fn without_store(mut self) -> Continuation {
        let joined = std::mem::take(&mut self.anchors.joined);
        self.plan.catalog.anchors.extend(joined);
        self.anchors.places = Some(Vec::new());
        self
    }
}

/// The anchors of the store of earlier generations.
pub(crate) struct KnownAnchors {
    /// The archive.
    pub archive: Arc<dyn Source>,
    /// Their frames; `None` if the archive was made without, so that its store is scanned once.
    pub places: Option<Vec<AnchorsPlace>>,
    /// Those of them that are written again.
    pub joined: Vec<AnchorsPlace>,
    /// The ranges of the store that were given back, ascending: nothing may refer to them.
    pub given_back: Vec<Range<u64>>,
}

impl KnownAnchors {
    /// Fills the index of a run.
    ///
    /// # Errors
    /// `Io`, `Cancelled`; from writing frames of anchors.
    pub(crate) fn fill(
        self,
        state: &mut MatchState,
        assembler: &mut Assembler<'_>,
        store: Option<Arc<dyn Source>>,
        rules: &Rules,
        watch: &dyn Watch,
    ) -> Result<()> {
        state.earlier = Some(EarlierPages::new(state.history.earlier_bytes()));
        match (&self.places, store) {
            (Some(places), _) => self.read(places, state, assembler, watch),
            (None, Some(store)) => scan(&*store, state, assembler, rules, watch),
            (None, None) => Ok(()),
        }
    }

    /// Reads frames of anchors: as many as fit into half of the index, those with many zero bits
    /// first, which are the same for every store of this size.
    fn read(
        &self,
        places: &[AnchorsPlace],
        state: &mut MatchState,
        assembler: &mut Assembler<'_>,
        watch: &dyn Watch,
    ) -> Result<()> {
        let mut most = (state.index.capacity() / 2) as u64;
        let mut kinds: Vec<_> = places.iter().map(|place| place.zero_bits).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let store_bytes = state.history.store_bytes();
        for zero_bits in kinds.into_iter().rev() {
            let of_kind = places.iter().filter(|place| place.zero_bits == zero_bits);
            let count: u64 = of_kind.clone().map(|place| place.anchor_count).sum();
            if count > most {
                break;
            }
            most -= count;
            for place in of_kind {
                if is_cancelled(watch) {
                    return Err(Error::cancelled());
                }
                let Some(mut anchors) = read_anchors(&*self.archive, place)? else {
                    watch.notice(
                        "a frame of anchors is damaged: repeats of a part of the archive may not \
                         be found",
                    );
                    continue;
                };
                anchors.retain(|anchor| !self.is_given_back(anchor.offset_in_store));
                let pairs = anchors
                    .iter()
                    .map(|anchor| (anchor.fingerprint, anchor.offset_in_store));
                state.index.insert_anchors(pairs, store_bytes, checkpoint);
                if self.joined.contains(place) {
                    assembler.add_anchors(anchors);
                }
            }
        }
        Ok(())
    }
}

impl KnownAnchors {
    fn is_given_back(&self, offset_in_store: u64) -> bool {
        let ranges = &self.given_back;
        let after = ranges.partition_point(|range| range.start <= offset_in_store);
        let range = after.checked_sub(1).and_then(|last| ranges.get(last));
        range.is_some_and(|range| offset_in_store < range.end)
    }
}

/// The anchors of a frame; `None` if it is damaged.
fn read_anchors(archive: &dyn Source, place: &AnchorsPlace) -> Result<Option<Vec<Anchor>>> {
    let header = header_at(archive, place.frame_offset)?;
    let is_right = |header: &refrain_format::FrameHeader| {
        header.kind == FrameKind::Anchors && header.frame_bytes() == place.frame_bytes
    };
    let Some(header) = header.filter(is_right) else {
        return Ok(None);
    };
    let mut payload = zeroed(header.payload_bytes as usize)?;
    let offset = place.frame_offset + FRAME_HEADER_BYTES as u64;
    let count = archive.read_at(offset, &mut payload)?;
    let is_intact = count == payload.len() && header.check_payload(&payload).is_ok();
    let parsed = AnchorsFrame::parse(&payload).ok().filter(|_| is_intact);
    Ok(parsed.map(|frame| frame.anchors))
}

/// Scans a store that has no frames of anchors: once, because they are written now.
fn scan(
    store: &dyn Source,
    state: &mut MatchState,
    assembler: &mut Assembler<'_>,
    rules: &Rules,
    watch: &dyn Watch,
) -> Result<()> {
    let store_bytes = store.size_bytes()?;
    let mut piece = zeroed(SCAN_BYTES + OVERLAP_BYTES)?;
    let mut scan = SegmentScan::default();
    let mut at = 0;
    while at < store_bytes {
        if is_cancelled(watch) {
            return Err(Error::cancelled());
        }
        let _stage = stage("scan the archive", SCAN_BYTES as u64);
        // Nothing can refer to what cannot be read.
        let count = store.read_at(at, &mut piece).unwrap_or_default();
        scan_segment(&piece[..count], rules, &mut scan);
        let found = scan.positions.iter().zip(&scan.fingerprints);
        let found = found.map(|(&position, &fingerprint)| (fingerprint, at + u64::from(position)));
        (state.index).insert_anchors(found.clone(), store_bytes, checkpoint);
        let anchors = found.map(|(fingerprint, offset_in_store)| Anchor {
            fingerprint,
            offset_in_store,
        });
        assembler.add_anchors(anchors.collect());
        assembler.write_ready()?;
        at += SCAN_BYTES as u64;
    }
    Ok(())
}
