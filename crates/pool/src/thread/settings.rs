//! The state that every thread of this crate sets for itself when it starts.
//!
//! | state | value |
//! |---|---|
//! | scheduling policy | the process's: `SCHED_OTHER`; in the idle class `SCHED_IDLE` |
//! | nice | the process's: 0, or what `nice(1)` set |
//! | processors | the process's (`taskset(1)`, control groups), or those of them behind one cache |
//! | signals | blocked, except signals that a thread causes itself, and profilers' |
//!
//! "The process's" is the value of its first thread when the pool is made (for other threads: when
//! they are started): what the user of the program chose. A process that was started as
//! `SCHED_BATCH` or `SCHED_IDLE` (`chrt(1)`) stays so with all its threads; real-time policies are
//! not passed on.
//!
//! Leaving `SCHED_IDLE` and lowering a nice value need a privilege (`CAP_SYS_NICE`, or
//! `RLIMIT_NICE`). `start.rs` therefore starts threads from one that is not of the idle class. If
//! all threads of a process are of the idle class, or the thread that starts another one has raised
//! its nice value, and the process has no privilege, the new thread stays as it was made.
//!
//! Signals that are sent to the process are handled by the threads of the program, which do not
//! block them, and by detached threads that request them
//! ([`SignalDelivery::All`](super::class::SignalDelivery::All)).

use std::sync::atomic::{AtomicBool, Ordering};

use super::class::{KernelClass, SignalDelivery};
#[cfg(not(target_os = "linux"))]
use super::elsewhere as system;
#[cfg(target_os = "linux")]
use super::linux as system;

static IS_BACKGROUND_PROCESS: AtomicBool = AtomicBool::new(false);

/// The state of a thread. See the head of the file.
#[derive(Clone)]
pub(crate) struct ThreadSettings {
    class: KernelClass,
    is_batch: bool,
    nice: i32,
    processors: Option<system::Processors>,
    signals: SignalDelivery,
}

impl ThreadSettings {
    /// The process's settings for threads of `class`. In a process that runs in the background,
    /// every thread is of the idle class.
    pub(crate) fn from_process(class: KernelClass) -> ThreadSettings {
        let main = system::main_thread();
        let is_background =
            IS_BACKGROUND_PROCESS.load(Ordering::Relaxed) || system::is_idle_class(main);
        ThreadSettings {
            class: if is_background { KernelClass::Idle } else { class },
            is_batch: system::is_batch(main),
            nice: system::nice_of(main).unwrap_or(0),
            processors: system::processors_of(main),
            signals: SignalDelivery::OwnFaults,
        }
    }

    pub(crate) fn with_class(&self, class: KernelClass) -> ThreadSettings {
        ThreadSettings {
            class: match self.class {
                KernelClass::Normal => class,
                KernelClass::Idle => KernelClass::Idle,
            },
            ..self.clone()
        }
    }

    /// The same state on these of the process's processors.
    pub(crate) fn on_processors(&self, numbers: impl Iterator<Item = u32>) -> ThreadSettings {
        ThreadSettings {
            processors: Some(system::processors_with_numbers(numbers)),
            ..self.clone()
        }
    }

    pub(crate) fn with_signals(self, signals: SignalDelivery) -> ThreadSettings {
        ThreadSettings { signals, ..self }
    }

    pub(crate) fn class(&self) -> KernelClass {
        self.class
    }

    /// Gives the calling thread this state, if the kernel allows it.
    pub(crate) fn apply(&self) {
        system::set_class_and_nice(self.class, self.is_batch, self.nice);
        if let Some(processors) = &self.processors {
            system::set_processors(processors);
        }
        self.apply_signals();
    }

    #[cfg(target_os = "linux")]
    fn apply_signals(&self) {
        /// Signals that a thread causes itself: faults, and writes that cannot succeed. Profilers
        /// send `SIGPROF` to the running thread.
        const OWN: &[libc::c_int] = &[
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGILL,
            libc::SIGTRAP,
            libc::SIGABRT,
            libc::SIGSYS,
            libc::SIGPIPE,
            libc::SIGXFSZ,
            libc::SIGPROF,
        ];
        system::block_signals_except(match self.signals {
            SignalDelivery::OwnFaults => Some(OWN),
            SignalDelivery::All => None,
        });
    }

    #[cfg(not(target_os = "linux"))]
    fn apply_signals(&self) {
        let (SignalDelivery::OwnFaults | SignalDelivery::All) = self.signals;
    }
}

/// Moves the calling thread to the idle class for good, and with it all threads that this crate
/// starts later. Returns whether the kernel agreed.
///
/// Input and output are affected too: a thread without its own input/output priority has the
/// priority of its scheduling class.
pub(crate) fn enter_background() -> bool {
    let is_idle = system::set_class(system::this_thread(), KernelClass::Idle);
    if is_idle {
        IS_BACKGROUND_PROCESS.store(true, Ordering::Relaxed);
    }
    is_idle
}
