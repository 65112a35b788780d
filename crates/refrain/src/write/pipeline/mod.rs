//! The compression pipeline shared by the writers of both dialects: one coordinator decides,
//! workers compute.
//!
//! ```text
//!  read + hash + scan ─┐ per segment, ahead of everything
//!  repeats in epoch   ─┤ per epoch
//!  verify, extend     ─┤ per batch of segments, once the index holds all epochs before
//!  commit             ─┘ serial: extents, store, index
//!  encode blocks         per block, in the background; encode extents
//!  write                 in order
//! ```
//!
//! Workers finish in any order. Everything that shapes the archive happens in content order, in the
//! coordinator. It bounds memory by what it starts: content read and not committed, blocks filled
//! and not written. See the README beside `write/`.

pub(crate) mod ahead;
pub(crate) mod assembly;
pub(crate) mod budget;
pub(crate) mod commit;
pub(crate) mod context;
pub(crate) mod coordinator;
pub(crate) mod copy_cache;
pub(crate) mod earlier;
pub(crate) mod earlier_store;
pub(crate) mod encode_queue;
pub(crate) mod feed;
pub(crate) mod history;
pub(crate) mod history_policy;
pub(crate) mod holes;
pub(crate) mod intake;
pub(crate) mod page_cache;
pub(crate) mod page_spill;
pub(crate) mod pieces;
pub(crate) mod reach;
pub(crate) mod recipe;
pub(crate) mod refusals;
pub(crate) mod refused_jobs;
pub(crate) mod run;
pub(crate) mod segments;
pub(crate) mod trails;
