//! What is recorded.

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// A stage of the work, on so many bytes.
    Stage = 0,
    /// A worker ran a flow; the argument is why the turn ended, a [`TurnEnd`].
    Run = 1,
    /// A worker had nothing to do; the argument is 1 if it slept in the kernel.
    Idle = 2,
    /// A thread waited for a lock, in the source line that is the argument.
    LockWait = 3,
    /// A thread woke the worker whose number is the argument, for the flow if there is one. Takes
    /// no time.
    Wake = 4,
    /// A thread gave work to a flow that had none. Takes no time.
    Ready = 5,
    /// A thread waited for something that is no lock. The argument is 1 if it was to write.
    Wait = 6,
    /// A thread read so many bytes from a file, a pipe or a network.
    Read = 7,
    /// A thread wrote so many bytes.
    Write = 8,
    /// What the name counts is now the argument. Takes no time.
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

/// Why a worker stopped to run a flow: the argument of [`EventKind::Run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TurnEnd {
    /// It has no job left until it gets the next one.
    NoJobs = 0,
    /// It has none, and has handed the worker over to another flow.
    HandedOver = 1,
    /// Its slice is over; it has more to do.
    SliceOver = 2,
    /// A more urgent flow took the worker; it has more to do.
    Preempted = 3,
    /// It gave the worker away; it has more to do.
    Yielded = 4,
}

/// Something that a thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What it is.
    pub kind: EventKind,
    /// Of a stage its name, of a lock the type that it guards, of a wait what for, of reads and
    /// writes where, of a count what it counts.
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
    /// The events that were replaced by later ones.
    pub lost: u64,
}
