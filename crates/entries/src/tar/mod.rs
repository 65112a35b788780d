//! Tar as a view of entries and content, and tar streams taken apart into them.
//!
//! A tar stream is a sequence of *header groups*, data and padding. A group is everything that
//! describes one entry: GNU long names and pax extended headers, the main header, and maps of
//! sparse files.
//!
//! - [`TarView`] gives, entry by entry, the header group, the range of the content and the length
//!   of the padding, the same bytes each time. The *canonical* view, for trees that were read from
//!   a directory, is POSIX.1-2001 pax with the records of GNU tar and star for what pax lacks. The
//!   *recorded* view gives back a tar stream that was taken apart.
//! - [`TarSplitter`] takes a tar stream apart. Every input comes back through the recorded view,
//!   even one that is not tar: bytes outside of entries become entries of kind
//!   [`Raw`](crate::EntryKind::Raw) whose bytes are content.
//!
//! Paths are kept as the tar has them, but a directory has no `/` at its end, so `./` is `.`. A
//! recorded tar may have a path more than once (the last one wins when it is extracted), and hard
//! links to paths that it does not hold.
//!
//! # Recipes
//!
//! The predictor makes a header group from the entry and from the groups before it: same dialect,
//! number formats, owner names and pax records, other fields substituted. The splitter compares it
//! with the group of the stream. `Entry::header_recipe` holds the difference: nothing if they are
//! equal (docs/tar-view.md specifies both). View and splitter call `restart` at the same entries
//! (the starts of frames); the prediction of the entry after it depends on that entry only.

mod acl;
mod canonical;
mod group;
pub(crate) mod pax;
mod predict;
#[cfg(any(test, feature = "property"))]
pub mod property;
mod recipe;
pub(crate) mod record;
mod sparse;
mod split;
#[cfg(test)]
mod tests;
mod view;

pub use record::{RECORD_BYTES, padding_bytes};
pub use split::{
    RAW_PIECE_BYTES, RAW_PIECE_BYTES_MAX, SplitItem, SplitStep, TarSplitter, WINDOW_BYTES_MAX,
    cut_from, is_global_header, looks_like_tar,
};
pub use view::{TarView, ViewError, ViewItem};
