//! Reading archives of the native dialect.

pub(crate) mod block_frame;
pub(crate) mod concatenation;
pub(crate) mod concatenation_walk;
pub(crate) mod digest_check;
mod entry_frames;
pub(crate) mod found_frames;
pub(crate) mod frame_check;
pub(crate) mod frame_index;
pub(crate) mod index_nodes;
pub(crate) mod index_reading;
pub(crate) mod indexed;
mod layout;
mod lost_members;
mod lost_places;
mod map_cache;
pub(crate) mod member_content;
mod member_entries;
mod packed_map;
mod part_plans;
mod remains;
mod repeats;
pub(crate) mod salvage;
pub(crate) mod scan;
pub(crate) mod segment_part;
pub(crate) mod serving;
pub(crate) mod streamed_blocks;
pub(crate) mod walk;
