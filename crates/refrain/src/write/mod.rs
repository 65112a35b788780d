//! Turns content into archive bytes: see README.md.

mod ending_early;
pub(crate) mod input;
mod log_memory;
pub(crate) mod lrzip;
pub(crate) mod native;
pub(crate) mod pipeline;
mod text_pages;
pub(crate) mod tree;
