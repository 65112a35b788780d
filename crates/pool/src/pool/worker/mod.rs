//! What a worker does: takes flows and runs their jobs, also on top of a preempted job.
//!
//! Each file is an `impl` of [`WorkerContext`](super::state::context::WorkerContext), from low to
//! high: `alarm` looks at timers and slices when time has passed; `turn` runs one flow until it
//! stops; `checkpoint` handles requests, `aside` waits for calls on spare threads, `run_loop` is
//! the thread.

mod alarm;
pub(super) mod aside;
pub(super) mod checkpoint;
pub(super) mod run_loop;
mod turn;
