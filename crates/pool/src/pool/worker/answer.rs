//! What a worker does at a checkpoint where somebody asked for something.

use refrain_timer::sync::atomic::Ordering;

use super::{Local, Work};
use crate::lock::locks_held;
use crate::pool::signal::{BEAT, GIVE_WAY, LENT, MEASURE, SLICE_OVER};
use crate::pool::system::KernelClass;
use crate::pool::{Pace, system};

/// Jobs that lie on one another's stack frames, at most. Each is more urgent than the one below, so depth takes as many
/// kinds of urgency; the bound is for the stack.
const NESTING_MAX: u32 = 8;

impl Local {
    /// Nobody waits for this worker any more: it is shown and run again as what it is.
    pub(crate) fn give_back(&self) {
        self.worker.signal.clear(LENT);
        let frame = self.frame.borrow();
        if frame.flow.is_some() {
            self.worker.show(frame.key, frame.nice, frame.slice_end_ns);
        }
        if self.domain.kernel_class() == KernelClass::Idle {
            system::set_class(self.worker.thread(), KernelClass::Idle);
        }
    }

    pub(super) fn note_answer(&self, asked_ns: Option<u64>, now_ns: u64) {
        if let Some(asked_ns) = asked_ns {
            self.worker.responses.add(now_ns.saturating_sub(asked_ns));
        }
    }

    /// Whether somebody asked this worker for something.
    #[inline(always)]
    pub(crate) fn is_asked(&self) -> bool {
        self.worker.signal.word() != 0
    }

    /// The slow half of a checkpoint: shares forks, lets more urgent flows run first, on top of this one.
    #[cold]
    pub(crate) fn answer(&self) -> Pace {
        let signal = &self.worker.signal;
        let word = signal.word();
        let now_ns = self.read_clock();
        self.keep_order();
        if word & MEASURE != 0 {
            self.worker
                .gaps
                .add(now_ns.saturating_sub(self.passed_ns.replace(now_ns)));
        }
        if word & BEAT != 0 {
            self.share_fork();
        }
        if word & LENT != 0 && locks_held() == 0 {
            self.give_back();
        }
        // Who holds a lock goes on: whoever ran on top could need it, and would wait for ever.
        if word & (GIVE_WAY | SLICE_OVER) == 0 || locks_held() > 0 {
            return Pace::Go;
        }
        self.note_answer(signal.answer(GIVE_WAY | SLICE_OVER), now_ns);
        self.run_more_urgent(now_ns);
        if word & SLICE_OVER != 0 {
            // Once told is enough.
            self.worker.slice_end_ns.store(u64::MAX, Ordering::Relaxed);
            return Pace::GiveWay;
        }
        Pace::Go
    }

    fn run_more_urgent(&self, mut now_ns: u64) {
        if self.is_between_flows() {
            return;
        }
        let key = self.frame.borrow().key;
        while self.depth.get() < NESTING_MAX {
            let Some(entry) = self.take(Some(key)) else {
                return;
            };
            self.depth.set(self.depth.get() + 1);
            self.worker.counters.nested.add(1);
            self.run(Work::Entry(entry));
            self.depth.set(self.depth.get() - 1);
            let end_ns = self.read_clock();
            let nested_ns = end_ns.saturating_sub(now_ns);
            let mut frame = self.frame.borrow_mut();
            frame.nested_ns = frame.nested_ns.saturating_add(nested_ns);
            // Its slice is its own.
            frame.slice_end_ns = frame.slice_end_ns.saturating_add(nested_ns);
            self.worker
                .slice_end_ns
                .store(frame.slice_end_ns, Ordering::Relaxed);
            drop(frame);
            now_ns = end_ns;
            self.passed_ns.set(now_ns);
        }
    }
}
