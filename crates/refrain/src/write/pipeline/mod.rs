//! The compressing pipeline: one coordinator that decides, workers that compute.
//!
//! ```text
//!  read + hash + scan ─┐ per segment, ahead of everything
//!  repeats in epoch   ─┤ per epoch
//!  verify, extend     ─┤ per batch of segments, when the index holds all epochs before
//!  settle             ─┘ serial: extents, store, index
//!  encode blocks         per block, in the background; encode extents
//!  write                 in order
//! ```
//!
//! Workers finish in any order; everything that shapes the archive happens in the order of content, here. Memory is bounded
//! by what the coordinator lets begin: content that is read and not settled, blocks that are filled and not written.

pub(crate) mod assembly;
pub(crate) mod budget;
pub(crate) mod context;
pub(crate) mod coordinator;
pub(crate) mod encode_queue;
pub(crate) mod history;
pub(crate) mod intake;
pub(crate) mod packed_blocks;
pub(crate) mod page_cache;
pub(crate) mod reach;
pub(crate) mod recipe;
pub(crate) mod run;
pub(crate) mod segments;
pub(crate) mod settle;
