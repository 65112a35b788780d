#![cfg(feature = "lrzip")]
//! Writes lrzip archives: the same match stage, another shape.
//!
//! Refrain's extents point into the store; lrzip's matches point back into earlier content of their
//! chunk. Except for the patterns of runs, the store is lrzip's stream of literals. [`records`]
//! turns extents into records, using the positions at which store bytes occur in the content
//! ([`occurrences`]). Literals and records are divided into blocks, encoded in parallel
//! ([`encode`]), encrypted on request ([`encryption`]), and ordered ([`chunk_layout`]) so that when
//! a block is written, the offset of the next block of its stream is known. Nothing is patched
//! later, so the output need not be seekable. Old bytes of non-seekable streams are read again from
//! the blocks ([`retained_blocks`]).
//!
//! ```text
//!  extents ── records ──────────────┐
//!  pages ─┬─ literal blocks ─ encode ┴─ layout ─ sink
//!  patterns of runs ─┘
//! ```

pub(crate) mod assemble;
pub(crate) mod chunk_layout;
pub(crate) mod encode;
pub(crate) mod encryption;
mod occurrences;
pub(crate) mod records;
pub(crate) mod retained_blocks;
mod runs;
