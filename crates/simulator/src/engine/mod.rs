//! The event loop: arrivals, starts and stops in the order of their times.
//!
//! `event_loop` has the engine and its loop. The files `arrivals`, `dispatch`, `progress` and
//! `accounting` add the handlers of events to it.

mod accounting;
mod arrivals;
mod balance;
mod dispatch;
mod event_loop;
mod job;
mod machine;
mod progress;
mod running;
mod state;

pub(crate) use event_loop::Engine;
