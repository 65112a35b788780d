//! The members and entries of an archive as one tree of files and directories.
//!
//! The root holds the members under their names; a name with slashes leads through directories. A
//! directory or tar member is a directory that holds its entries, any other member a file. So a
//! path is MEMBER or MEMBER/PATH.
//!
//! Entries of a directory ascend by path over frames that the index finds by path. Therefore a node
//! is a position in that list, its number follows from the position, and the children of a
//! directory are found by skipping what is below each of them: no table of all entries is needed,
//! whatever their number. A bounded cache holds frames in a compact form. Entries of a tar stream
//! are in its order and paths in any spelling, so their first use builds a table of paths, within a
//! limit of memory.
//!
//! Names that a directory cannot hold (empty, `.`, `..`) and paths that lead through them do not
//! exist in the tree. Symbolic links are not followed.

mod attributes;
mod frame;
mod frames;
mod links;
mod members;
mod navigation;
mod node;
mod operations;
mod options;
mod paths;
mod position;
mod spelling;
mod table;
#[cfg(test)]
mod tests;
mod walk_order;

pub use attributes::Attributes;
pub use node::NodeId;
pub use operations::{Child, FileContent, Tree};
pub use options::TreeOptions;
pub use walk_order::{WalkPosition, WalkedFile};
