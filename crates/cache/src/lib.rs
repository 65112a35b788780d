#![doc = include_str!("../README.md")]
//!
//! Values are known by the hash of their content, so they are never out of date, and each is
//! checked when it arrives. A cache is never the only copy: what it does not have, does not deliver
//! in time or delivers damaged is read from the next tier.
//!
//! | module | what |
//! |---|---|
//! | [`key`] | what a value is known by |
//! | [`policy`] | where a read goes, and when elsewhere: decisions only |
//! | [`engine`] | caches that exist: requests and replies as bytes |
//! | [`client`] | nodes, connections, and reads that are on their way |
//! | [`tiers`] | a source behind a disk and shared caches |

pub mod client;
pub mod engine;
pub mod key;
pub mod policy;
pub mod tiers;

pub use client::{Client, Node, Outcome, Read};
pub use engine::Engine;
pub use key::Key;
pub use tiers::{DiskTier, NodeList, SharedTier, TieredSource, Tiers};
