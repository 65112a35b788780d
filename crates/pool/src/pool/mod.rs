//! Worker threads that run flows by the [policy](refrain_policy).
//!
//! A [`Flow`] is a long-lived stream of jobs: the unit that the policy schedules. A job that takes
//! longer than some tens of microseconds calls [`checkpoint`] at regular intervals, so that more
//! urgent flows can run on top of it. `README.md` beside this file follows a wake-up from
//! submission to run, and shows why none is lost.
//!
//! ```
//! use refrain_policy::{Class, Entity};
//! use refrain_pool::pool::{Options, Pool, checkpoint};
//!
//! let pool = Pool::start(Options::with_workers(2))?;
//! let background = pool.flow(Entity::new(Class::Idle));
//! let sum = background.spawn(|| {
//!     let mut sum = 0u64;
//!     for number in 0..1000 {
//!         sum += number;
//!         checkpoint();
//!     }
//!     sum
//! });
//! let urgent = pool.flow(Entity::new(Class::Iso));
//! assert_eq!(urgent.run(|| 6 * 7)?, 42);
//! assert_eq!(sum.wait()?, 499_500);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod borrowed;
mod dispatch;
mod flow;
pub(crate) mod inheritance;
pub(crate) mod job;
#[cfg(all(test, loom))]
mod models;
mod of_process;
pub(crate) mod state;
pub(crate) mod tenants;
#[cfg(all(test, not(loom)))]
mod tests;
mod threads;
mod timer_job;
mod watch;
#[cfg(all(test, loom))]
mod watch_models;
mod worker;
pub(crate) mod worker_pool;

pub use crate::histogram::{Histogram, TimeHistogram};
pub use job::{JobError, JobHandle};
pub use refrain_timer::TimerId;
pub use state::current::current_worker;
pub use state::domain::Flow;
pub use worker::aside::{aside, beside};
pub use worker::checkpoint::checkpoint;
pub use worker_pool::{Options, Pool};
