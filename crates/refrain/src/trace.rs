//! What every thread does and when: [`start`], work, [`stop`], [`collect`].

pub use refrain_trace::{Event, EventKind, ThreadTrace, TurnEnd, collect, is_on, start, stop};
