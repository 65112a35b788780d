//! The Extents frame: how an epoch of content is assembled from the store.
//!
//! An extent states that the next bytes of content are the next fresh bytes of the store, a copy of
//! earlier store bytes, a repeated pattern, or a reference to content that earlier epochs describe.
//! A copy refers to store bytes; a reference stands for the extents of its source, at a limited
//! depth.

mod extent;
mod header;
mod pack;

pub use extent::{Extent, Pattern};
pub use header::ExtentsHeader;
pub use pack::{
    ExtentPacker, ExtentPosition, ExtentReader, PackedExtents, pack_extents, unpack_extents,
};
