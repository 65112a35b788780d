#![cfg(feature = "lrzip")]
//! Writing archives of lrzip: the same match stage, another shape.
//!
//! Refrain's extents point into the store, lrzip's matches back into earlier content of their
//! chunk. The store is, except for the patterns of runs, lrzip's stream of literals. [`records`]
//! turns extents into records, using the positions at which store bytes occur in the content
//! ([`occurrences`]). Literals and records are divided into blocks, encoded in parallel
//! ([`encode`]), encrypted on request ([`encryption`]), and ordered ([`layout`]) such that the
//! offset of the next block of the same stream is known when a block is written. Nothing is patched
//! later, so the output need not be seekable. Old bytes of non-seekable streams are read again from
//! the blocks ([`retained_blocks`]).
//!
//! ```text
//!  extents ── records ──────────────┐
//!  pages ─┬─ literal blocks ─ encode ┴─ layout ─ sink
//!  patterns of runs ─┘
//! ```

pub(crate) mod assemble;
pub(crate) mod encode;
pub(crate) mod encryption;
pub(crate) mod layout;
mod occurrences;
pub(crate) mod records;
pub(crate) mod retained_blocks;
mod runs;
