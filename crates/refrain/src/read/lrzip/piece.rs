//! Pieces of content that were made from records.

use std::sync::Arc;

use refrain_pool::PooledBuffer;

use super::kept::KeptPieces;

/// Bytes of a piece of content; the last one of a chunk may be shorter.
pub(super) const PIECE_BYTES: u64 = 1 << 20;

/// A piece that is complete.
pub(super) struct Piece {
    pub bytes: Arc<PooledBuffer>,
    /// Who keeps it, if it is needed later: [`KeptPieces::keep`], and until when.
    pub keep: Option<Keep>,
}

/// A piece that has to be kept.
pub(super) struct Keep {
    pub kept: Arc<KeptPieces>,
    pub start: u64,
    pub needed_until: u64,
}
