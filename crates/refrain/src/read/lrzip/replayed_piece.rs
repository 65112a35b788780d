//! Pieces of content decoded from records.

use std::sync::Arc;

use refrain_pool::PooledBuffer;

use super::retained::RetainedPieces;

/// The length of a piece of content; the last one of a chunk may be shorter.
pub(super) const PIECE_BYTES: u64 = 1 << 20;

/// A complete piece.
pub(super) struct ReplayedPiece {
    pub bytes: Arc<PooledBuffer>,
    /// Where and how long the piece is retained, if later matches read it.
    pub retention: Option<Retention>,
}

/// The retention of a piece: see [`RetainedPieces::retain`].
pub(super) struct Retention {
    pub pieces: Arc<RetainedPieces>,
    pub start: u64,
    pub needed_until: u64,
}
