//! The next piece of a long answer, read on another thread while the one before is sent.

use std::sync::Arc;

use refrain::Result;
use refrain_pool::in_this_share;
use refrain_sync::{Condvar, Mutex, lock, wait};

use crate::threads::run_on_thread;

/// A buffer, and how much of it was read.
type Piece = (Vec<u8>, Result<usize>);

/// Reads from an offset on.
type Read = dyn Fn(u64, &mut [u8]) -> Result<usize> + Send + Sync;

/// Reads the pieces of one answer ahead.
pub(super) struct PieceReader(Arc<Read>);

/// A piece that is being read.
pub(super) struct PendingPiece(Arc<(Mutex<Option<Piece>>, Condvar)>);

impl PieceReader {
    pub(super) fn new(
        read: impl Fn(u64, &mut [u8]) -> Result<usize> + Send + Sync + 'static,
    ) -> PieceReader {
        PieceReader(Arc::new(read))
    }

    /// Begins to fill `buffer` from `offset` on. `None` if the system refuses a thread: the caller
    /// reads the piece.
    pub(super) fn start(&self, offset: u64, mut buffer: Vec<u8>) -> Option<PendingPiece> {
        let pending = Arc::new((Mutex::new(None), Condvar::new()));
        let filled = Arc::clone(&pending);
        let read = Arc::clone(&self.0);
        run_on_thread(in_this_share(move || {
            let count = read(offset, &mut buffer);
            *lock(&filled.0) = Some((buffer, count));
            filled.1.notify_one();
        }))
        .then_some(PendingPiece(pending))
    }
}

impl PendingPiece {
    pub(super) fn wait(self) -> Piece {
        let mut piece = lock(&self.0.0);
        loop {
            if let Some(piece) = piece.take() {
                return piece;
            }
            piece = wait(&self.0.1, piece);
        }
    }
}
