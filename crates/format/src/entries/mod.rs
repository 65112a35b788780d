//! The Entries frame: a batch of the entries of a tree or a tar stream. With it a reader can list
//! entries, make the tar stream, and locate one entry without reading content.

mod batch;
mod classes;
mod entry;
mod finder;
mod header;
mod list_check;
mod model;
mod pack;
mod section;
mod shape;
mod unpack;

#[cfg(test)]
mod tests;

pub use batch::{ENTRIES_PER_BATCH, entry_batches};
pub(crate) use entry::entry_kind_id;
pub use entry::{check_storable, entries_are_sorted, entry_bytes};
pub use header::EntriesHeader;
pub use list_check::{EntryListChecker, LinkTargets};
#[cfg(any(test, feature = "property"))]
pub(crate) use pack::pack_with_references;
pub use pack::{PackedEntries, pack_entries};
#[cfg(any(test, feature = "property"))]
pub(crate) use unpack::unpack_section;
pub use unpack::{unpack_entries, unpack_entries_within};
