//! The Index frame: the locations of all frames, so that opening an archive takes two reads from
//! its end, and any byte one more.
//!
//! The index repeats what the frames state; [`StreamChecker`](crate::order::StreamChecker) compares
//! the two for a reader that reads both.

mod check;
mod lookup;
mod rows;
mod table;

pub use rows::{IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexTotals};
pub use table::Index;
