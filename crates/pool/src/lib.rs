#![doc = include_str!("../README.md")]
//!
//! # Parts
//!
//! The engine uses a scoped [`crew()`]: lanes of jobs with one completion queue. The lanes that
//! compute are flows of a [`pool`], which runs them by a [policy](refrain_policy) (deadlines,
//! latency classes, tenants) on a [topology](refrain_policy::topology). [Timers](refrain_timer)
//! submit jobs to flows. A server computes for each client in a [`PoolShare`]. The crate also has
//! [`Event`] (a wait that can end early), [`Cancellation`], [`Lock`], [`Turns`],
//! [`Permits`], [`OnceValue`] and [`OnceCache`], locks over [ranges](range_lock), the buffers
//! [`HugeBuffer`] and [`BufferPool`], and the resources that the [`stages`] of a program use.
//!
//! Other crates do not start threads; they pass closures to a crew and remain pure functions of
//! their inputs.

mod arenas;
pub mod buffer;
pub mod cancel;
#[cfg(not(loom))]
mod coroutine;
pub mod crew;
mod crew_events;
mod error;
mod event;
mod executor;
mod held_locks;
mod histogram;
pub mod idle;
mod input_lane;
mod lane;
mod latency_histogram;
pub mod lock;
pub mod once;
mod once_cache;
pub mod permits;
pub mod pool;
mod pool_share;
mod prefault;
mod processors;
pub mod range_lock;
#[cfg(not(loom))]
mod readiness;
mod refusable;
pub mod run_queue;
pub mod stages;
mod thread;
pub mod trace;
mod turns;
mod wanted;

pub use arenas::{limit_allocator_arenas, return_free_memory, return_large_buffers};
pub use buffer::{BufferPool, HugeBuffer, Pages, PooledBuffer};
pub use cancel::Cancellation;
pub use crew::{Crew, crew};
pub use error::{Error, JobPanicked};
pub use event::Event;
pub use executor::{ExternalThreads, enter_background, in_background, install, install_on};
pub use lane::Lane;
pub use latency_histogram::{LatencyHistogram, SharedHistogram};
pub use lock::Lock;
pub use once::OnceValue;
pub use once_cache::OnceCache;
pub use permits::Permits;
pub use pool_share::{PoolShare, compute, in_this_share};
pub use prefault::prefault;
pub use processors::processors;
pub use range_lock::{RangeLock, SharedOffset};
#[cfg(not(loom))]
pub use readiness::suspend_until_readable;
pub use refusable::{is_refusable, try_reserve_exact};
pub use thread::class::SignalDelivery;
pub use thread::detached::start_detached;
pub use turns::{Turn, Turns};
pub use wanted::{in_any_case, while_wanted};
