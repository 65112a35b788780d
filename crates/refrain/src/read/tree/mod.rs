//! Reads trees as tar views or restores them as files. See README.md.

pub(crate) mod chosen;
pub(crate) mod content;
pub(crate) mod decoded_frames;
pub(crate) mod entry_data;
pub(crate) mod entry_memory;
pub(crate) mod frame_entries;
pub(crate) mod parallel;
pub(crate) mod part;
pub(crate) mod path_order;
pub(crate) mod raw_parts;
pub(crate) mod read_hash;
pub(crate) mod rebased;
pub(crate) mod recovery;
pub(crate) mod restore;
pub(crate) mod spill;
pub(crate) mod view;
pub(crate) mod view_frames;
pub(crate) mod view_range;
