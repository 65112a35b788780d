//! The scheduling classes and signals of threads.

/// The kernel's number of a thread; 0 where threads have no numbers.
pub(crate) type ThreadId = i32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelClass {
    /// The process's class: `SCHED_OTHER`, unless its user chose another one
    /// ([`settings`](super::settings)).
    Normal,
    /// `SCHED_IDLE`: any thread of another class that wakes takes the processor away at once.
    Idle,
}

/// The signals that a thread handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalDelivery {
    /// Only signals that the thread causes itself, such as faults. All others are blocked, so that
    /// the program's threads handle them.
    OwnFaults,
    /// All signals: for the thread that handles them.
    All,
}
