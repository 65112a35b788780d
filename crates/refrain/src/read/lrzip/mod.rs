#![cfg(feature = "lrzip")]
//! lrzip's archives: the same content, store, extents and blocks by another description.
//!
//! The literals of all chunks are the store. Records become extents: a match is followed through the extents of its source to the
//! store, as the match stage does when it writes an archive, and a match that overlaps itself becomes a fill. What comes of
//! that are the maps and the store that the native dialect has, so any range can be read, content is made in parallel, and
//! memory holds pages of the store and no output. The literals of a block can only be opened from its front; the blocks are often
//! larger than memory, so they are opened as streams, a page at a time.
//!
//! | file | what |
//! |---|---|
//! | `input` | the archive's bytes, from a file or a pipe |
//! | `items` | decryption |
//! | `layout` | chunks and blocks |
//! | `coded` | one block as a stream of raw bytes |
//! | `literals` | the store, in pages |
//! | `records` | the records of a chunk |
//! | `survey` | what records add up to, and which content they read when |
//! | `replay`, `kept` | records to bytes: everything from front to back |
//! | `flatten` | records to extents: ranges, and what does not fit in memory |
//! | `epochs` | all of it in order: one piece or map after the other |
//! | `ahead` | which pages are opened next |
//! | `walk` | everything, from front to back |
//! | `random` | any range |
//! | `heads` | what it is made of, without opening anything |
//! | `unfilter` | ranges behind a filter |
//! | `digest` | MD5 and CRC-32 of content |

mod ahead;
mod coded;
mod digest;
mod epochs;
mod flatten;
pub(crate) mod heads;
mod input;
mod items;
mod kept;
mod layout;
mod literals;
mod map_building;
mod member;
mod page_access;
mod piece;
pub(crate) mod random;
mod records;
mod replay;
mod share;
mod survey;
mod unfilter;
pub(crate) mod walk;
