//! Directories and tar streams as entries and content: see README.md.

pub(crate) mod batch;
pub(crate) mod batch_bytes;
pub(crate) mod content;
pub(crate) mod directory_tar;
pub(crate) mod entry_list;
pub(crate) mod feed;
pub(crate) mod file_data;
mod jobs;
pub(crate) mod known;
mod noted_code;
pub(crate) mod order;
#[cfg(test)]
mod prefix_tests;
pub(crate) mod reread;
pub(crate) mod runs;
pub(crate) mod tar_feed;
pub(crate) mod tar_reader;
pub(crate) mod tar_runs;
pub(crate) mod unchanged;
mod window;
