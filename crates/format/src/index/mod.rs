//! The Index frame: where everything is, so that opening an archive takes two reads from its end and any byte one more.
//!
//! Everything in it repeats what the frames say; `StreamChecker` compares the two for a reader that sees both.

mod check;
mod lookup;
mod rows;
mod table;

pub use rows::{IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexTotals};
pub use table::Index;
