//! Memory that outlives a block, so that a block costs no fresh megabytes.

use crate::bwt::BwtState;
use crate::cm::CmState;
use crate::deflate::DeflateState;
use crate::id::CodecId;
use crate::lz4::Lz4State;
use crate::zstd::ZstdState;

/// Contexts and scratch buffers of one worker. It caches memory, never meaning: what a call returns
/// does not depend on the calls before it. Empty until first used; `Send`, one per worker.
#[derive(Default)]
pub struct Workspace {
    pub(crate) zstd: ZstdState,
    pub(crate) lz4: Lz4State,
    pub(crate) deflate: DeflateState,
    pub(crate) bwt: BwtState,
    pub(crate) cm: CmState,
    /// A filtered copy of the block.
    pub(crate) filtered: Vec<u8>,
    /// The sample that `look` takes of a block, and a filtered copy of it.
    pub(crate) sample: Vec<u8>,
    pub(crate) sample_filtered: Vec<u8>,
    /// Output of trials, thrown away.
    pub(crate) trial: Vec<u8>,
}

impl Workspace {
    /// An empty workspace; takes memory when first used.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives back what dense codecs keep between blocks, all but that of `codec`: memory is counted for one of them at a time.
    pub(crate) fn keep_large_state_of(&mut self, codec: CodecId) {
        if codec != CodecId::BWT {
            self.bwt = BwtState::default();
        }
        if codec != CodecId::CM {
            self.cm = CmState::default();
        }
    }

    /// Gives the cached memory back, for a worker that will idle.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").finish_non_exhaustive()
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Workspace>();
};
