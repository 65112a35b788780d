//! The generations of an archive, and the one that is shown.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::{Catalog, GenerationInfo};
use refrain_protect::HASH_BYTES;

/// The generations of an archive to which something was added.
#[derive(Debug, Clone)]
pub(crate) struct Generations {
    pub catalog: Arc<Catalog>,
    /// The one that is shown.
    pub shown: GenerationInfo,
    /// Its root hash.
    pub root_hash: [u8; HASH_BYTES],
    /// The root hash of the generation before, which that covers.
    pub previous_root_hash: Option<[u8; HASH_BYTES]>,
}

impl Generations {
    /// The ids of the members of the generation that is shown.
    pub(crate) fn members(&self) -> Range<u64> {
        let first = self.shown.first_member;
        first..first.saturating_add(self.shown.member_count)
    }
}
