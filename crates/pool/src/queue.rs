//! The queue between the coordinator and its hands: one lock, lanes in, events out.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::JobPanicked;
use crate::lane::Lane;
use crate::pool::job::Step;

/// What a job leaves behind: its event, or the panic that ended it.
pub(crate) type Outcome<E> = Result<E, JobPanicked>;

pub(crate) type Job<'env, E> = Box<dyn FnOnce() -> E + Send + 'env>;

/// Lanes that are served by the same threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Station {
    Compute,
    Input,
    Output,
}

impl Station {
    pub(crate) const COUNT: usize = 3;
    /// The order in which a coordinator without threads serves them: what is finished leaves first
    /// and new input is let in last, so that the least is held in between.
    pub(crate) const DRAIN_ORDER: [Station; Station::COUNT] =
        [Station::Output, Station::Compute, Station::Input];

    pub(crate) fn of(lane: Lane) -> Station {
        match lane {
            Lane::Urgent | Lane::Normal | Lane::Background => Station::Compute,
            Lane::Input => Station::Input,
            Lane::Output => Station::Output,
        }
    }

    /// The lanes served here, most urgent first.
    fn lanes(self) -> &'static [Lane] {
        match self {
            Station::Compute => &[Lane::Urgent, Lane::Normal, Lane::Background],
            Station::Input => &[Lane::Input],
            Station::Output => &[Lane::Output],
        }
    }
}

/// Runs one job; a panic becomes an outcome.
// AssertUnwindSafe: the job owns what it touches or borrows it shared; what it owned is dropped by
// the unwinding, so nobody can see it half changed except through the job's own shared state.
pub(crate) fn run<E>(lane: Lane, job: Job<'_, E>) -> Outcome<E> {
    catch_unwind(AssertUnwindSafe(job)).map_err(|payload| JobPanicked::new(lane, &*payload))
}

struct State<'env, E> {
    lanes: [VecDeque<Job<'env, E>>; Lane::COUNT],
    outcomes: VecDeque<Outcome<E>>,
    /// Hands that found no job, the one that rests for the shortest time last.
    resting: Vec<usize>,
    /// Threads of blocking stations asleep per station that nobody has woken yet. May count too many after a spurious
    /// wake-up (the cost is a wake-up of nobody), never too few (the cost would be a lost one).
    sleeping: [usize; Station::COUNT],
    /// Compute hands.
    hands: usize,
    coordinator_waits: bool,
    closed: bool,
}

/// So many outcomes wait for the coordinator, at most, before it is woken.
const OUTCOMES_WAITING_MAX: usize = 8;

impl<'env, E> State<'env, E> {
    /// Jobs of a station that no worker has started.
    fn waiting(&self, station: Station) -> usize {
        let lanes = station.lanes().iter();
        lanes.map(|&lane| self.lanes[lane as usize].len()).sum()
    }

    fn take(&mut self, station: Station) -> Option<(Lane, Job<'env, E>)> {
        let lanes = station.lanes().iter();
        lanes.copied().find_map(|lane| {
            let job = self.lanes[lane as usize].pop_front()?;
            Some((lane, job))
        })
    }
}

/// The shared queue. Jobs run and drop outside its lock, so the lock is never poisoned by them.
pub(crate) struct Queue<'env, E> {
    state: Mutex<State<'env, E>>,
    work: [Condvar; Station::COUNT],
    outcome: Condvar,
}

