//! Recovery data: Reed-Solomon parity over the bytes of a file, whatever they are.
//!
//! The protected bytes are cut into *slices*, and the slices into *rows* of equal length, one after
//! the other in the file. A *column* is the slice at the same place of every row: the unit that is
//! encoded and healed on its own. So a burst at any place costs all columns about the same, and a
//! lost sector costs one column one slice. `docs/recovery.md` specifies everything to the byte.
//!
//! | file | what |
//! |---|---|
//! | [`parameters`] | how many slices, rows and columns a file has; which numbers are accepted |
//! | [`code`] | parity of columns, and lost rows from it |
//! | [`digest`] | the digest of a slice, by which it is known and found |
//! | [`table`] | the digests of all slices, cut into pieces that survive damage themselves |
//! | [`search`] | finds intact slices in damaged bytes, also if bytes were inserted or lost |
//!
//! Nothing here reads files: a search reads through a closure, and the caller reads and writes the
//! rest.

pub mod code;
pub mod digest;
pub mod parameters;
#[cfg(any(test, feature = "property"))]
pub mod property;
pub mod search;
pub mod table;

pub use code::{ColumnDecoder, ColumnEncoder, NotEnough};
pub use digest::slice_digest;
pub use parameters::{
    BadParameters, PARITY_ROWS_MIN, PIECE_GROUPS, RecoveryParameters, SHARE_MAX, SHARE_MIN,
};
pub use search::{ReadAt, SliceIndex, SlicePlaces};
pub use table::DigestTable;

#[cfg(test)]
mod tests;
