//! The Extents frame: how an epoch of content is put together from the store.
//!
//! An extent says "the next so many bytes of content are" the next fresh bytes of the store, a copy of earlier store bytes,
//! or a repeated pattern. A copy names store bytes, never another extent: one look-up gives any byte.

mod extent;
mod header;
mod pack;

pub use extent::{Extent, Pattern};
pub use header::ExtentsHeader;
pub use pack::{ExtentPacker, ExtentReader, PackedExtents, pack_extents, unpack_extents};
