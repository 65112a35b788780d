//! What is recorded.

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// A stage of the work on `argument` bytes.
    Stage = 0,
    /// A worker ran a flow; the argument says why it stopped, a [`TurnEnd`].
    Run = 1,
    /// A worker had nothing to do; the argument is 1 if it slept in the kernel.
    Idle = 2,
    /// A thread waited for a lock; the argument is the source line.
    LockWait = 3,
    /// A thread woke the worker with the number in the argument, for the flow if there is one.
    /// Takes no time.
    Wake = 4,
    /// A thread gave work to a flow that had none. Takes no time.
    Ready = 5,
    /// A thread waited for something other than a lock. The argument is 1 if it was to write.
    Wait = 6,
    /// A thread read `argument` bytes from a file, a pipe or a network.
    Read = 7,
    /// A thread wrote `argument` bytes.
    Write = 8,
    /// The count with this name changed to the argument. Takes no time.
    Count = 9,
}

impl EventKind {
    /// All kinds, by their number.
    pub const ALL: [EventKind; 10] = [
        EventKind::Stage,
        EventKind::Run,
        EventKind::Idle,
        EventKind::LockWait,
        EventKind::Wake,
        EventKind::Ready,
        EventKind::Wait,
        EventKind::Read,
        EventKind::Write,
        EventKind::Count,
    ];

    /// Whether it is a moment and takes no time.
    pub fn is_instant(self) -> bool {
        matches!(self, EventKind::Wake | EventKind::Ready | EventKind::Count)
    }
}

/// Why a worker stopped running a flow: the argument of [`EventKind::Run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TurnEnd {
    /// It has no more jobs for now.
    NoJobs = 0,
    /// Its slice is over; it has more to do.
    SliceOver = 1,
    /// A more urgent flow took the worker; it has more to do.
    Preempted = 2,
    /// It gave the worker away; it has more to do.
    Yielded = 3,
}

/// Something that a thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What it is.
    pub kind: EventKind,
    /// A stage's name, the type that a lock guards, what a wait is for, where reads and writes go,
    /// or what a count counts.
    pub name: &'static str,
    /// The number of the flow; 0 for none.
    pub flow: u32,
    /// When it began, in nanoseconds.
    pub start_ns: u64,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
    /// See [`EventKind`].
    pub argument: u64,
}

/// What one thread did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadTrace {
    /// The name of the thread; empty without one.
    pub name: String,
    /// In the order in which the events ended.
    pub events: Vec<Event>,
    /// The number of events replaced by later ones.
    pub lost: u64,
}
