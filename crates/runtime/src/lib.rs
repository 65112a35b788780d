//! Where and when work runs.
//!
//! A [`pool`] of workers runs flows by a [`policy`] (deadlines, latency classes, tenants) on a
//! [`topology`]; [`timer`]s submit to flows. The engine sees little of it: a scoped [`crew()`] with
//! one completion queue, whose hands are flows. Beside them a [`Clock`], [`Cancellation`], locks,
//! large buffers ([`HugeBuffer`], [`BufferPool`]), and what the [`stages`] of the work take.
//!
//! This is the only crate that makes threads, and the only one that reads a clock. Everything else
//! hands closures to a crew and stays a plain function of its inputs.
//!
//! ```
//! use refrain_runtime::{Lane, crew};
//!
//! let words = ["long", "range", "archive"];
//! let total: usize = crew(2, |crew| {
//!     for word in &words {
//!         crew.submit(Lane::Normal, move || word.len());
//!     }
//!     let mut total = 0;
//!     while let Some(event) = crew.next() {
//!         total += event?;
//!     }
//!     Ok::<usize, refrain_runtime::JobPanicked>(total)
//! })?;
//! assert_eq!(total, 16);
//! # Ok::<(), refrain_runtime::JobPanicked>(())
//! ```

mod arenas;
pub mod buffer;
pub mod cancel;
pub mod clock;
pub mod crew;
mod error;
mod executor;
pub mod idle;
pub mod lock;
pub mod once;
pub mod permits;
pub mod policy;
pub mod pool;
mod prefault;
mod queue;
pub mod run_queue;
mod sentinel;
pub mod simulator;
pub mod stages;
mod sync;
mod ticks;
pub mod timer;
pub mod topology;

pub use arenas::share_arenas;
pub use buffer::{BufferPool, HugeBuffer, PooledBuffer};
pub use cancel::Cancellation;
pub use clock::{Clock, MockClock, RealClock};
pub use crew::{Crew, Lane, crew};
pub use error::{Error, JobPanicked};
pub use executor::{Threads, enter_background, in_background, install, install_on};
pub use lock::Lock;
pub use once::OnceValue;
pub use permits::Permits;
pub use sentinel::sentinel;
