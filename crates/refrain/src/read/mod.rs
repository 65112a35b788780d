//! Turns archive bytes back into content: see README.md.

pub(crate) mod archive_layout;
pub(crate) mod block_cache;
pub(crate) mod cache_shards;
pub(crate) mod content_check;
pub(crate) mod content_limit;
pub(crate) mod content_visitor;
pub(crate) mod damage_log;
pub(crate) mod decode_memory;
pub(crate) mod epoch_map;
mod failed_blocks;
pub(crate) mod foreign;
pub(crate) mod generations;
pub(crate) mod lost_entries;
pub(crate) mod lrzip;
pub(crate) mod native;
pub(crate) mod opened_archive;
pub(crate) mod proven_members;
pub(crate) mod range_read;
pub(crate) mod read_control;
pub(crate) mod read_statistics;
pub(crate) mod serving_memory;
pub(crate) mod shared_caches;
pub(crate) mod shared_memory;
pub(crate) mod store_reader;
mod store_remains;
pub(crate) mod tree;
pub(crate) mod work_meter;
