//! The shared half of the ticker: how other threads wake it. Its loop is in `../ticker_loop.rs`.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use refrain_sync::atomic::{AtomicBool, Ordering};
use refrain_sync::plain::{Condvar, Mutex, MutexGuard};
use refrain_timer::Notify;

use crate::held_locks;

#[derive(Default)]
struct TickerState {
    thread: Option<JoinHandle<()>>,
    has_news: bool,
    is_closing: bool,
}

/// The ticker of one domain: a thread that reads the clock on behalf of the workers.
#[derive(Default)]
pub(crate) struct Ticker {
    /// Whether it looks at the workers at regular intervals, so that it need not be woken.
    is_watching: AtomicBool,
    state: Mutex<TickerState>,
    news: Condvar,
}

impl Ticker {
    /// Whether it watches the workers. Relaxed: see `Domain::start_watching`.
    #[inline]
    pub(crate) fn is_watching(&self) -> bool {
        self.is_watching.load(Ordering::Relaxed)
    }

    /// Like [`Ticker::is_watching`], ordered with the other calls that use this word.
    pub(crate) fn is_watching_now(&self) -> bool {
        self.is_watching.load(Ordering::SeqCst)
    }

    /// Starts watching; returns whether it did not watch before.
    pub(crate) fn begin_watching(&self) -> bool {
        !self.is_watching.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn set_watching(&self, is_watching: bool) {
        self.is_watching.store(is_watching, Ordering::SeqCst);
    }

    /// Starts the thread with `start` if there is none and the domain is not closing.
    pub(crate) fn ensure_thread(&self, start: impl FnOnce() -> Option<JoinHandle<()>>) {
        let mut state = self.lock();
        if state.thread.is_none() && !state.is_closing {
            state.thread = start();
        }
    }

    /// Wakes the thread, or keeps it from falling asleep.
    pub(crate) fn wake(&self) {
        self.lock().has_news = true;
        self.news.notify_one();
    }

    /// Sleeps until [`Ticker::wake`], at most for `time`. Returns false when the domain closes.
    pub(crate) fn sleep(&self, time: Option<Duration>) -> bool {
        let must_sleep = |state: &mut TickerState| !state.has_news && !state.is_closing;
        let mut state = match time {
            None => self.news.wait_while(self.lock(), must_sleep),
            Some(time) => self.news.wait_while_for(self.lock(), time, must_sleep),
        };
        state.has_news = false;
        !state.is_closing
    }

    /// Ends the thread and joins it, unless it is the caller.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closing = true;
        let thread = state.thread.take();
        drop(state);
        self.news.notify_all();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // It runs no foreign code, so it does not panic.
            let _ = thread.join();
        }
    }

    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, TickerState> {
        // Plain data, valid at every point.
        self.state.lock()
    }
}

/// Wakes the ticker when a timer with an earlier deadline is added.
pub struct TickerWaker(pub(super) Arc<Ticker>);

impl Notify for TickerWaker {
    fn earlier(&self, _worker: usize, _deadline_ns: u64) {
        self.0.wake();
    }

    /// If the change passes a checkpoint, no other job runs on top of it: that job could need the
    /// same timers.
    fn run_locked<R>(&self, change: impl FnOnce() -> R) -> R {
        held_locks::counted(change)
    }
}
