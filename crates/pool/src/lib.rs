//! Where and when work runs.
//!
//! A [`pool`] of workers runs flows by a [policy](refrain_policy) (deadlines, latency classes, tenants) on a
//! [topology](refrain_policy::topology); [timers](refrain_timer) submit to flows. The engine sees little of it: a scoped [`crew()`] with
//! one completion queue, whose hands are flows. Beside them a [`Cancellation`], locks,
//! large buffers ([`HugeBuffer`], [`BufferPool`]), and what the [`stages`] of the work take.
//!
//! Only this crate makes threads; only it and `refrain-timer` read a clock. Everything else
//! hands closures to a crew and stays a plain function of its inputs.
//!
//! ```
//! use refrain_pool::{Lane, crew};
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
//!     Ok::<usize, refrain_pool::JobPanicked>(total)
//! })?;
//! assert_eq!(total, 16);
//! # Ok::<(), refrain_pool::JobPanicked>(())
//! ```

mod arenas;
pub mod buffer;
pub mod cancel;
pub mod crew;
mod crew_queue;
mod error;
mod executor;
mod held_locks;
pub mod idle;
mod lane;
pub mod lock;
pub mod once;
pub mod permits;
pub mod pool;
mod prefault;
pub mod run_queue;
pub mod stages;
mod thread;
pub mod timer_thread;

pub use arenas::limit_allocator_arenas;
pub use buffer::{BufferPool, HugeBuffer, PooledBuffer};
pub use cancel::Cancellation;
pub use crew::{Crew, crew};
pub use error::{Error, JobPanicked};
pub use executor::{ExternalThreads, enter_background, in_background, install, install_on};
pub use lane::Lane;
pub use lock::Lock;
pub use once::OnceValue;
pub use permits::Permits;
pub use thread::class::SignalDelivery;
pub use thread::detached::start_detached;
pub use timer_thread::TimerThread;
