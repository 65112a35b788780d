//! From archive bytes back to content: frames, maps, the store.

pub(crate) mod block_cache;
pub(crate) mod frames;
pub(crate) mod indexed;
#[cfg(feature = "lrzip")]
pub(crate) mod lrzip;
pub(crate) mod map;
pub(crate) mod packed;
pub(crate) mod piece;
pub(crate) mod scan;
pub(crate) mod store;
pub(crate) mod visitor;
pub(crate) mod walk;
