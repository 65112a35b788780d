//! Commits an epoch, the serial step between two epochs: decides its extents, appends its fresh
//! bytes to the store, and inserts its anchors into the index.

use std::sync::Arc;

use refrain_format::Anchor;
use refrain_longmatch::{
    Continuations, Extent, FingerprintIndex, FlatEpoch, IndexWords, Match, Rules, flatten,
    fresh_anchors, insert_continuations, insert_epoch,
};
use refrain_pool::HugeBuffer;
use refrain_pool::pool::checkpoint;

use crate::error::{Error, Result};
use crate::write::pipeline::earlier::EarlierPages;
use crate::write::pipeline::history::{EncodedPages, FilledPage, StoreHistory};
use crate::write::pipeline::segments::EpochData;

/// Read while matching an epoch, changed by committing it.
pub(crate) struct MatchState {
    pub index: FingerprintIndex<IndexMemory>,
    pub continuations: Continuations,
    pub history: StoreHistory,
    /// The pages of earlier generations; `None` if the archive has no generations, so that no
    /// anchors are kept.
    pub earlier: Option<EarlierPages>,
}

pub(crate) struct IndexMemory(HugeBuffer);

impl IndexWords for IndexMemory {
    fn words(&self) -> &[u64] {
        self.0.words()
    }
    fn words_mut(&mut self) -> &mut [u64] {
        self.0.words_mut()
    }
}

impl MatchState {
    /// The memory that its tables will ask for when they grow next, in bytes.
    pub(crate) fn growth_bytes(&self) -> usize {
        self.index.growth_bytes() + self.continuations.growth_bytes()
    }

    pub(crate) fn new(
        index_words: usize,
        continuations_bytes: usize,
        history: StoreHistory,
    ) -> Result<MatchState> {
        let memory = IndexMemory(HugeBuffer::zeroed(index_words)?);
        Ok(MatchState {
            index: FingerprintIndex::new(memory),
            continuations: Continuations::new(continuations_bytes),
            history,
            earlier: None,
        })
    }
}

pub(crate) struct EpochCommit {
    pub state: MatchState,
    pub data: Arc<EpochData>,
    pub matches: Vec<Vec<Match>>,
    /// The store offset of the block being filled.
    pub block_start: u64,
    pub rules: Rules,
    /// A share of near repeats of one byte in this many counts; see
    /// [`CommittedEpoch::has_near_repeats`].
    pub near_one_in: Option<u64>,
    /// Pages whose blocks were encoded since the last commit.
    pub encoded: Vec<EncodedPages>,
    /// Whether the epoch has repeats inside.
    pub has_repeats: bool,
    /// The store offset below which later epochs must not refer.
    pub reach_floor: u64,
}

pub(crate) struct CommittedEpoch {
    pub state: MatchState,
    pub extents: Vec<Extent>,
    pub filled: Vec<FilledPage>,
    pub content_bytes: u64,
    pub store_start: u64,
    pub fresh_bytes: u64,
    pub has_repeats: bool,
    /// Whether a considerable share of the fresh bytes repeats bytes within the codec's window.
    pub has_near_repeats: bool,
    /// The anchors of the fresh bytes, if the archive keeps some of them.
    pub anchors: Vec<Anchor>,
}

pub(crate) fn commit_epoch(step: EpochCommit) -> Result<CommittedEpoch> {
    let EpochCommit {
        mut state,
        data,
        matches,
        block_start,
        rules,
        near_one_in,
        encoded,
        has_repeats,
        reach_floor,
    } = step;
    state.history.check_memory()?;
    for pages in encoded {
        state.history.encoded(pages);
    }
    state.history.make_room(state.growth_bytes());
    let MatchState {
        history,
        index,
        earlier,
        ..
    } = &mut state;
    if let Some(earlier) = earlier {
        earlier.look_closer(&matches, history, index, &rules);
    }
    let mut anchors = vec![];
    let store_start = state.history.store_bytes();
    let mut filled = vec![];
    let flat: FlatEpoch = data.with(|epoch| {
        let flat = flatten(
            epoch,
            &matches,
            store_start,
            block_start,
            &rules,
            checkpoint,
        );
        for range in &flat.fresh {
            for piece in data.pieces(range.clone()) {
                let history = &mut state.history;
                history.append(
                    piece.bytes,
                    piece.member,
                    piece.offset_in_member,
                    &mut filled,
                )?;
                checkpoint();
            }
        }
        let store_end = state.history.store_bytes();
        insert_epoch(&mut state.index, epoch, &flat, store_end, checkpoint);
        if state.earlier.is_some() {
            fresh_anchors(epoch, &flat, |fingerprint, offset_in_store| {
                anchors.push(Anchor {
                    fingerprint,
                    offset_in_store,
                });
            });
        }
        insert_continuations(&mut state.continuations, epoch, &flat, checkpoint);
        Ok::<_, Error>(flat)
    })?;
    if state.index.was_refused() || state.continuations.was_refused() {
        return Err(Error::limit(
            "the system refuses memory for the tables of repeats",
        ));
    }
    let floor = state.history.evict_below(reach_floor);
    state.index.evict_below(floor);
    Ok(CommittedEpoch {
        state,
        extents: flat.extents,
        filled,
        content_bytes: data.length_bytes(),
        store_start,
        fresh_bytes: flat.fresh_bytes,
        has_repeats,
        has_near_repeats: near_one_in
            .is_some_and(|one_in| flat.near_bytes * one_in > flat.fresh_bytes),
        anchors,
    })
}
