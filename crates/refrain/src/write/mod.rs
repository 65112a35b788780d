//! From content to archive bytes: see README.md.

pub(crate) mod input;
pub(crate) mod lrzip;
pub(crate) mod native;
pub(crate) mod pipeline;
mod tree_source;
