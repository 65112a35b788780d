//! The index: where all frames are, as trees of nodes, one for each list. The roots are in the End
//! frame; the other nodes are Index frames before it. So opening an archive reads only its end, and
//! a lookup reads one node per level.
//!
//! [`IndexBuilder`] makes the nodes, [`IndexTree`] finds rows in them.

mod builder;
mod coder;
mod list;
mod node;
mod path_search;
mod row_check;
mod rows;
mod slice_search;
mod table;
mod tree;

#[cfg(any(test, feature = "property"))]
pub mod property;
#[cfg(test)]
mod tests;

pub use builder::{IndexBuilder, NAMES_FROM, NODE_TARGET_BYTES};
pub use list::IndexList;
pub use node::{IndexNode, NodeRows};
pub use rows::{
    ChildNode, FrameSpan, IndexBlock, IndexEntries, IndexEpoch, IndexMember, IndexName, IndexSlice,
    RowKey,
};
pub use table::Index;
pub use tree::{IndexTree, NodeSource};

pub(crate) use node::parse_roots;
