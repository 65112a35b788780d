//! The Entries frame: a batch of the entries of a tree or a tar stream, so that a reader can list
//! them, make the tar stream, and locate one entry without reading content.

mod batch;
mod classes;
mod entry;
mod finder;
mod header;
mod model;
mod pack;
mod section;
mod shape;
mod unpack;

#[cfg(test)]
mod tests;

pub use batch::entry_batches;
pub use entry::entries_are_sorted;
pub use header::EntriesHeader;
pub use pack::{PackedEntries, pack_entries};
pub use unpack::unpack_entries;
