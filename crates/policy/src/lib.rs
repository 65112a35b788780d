#![doc = include_str!("../README.md")]
//!
//! # Duties of a driver
//!
//! A *flow* is a long-lived stream of work (a client, a stage); its [`Entity`] lives as long. A
//! flow sleeps, is queued in a *stripe* (a run queue), or runs on a CPU (a worker). The driver owns
//! one [`Ledger`] (made by [`Policy::ledger`]) and, for each stripe, a set of *lanes*: flows of the
//! same class and tenant ([`Key::lane`]), ordered by key and, among equal keys, by arrival.
//!
//! - A flow is created: [`admit`](Policy::admit).
//! - Work arrives for a sleeping flow: [`wake`](Policy::wake). Queue the flow by its
//!   [`key`](Policy::key) in [`Placement::stripe`], then notify the worker that the placement
//!   names.
//! - A worker is free: [`pick`](Policy::pick) a stripe. Of the first flows of its lanes, take the
//!   one with the least [`rank`](Policy::rank) that the worker [`may_take`](Policy::may_take), then
//!   [`run`](Policy::run) and [`Ledger::dispatched`].
//! - A placement says idle or preempt: count that CPU as taken from now on (not idle, and running
//!   the new flow's key), so that the next wake-up chooses another CPU.
//! - Now and then, if the policy has a [`balance_interval_ns`](Policy::balance_interval_ns): move
//!   queued flows between the CPUs that [`balance`](Policy::balance) names, where they
//!   [`requeue`](Policy::requeue).
//! - A running flow finishes its work or its slice, or yields: [`stop`](Policy::stop) and
//!   [`Ledger::ran`]. If work remains, [`requeue`](Policy::requeue) and queue the flow.

mod accounting;
mod affinity;
mod bfs;
mod class;
mod decision;
mod entity;
mod key;
mod ledger;
mod policy;
mod scheme;
mod spin;
#[cfg(test)]
mod test_support;
pub mod topology;
mod ule;
mod view;

pub use accounting::{Charge, Grant};
pub use bfs::{Base, Bfs, Interactive, PreferredStripe, Tenants};
pub use class::{Class, TENANTS_MAX, TenantId};
pub use decision::{Placement, Stop};
pub use entity::{Entity, History, Latency, Nice};
pub use key::{DEADLINE_STEP_NS, Key, Rank};
pub use ledger::{ISO_LIMIT_PERMILLE, ISO_WINDOW_NS, Ledger, LedgerRules, WEIGHT_DEFAULT};
pub use policy::Policy;
pub use scheme::Scheme;
pub use spin::{SpinLimits, SpinPolicy};
pub use ule::{INTERACTIVE_BELOW, Ule, interactivity};
pub use view::View;
