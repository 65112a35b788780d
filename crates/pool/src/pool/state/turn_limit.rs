//! How many workers may run the flows of one group at once.

use refrain_sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct TurnLimit {
    turns: AtomicUsize,
    turns_max: usize,
}

impl TurnLimit {
    /// A limit of `turns_max` workers, at least one.
    pub(crate) fn new(turns_max: usize) -> TurnLimit {
        TurnLimit {
            turns: AtomicUsize::new(0),
            turns_max: turns_max.max(1),
        }
    }

    pub(crate) fn try_begin(&self) -> bool {
        let begin = |turns: usize| (turns < self.turns_max).then_some(turns + 1);
        self.turns
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, begin)
            .is_ok()
    }

    /// Ends a turn. Returns whether no other could have begun before.
    pub(crate) fn end(&self) -> bool {
        self.turns.fetch_sub(1, Ordering::SeqCst) >= self.turns_max
    }
}
