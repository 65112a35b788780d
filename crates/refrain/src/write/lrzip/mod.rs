#![cfg(feature = "lrzip")]
//! Writing archives of lrzip: the same match stage, another shape.
//!
//! Our extents point into the store, lrzip's matches back into earlier content of their chunk. The store is, but for the
//! patterns of runs, lrzip's stream of literals; [`records`] turns extents into records by where in the content the bytes of the
//! store stand ([`seen`]). Literals and records are cut into blocks, encoded in parallel ([`encode`]), encrypted if that is asked for ([`seal`]), and put one behind the other
//! ([`layout`]) such that the place of the next block of the same stream is known when a block is written: nothing has to be
//! patched, so a pipe is as good as a file. Of what comes through a pipe, old bytes are read again from the blocks ([`reread`]).
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
