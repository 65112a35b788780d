//! The turns of two threads, only one of which runs at a time.

use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::entry::TurnStart;
use crate::held_locks::locks_held;

pub(super) enum Turn {
    /// The entering code, or nobody.
    Outside,
    /// The coroutine, which was entered but has not noticed yet.
    Entered(TurnStart),
    /// The coroutine.
    Inside,
    /// The coroutine, which must unwind its stack.
    Unwinding,
    /// The coroutine has ended.
    Ended,
}

pub(super) struct Handoff {
    turn: Mutex<Turn>,
    changed: Condvar,
}

impl Default for Handoff {
    fn default() -> Self {
        Handoff {
            turn: Mutex::new(Turn::Outside),
            changed: Condvar::new(),
        }
    }
}

impl Handoff {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, turn: Turn) {
        *self.lock() = turn;
        self.changed.notify_all();
    }

    /// Waits until the coroutine is entered; `None` if it must unwind its stack.
    pub(super) fn wait_inside(&self) -> Option<TurnStart> {
        let is_outside = |turn: &mut Turn| matches!(turn, Turn::Outside);
        let turn = self.changed.wait_while(self.lock(), is_outside);
        let mut turn = turn.unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *turn, Turn::Inside) {
            Turn::Entered(entry) => Some(entry),
            _ => None,
        }
    }

    /// Waits until the coroutine has suspended or ended; returns whether it has ended.
    pub(super) fn wait_outside(&self) -> bool {
        let is_inside = |turn: &mut Turn| !matches!(turn, Turn::Outside | Turn::Ended);
        let turn = self.changed.wait_while(self.lock(), is_inside);
        let turn = turn.unwrap_or_else(PoisonError::into_inner);
        matches!(*turn, Turn::Ended)
    }
}

/// The payload of the panic that unwinds the stack of a dropped coroutine.
struct ForcedUnwind;

pub(super) struct ThreadYielder(pub(super) Arc<Handoff>);

impl ThreadYielder {
    pub(super) fn suspend(&self) -> TurnStart {
        // The coroutine has this thread to itself, so all of its locks belong to it.
        if locks_held() > 0 {
            return TurnStart::REFUSED;
        }
        self.0.set(Turn::Outside);
        match self.0.wait_inside() {
            Some(entry) => entry,
            // Does not run the panic hook: it is not a real panic.
            None => resume_unwind(Box::new(ForcedUnwind)),
        }
    }
}
