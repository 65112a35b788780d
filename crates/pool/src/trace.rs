//! What the pool records for a timeline.

use refrain_timer::ticks::thread_now_ns;
use refrain_trace::{Event, EventKind, record};

/// The present time if events are recorded.
#[inline(always)]
pub(crate) fn begin() -> Option<u64> {
    refrain_trace::is_on().then(thread_now_ns)
}

/// Records what began at `start_ns` and ends now.
#[cold]
pub(crate) fn span(kind: EventKind, name: &'static str, start_ns: u64, argument: u64) {
    record(Event {
        kind,
        name,
        start_ns,
        duration_ns: thread_now_ns().saturating_sub(start_ns),
        argument,
    });
}

/// Records something that takes no time.
#[inline(always)]
pub(crate) fn instant(kind: EventKind, argument: u64) {
    if let Some(start_ns) = begin() {
        record(Event {
            kind,
            name: "",
            start_ns,
            duration_ns: 0,
            argument,
        });
    }
}
