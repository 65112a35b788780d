//! Turns at something that one thread at a time does for all that need it.

use std::time::Duration;

use refrain_sync::plain::{Condvar, Mutex};

use crate::held_locks::{SharedHold, holds_lock, must_not_wait};
use crate::pool::state::current::current_worker;
use crate::wanted;

/// How long a thread waits before it looks whether its work is still wanted.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Hands out turns, one at a time. Unlike under a [`Lock`](crate::Lock), more urgent jobs run on
/// top of a job that has its turn, and a turn may take long.
///
/// So in two cases a job of a pool does not wait, and must do without. If a thread outside the pool
/// has the turn: that thread may wait for a job ([`compute`](crate::compute)), and if all workers
/// waited for such threads, the jobs would never run. If the job runs on top of one that has a turn
/// or holds [`Permits`](crate::Permits): those who wait for that one wait for it.
///
/// Who holds a [`Lock`](crate::Lock) must not take a turn.
///
/// Work that is no longer wanted ([`while_wanted`](crate::while_wanted)) does not wait on.
#[derive(Debug, Default)]
pub struct Turns {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    /// Whether a job of a pool has the turn.
    is_in_job: bool,
}

/// A turn, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Turn<'a> {
    turns: &'a Turns,
    _held: SharedHold,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.state.lock().is_taken = false;
        self.turns.freed.notify_one();
    }
}

impl Turns {
    /// Waits until nobody else has a turn. `None`: this is a job that must not wait.
    pub fn take(&self) -> Option<Turn<'_>> {
        debug_assert!(
            !holds_lock(),
            "a job on top of one that has a turn may need the lock"
        );
        let is_in_job = current_worker().is_some();
        let mut state = self.state.lock();
        while state.is_taken {
            if is_in_job && (!state.is_in_job || must_not_wait()) {
                return None;
            }
            let is_taken = |state: &mut State| state.is_taken;
            state = self.freed.wait_while_for(state, LOOK_INTERVAL, is_taken);
            if state.is_taken {
                drop(state);
                wanted::pass_checkpoint();
                state = self.state.lock();
            }
        }
        *state = State {
            is_taken: true,
            is_in_job,
        };
        Some(Turn {
            turns: self,
            _held: SharedHold::new(),
        })
    }
}