impl<'env, E> Queue<'env, E> {
    pub(crate) fn new() -> Self {
        Queue {
            state: Mutex::new(State {
                lanes: std::array::from_fn(|_| VecDeque::new()),
                outcomes: VecDeque::new(),
                resting: Vec::new(),
                sleeping: [0; Station::COUNT],
                hands: 0,
                coordinator_waits: false,
                closed: false,
            }),
            work: std::array::from_fn(|_| Condvar::new()),
            outcome: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<'env, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job and wakes one sleeper of its station, if there is one: a thread that blocks itself, a hand by the caller, who gets its
    /// number.
    #[must_use]
    pub(crate) fn push(&self, lane: Lane, job: Job<'env, E>) -> Option<usize> {
        let station = Station::of(lane) as usize;
        let mut state = self.lock();
        state.lanes[lane as usize].push_back(job);
        if station == Station::Compute as usize {
            return state.resting.pop();
        }
        let wake = state.sleeping[station] > 0;
        if wake {
            state.sleeping[station] -= 1;
        }
        drop(state);
        if wake {
            self.work[station].notify_one();
        }
        None
    }

    /// One more hand: its number. It does not rest yet.
    pub(crate) fn hire(&self) -> usize {
        let mut state = self.lock();
        state.hands += 1;
        state.hands - 1
    }

    /// What a hand does when it is its turn: one job, if there is one. A hand that finds none rests, and is called with the next job.
    pub(crate) fn work(&self, hand: usize) -> Step {
        let mut state = self.lock();
        if state.closed {
            return Step::Done;
        }
        let Some((lane, job)) = state.take(Station::Compute) else {
            state.resting.push(hand);
            self.wake_coordinator_for_rest(&mut state);
            return Step::Done;
        };
        drop(state);
        let outcome = run(lane, job);
        self.deliver(Station::Compute, outcome);
        Step::Again
    }

    /// Whoever finds nothing to do sees to it that outcomes do not wait longer.
    fn wake_coordinator_for_rest(&self, state: &mut State<'env, E>) {
        if !state.outcomes.is_empty() && std::mem::take(&mut state.coordinator_waits) {
            self.outcome.notify_one();
        }
    }

    /// Jobs that no worker has started.
    pub(crate) fn queued(&self) -> usize {
        self.lock().lanes.iter().map(VecDeque::len).sum()
    }

    /// The life of a thread that blocks: serve one station until the queue closes.
    pub(crate) fn serve(&self, station: Station) {
        while let Some((lane, job)) = self.wait_for_job(station) {
            let outcome = run(lane, job);
            self.deliver(station, outcome);
        }
    }

    fn wait_for_job(&self, station: Station) -> Option<(Lane, Job<'env, E>)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(found) = state.take(station) {
                return Some(found);
            }
            state.sleeping[station as usize] += 1;
            self.wake_coordinator_for_rest(&mut state);
            state = self.work[station as usize]
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Leaves an outcome for the coordinator, and wakes it if that cannot wait.
    ///
    /// A compute outcome can while there is a next job for every hand: each wake-up takes a processor from one of
    /// them, so the coordinator rather comes for a few outcomes at once. A hand that finds no job wakes it in any case.
    /// Blocking jobs take long and may wait for the world outside; nothing waits behind them.
    fn deliver(&self, station: Station, outcome: Outcome<E>) {
        let mut state = self.lock();
        state.outcomes.push_back(outcome);
        let is_busy = station == Station::Compute && state.waiting(station) >= state.hands;
        let wake =
            state.coordinator_waits && (!is_busy || state.outcomes.len() >= OUTCOMES_WAITING_MAX);
        state.coordinator_waits &= !wake;
        drop(state);
        if wake {
            self.outcome.notify_one();
        }
    }

    /// The next job of a station, without waiting: for a coordinator that has to serve it itself.
    pub(crate) fn take(&self, station: Station) -> Option<(Lane, Job<'env, E>)> {
        self.lock().take(station)
    }

    /// The next outcome, if one is there.
    pub(crate) fn try_outcome(&self) -> Option<Outcome<E>> {
        self.lock().outcomes.pop_front()
    }

    /// Waits for an outcome, at most for `patience`. The caller knows that one is coming.
    pub(crate) fn wait_for_outcome(&self, patience: Option<Duration>) -> Option<Outcome<E>> {
        // Asked under the lock, before every sleep and after every wake-up.
        let keep_waiting = |state: &mut State<'env, E>| {
            state.coordinator_waits = state.outcomes.is_empty();
            state.coordinator_waits
        };
        let state = self.lock();
        let mut state = match patience {
            None => self
                .outcome
                .wait_while(state, keep_waiting)
                .unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                self.outcome
                    .wait_timeout_while(state, patience, keep_waiting)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
        state.coordinator_waits = false;
        state.outcomes.pop_front()
    }

    /// Tells the workers to go home and drops what nobody started.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let unstarted: Vec<_> = state.lanes.iter_mut().map(std::mem::take).collect();
        drop(state);
        for condvar in &self.work {
            condvar.notify_all();
        }
        // Outside the lock: dropping a job may drop large buffers, or run code of its owner.
        drop(unstarted);
    }
}
