//! The Entries frame: a batch of the files and folders inside a tree member, so that listing and reaching one of them
//! needs neither the content nor the tar stream.

mod entry;
mod header;
mod pack;

pub use header::EntriesHeader;
pub use pack::{PackedEntries, entry_batches, pack_entries, unpack_entries};
