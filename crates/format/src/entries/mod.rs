//! The Entries frame: a batch of the files, directories and links of a tree member, so that a
//! reader can list them and locate one without the content or the tar stream.

mod entry;
mod header;
mod pack;

pub use entry::entries_are_sorted;
pub use header::EntriesHeader;
pub use pack::{PackedEntries, entry_batches, pack_entries, unpack_entries};
