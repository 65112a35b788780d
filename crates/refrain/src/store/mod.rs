//! What both directions use: pages, packed blocks, workspaces, the coding of blocks, frames that are read.

pub(crate) mod block;
pub(crate) mod coding;
pub(crate) mod exact_read;
pub(crate) mod frames;
pub(crate) mod lrzip;
pub(crate) mod packed;
pub(crate) mod page;
pub(crate) mod workspaces;
